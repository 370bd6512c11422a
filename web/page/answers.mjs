// Answer boxes: what is typed goes to the library's check; the page only shows what it says.
import { all, find, need } from "./dom.mjs";
import { record, read } from "./progress.mjs";
import { words } from "./words.mjs";
/** @import { Engine } from "./engine.mjs" */

/** @type {Record<string, string>} */
const SIGNS = { right: "✓", wrong: "✗", unread: "?", open: "…" };

/** @param {Engine} engine */
export function setUpAnswers(engine) {
  for (const form of all(document, "form.answer-box", HTMLFormElement)) new AnswerBox(form, engine).listen();
}

class AnswerBox {
  /**
   * @param {HTMLFormElement} form
   * @param {Engine} engine
   */
  constructor(form, engine) {
    this.form = form;
    this.engine = engine;
    this.key = form.dataset.check ?? "";
    this.result = need(form, ".answer-result", HTMLElement);
    if (read()[this.key]?.solved) this.tell("kept", "✓ Solved before.");
  }

  listen() {
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.judge(); });
    const hint = find(this.form, ".answer-hint", HTMLButtonElement);
    hint?.addEventListener("click", () => this.hint(hint));
  }

  /**
   * @param {string} state
   * @param {string} text
   */
  tell(state, text) {
    this.result.dataset.state = state;
    this.result.textContent = text;
  }

  /** @param {unknown} problem */
  fail(problem) { this.tell("failed", `Not checked: ${words(problem)}. The notebook checks the same answer.`); }

  /** What was chosen or typed. */
  given() {
    const chosen = find(this.form, "input[type=radio]:checked", HTMLInputElement);
    return (chosen ?? find(this.form, "input[type=text]", HTMLInputElement))?.value ?? "";
  }

  async judge() {
    const text = this.given();
    if (!text.trim()) {
      this.tell("open", "… Write or choose an answer first.");
      return;
    }
    if (this.engine.state !== "live") this.tell("starting", "Starting Python…");
    try {
      const { ok, status, message } = await this.engine.ask("judge", this.key, text);
      this.tell(status, `${SIGNS[status] ?? ""} ${message}`);
      if (status === "right" || status === "wrong") {
        record(this.key, (before) => ({ solved: before.solved || ok, tries: before.tries + 1 }));
      }
    } catch (problem) { this.fail(problem); }
  }

  /** Show the next hint. @param {HTMLButtonElement} button */
  async hint(button) {
    const hints = need(this.form, ".answer-hints", HTMLElement);
    button.disabled = true;
    try {
      const { n, of, text } = await this.engine.ask("hint", this.key, hints.children.length + 1);
      if (n) {
        hints.append(Object.assign(document.createElement("li"), { textContent: text }));
        record(this.key, (before) => ({ hints: Math.max(before.hints, n) }));
      }
      button.disabled = n >= of;
      button.textContent = n >= of ? "No more hints" : `Hint ${n + 1} of ${of}`;
    } catch (problem) {
      button.disabled = false;
      this.fail(problem);
    }
  }
}
