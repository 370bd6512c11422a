// The reader's progress, stored only in this browser: counts in the contents, export, import, erase.
import { book } from "./book.mjs";
import { all, find, need } from "./dom.mjs";
import { entries, exported, imported } from "./kept.mjs";
import { save } from "./save.mjs";
import { words } from "./words.mjs";

/** @import { Entry, Progress } from "./kept.mjs" */
/** @typedef {(text: string) => void} Note shows a message below the panel's buttons */

const STORE = "scalingbook.progress";
const SURE_MS = 6000; // how long a first press on Erase is remembered
const UNKEPT = "Not saved: this browser does not store data here (a private window, or no storage left). Export saves a copy.";
const pages = globalThis.bookExercises ?? {}; // the build inserts it above
/** @type {Progress | undefined} */
let unkept; // progress that the browser could not store lasts as long as the page

/** The progress stored in this browser; empty if the stored text is not valid. @returns {Progress} */
export function read() {
  try { return unkept ?? entries(JSON.parse(stored() ?? "null")); } catch { return {}; }
}

/** The text stored in this browser, or null if there is none. */
function stored() { try { return localStorage.getItem(STORE); } catch { return null; } }

/** @param {Progress} progress @returns a message for the reader if nothing could be stored */
function write(progress) {
  unkept = undefined;
  try { localStorage.setItem(STORE, JSON.stringify(progress)); } catch { unkept = progress; }
  show(progress);
  return unkept ? UNKEPT : "";
}

/**
 * Change the entry of one exercise.
 * @param {string} key
 * @param {(before: Entry) => Partial<Entry>} change
 * @returns a message for the reader if it could not be stored
 */
export function record(key, change) {
  const progress = read();
  const before = progress[key] ?? { solved: false, tries: 0, hints: 0 };
  const changed = change(before), said = "answer" in changed || "guess" in changed;
  progress[key] = { ...before, ...changed, ...(said && { when: new Date().toISOString() }) };
  return write(progress);
}

/** @param {Progress} progress */
function show(progress) {
  let solved = 0, total = 0;
  for (const [page, keys] of Object.entries(pages)) {
    const done = keys.filter((key) => progress[key]?.solved).length;
    solved += done;
    total += keys.length;
    for (const link of tocLinks(page)) label(link, done, keys.length);
  }
  for (const panel of all(document, ".progress-panel", HTMLElement)) {
    panel.hidden = total === 0;
    need(panel, ".progress-total", HTMLElement).textContent = `${solved} of ${total} exercises`;
    Object.assign(need(panel, "progress", HTMLProgressElement), { max: Math.max(total, 1), value: solved });
  }
  for (const box of all(document, ".answer-box", HTMLElement)) {
    box.classList.toggle("solved", Boolean(progress[box.dataset.check ?? ""]?.solved));
  }
}

/**
 * A chapter's links in the table of contents.
 * @param {string} page
 */
function tocLinks(page) {
  const target = new URL(page, book);
  return all(document, ".bd-sidebar-primary a.reference, #pst-primary-sidebar-modal a.reference", HTMLAnchorElement)
    .filter((a) => a.pathname === target.pathname);
}

/**
 * @param {HTMLElement} link
 * @param {number} done
 * @param {number} count
 */
function label(link, done, count) {
  const badge = find(link, ".progress-count", HTMLElement) ?? link.appendChild(document.createElement("span"));
  badge.className = "progress-count";
  badge.textContent = `${done}/${count}`;
  badge.title = `${done} of ${count} exercises solved`;
  badge.classList.toggle("all", done === count);
}

/** @type {Record<string, (note: Note, button: HTMLElement) => void>} */
const actions = {
  export(note) {
    save(exported(read()), "application/json", "scalingbook-progress.json");
    note("Saved as scalingbook-progress.json.");
  },
  import(note) {
    const input = Object.assign(document.createElement("input"), { type: "file", accept: "application/json,.json" });
    input.addEventListener("change", async () => {
      const [file] = input.files ?? [];
      if (!file) return;
      try {
        const found = await imported(file), known = Object.keys(entries(found)).length;
        const left = Object.keys(found).length - known;
        const told = `Imported: ${known} exercises and guesses${left > 0 ? `; ${left} more could not be read` : ""}.`;
        note(write(entries(found, read())) || told);
      } catch (problem) {
        note(`Not imported: ${words(problem)}. Choose a file that Export wrote.`);
      }
    });
    input.click();
  },
  erase(note, button) {
    if (button.dataset.sure) {
      note(write({}) || "Erased.");
      delete button.dataset.sure;
      button.textContent = "Erase";
      return;
    }
    button.dataset.sure = "yes";
    button.textContent = "Erase all?";
    note("Press again to erase. Export keeps a copy.");
    setTimeout(() => { delete button.dataset.sure; button.textContent = "Erase"; }, SURE_MS);
  },
};

const held = read();
const warning = Object.keys(held).length || stored() === null ? write(held) : ""; // a failure to store shows at once
show(held);
for (const panel of all(document, ".progress-panel", HTMLElement)) {
  /** @type {Note} */
  const note = (text) => { need(panel, ".progress-note", HTMLElement).textContent = text; };
  if (warning) note(warning);
  for (const button of all(panel, "[data-progress]", HTMLElement)) {
    button.addEventListener("click", () => actions[button.dataset.progress ?? ""](note, button));
  }
}
addEventListener("storage", (event) => { if (event.key === STORE) show(read()); });
