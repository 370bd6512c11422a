// The status of an explorer: a word beside its buttons that says whether it is live.
import { need } from "../dom.mjs";
/** @import { EngineState } from "../engine.mjs" */

/** @type {Partial<Record<EngineState, string>>} */
const WORDS = { asleep: "", starting: "starting…", live: "live" };

/**
 * The message of an explorer about a problem that keeps it from running.
 * @param {string} [problem]
 */
export const notLive = (problem) => `Not live: ${problem}. You see the starting view.`;

/**
 * Add an explorer's status word, and return the function that changes it. It is not announced to screen readers.
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
