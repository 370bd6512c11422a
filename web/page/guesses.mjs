// Predict boxes: the marked answer below one stays hidden until the reader guesses or asks to see it.
// The head's script hides answers before the first paint. The library judges a number, the source's marking judges
// a choice, and the reader judges free text. Guesses are stored with the progress.
import { all, find, need } from "./dom.mjs";
import { read, record } from "./progress.mjs";
import { words } from "./words.mjs";

/** @import { Said } from "./kept.mjs" */

const ASKS = "scalingbook.asks"; // the value is no if the reader wants every answer shown
const JUDGED = { right: "Right", near: "Nearly right", wrong: "Not right" };
const WAITS = "[hidden='until-found']";
const page = location.pathname.replace(/^.*\/|\.html$/g, "");

/** @param {string} text @param {() => void} pressed */
function button(text, pressed) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  made.addEventListener("click", pressed);
  return made;
}

class Guess {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.key = form.dataset.guess ?? "";
    this.asked = [...form.childNodes]; // the form before any guess
    /** @type {HTMLElement[]} */
    this.blocks = [];
    for (let next = form.nextElementSibling; next && this.blocks.length < 2; next = next.nextElementSibling) {
      if (next instanceof HTMLElement && next.matches(".answer")) this.blocks.push(next);
      else if (this.blocks.length) { this.blocks.push(...all(next, ".answer-output", HTMLElement)); break; }
      else break;
    }
    form.addEventListener("submit", (event) => { event.preventDefault(); this.give(need(form, "input", HTMLInputElement).value.trim()); });
    need(form, ".guess-show", HTMLButtonElement).addEventListener("click", () => this.keep("", "shown"));
    for (const choice of all(form, ".guess-choices button", HTMLButtonElement)) choice.addEventListener("click", () => this.give(choice.value));
    for (const block of this.blocks) block.addEventListener("beforematch", () => this.show());
    const kept = read()[this.key];
    if (kept?.guess) this.say(kept);
    else if (!this.blocks.some((block) => block.matches(WAITS))) form.hidden = true; // a page search has revealed it
  }

  /** Show the answer without a guess, and store only that. */
  show() {
    for (const block of this.blocks) block.hidden = false;
    this.form.hidden = !read()[this.key]?.guess;
  }

  /** Hide the answer again if no guess was given. */
  wait() {
    if (read()[this.key]?.guess) return;
    this.form.replaceChildren(...this.asked);
    this.form.hidden = false;
    for (const block of this.blocks) block.setAttribute("hidden", "until-found");
  }

  /** @param {string} guess */
  async give(guess) {
    if (!guess) { this.keep("", "shown"); return; }
    const { value, unit } = this.form.dataset;
    const chosen = find(this.form, ".guess-choices", HTMLElement);
    if (chosen) this.keep(guess, guess === value ? "right" : "wrong");
    else if (value) await this.judge(guess, value, unit ?? "");
    else this.keep(guess, "");
  }

  /** Let the library judge a number. @param {string} guess @param {string} value @param {string} unit */
  async judge(guess, value, unit) {
    this.keep(guess, "");
    this.form.replaceChildren(`You said: ${guess}. Starting Python to compare…`);
    try {
      const { engine } = await import(new URL("live.mjs", import.meta.url).href);
      const { ok, status, message } = await engine.ask("guess", guess, value, unit);
      if (status === "unread") this.say(read()[this.key] ?? {}, message);
      else this.keep(guess, ok ? "right" : "wrong", message);
    } catch (problem) { this.say(read()[this.key] ?? {}, `Could not compare: ${words(problem)}.`); }
  }

  /** @param {string} guess @param {string} judged @param {string} [how] */
  keep(guess, judged, how) {
    const warning = record(this.key, () => ({ solved: judged === "right", guess, judged, page }));
    this.show();
    if (guess) this.say(read()[this.key] ?? {}, how, warning);
  }

  /** @param {Said} kept @param {string} [how] near it was @param {string} [warning] */
  say(kept, how = "", warning = "") {
    const judged = JUDGED[/** @type {keyof typeof JUDGED} */ (kept.judged)];
    const told = judged ? `${judged}${how ? `: ${how.charAt(0).toLowerCase()}${how.slice(1)}` : "."}` : how || "Were you right?";
    this.form.replaceChildren(`You said: ${kept.guess}. ${told} ${warning}`.trim());
    if (!judged) for (const [name, text] of Object.entries(JUDGED)) this.form.append(button(text, () => this.keep(kept.guess ?? "", name)));
    this.form.hidden = false;
  }
}

/** A summary of the guesses on the book's last page, page by page in the order of the contents. */
function report() {
  const place = find(document, "#conclusion > h1, section:has(> #conclusion) > h1", HTMLElement);
  const judged = Object.entries(read()).filter(([key, one]) => key.startsWith("guess.") && one.judged && one.judged !== "shown");
  if (!place || !judged.length) return;
  const order = all(document, "nav.bd-links a.reference", HTMLAnchorElement).map((a) => a.pathname.replace(/^.*\/|\.html$/g, ""));
  const pages = [...new Set(judged.map(([, one]) => one.page ?? ""))].toSorted((one, other) => order.indexOf(one) - order.indexOf(other));
  const told = pages.map((name) => {
    const own = judged.filter(([, one]) => one.page === name);
    return `${name}: ${own.filter(([, one]) => one.judged !== "wrong").length} of ${own.length}`;
  });
  place.after(Object.assign(document.createElement("p"), { className: "guess-report", textContent: `Your guesses, right or nearly: ${told.join("; ")}.` }));
}

const guesses = all(document, "form.guess", HTMLFormElement).map((form) => new Guess(form));
const state = document.documentElement.dataset;

/** Show all answers of this page, and if the reader chooses so, of every page. @param {string} said */
function setAll(said) {
  if (said !== "page") try { localStorage.setItem(ASKS, said === "hide" ? "yes" : "no"); } catch {} // kept for this page alone
  state.answers = said === "hide" ? "hidden" : "shown";
  for (const guess of guesses) if (said === "hide") guess.wait(); else guess.show();
  label();
}

/** Label the setting in the panel with what pressing it does. */
function label() {
  for (const toggle of all(document, "[data-guesses]", HTMLElement)) {
    toggle.textContent = state.answers === "hidden" ? "Never hide answers" : "Hide answers until I guess";
    toggle.hidden = false;
  }
}

/** Show an answer when a link leads into it. */
function reveal() {
  const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  target?.closest(WAITS)?.dispatchEvent(new Event("beforematch"));
}

addEventListener("click", ({ target }) => {
  const pressed = target instanceof Element ? target.closest("[data-answers], [data-guesses]") : null;
  if (!(pressed instanceof HTMLButtonElement)) return;
  setAll(pressed.dataset.answers ?? (state.answers === "hidden" ? "show" : "hide"));
});
addEventListener("hashchange", reveal);
label();
reveal();
report();
