// What a panel shows of its answers: a picture, sentences, tables, and the derivation behind a fold.

/** @typedef {{ title: string, columns: string[], rows: string[][], words: number[] }} Table */
/** @typedef {{ name: string, formula: string, numbers: string, value: string }} Line */
/** @typedef {{ told?: string[], searched?: string[], tables?: Table[], lines?: Line[], picture?: { wide: string, narrow: string, told: string }, error?: string }} Panel */

/**
 * @param {string} tag
 * @param {string} text
 */
function made(tag, text = "", name = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (name) element.className = name;
  return element;
}

/**
 * @param {HTMLElement} place
 * @param {Panel[]} found one for each set-up
 */
export function showPanel(place, found) {
  place.replaceChildren(...found.map((one) => {
    const column = made("div", "", "workbench-column");
    if (one.error) column.append(made("p", one.error, "workbench-refused"));
    if (one.picture) {
      const picture = made("div", "", "workbench-picture ex-figure fig"); // drawn by the library, from values that it has read
      picture.innerHTML = `<div class="fig-wide">${one.picture.wide}</div><div class="fig-narrow" hidden>${one.picture.narrow}</div>`;
      column.append(made("p", one.picture.told, "workbench-verdict"), picture);
    }
    column.append(...(one.told ?? []).map((line) => made("p", sentence(line))));
    const [first, ...rest] = one.tables ?? [];
    if (first) column.append(table(first));
    if (rest.length) column.append(folded("All tables", rest.map(table)));
    if (one.searched?.length) column.append(folded("What was searched", one.searched.map((line) => made("p", sentence(line)))));
    if (one.lines?.length) column.append(folded("How it is derived", [derivation(one.lines)]));
    return column;
  }));
}

/**
 * A line of a terminal as a sentence; the name of an option keeps its letters.
 * @param {string} line
 */
const sentence = (line) => line.replace(/^[a-z]+(?=[ ,])/, (word) => word[0].toUpperCase() + word.slice(1)).replace(/[^.]$/, "$&.");

/**
 * @param {string} title
 * @param {HTMLElement[]} parts
 */
function folded(title, parts) {
  const details = made("details");
  details.append(made("summary", title), ...parts);
  return details;
}

/** @param {Table} of */
function table({ title, columns, rows, words }) {
  const wrapped = made("div", "", "workbench-table"), drawn = made("table");
  wrapped.tabIndex = 0; // it scrolls where it is too wide
  wrapped.role = "region";
  wrapped.ariaLabel = title || "table";
  if (title) drawn.append(made("caption", title));
  if (columns.some(Boolean)) drawn.append(row(columns, words, true));
  drawn.append(...rows.map((one) => row(one, words, false)));
  wrapped.append(drawn);
  return wrapped;
}

/**
 * @param {string[]} cells
 * @param {number[]} inWords
 * @param {boolean} head
 */
function row(cells, inWords, head) {
  const line = made("tr");
  line.append(...cells.map((cell, at) => made(head && cell ? "th" : "td", cell, inWords.includes(at) ? "" : "workbench-number")));
  return line;
}

/** @param {Line[]} lines */
function derivation(lines) {
  const list = made("dl", "", "workbench-lines");
  for (const { name, formula, numbers, value } of lines) {
    list.append(made("dt", name), ...[formula, numbers, value].filter(Boolean).map((told) => made("dd", `= ${told}`)));
  }
  return list;
}

/**
 * @param {HTMLElement} place
 * @param {{ inputs: string[], rows: string[][], why: string[], error?: string }} answer
 */
export function showDifferences(place, { inputs, rows, why, error }) {
  if (error) { place.replaceChildren(made("p", error)); return; }
  const set = inputs.length ? `Set differently: ${inputs.join("; ")}.` : "Both are set alike: change something in the second.";
  const compared = rows.length ? [table({ title: "", columns: ["", "first", "second", "second / first"], rows, words: [0] })] : [];
  place.replaceChildren(made("p", set), ...why.map((line) => made("p", line)), ...compared);
}
