// The glossary's filter box: keeps only the entries whose term or meaning contains the typed text.
import { all, find } from "../dom.mjs";

/** @typedef {{ rows: HTMLElement[], heads: string, text: string }} Entry the rows of forms and meaning, and their text */

/** Lower-case text with a single space before each word, so that typed text matches at the start of a word. @param {string} said */
const spelled = (said) => ` ${said.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim()}`;

/** @param {HTMLElement} list @returns {Entry[]} */
function entries(list) {
  /** @type {Entry[]} */
  const found = [];
  /** @type {HTMLElement[]} */
  let heads = [];
  for (const row of all(list, ":scope > :is(dt, dd)", HTMLElement)) {
    heads.push(row);
    if (row.tagName === "DD") {
      const said = heads.map((one) => spelled(one.textContent ?? ""));
      found.push({ rows: heads, heads: said.slice(0, -1).join("\n"), text: said.join("\n") });
      heads = [];
    }
  }
  return found;
}

export function setUpGlossary() {
  const list = find(document, "dl.glossary", HTMLElement);
  const row = find(document, ".glossary-filter", HTMLElement);
  const box = row && find(row, "input", HTMLInputElement);
  const status = row && find(row, "[role=status]", HTMLElement);
  if (!list || !row || !box || !status) return;
  const known = entries(list);
  const filter = () => {
    const asked = spelled(box.value);
    const named = known.filter((one) => one.heads.includes(asked));
    const kept = new Set(named.length ? named : known.filter((one) => one.text.includes(asked)));
    for (const one of known) for (const part of one.rows) part.hidden = !kept.has(one);
    status.textContent = asked.trim() ? `${kept.size} of ${known.length}` : "";
  };
  box.addEventListener("input", filter);
  addEventListener("hashchange", () => { box.value = ""; filter(); }); // a link may lead to a hidden entry
  if (box.value) filter();
}
