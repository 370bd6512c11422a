// New content for an element: what stays the same is not laid out or painted again.

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
  const before = [...old.childNodes], after = [...fresh.childNodes];
  if (before.length === after.length) before.forEach((node, place) => morph(node, after[place]));
  else old.replaceChildren(...after);
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
  } else if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
}

/**
 * @param {Element} old
 * @param {Element} fresh
 */
function morphAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.attributes.length === fresh.attributes.length) return;
  for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
}
