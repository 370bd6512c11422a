// What a screen reader hears: one voice for a page, that speaks when its explorers rest, and says nothing twice.
import { find } from "../dom.mjs";

const QUIET_MS = 800; // longer than a step that plays: what a drag or a player passes by is not read out

/** @type {HTMLElement | undefined} */
let voice;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let resting;

/** Put the voice on the page before it has anything to say: browsers tell readers of changes only. */
export function addVoice() {
  voice = Object.assign(document.createElement("p"), { className: "spoken" });
  voice.setAttribute("role", "status");
  (find(document, "article", HTMLElement) ?? document.body).append(voice);
}

/** @param {string} text */
export function say(text) {
  clearTimeout(resting);
  resting = setTimeout(() => { if (voice && voice.textContent !== text) voice.textContent = text; }, QUIET_MS);
}
