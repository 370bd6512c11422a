// Search: shows results while the reader types; the page's script opens the dialog and loads this module.
import MiniSearch from "minisearch";
import { book, loadScript } from "./book.mjs";
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
/** @type {Set<string>} files of the index that are loaded or on their way */
const requested = new Set();

/** The function that the three index files call. @param {any} told */
function take(told) {
  if (told.sections) engine = new Engine(told, MiniSearch);
  if (told.index) engine?.widen(told);
  if (told.texts && engine) engine.texts = told.texts;
  load();
  show();
}

/** Load the titles, then, for a query, the rest: it may have been typed before the titles or this script arrived. */
function load() {
  if (!engine) request("search-heads.js");
  else if (field.value) for (const name of ["search-whole.js", "search-texts.js"]) request(name);
}

/** @param {string} name */
function request(name) {
  if (requested.has(name)) return;
  requested.add(name);
  loadScript(name).addEventListener("error", () => {
    requested.delete(name);
    said.textContent = "The index did not load. Keep typing to try again.";
  });
}

/** @param {Result} result */
function entry(result) {
  const link = document.createElement("a");
  const to = new URL(result.page, book);
  to.hash = result.anchor;
  link.href = to.href;
  const title = Object.assign(document.createElement("strong"), { textContent: result.title });
  const where = Object.assign(document.createElement("span"), { textContent: result.where, className: "found-page" });
  const lead = document.createElement("span");
  lead.className = "found-lead";
  lead.append(...marked(result.excerpt, result.words));
  link.append(title, where, lead);
  link.addEventListener("click", () => {
    try { sessionStorage.setItem("found", [...result.words].join(" ")); } catch {} // a browser that keeps nothing opens the section all the same
    dialog.close();
  });
  const item = document.createElement("li");
  item.append(link);
  return item;
}

/** @param {string} absent @param {number} count */
function summary(absent, count) {
  if (absent) return `“${absent}” is not in this book. The nearest section${count > 1 ? " comes first" : ""}:`;
  return count ? `${count} section${count > 1 ? "s" : ""}` : "No results for these words.";
}

function show() {
  const query = field.value.trim();
  const { absent, results } = engine && query ? engine.ask(query) : { absent: "", results: [] };
  list.replaceChildren(...results.map(entry));
  said.textContent = query && engine ? summary(absent, results.length) : "";
}

field.addEventListener("input", () => {
  load();
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
load();
