// Color mode: the system's, light, dark; a choice is stored in this browser.
import { all } from "../dom.mjs";

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

/** @param {string} mode */
function remember(mode) { try { localStorage.setItem("mode", mode); } catch { /* private window: not stored */ } }

/** @param {string} mode */
function showMode(mode) {
  root.dataset.mode = mode;
  root.dataset.theme = mode === "auto" ? (dark.matches ? "dark" : "light") : mode;
  for (const button of all(document, ".theme-switch-button", HTMLElement)) {
    button.title = `Color mode: ${mode === "auto" ? "system" : mode}`;
    button.setAttribute("aria-label", button.title);
  }
}

/** Switch to the next mode, in an order in which the first press always changes the visible colors. */
function nextMode() {
  const modes = dark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
  const mode = modes[(modes.indexOf(root.dataset.mode ?? "") + 1) % modes.length];
  remember(mode);
  showMode(mode);
}

export function setUpColorMode() {
  const again = () => showMode(root.dataset.mode || "auto");
  dark.addEventListener("change", again);
  again();
  for (const button of all(document, ".theme-switch-button", HTMLElement)) button.addEventListener("click", nextMode);
}
