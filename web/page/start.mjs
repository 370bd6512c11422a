// Decides when a page's Python starts: on a touch, or when a live box is near and the browser is idle.
import { idle } from "./dom.mjs";
/** @import { Engine } from "./engine.mjs" */

const LONGEST_MS = 5000; // the longest wait for an idle browser

/**
 * Start the engine when a box is touched, or when one is near the window and the browser is idle.
 * @param {HTMLElement[]} boxes
 * @param {Engine} engine
 */
export function startBeside(boxes, engine) {
  const start = () => engine.start();
  for (const box of boxes) {
    for (const touch of ["pointerdown", "focusin", "keydown"]) box.addEventListener(touch, start, { once: true, passive: true });
  }
  if (boxes.some((box) => box.contains(document.activeElement))) start();
  const watch = () => startNear(boxes, start);
  if (document.readyState === "complete") watch(); else addEventListener("load", watch);
}

/**
 * @param {HTMLElement[]} boxes
 * @param {() => void} start
 */
function startNear(boxes, start) {
  if (navigator.connection?.saveData) return;
  const near = new IntersectionObserver((changes) => {
    if (!changes.some((one) => one.isIntersecting)) return;
    near.disconnect();
    idle(start, LONGEST_MS);
  }, { rootMargin: "50% 0px" });
  for (const box of boxes) near.observe(box);
}
