// Whether an explorer is live: a word beside its buttons.
import { find } from "../dom.mjs";
/** @import { EngineState } from "../engine.mjs" */

/** @type {Partial<Record<EngineState, string>>} */
const WORDS = { asleep: "", starting: "starting…", live: "live" };

/** @param {HTMLElement} root */
function statusBox(root) {
  const there = find(root, ".ex-status", HTMLElement);
  if (there) return there;
  const box = Object.assign(document.createElement("span"), { className: "ex-status" });
  box.setAttribute("role", "status");
  (find(root, ".ex-buttons", HTMLElement) ?? root).append(box);
  return box;
}

/**
 * Gives an explorer its word, and returns what changes it.
 * @param {HTMLElement} root
 */
export function addStatus(root) {
  const box = statusBox(root);
  /** @param {EngineState} state @param {string} [problem] */
  return (state, problem) => {
    root.dataset.live = state;
    box.dataset.state = state;
    box.textContent = WORDS[state] ?? `Not live: ${problem}. What you see is the starting view.`;
  };
}
