// A notebook that repeats set-ups: the cell that carries the library, from a notebook of the book, and the commands.
import { book } from "../book.mjs";
/** @import { Queue } from "./queue.mjs" */
/** @import { Values } from "./setup.mjs" */

/** @param {string} source */
const code = (source) => ({ cell_type: "code", execution_count: null, metadata: {}, outputs: [], source });
/** @param {string} source */
const text = (source) => ({ cell_type: "markdown", metadata: {}, source });

/**
 * @param {Values[]} setups
 * @param {Queue} queue
 */
export async function saved(setups, queue) {
  const response = await fetch(new URL("notebooks/chapters/conclusion.ipynb", book));
  const { cells: [first], metadata } = await response.json();
  const cells = [text("# A set-up of the workbench\n\nThe first cell brings the library."), first];
  for (const setup of setups) {
    const { lines, error } = await queue.ask({ ask: "lines", setups: [setup] });
    if (error) throw new Error(error);
    if (setup.config) cells.push(code(`from pathlib import Path\n\nPath("config.json").write_text(${JSON.stringify(setup.config)})`));
    for (const line of lines) cells.push(text(`\`${line}\``), code(`from scalingbook_lib import cli\n\ncli.main(${JSON.stringify(split(line))});`));
  }
  for (const [at, cell] of cells.entries()) Object.assign(cell, { id: `workbench-${at}` });
  return JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1);
}

/**
 * The words of a command, without the program's name; what has spaces is in single quotes.
 * @param {string} line
 */
function split(line) {
  return [...line.matchAll(/'((?:[^']|'"'"')*)'|(\S+)/g)].map(([, quoted, plain]) => quoted?.replaceAll(`'"'"'`, "'") ?? plain).slice(1);
}
