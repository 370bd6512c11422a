// Search: results while typing, in the dialog that the page's script has opened and that loads this one.
import { book, bring } from "./book.mjs";
import { find, need } from "./dom.mjs";
import { Engine } from "./search/engine.mjs";
import { marked } from "./search/marks.mjs";

/** @typedef {import("./search/engine.mjs").Result} Result */

const dialog = need(document, "#search-dialog", HTMLDialogElement);
const field = need(dialog, "input", HTMLInputElement);
const list = Object.assign(document.createElement("ol"), { className: "found" });
const said = Object.assign(document.createElement("p"), { className: "found-said" });
said.setAttribute("role", "status");
dialog.append(said, list);

/** @type {Engine | undefined} */
let engine;
let wide = false;

/** What the two files of the index call. @param {any} told */
function take(told) {
  if (told.sections) engine = new Engine(told);
  else engine?.widen(told);
  show();
}

function failed() {
  said.textContent = "The index did not load: type on to try again.";
  wide = false;
}

/** @param {Result} result @param {string} query */
function entry(result, query) {
  const link = document.createElement("a");
  const to = new URL(result.page, book);
  to.hash = result.anchor;
  link.href = to.href;
  const title = Object.assign(document.createElement("strong"), { textContent: result.title });
  const where = Object.assign(document.createElement("span"), { textContent: result.title === result.book ? "" : result.book, className: "found-page" });
  const lead = document.createElement("span");
  lead.className = "found-lead";
  lead.append(...marked(result.lead, query));
  link.append(title, where, lead);
  link.addEventListener("click", () => {
    try { sessionStorage.setItem("found", query); } catch {} // a browser that keeps nothing opens the section all the same
    dialog.close();
  });
  const item = document.createElement("li");
  item.append(link);
  return item;
}

function show() {
  const query = field.value.trim();
  const results = engine && query ? engine.ask(query) : [];
  list.replaceChildren(...results.map((result) => entry(result, query)));
  said.textContent = !query || !engine ? "" : results.length ? `${results.length} sections` : "Nothing has these words.";
}

field.addEventListener("input", () => {
  if (!wide) {
    wide = true;
    bring("search-whole.js").addEventListener("error", failed);
  }
  show();
});

dialog.addEventListener("keydown", (event) => {
  const links = [field, ...list.querySelectorAll("a")];
  const at = links.indexOf(/** @type {any} */ (document.activeElement));
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    links.at((at + (event.key === "ArrowDown" ? 1 : -1)) % links.length)?.focus();
  } else if (event.key === "Enter" && at === 0) {
    event.preventDefault();
    find(list, "a", HTMLAnchorElement)?.click();
  }
});

Object.assign(globalThis, { bookSearch: take });
bring("search-heads.js").addEventListener("error", failed);
