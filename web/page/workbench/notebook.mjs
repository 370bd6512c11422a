// A notebook of the set-ups: the cell that carries the library, from a notebook of the book, and the lines that use it.
import { book } from "../book.mjs";
/** @import { Queue } from "./queue.mjs" */
/** @import { Values } from "./setup.mjs" */

/**
 * @param {Values[]} setups
 * @param {Queue} queue
 */
export async function saved(setups, queue) {
  const response = await fetch(new URL("notebooks/chapters/conclusion.ipynb", book));
  if (!response.ok) throw new Error(`the server answered ${response.status} for the notebook of a chapter`);
  const { cells: [first], metadata } = await response.json();
  const { cells, error } = await queue.ask({ ask: "notebook", setups });
  if (error) throw new Error(error);
  const told = [made("markdown", "# A setup of the Workbench\n\nThe first cell brings the library."), first];
  for (const { kind, source } of cells) told.push(made(kind, source));
  for (const [at, cell] of told.entries()) Object.assign(cell, { id: `workbench-${at}` });
  return JSON.stringify({ cells: told, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1);
}

/**
 * @param {string} kind
 * @param {string} source
 */
function made(kind, source) {
  const cell = { cell_type: kind, metadata: {}, source };
  return kind === "code" ? { ...cell, execution_count: null, outputs: [] } : cell;
}
