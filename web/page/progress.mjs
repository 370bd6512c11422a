// What a reader has solved, kept in this browser only: counts in the contents, export, import, erase.
import { all, find, need } from "./dom.mjs";
import { words } from "./words.mjs";

/** @typedef {{ solved: boolean, tries: number, hints: number, when?: string }} Entry what was done with one exercise */
/** @typedef {Record<string, Entry>} Progress by the exercise's key */
/** @typedef {(text: string) => void} Note says something below the panel's buttons */

const STORE = "scalingbook.progress";
const SURE_MS = 6000; // how long a first press on Erase is remembered
const chapters = globalThis.bookExercises ?? {}; // written by the build

/** What this browser holds; nothing where it holds something else. @returns {Progress} */
export function read() {
  try { return valid(JSON.parse(localStorage.getItem(STORE) ?? "null")); } catch { return {}; }
}

/**
 * The entries that have the form of an entry: a file may hold anything.
 * @param {unknown} stored
 */
function valid(stored) {
  const entries = stored && typeof stored === "object" && !Array.isArray(stored) ? Object.entries(stored) : [];
  return Object.fromEntries(entries.filter(([key, one]) => /^[a-z_0-9]+\.\w+$/.test(key) && one && typeof one === "object"));
}

/** @param {Progress} progress */
function write(progress) {
  try { localStorage.setItem(STORE, JSON.stringify(progress)); } catch { /* a private window: nothing is stored */ }
  show(progress);
}

/**
 * Change the entry of one exercise.
 * @param {string} key
 * @param {(before: Entry) => Partial<Entry>} change
 */
export function record(key, change) {
  const progress = read();
  const before = progress[key] ?? { solved: false, tries: 0, hints: 0 };
  progress[key] = { ...before, ...change(before), when: new Date().toISOString().slice(0, 10) };
  write(progress);
}

/**
 * @param {string} stem of a chapter
 * @param {Progress} progress
 */
function solvedIn(stem, progress) {
  return Object.entries(progress).filter(([key, one]) => key.startsWith(`${stem}.`) && one.solved).length;
}

/** @param {Progress} progress */
function show(progress) {
  let solved = 0, total = 0;
  for (const [stem, { page, count }] of Object.entries(chapters)) {
    const done = Math.min(solvedIn(stem, progress), count);
    solved += done;
    total += count;
    for (const link of tocLinks(page)) label(link, done, count);
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
  const target = new URL(page, new URL(document.documentElement.dataset.content_root || "./", location.href));
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
    const text = JSON.stringify({ book: "scalingbook", version: 1, progress: read() }, null, 2);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "scalingbook-progress.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    note("Saved as scalingbook-progress.json.");
  },
  import(note) {
    const input = Object.assign(document.createElement("input"), { type: "file", accept: "application/json,.json" });
    input.addEventListener("change", async () => {
      try {
        const file = JSON.parse(await (input.files?.[0]?.text() ?? ""));
        if (file.book !== "scalingbook") throw new Error("not an export of this book");
        write({ ...read(), ...valid(file.progress) });
        note("Imported.");
      } catch (problem) {
        note(`Not imported: ${words(problem)}. Choose a file that Export wrote.`);
      }
    });
    input.click();
  },
  erase(note, button) {
    if (button.dataset.sure) {
      write({});
      note("Erased.");
      delete button.dataset.sure;
      button.textContent = "Erase";
      return;
    }
    button.dataset.sure = "yes";
    button.textContent = "Erase all?";
    note("Press once more to erase; Export keeps a copy.");
    setTimeout(() => { delete button.dataset.sure; button.textContent = "Erase"; }, SURE_MS);
  },
};

for (const panel of all(document, ".progress-panel", HTMLElement)) {
  /** @type {Note} */
  const note = (text) => { need(panel, ".progress-note", HTMLElement).textContent = text; };
  for (const button of all(panel, "[data-progress]", HTMLElement)) {
    button.addEventListener("click", () => actions[button.dataset.progress ?? ""](note, button));
  }
}
addEventListener("storage", (event) => { if (event.key === STORE) show(read()); });
show(read());
