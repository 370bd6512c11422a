// What of the standard library may these sources import? {path: text} as JSON in, paths within its archive out:
// what Pyodide has loaded, and all that an import leads to, within functions too.
import { pathToFileURL } from "node:url";
import { text } from "node:stream/consumers";

const { loadPyodide } = await import(pathToFileURL(process.argv[2]).href);
const python = await loadPyodide();
python.globals.set("question", await text(process.stdin));
process.stdout.write(python.runPython(`
import ast, json, sys, zipfile

archive = next(path for path in sys.path if path.endswith(".zip"))
with zipfile.ZipFile(archive) as whole:
    sources = {path: whole.read(path) for path in whole.namelist() if path.endswith(".py")}

def imports(path, source):
    package = path.split("/")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".") for name in node.names)
        if isinstance(node, ast.ImportFrom):
            outer = package[:len(package) - node.level + 1] if node.level else []
            start = [*outer, *(node.module.split(".") if node.module else ())]
            yield from ([*start, name.name] for name in node.names)

def files(parts):
    stems = ("/".join(parts[:k + 1]) for k in range(len(parts)))
    return {path for stem in stems for path in (f"{stem}.py", f"{stem}/__init__.py") if path in sources}

origins = (getattr(module, "__file__", None) or "" for module in list(sys.modules.values()))
found = {path for path in (origin.removeprefix(f"{archive}/") for origin in origins) if path in sources}
waiting = list(json.loads(question).items())
reached = set()
while waiting:
    for parts in imports(*waiting.pop()):
        new = files(parts) - reached
        reached |= new
        waiting += ((path, sources[path]) for path in new)
json.dumps(sorted(found | reached))
`));
