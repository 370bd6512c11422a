// Runs the core's tests inside Pyodide, offline: {files: {path: text}, packed: {path: base64}, arguments: [...]} as JSON in, pytest's words out.
// Every test that `make test` runs, of those with many cases the first: the others have run where Python is ten times as fast.
import { pathToFileURL } from "node:url";
import { text } from "node:stream/consumers";

const { loadPyodide } = await import(pathToFileURL(process.argv[2]).href);
const python = await loadPyodide({ env: { HOME: "/home", PYTHONDONTWRITEBYTECODE: "1", TEST_SCOPE: "quick" } });
python.globals.set("question", await text(process.stdin));
try {
  process.exitCode = python.runPython(`
import base64, json, os, pathlib, sys
asked = json.loads(question)
for path, words in asked["files"].items():
    file = pathlib.Path("/book", path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(words, encoding="utf-8")
for path, packed in asked["packed"].items():
    file = pathlib.Path("/book", path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(base64.b64decode(packed))
os.chdir("/book")
sys.path[:0] = ["/book", "/book/site"]
import pytest
from tools.testing import scope

class OneCase:
    def pytest_collection_modifyitems(self, items):
        wanted = [item for item in reversed(items) if item.nodeid not in scope.slow()]
        items[:] = {(item.path, getattr(item, "originalname", item.name)): item for item in wanted}.values()

int(pytest.main(asked["arguments"], plugins=[OneCase()]))
`);
} catch (problem) {
  console.log((problem instanceof Error ? problem.message : String(problem)).slice(-3000)); // node would print a megabyte of source with it
  process.exitCode = 1;
}
