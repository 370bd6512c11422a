// Typed element lookups: if a template has changed, they fail at once and name the missing element.

const IDLE_MS = 1500;

/**
 * The first element below another that a selector names, or null.
 * @template {Element} E
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new (...args: any[]) => E} kind
 * @returns {E | null}
 */
export function find(root, selector, kind) {
  const found = root.querySelector(selector);
  return found instanceof kind ? found : null;
}

/**
 * The same for an element that the page must have; throws if it is missing.
 * @template {Element} E
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new (...args: any[]) => E} kind
 * @returns {E}
 */
export function need(root, selector, kind) {
  const found = find(root, selector, kind);
  if (!found) throw new TypeError(`the page has no ${selector}`);
  return found;
}

/**
 * Every element below another that a selector names.
 * @template {Element} E
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new (...args: any[]) => E} kind
 * @returns {E[]}
 */
export function all(root, selector, kind) {
  return /** @type {E[]} */ ([...root.querySelectorAll(selector)].filter((one) => one instanceof kind));
}

/**
 * Do something when the browser has nothing else to do.
 * @param {() => void} run
 * @param {number} [wait_ms] the longest time to wait
 */
export function idle(run, wait_ms) {
  const ask = window.requestIdleCallback ?? ((/** @type {() => void} */ later) => setTimeout(later, IDLE_MS)); // Safari lacks it
  ask(run, wait_ms ? { timeout: wait_ms } : {});
}
