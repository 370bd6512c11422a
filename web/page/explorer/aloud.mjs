// The page's one live region for screen readers: it announces a text once the explorers are at rest, and never twice.
import { find } from "../dom.mjs";

const QUIET_MS = 800; // longer than a step of the player, so that intermediate states are not announced

/** @type {HTMLElement | undefined} */
let liveRegion;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Add the live region while it is empty: browsers announce only changes of its text. */
export function addLiveRegion() {
  liveRegion = Object.assign(document.createElement("p"), { className: "spoken" });
  liveRegion.setAttribute("role", "status");
  (find(document, "article", HTMLElement) ?? document.body).append(liveRegion);
}

/** @param {string} text */
export function announce(text) {
  clearTimeout(timer);
  timer = setTimeout(() => { if (liveRegion && liveRegion.textContent !== text) liveRegion.textContent = text; }, QUIET_MS);
}
