// The page's one worker: Python, and the library's own wheel. It answers what a page asks with JSON.
import { loadPyodide } from "./live/pyodide.mjs";
import { words } from "./words.mjs";

const live = new URL("./live/", import.meta.url);
const START = `
import gc, sys
sys.path.insert(0, "/library.whl")
from scalingbook_lib.chapters.explorers import paint_json as paint, place_json as place, table_json as table
from scalingbook_lib.chapters.checks import guess_json as guess, hint_json as hint, judge_json as judge
gc.freeze()
`;

const WORKBENCH = `
import sys, scalingbook_lib
sys.path.append("/workbench.whl")
scalingbook_lib.__path__.append("/workbench.whl/scalingbook_lib")
from scalingbook_lib.cli.workbench import workbench_json as workbench
`;

const AGAIN_MS = [500, 2000, 6000]; // a file that the network lost is asked for again after these waits
const ask = self.fetch.bind(self);

/** @param {number} ms */
const rest = (ms) => new Promise((done) => { setTimeout(done, ms); });

// a file that is missing fails the start at once: Python's own loader would wait for it
self.fetch = async (...request) => {
  for (let tries = 0; ; tries++) {
    const last = tries === AGAIN_MS.length;
    try {
      const response = await ask(...request);
      if (response.ok) return response;
      const name = response.url.split("/").pop();
      if (response.status < 500 || last) {
        postMessage({ failed: `${name}: the server answered ${response.status}`, lost: response.status >= 500 });
        return response;
      }
    } catch (problem) {
      if (last) {
        postMessage({ failed: "the network is gone; a touch tries again", lost: true });
        throw problem;
      }
    }
    await rest(AGAIN_MS[tries]);
  }
};

/** @param {string} name of a file beside Python */
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
  let bench; // brought by its first question: other pages have none
  const workbench = async (/** @type {string} */ question) => (await (bench ??= bringWorkbench(python)))(question);
  return { ...known, workbench };
}

/** @param {any} python */
async function bringWorkbench(python) {
  python.FS.writeFile("/workbench.whl", await bytes("workbench.whl"));
  python.runPython(WORKBENCH);
  return python.globals.get("workbench");
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
