// "Save the whole book": stores every page and what pages load in this browser; stored files are not fetched again.
import { book } from "./book.mjs";
import { need } from "./dom.mjs";
import { words } from "./words.mjs";

const AT_ONCE = 6;
const box = need(document, ".save-book", HTMLElement);
const button = Object.assign(document.createElement("button"), { type: "button" });
const bar = Object.assign(document.createElement("progress"), { hidden: true, ariaLabel: "Saved of the book" });
const said = document.createElement("p");
said.setAttribute("role", "status");

/** @param {number} bytes */
const megabytes = (bytes) => `${Math.ceil(bytes / 1e6)} MB`;

/** The files that are not stored yet, with their sizes in bytes. @param {Cache} store @param {Record<string, number>} files */
async function missing(store, files) {
  const kept = new Set((await store.keys()).map((request) => request.url));
  return Object.entries(files).filter(([name]) => !kept.has(new URL(name, book).href));
}

/** @param {[string, number][]} files */
const total = (files) => files.reduce((sum, [, bytes]) => sum + bytes, 0);

/** @param {Cache} store @param {[string, number][]} files */
async function save(store, files) {
  const waiting = [...files];
  bar.max = total(files);
  const fetchNext = async () => {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const url = new URL(next[0], book).href, response = await fetch(url, { cache: "no-cache" });
      if (!response.ok) throw new Error(`${next[0]}: the server answered ${response.status}`);
      await store.put(url, response);
      bar.value += next[1];
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, fetchNext)).catch((problem) => { waiting.length = 0; throw problem; });
}

/** @param {any} problem @param {[string, number][]} left */
function refusal(problem, left) {
  if (problem?.name === "QuotaExceededError") return `This browser has no storage left for ${megabytes(total(left))}. Free some, then press again.`;
  if (problem instanceof TypeError) return "The network connection was lost. Press again when it is back: what has arrived is kept.";
  return `Not saved: ${words(problem)}.`;
}

async function setUp() {
  if (!navigator.serviceWorker) throw new Error("it does so only for https addresses");
  const { build, files } = await (await fetch(new URL("_static/book.json", book))).json();
  const store = await caches.open(`${book} ${build}`); // the cache of the service worker, whose scope is the book
  let left = await missing(store, files);
  const show = (problem = "") => {
    button.hidden = !left.length;
    button.textContent = `Save the whole book (${megabytes(total(left))})`;
    said.textContent = problem || (left.length ? "" : "The whole book is kept in this browser.");
  };
  button.addEventListener("click", async () => {
    button.disabled = true;
    bar.value = 0;
    bar.hidden = false;
    said.textContent = "Saving …";
    let problem = "";
    navigator.storage?.persist?.(); // otherwise the browser may clear it when space is short
    try {
      await navigator.serviceWorker.register(new URL("offline.js", book));
      await save(store, left);
    } catch (reason) { problem = refusal(reason, left); }
    left = await missing(store, files);
    bar.hidden = true;
    button.disabled = false;
    show(problem);
  });
  show();
  box.append(button, bar, said);
}

setUp().catch((problem) => { said.textContent = `This browser keeps no pages: ${words(problem)}.`; box.append(said); });
