// Predict boxes ask: what follows one waits for a guess, or for a reader who says "just show me".
// Guesses are kept with the progress, judged by the reader, and counted where the book ends.
import { all, find } from "./dom.mjs";
import { read, record } from "./progress.mjs";

/** @import { Said } from "./kept.mjs" */

const ASKS = "scalingbook.asks"; // "no" where a reader wants no questions
const WAITING = 3; // blocks behind a box that hold its answer
const STOPS = "section, h2, h3, h4, .admonition.predict, .exercise, nav";
const JUDGED = { right: "right", near: "nearly", wrong: "no" };
const page = location.pathname.replace(/^.*\/|\.html$/g, "");

const asks = () => { try { return localStorage.getItem(ASKS) !== "no"; } catch { return true; } };
/** @param {boolean} on */
const setAsks = (on) => { try { localStorage.setItem(ASKS, on ? "yes" : "no"); } catch {} }; // kept for this page alone

/** What a box's answer is: the next blocks, up to a heading or another box. @param {Element} box */
function answer(box) {
  /** @type {HTMLElement[]} */
  const found = [];
  for (let next = box.nextElementSibling; next && found.length < WAITING && !next.matches(STOPS); next = next.nextElementSibling) {
    if (next instanceof HTMLElement) found.push(next);
  }
  return found;
}

/** @param {string} text @param {() => void} pressed */
function button(text, pressed) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  made.addEventListener("click", pressed);
  return made;
}

class Box {
  /** @param {HTMLElement} box @param {string} key */
  constructor(box, key) {
    this.key = key;
    this.blocks = answer(box);
    this.row = Object.assign(document.createElement("form"), { className: "guess" });
    box.append(this.row);
    const kept = read()[key];
    if (kept) this.said(kept);
    else if (asks() && this.blocks.length) this.ask();
  }

  ask() {
    const field = Object.assign(document.createElement("input"), { type: "text", maxLength: 80, autocomplete: "off" });
    const label = document.createElement("label");
    label.append("Your guess ", field);
    const see = Object.assign(document.createElement("button"), { type: "submit", textContent: "See" });
    this.row.append(label, see, button("Just show me", () => this.keep("", "shown")), button("Never ask", () => { setAsks(false); location.reload(); }));
    this.row.addEventListener("submit", (event) => { event.preventDefault(); this.keep(field.value.trim(), ""); });
    for (const block of this.blocks) {
      block.setAttribute("hidden", "until-found"); // the browser's own search still finds it
      block.addEventListener("beforematch", () => this.show());
    }
  }

  show() { for (const block of this.blocks) block.removeAttribute("hidden"); }

  /** @param {string} guess @param {string} judged */
  keep(guess, judged) {
    const warning = record(this.key, () => ({ solved: judged === "right", guess, judged, page }));
    this.show();
    this.said(read()[this.key] ?? {});
    this.row.append(warning);
  }

  /** @param {Said} kept */
  said(kept) {
    this.row.replaceChildren();
    if (!kept.guess) return;
    const told = Object.assign(document.createElement("span"), { textContent: `You said: ${kept.guess}. ` });
    this.row.append(told);
    if (kept.judged) told.textContent += `Right? ${JUDGED[/** @type {keyof typeof JUDGED} */ (kept.judged)] ?? ""}.`;
    else {
      told.textContent += "Were you right?";
      for (const [judged, text] of Object.entries(JUDGED)) this.row.append(button(text, () => this.keep(kept.guess ?? "", judged)));
    }
  }
}

/** How the guesses went, page by page in the order of the contents, where the book ends. */
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

/** A box's name: its section's, and which of that section's it is. @param {HTMLElement} box @param {number} at @param {HTMLElement[]} boxes */
function named(box, at, boxes) {
  const section = box.closest("section"), before = boxes.slice(0, at).filter((other) => other.closest("section") === section);
  return new Box(box, `guess.${section?.id ?? page}-${before.length + 1}`);
}

/** A link into what waits shows it. */
function reveal() {
  const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  target?.closest("[hidden='until-found']")?.dispatchEvent(new Event("beforematch"));
}

all(document, ".admonition.predict", HTMLElement).map(named);
for (const toggle of all(document, "[data-guesses]", HTMLElement)) {
  toggle.textContent = asks() ? "Do not ask for guesses" : "Ask for guesses";
  toggle.hidden = false;
  toggle.addEventListener("click", () => { setAsks(!asks()); location.reload(); });
}
addEventListener("hashchange", reveal);
reveal();
report();
