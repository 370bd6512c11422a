// When does a page's Python start? Its megabytes come for a reader who may use them.
import { idle } from "./dom.mjs";
/** @import { Engine } from "./engine.mjs" */

const LONGEST_MS = 5000; // until it starts beside what computes

/**
 * When what computes is touched, or is near and the browser has nothing else to do.
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
