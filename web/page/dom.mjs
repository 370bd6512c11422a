// Elements with the type that the code counts on: a template that changed is told at once, and by name.

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
 * The same where the page cannot be without it.
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
 * @param {number} [wait_ms] and then at the latest
 */
export function idle(run, wait_ms) {
  const ask = window.requestIdleCallback ?? ((/** @type {() => void} */ later) => setTimeout(later, IDLE_MS)); // Safari has none
  ask(run, wait_ms ? { timeout: wait_ms } : {});
}
