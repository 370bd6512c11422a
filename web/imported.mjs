// Which modules of the standard library do these imports load? Names as JSON in, paths within its archive out.
import { pathToFileURL } from "node:url";
import { text } from "node:stream/consumers";

const { loadPyodide } = await import(pathToFileURL(process.argv[2]).href);
const python = await loadPyodide();
python.globals.set("question", await text(process.stdin));
process.stdout.write(python.runPython(`
import contextlib, importlib, json, sys

for name in json.loads(question):
    with contextlib.suppress(ImportError):  # a name within a module, or a module of another system
        importlib.import_module(name)
origins = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
json.dumps(sorted({path for where, found, path in (o.partition(".zip/") for o in origins) if found}))
`));
