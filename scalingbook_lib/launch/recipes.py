"""Reads a recipe that is a Python function, as those of Megatron-Bridge and torchtitan, without executing it.

The syntax tree of the function is searched for values that are written out, in assignments such as
`cfg.train.micro_batch_size = 1` and in keyword arguments such as `training=TrainingConfig(steps=10)`.
Numbers, texts, lists of them, data types of PyTorch, constants of the module and defaults of parameters
count as written out. Every other line is named as not read.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from scalingbook_lib.launch.settings import MOST_CHARACTERS, LaunchError, Setting

_LAUNCHERS = (("megatron_bridge", "megatron.bridge"), ("torchtitan", "torchtitan"))
_CLASSES = {"FullAC": "full", "SelectiveAC": "selective"}  # of torchtitan's activation_checkpoint
_PRECISIONS = ("_perf_precision", "get_mixed_precision_config")  # of Megatron-Bridge; they take a name
_ALLOCATED = re.compile(r"_(\d+)gpu_([a-z]+\d+)_")
_MOST_NESTED = 20


@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings of a function in their order, and sentences on what they are and on what was not read."""

    launcher: str
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]


def read(text: str, file: str, function: str = "") -> Recipe:
    """The recipe of a file; a LaunchError lists its functions if there are several and none is named.

    >>> text = "import megatron.bridge\\ndef a_config():\\n  cfg = x()\\n  cfg.train.micro_batch_size = 2\\n"
    >>> [(one.name, one.value, one.line) for one in read(text, "a.py").settings][:1]
    [('train.micro_batch_size', 2, 4)]
    """
    if len(text) > MOST_CHARACTERS:
        raise LaunchError(f"{file} has more than {MOST_CHARACTERS:,} characters; give a shorter one")
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        raise LaunchError(f"{where}{file} is not valid Python; correct it") from error
    launcher = _launcher(module)
    if launcher is None:
        raise LaunchError(
            f"{file} is a Python program, which is not executed here, and not a recipe of Megatron-Bridge or "
            "torchtitan; give the command that starts it"
        )
    functions = {one.name: one for one in module.body if isinstance(one, ast.FunctionDef)}
    name = _chosen(functions, file, function)
    constants = {
        target.id: value
        for one in module.body
        if isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None
        for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
        if isinstance(target, ast.Name) and (value := _value(one.value, {})) is not _OPEN
    }
    found = _Function(functions, constants, text)
    found.body(functions[name], 0)
    settings = [Setting(path, value, line, file) for path, value, line in found.settings]
    settings += _of_name(launcher, name, found.flavor, functions[name].lineno, file)
    return Recipe(launcher, tuple(settings), tuple(_notes(name, file, found.open)))


def _notes(name: str, file: str, lines: list[tuple[int, str]]) -> Iterator[str]:
    yield f"The function {name} of {file} is read, not executed: only values that are written out count."
    for line, code in sorted(set(lines)):
        yield f"Line {line} is not read: {code}"


def _launcher(module: ast.Module) -> str | None:
    """Whose recipe it is, by what the file imports."""
    imported = [
        name
        for one in ast.walk(module)
        if isinstance(one, ast.Import | ast.ImportFrom)
        for name in ([one.module or ""] if isinstance(one, ast.ImportFrom) else [a.name for a in one.names])
    ]
    return next(
        (
            kind
            for kind, package in _LAUNCHERS
            if any(f"{name}.".startswith(f"{package}.") for name in imported)
        ),
        None,
    )


def _chosen(functions: dict[str, ast.FunctionDef], file: str, function: str) -> str:
    public = [name for name in functions if not name.startswith("_")]
    if function in functions:
        return function
    shown = ", ".join(public[:8]) + (", ..." if len(public) > 8 else "")
    if function:
        raise LaunchError(f"{file} has no function {function!r}; write one of {shown or 'another file'}")
    if len(public) != 1:
        raise LaunchError(
            f"{file} has {len(public)} recipes; write which, as in {file}:{public[0]}: {shown}"
            if public
            else f"{file} has no function that returns a recipe; give the file that has one"
        )
    return public[0]


def _of_name(launcher: str, name: str, flavor: str, line: int, file: str) -> Iterator[Setting]:
    """What the name of the function tells: the model, and for benchmarks the number and kind of GPUs."""
    if launcher == "torchtitan":
        if flavor:
            yield Setting("model.name", name.lower().partition(f"_{flavor.lower()}")[0], line, file)
            yield Setting("model.flavor", flavor, line, file)
        return
    yield Setting("recipe_function", name, line, file)
    if found := _ALLOCATED.search(name):
        yield Setting("--num_gpus", found[1], line, file)
        yield Setting("--gpu", found[2], line, file)


_OPEN = object()
"""A value that is not written out."""


@dataclass
class _Function:
    """What the statements of a function set, in their order."""

    functions: dict[str, ast.FunctionDef]
    constants: dict[str, object]
    text: str
    settings: list[tuple[str, object, int]] = field(default_factory=list)
    open: list[tuple[int, str]] = field(default_factory=list)
    flavor: str = ""

    def body(self, function: ast.FunctionDef, depth: int) -> None:
        """Read a function, and before its lines the one in the same file that it starts from."""
        if depth > _MOST_NESTED:
            raise LaunchError(f"{function.name} starts from itself; give another recipe")
        names, arguments = dict(self.constants), function.args
        named = [*arguments.posonlyargs, *arguments.args]
        defaults = zip(named[len(named) - len(arguments.defaults) :], arguments.defaults, strict=True)
        for argument, value in [*defaults, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]:
            if value is not None:
                names[argument.arg] = _value(value, names)
        for statement in function.body:
            self._statement(statement, names, depth)

    def _statement(self, one: ast.stmt, names: dict[str, object], depth: int) -> None:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            return  # a docstring
        if isinstance(one, ast.Return) and (one.value is None or isinstance(one.value, ast.Name)):
            return
        if isinstance(one, ast.Return):
            assert one.value is not None
            self._take("", one.value, names, depth)
        elif isinstance(one, ast.Assign) and len(one.targets) == 1:
            self._assign(one.targets[0], one.value, names, depth)
        elif isinstance(one, ast.AnnAssign) and one.value is not None:
            self._assign(one.target, one.value, names, depth)
        else:
            self._skip(one)

    def _assign(self, target: ast.expr, value: ast.expr, names: dict[str, object], depth: int) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = _value(value, names)
            if names[target.id] is _OPEN:
                self._take("", value, names, depth)
        elif path := _path(target):
            self._take(path.partition(".")[2], value, names, depth)
        else:
            self._skip(target)

    def _take(self, path: str, value: ast.expr, names: dict[str, object], depth: int) -> None:
        """The settings of a value: itself, or the keyword arguments of the call that makes it."""
        found = _value(value, names)
        if found is not _OPEN:
            if path:
                self.settings.append((path, found, value.lineno))
        elif isinstance(value, ast.Call):
            self._call(path, value, names, depth)
        else:
            self._skip(value)

    def _call(self, path: str, call: ast.Call, names: dict[str, object], depth: int) -> None:
        called = _path(call.func) or ""
        own = self.functions.get(called)
        if own and not call.args and not call.keywords and not path:
            self.body(own, depth + 1)
            return
        first = _value(call.args[0], names) if call.args else _OPEN
        if called == "model_registry" and isinstance(first, str):
            self.flavor = first
            if len(call.args) == 1 and not call.keywords:
                return
        if called.rpartition(".")[2] in _PRECISIONS and isinstance(first, str):
            self.settings.append((path, first, call.lineno))
            return
        if path == "mixed_precision" and not call.args and not call.keywords:
            self.settings.append((path, called.rpartition(".")[2], call.lineno))
            return
        kind = next((means for part, means in _CLASSES.items() if part in called.split(".")), None)
        if kind and path:
            self.settings.append((f"{path}.mode", kind, call.lineno))
        constructs = called.rpartition(".")[2][:1].isupper()
        if call.args or not constructs:
            self._skip(call)
        for keyword in call.keywords if constructs else ():
            if keyword.arg is None:
                self._skip(keyword.value)
            else:
                self._take(f"{path}.{keyword.arg}".lstrip("."), keyword.value, names, depth)

    def _skip(self, node: ast.stmt | ast.expr) -> None:
        line = self.text.splitlines()[node.lineno - 1].strip()
        self.open.append((node.lineno, line if len(line) <= 80 else f"{line[:77]}..."))


def _path(node: ast.expr) -> str:
    """'cfg.train.micro_batch_size' of an attribute, or "" of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _path(node.value)):
        return f"{before}.{node.attr}"
    return ""


def _value(node: ast.expr, names: dict[str, object]) -> object:
    """A value that is written out, or `_OPEN`."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, bool | int | float | str | None) else _OPEN
    if isinstance(node, ast.Name):
        return names.get(node.id, _OPEN)
    if isinstance(node, ast.Attribute) and _path(node).startswith("torch."):
        return node.attr
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand, names)
        return -inner if isinstance(inner, int | float) else _OPEN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = _value(node.left, names), _value(node.right, names)
        numbers = [
            one for one in sides if isinstance(one, int) and not isinstance(one, bool) and abs(one) < 2**40
        ]
        return numbers[0] * numbers[1] if len(numbers) == 2 else _OPEN
    if isinstance(node, ast.List | ast.Tuple):
        parts = [_value(one, names) for one in node.elts]
        return _OPEN if _OPEN in parts else parts
    return _OPEN
