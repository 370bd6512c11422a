// What a reader has solved, kept in this browser only: counts in the contents, export, import, erase.
import { all, find, need } from "./dom.mjs";
import { save } from "./save.mjs";
import { words } from "./words.mjs";

/** @typedef {{ guess?: string, judged?: string, page?: string }} Guess what was said in a Predict box, and how near it was */
/** @typedef {{ solved: boolean, tries: number, hints: number, when?: string } & Guess} Entry what was done with one exercise */
/** @typedef {Record<string, Entry>} Progress by the exercise's key */
/** @typedef {(text: string) => void} Note says something below the panel's buttons */

const STORE = "scalingbook.progress";
const SURE_MS = 6000; // how long a first press on Erase is remembered
const { pages = {}, ordinals = {} } = globalThis.bookExercises ?? {}; // the build writes it above

/** What this browser holds; nothing where it holds something else. @returns {Progress} */
export function read() {
  try { return valid(JSON.parse(localStorage.getItem(STORE) ?? "null")); } catch { return {}; }
}

/**
 * The entries that have the form of an entry, by the keys of today: a file may hold anything, and an old one numbers.
 * @param {unknown} stored
 */
function valid(stored) {
  const entries = stored && typeof stored === "object" && !Array.isArray(stored) ? Object.entries(stored) : [];
  /** @type {Progress} */
  const progress = {};
  for (const [key, one] of entries) {
    if (/^[a-z_0-9]+\.[\w-]+$/.test(key) && one && typeof one === "object") add(progress, ordinals[key] ?? key, one);
  }
  return progress;
}

/**
 * Join what is known of one exercise: what was solved stays solved, and no count becomes smaller.
 * @param {Progress} progress
 * @param {string} key
 * @param {Entry} one
 */
function add(progress, key, one) {
  const before = progress[key];
  progress[key] = before ? {
    ...before, ...one,
    solved: Boolean(before.solved || one.solved),
    tries: Math.max(before.tries ?? 0, one.tries ?? 0),
    hints: Math.max(before.hints ?? 0, one.hints ?? 0),
  } : one;
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
    const text = JSON.stringify({ book: "scalingbook", version: 2, progress: read() }, null, 2);
    save(text, "application/json", "scalingbook-progress.json");
    note("Saved as scalingbook-progress.json.");
  },
  import(note) {
    const input = Object.assign(document.createElement("input"), { type: "file", accept: "application/json,.json" });
    input.addEventListener("change", async () => {
      try {
        const file = JSON.parse(await (input.files?.[0]?.text() ?? ""));
        if (file.book !== "scalingbook") throw new Error("not an export of this book");
        const progress = read();
        for (const [key, one] of Object.entries(valid(file.progress))) add(progress, key, one);
        write(progress);
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
const kept = read();
if (Object.keys(kept).length) write(kept); else show(kept); // what was kept under numbers is kept under names from now on
