// Whether an explorer is live: a word beside its buttons.
import { need } from "../dom.mjs";
/** @import { EngineState } from "../engine.mjs" */

/** @type {Partial<Record<EngineState, string>>} */
const WORDS = { asleep: "", starting: "starting…", live: "live" };

/**
 * What an explorer says of a problem that keeps it from moving.
 * @param {string} [problem]
 */
export const notLive = (problem) => `Not live: ${problem}. You see the starting view.`;

/**
 * Gives an explorer its word, and returns what changes it. A page has many and one voice: it is not read out here.
 * @param {HTMLElement} root
 */
export function addStatus(root) {
  const box = need(root, ".ex-status", HTMLElement);
  box.removeAttribute("role");
  /** @param {EngineState} state @param {string} [problem] */
  return (state, problem) => {
    root.dataset.live = state;
    box.dataset.state = state;
    box.textContent = WORDS[state] ?? notLive(problem);
  };
}
