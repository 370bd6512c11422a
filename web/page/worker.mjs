// The page's one worker: Python, and the library's own wheel. It answers paint, judge and hint with JSON.
import { loadPyodide } from "./live/pyodide.mjs";
import { words } from "./words.mjs";

const live = new URL("./live/", import.meta.url);
const START = `
import gc, sys
sys.path.insert(0, "/library.whl")
from scalingbook_lib.chapters.explorers import paint_json as paint
from scalingbook_lib.chapters.checks import hint_json as hint, judge_json as judge
gc.freeze()
`;

// a file that is missing fails the start at once: Python's own loader would wait for it
const ask = self.fetch.bind(self);
self.fetch = async (...request) => {
  const response = await ask(...request);
  if (!response.ok) postMessage({ failed: `${response.url.split("/").pop()}: the server answered ${response.status}` });
  return response;
};

/** @param {string} name of a file beside Python */
async function bytes(name) {
  const response = await fetch(new URL(name, live));
  return new Uint8Array(await response.arrayBuffer());
}

async function start() {
  const wheel = bytes("library.whl"); // while Python loads
  wheel.catch(() => {});
  const python = await loadPyodide({ indexURL: live.href });
  python.FS.writeFile("/library.whl", await wheel);
  python.runPython(START);
  return Object.fromEntries(["paint", "judge", "hint"].map((name) => [name, python.globals.get(name)]));
}

const calls = start();
calls.then(() => postMessage({ ready: true }), (problem) => postMessage({ failed: words(problem) }));

onmessage = async ({ data: { id, call, args } }) => {
  try {
    postMessage({ id, answer: (await calls)[call](...args) });
  } catch (problem) {
    postMessage({ id, answer: JSON.stringify({ error: words(problem) }) });
  }
};
