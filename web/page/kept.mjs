// The stored progress of exercises and guesses: validated when read, and merged without loss when imported.

/** @typedef {{ answer?: string, guess?: string, judged?: string, page?: string, when?: string }} Said the last answer, or a Predict box's guess */
/** @typedef {{ solved: boolean, tries: number, hints: number } & Said} Entry the progress with one exercise */
/** @typedef {Record<string, Entry>} Progress by the exercise's key */

const BOOK = "scalingbook";
const VERSION = 1; // the version of the export format
const MOST_BYTES = 2 ** 20; // ten times an export with every answer
const MOST_LETTERS = 500;
const MOST_TIMES = 1e6;
const KEY = /^[a-z_0-9]+\.[\w-]{1,200}$/;
const WHEN = /^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$/;
/** @type {(keyof Said)[]} */
const SAID = ["answer", "guess", "judged", "page", "when"];

/** @param {unknown} found @returns {Record<string, any> | null} the object, or null if it is none */
const object = (found) => (found && typeof found === "object" && !Array.isArray(found) ? found : null);
/** @param {unknown} found */
const times = (found) => (Number.isInteger(found) ? Math.min(Math.max(Number(found), 0), MOST_TIMES) : 0);

/**
 * An entry with only the known fields of the right types, or null if it is not an entry.
 * @param {unknown} found
 * @returns {Entry | null}
 */
function entry(found) {
  const one = object(found);
  if (typeof one?.solved !== "boolean") return null;
  const said = SAID.filter((name) => typeof one[name] === "string" && (name !== "when" || WHEN.test(one[name])));
  const told = Object.fromEntries(said.map((name) => [name, one[name].slice(0, MOST_LETTERS)]));
  return { solved: one.solved, tries: times(one.tries), hints: times(one.hints), ...told };
}

/** The rank by which one of two answers is kept: text before none, then the newer one. @param {Entry} one */
function rank(one) {
  const words = one.answer || one.guess ? "1" : "0";
  return [words, one.when ?? "", one.judged ? "1" : "0", JSON.stringify(SAID.map((name) => one[name] ?? null))].join("\0");
}

/**
 * Merge two entries of one exercise: solved stays solved, no count becomes smaller, and the order does not matter.
 * @param {Entry} one
 * @param {Entry} [other]
 * @returns {Entry}
 */
export function joined(one, other = one) {
  return {
    ...(rank(one) > rank(other) ? one : other),
    solved: one.solved || other.solved,
    tries: Math.max(one.tries, other.tries),
    hints: Math.max(one.hints, other.hints),
  };
}

/**
 * Merge the valid entries of an object, by their keys, into others.
 * @param {unknown} found
 * @param {Progress} [others]
 */
export function entries(found, others = {}) {
  const progress = { ...others };
  for (const [key, value] of Object.entries(object(found) ?? {})) {
    const one = KEY.test(key) ? entry(value) : null;
    if (one) progress[key] = joined(one, progress[key]);
  }
  return progress;
}

/** The text of an export. @param {Progress} progress */
export const exported = (progress) => JSON.stringify({ book: BOOK, version: VERSION, progress }, null, 2);

/**
 * The progress in an exported file. Throws an error that says why a file is rejected.
 * @param {Blob} file
 */
export async function imported(file) {
  if (file.size > MOST_BYTES) throw new Error(`it has ${(file.size / 1e6).toFixed(1)} MB, and an export less than ${Math.floor(MOST_BYTES / 1e6)}`);
  const text = await file.text();
  /** @type {Record<string, any> | null} */
  let held;
  try { held = object(JSON.parse(text)); } catch { throw new Error("it is not JSON"); }
  if (held?.book !== BOOK) throw new Error("it is not an export of this book");
  if (!Number.isInteger(held.version) || held.version < 1) throw new Error("it does not state its version");
  if (held.version > VERSION) throw new Error("a later edition of the book wrote it; import it there");
  if (!object(held.progress)) throw new Error("its progress is not kept by exercise");
  return held.progress;
}
