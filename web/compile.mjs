// Compiles Python sources with Pyodide: {path: text} as JSON in, {path: hex of a .pyc} out.
import { pathToFileURL } from "node:url";
import { text } from "node:stream/consumers";

const { loadPyodide } = await import(pathToFileURL(process.argv[2]).href);
const python = await loadPyodide();
python.globals.set("question", await text(process.stdin));
process.stdout.write(python.runPython(`
import json, marshal
from importlib.util import MAGIC_NUMBER

def pyc(path, text):
    code = compile(text, path, "exec", dont_inherit=True, optimize=0)
    return (MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)).hex()  # hash-based, unchecked

json.dumps({path: pyc(path, text) for path, text in json.loads(question).items()})
`));
