// Replaces an element's content and keeps the nodes that stay the same, so that they are not laid out or painted again.

/**
 * Give an element new content, touching only the nodes that differ.
 * @param {Element} element
 * @param {string} html
 */
export function become(element, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  morphChildren(element, fresh.content);
}

/**
 * @param {Node & ParentNode} old
 * @param {Node & ParentNode} fresh
 */
function morphChildren(old, fresh) {
  if (old.childNodes.length !== fresh.childNodes.length) { old.replaceChildren(...fresh.childNodes); return; }
  for (let one = old.firstChild, other = fresh.firstChild; one && other;) {
    const [before, after] = [one, other];
    [one, other] = [one.nextSibling, other.nextSibling]; // a replacement is removed from its siblings
    if (!before.isEqualNode(after)) morph(before, after); // the browser compares faster than a script
  }
}

/**
 * @param {ChildNode} old
 * @param {ChildNode} fresh
 */
function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName) old.replaceWith(fresh);
  else if (old instanceof Element && fresh instanceof Element) {
    morphAttributes(old, fresh);
    morphChildren(old, fresh);
  } else old.nodeValue = fresh.nodeValue;
}

/**
 * @param {Element} old
 * @param {Element} fresh
 */
function morphAttributes(old, fresh) {
  const names = fresh.getAttributeNames();
  for (const name of names) {
    const value = fresh.getAttribute(name) ?? "";
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.attributes.length === names.length) return;
  for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
}
