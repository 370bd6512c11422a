// Answer boxes: the typed answer goes to the library's check, and the page only shows the outcome.
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
    this.hints = need(form, ".answer-hints", HTMLElement);
    this.kept = read()[this.key];
    if (this.kept?.solved) this.tell("kept", "✓ Solved before.");
    if (this.kept?.answer) this.answer(this.kept.answer);
  }

  listen() {
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.judge(); });
    this.form.addEventListener("change", () => record(this.key, () => ({ answer: this.given() })));
    const hint = find(this.form, ".answer-hint", HTMLButtonElement);
    if (hint && this.kept?.hints) hint.textContent = this.kept.hints > 1 ? `Hints 1 to ${this.kept.hints} again` : "Hint 1 again";
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

  /** The chosen or typed answer. */
  given() {
    const chosen = find(this.form, "input[type=radio]:checked", HTMLInputElement);
    return (chosen ?? find(this.form, "input[type=text]", HTMLInputElement))?.value ?? "";
  }

  /** Restore an earlier answer. @param {string} text */
  answer(text) {
    const choice = all(this.form, "input[type=radio]", HTMLInputElement).find((one) => one.value === text);
    const field = find(this.form, "input[type=text]", HTMLInputElement);
    if (choice) choice.checked = true;
    else if (field && !field.value) field.value = text; // keep what was typed before this script ran
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
      const tried = status === "right" || status === "wrong" ? 1 : 0;
      const warning = record(this.key, (before) => ({ answer: text, solved: before.solved || ok, tries: before.tries + tried }));
      this.tell(status, `${SIGNS[status] ?? ""} ${message} ${warning}`.trim());
    } catch (problem) { this.fail(problem); }
  }

  /** Show the next hint; on the first call, show all hints that were seen before. @param {HTMLButtonElement} button */
  async hint(button) {
    button.disabled = true;
    try {
      const shown = this.hints.children.length;
      button.disabled = await this.hintsTo(Math.max(shown + 1, this.kept?.hints ?? 0), button);
    } catch (problem) {
      button.disabled = false;
      this.fail(problem);
    }
  }

  /** @param {number} last @param {HTMLButtonElement} button @returns {Promise<boolean>} whether that was the last hint */
  async hintsTo(last, button) {
    const { n, of, text } = await this.engine.ask("hint", this.key, this.hints.children.length + 1);
    if (n) {
      this.hints.append(Object.assign(document.createElement("li"), { textContent: text }));
      record(this.key, (before) => ({ hints: Math.max(before.hints, n) }));
    }
    button.textContent = !n || n >= of ? "No more hints" : `Hint ${n + 1} of ${of}`;
    return n && n < Math.min(last, of) ? this.hintsTo(last, button) : !n || n >= of;
  }
}
