// The page's one worker: it loads Python and the library's wheel, and answers each call of the page with JSON.
import { loadPyodide } from "./live/pyodide.mjs";
import { words } from "./words.mjs";

const live = new URL("./live/", import.meta.url);
const START = `
import gc, sys
sys.path.insert(0, "/library.whl")
from scalingbook_book.chapters.explorers import paint_json as paint, place_json as place, table_json as table
from scalingbook_book.chapters.checks import guess_json as guess, hint_json as hint, judge_json as judge
gc.freeze()
`;

const WORKBENCH = `
import sys
sys.path.append("/workbench.whl")
from scalingbook_cli.workbench import workbench_json as workbench
`;

const INSPECT = `
from scalingbook_book.inspection_page import inspect_json as inspect
`;

const RETRY_DELAYS_MS = [500, 2000, 6000]; // before each new request, after a network error or a status of 500 or more
const ask = self.fetch.bind(self);

/** @param {number} ms */
const delay = (ms) => new Promise((done) => { setTimeout(done, ms); });

// A missing file fails the start at once; Pyodide's own loader would wait for it.
self.fetch = async (...request) => {
  for (let attempts = 0; ; attempts++) {
    const last = attempts === RETRY_DELAYS_MS.length;
    try {
      const response = await ask(...request);
      if (response.ok) return response;
      const name = response.url.split("/").pop();
      if (response.status < 500 || last) {
        postMessage({ failed: `${name}: the server answered ${response.status}`, networkError: response.status >= 500 });
        return response;
      }
    } catch (problem) {
      if (last) {
        postMessage({ failed: "the network connection was lost; move a control to try again", networkError: true });
        throw problem;
      }
    }
    await delay(RETRY_DELAYS_MS[attempts]);
  }
};

/** @param {string} name a file in Python's folder */
async function bytes(name) {
  const response = await fetch(new URL(name, live));
  return new Uint8Array(await response.arrayBuffer());
}

/** @returns {Promise<Record<string, (...args: any[]) => any>>} */
async function start() {
  const wheel = bytes("library.whl"); // while Python loads
  wheel.catch(() => {});
  const python = await loadPyodide({ indexURL: live.href });
  python.FS.writeFile("/library.whl", await wheel);
  python.runPython(START);
  const known = Object.fromEntries(["paint", "place", "table", "judge", "guess", "hint"].map((name) => [name, python.globals.get(name)]));
  /** @type {Promise<(question: string) => string> | undefined} */
  let loaded; // loaded by its first call, because only the workbench page needs it
  const workbench = async (/** @type {string} */ question) => (await (loaded ??= loadWorkbench(python)))(question);
  /** @type {((question: string) => string) | undefined} */
  let inspector;
  const inspect = (/** @type {string} */ question) => (inspector ??= loadInspector(python))(question);
  return { ...known, workbench, inspect };
}

/** @param {any} python */
async function loadWorkbench(python) {
  python.FS.writeFile("/workbench.whl", await bytes("workbench.whl"));
  python.runPython(WORKBENCH);
  return python.globals.get("workbench");
}

/**
 * Imported by its first call, because only the page on compiled programs needs it.
 * @param {any} python
 * @returns {(question: string) => string}
 */
function loadInspector(python) {
  python.runPython(INSPECT);
  return python.globals.get("inspect");
}

const calls = start();
calls.then(() => postMessage({ ready: true }), (problem) => postMessage({ failed: words(problem) }));

onmessage = async ({ data: { id, call, args } }) => {
  try {
    const answers = (await calls)[call];
    postMessage({ id, answer: await answers(...args) });
  } catch (problem) {
    postMessage({ id, answer: JSON.stringify({ error: words(problem) }) });
  }
};
