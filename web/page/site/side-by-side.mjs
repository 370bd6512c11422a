// The tables of chips and of models: a click on a heading sorts by its column, and a box filters the rows.
import { all, find } from "../dom.mjs";

/** The sort key of a cell: its number, else its text; cells without a value come last. @param {Element} cell */
function sortKey(cell) {
  const value = cell instanceof HTMLElement ? cell.dataset.value : undefined;
  return value === undefined ? (cell.textContent ?? "").trim() : Number(value);
}

/** @param {number | string} one @param {number | string} other */
function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one === "number") return -1;
  if (typeof other === "number") return 1;
  return one.localeCompare(other);
}

/** @param {HTMLTableElement} table @param {number} at @param {boolean} descending */
function sort(table, at, descending) {
  const body = table.tBodies[0];
  const known = [...body.rows].filter((row) => row.cells[at].textContent !== "–");
  const unknown = [...body.rows].filter((row) => row.cells[at].textContent === "–");
  known.sort((one, other) => compare(sortKey(one.cells[at]), sortKey(other.cells[at])) * (descending ? -1 : 1));
  body.append(...known, ...unknown);
}

/** @param {HTMLTableElement} table */
function makeSortable(table) {
  const heads = [...table.tHead?.rows[0].cells ?? []];
  for (const [at, head] of heads.entries()) {
    find(head, "button", HTMLButtonElement)?.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending" || (!head.hasAttribute("aria-sort") && at > 2);
      for (const one of heads) one.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sort(table, at, descending);
    });
  }
}

/** @param {HTMLElement} box @param {HTMLTableElement} table */
function makeFilterable(box, table) {
  const tools = find(box, ".side-by-side-find", HTMLElement);
  const field = tools && find(tools, "input", HTMLInputElement);
  const status = tools && find(tools, "[role=status]", HTMLElement);
  if (!tools || !field || !status) return;
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) row.hidden = !wanted.every((word) => (row.textContent ?? "").toLowerCase().includes(word));
    status.textContent = wanted.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
  });
}

export function setUpSideBySide() {
  for (const box of all(document, ".side-by-side", HTMLElement)) {
    const table = find(box, "table", HTMLTableElement);
    if (!table) continue;
    makeSortable(table);
    makeFilterable(box, table);
  }
}
