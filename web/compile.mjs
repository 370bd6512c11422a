// Compiles with Pyodide what the page's worker imports: {archive: {path: source}} as JSON in,
// {archive: {path: hex of a .pyc}} out. The archive `standard` is added: what Pyodide has loaded of Python's own
// library, and all that an import of the sources leads to, within functions too.
import { pathToFileURL } from "node:url";
import { text } from "node:stream/consumers";

const { loadPyodide } = await import(pathToFileURL(process.argv[2]).href);
const python = await loadPyodide();
python.globals.set("question", await text(process.stdin));
process.stdout.write(python.runPython(`
import ast, json, marshal, sys, zipfile
from importlib.util import MAGIC_NUMBER

archive = next(path for path in sys.path if path.endswith(".zip"))
with zipfile.ZipFile(archive) as whole:
    standard = {path: whole.read(path).decode() for path in whole.namelist() if path.endswith(".py")}

def statements(tree):
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, part, ())

def imports(path, tree):
    package = path.split("/")[:-1]
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".") for name in node.names)
        if isinstance(node, ast.ImportFrom):
            outer = package[:len(package) - node.level + 1] if node.level else []
            start = [*outer, *(node.module.split(".") if node.module else ())]
            yield from ([*start, name.name] for name in node.names)

def files(parts):
    stems = ("/".join(parts[:k + 1]) for k in range(len(parts)))
    return {path for stem in stems for path in (f"{stem}.py", f"{stem}/__init__.py") if path in standard}

def pyc(path, tree):
    code = compile(tree, path, "exec", dont_inherit=True, optimize=0)
    return (MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)).hex()  # hash-based, unchecked

told = {}
waiting = [(name, path, source) for name, part in json.loads(question).items() for path, source in part.items()]
reached = set()
while waiting:
    name, path, source = waiting.pop()
    tree = ast.parse(source, path)
    told.setdefault(name, {})[path] = pyc(path, tree)
    new = set().union(*map(files, imports(path, tree))) - reached
    reached |= new
    waiting += (("standard", one, standard[one]) for one in new)
origins = (getattr(module, "__file__", None) or "" for module in list(sys.modules.values()))
loaded = {path for path in (origin.removeprefix(f"{archive}/") for origin in origins) if path in standard}
for path in sorted(loaded - reached):
    told["standard"][path] = pyc(path, ast.parse(standard[path], path))
json.dumps(told)
`));
