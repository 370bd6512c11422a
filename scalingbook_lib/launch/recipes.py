"""Reads a recipe that is a Python function, as those of Megatron-Bridge and torchtitan, without executing it.

The syntax tree of the function is searched for values that are written out, in assignments such as
`cfg.train.micro_batch_size = 1` and in keyword arguments such as `training=TrainingConfig(steps=10)`.
Numbers, texts, lists of them, data types of PyTorch, constants of a module and arguments count as written
out. Functions that the recipe starts from or passes its configuration to are read as well, in the same file
or in a file of the same checkout. Every other line that may matter is named as not read.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from scalingbook_lib.launch.flags import table
from scalingbook_lib.launch.python_modules import UNKNOWN, Module, Modules
from scalingbook_lib.launch.settings import LaunchError, Setting

_LAUNCHERS = (("megatron_bridge", "megatron.bridge"), ("torchtitan", "torchtitan"))
_CLASSES = {"FullAC": "full", "SelectiveAC": "selective"}  # of torchtitan's activation_checkpoint
_PRECISIONS = ("_perf_precision", "get_mixed_precision_config")  # of Megatron-Bridge; they take a name
_ALLOCATED = re.compile(r"_(\d+)gpu_([a-z]+\d+)_")
_MOST_NESTED = 20


@dataclass(frozen=True, slots=True)
class LaunchRecipe:
    """The settings of a function in their order, and sentences on what they are and on what was not read."""

    launcher: str
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]


def read(
    text: str, file: str, function: str = "", opener: Callable[[str], str | None] = lambda _: None
) -> LaunchRecipe:
    """The recipe of a file; a LaunchError lists its functions if there are several and none is named.

    `opener` returns the text of another file of the same checkout, such as
    "megatron/bridge/recipes/common.py", or None if it is not there.

    >>> text = "import megatron.bridge\\ndef a_config():\\n  cfg = x()\\n  cfg.train.micro_batch_size = 2\\n"
    >>> [(one.name, one.value, one.line) for one in read(text, "a.py").settings][:1]
    [('train.micro_batch_size', 2, 4)]
    """
    modules = Modules(opener)
    module = modules.start(text, file)
    launcher = _launcher(module)
    if launcher is None:
        raise LaunchError(
            f"{file} is a Python program, which is not executed here, and not a recipe of Megatron-Bridge or "
            "torchtitan; give the command that starts it"
        )
    name = _chosen(modules, module, function)
    home, start = modules.function(module, name) or (module, module.functions[name])
    found = _Reader(modules)
    found.body(home, start, {}, 0, whole=True)
    settings = [Setting(path, value, line, where) for path, value, line, where in found.settings]
    settings += _of_name(launcher, name, found.flavor, start.lineno, home.file)
    return LaunchRecipe(launcher, tuple(settings), tuple(_notes(name, module, launcher, found)))


def _notes(name: str, start: Module, launcher: str, found: "_Reader") -> Iterator[str]:
    yield (
        f"The function {name} of {start.file} is read, not executed: only values that are written out count."
    )
    if others := found.modules.files:
        yield f"Files of the same checkout that are read, not executed: {', '.join(others)}."
    rows = table(launcher)
    for file, line, code, path in dict.fromkeys(found.open):
        flag = rows.find(path) if path else None
        if flag is None or flag.key or flag.counts:
            where = "" if file == start.file else f" of {file}"
            yield f"Line {line}{where} is not read: {code}"


def _launcher(module: Module) -> str | None:
    """Whose recipe it is, by what the file imports."""
    return next(
        (
            kind
            for kind, package in _LAUNCHERS
            if any(f"{name}.".startswith(f"{package}.") for name in module.packages)
        ),
        None,
    )


def _chosen(modules: Modules, module: Module, function: str) -> str:
    file = module.file
    public = [name for name in module.functions if not name.startswith("_")]
    if function in module.functions or (function and modules.function(module, function)):
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


@dataclass(frozen=True, slots=True)
class _Config:
    """The configuration that a recipe returns, or the part of it at a path such as "model"."""

    path: str = ""


@dataclass
class _Reader:
    """What the statements of functions set, in their order: (path, value, line, file)."""

    modules: Modules
    settings: list[tuple[str, object, int, str]] = field(default_factory=list)
    open: list[tuple[str, int, str, str]] = field(default_factory=list)  # file, line, code, path
    flavor: str = ""

    def body(
        self, module: Module, function: ast.FunctionDef, given: dict[str, object], depth: int, *, whole: bool
    ) -> None:
        """Read a function with these arguments; if it is `whole`, it returns the configuration."""
        if depth > _MOST_NESTED:
            raise LaunchError(f"{function.name} starts from itself; give another recipe")
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args]
        defaults = zip(named[len(named) - len(arguments.defaults) :], arguments.defaults, strict=True)
        scope = _Scope(self, module, {}, depth)
        for argument in (*named, *arguments.kwonlyargs):
            scope.names[argument.arg] = given.get(argument.arg, UNKNOWN)
        for argument, value in [*defaults, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]:
            if value is not None and argument.arg not in given:
                scope.names[argument.arg] = scope.value(value)
        if whole:
            for name in _built(function, strict=depth > 0):
                scope.names.setdefault(name, _Config())
        for statement in function.body:
            scope.statement(statement)


@dataclass
class _Scope:
    """The names of one call of a function."""

    reader: _Reader
    module: Module
    names: dict[str, object]
    depth: int

    def statement(self, one: ast.stmt) -> None:
        """Read one statement; a condition counts if its value is written out."""
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            return  # a docstring
        if isinstance(one, ast.Return) and (one.value is None or isinstance(one.value, ast.Name)):
            return
        if isinstance(one, ast.Return):
            assert one.value is not None
            self._take("", one.value)
        elif isinstance(one, ast.Assign) and len(one.targets) == 1:
            self._assign(one.targets[0], one.value)
        elif isinstance(one, ast.AnnAssign) and one.value is not None:
            self._assign(one.target, one.value)
        elif isinstance(one, ast.If) and (holds := self.value(one.test)) is not UNKNOWN:
            for inner in one.body if holds else one.orelse:
                self.statement(inner)
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and self._followed(one.value, ""):
            return
        elif not isinstance(one, ast.Import | ast.ImportFrom | ast.Pass | ast.Assert):
            self._skip(one)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            found = self.value(value)
            if isinstance(self.names.get(target.id), _Config):
                if found is UNKNOWN:
                    self._take("", value)
                return
            self.names[target.id] = found
            if found is UNKNOWN and isinstance(value, ast.Call) and _registers(value):
                self._take("", value)
        elif (path := self._path(target)) is not None:
            self._take(path, value)
        elif _dotted(target) == "":
            self._skip(target)

    def _path(self, target: ast.expr) -> str | None:
        """The path of an attribute of the configuration; None for anything else."""
        root, _, rest = _dotted(target).partition(".")
        config = self.names.get(root)
        if not rest or not isinstance(config, _Config):
            return None
        return f"{config.path}.{rest}".lstrip(".")

    def _take(self, path: str, value: ast.expr) -> None:
        """The settings of a value: itself, or the keyword arguments of the call that makes it."""
        found = self.value(value)
        if found is not UNKNOWN and not isinstance(found, _Config):
            if path:
                self._set(path, found, value.lineno)
        elif isinstance(value, ast.Call):
            self._call(path, value)
        elif not (isinstance(value, ast.Name) and isinstance(found, _Config)):
            self._skip(value, path)

    def _set(self, path: str, value: object, line: int) -> None:
        self.reader.settings.append((path, value, line, self.module.file))

    def _call(self, path: str, call: ast.Call) -> None:
        called = _dotted(call.func)
        if not path and self._followed(call, None):
            return
        first = self.value(call.args[0]) if call.args else UNKNOWN
        if called == "model_registry" and isinstance(first, str):
            self.reader.flavor = first
            if len(call.args) == 1 and not call.keywords:
                return
        if called.rpartition(".")[2] in _PRECISIONS and isinstance(first, str):
            self._set(path, first, call.lineno)
            return
        if path == "mixed_precision" and not call.args and not call.keywords:
            self._set(path, called.rpartition(".")[2], call.lineno)
            return
        kind = next((means for part, means in _CLASSES.items() if part in called.split(".")), None)
        if kind and path:
            self._set(f"{path}.mode", kind, call.lineno)
        if path == "model" and (pretrained := self._pretrained(call)):
            self._set("hf_model", pretrained, call.lineno)
            return
        constructs = called.rpartition(".")[2][:1].isupper()
        if call.args or not constructs:
            self._skip(call, path)
        for keyword in call.keywords if constructs else ():
            if keyword.arg is None:
                self._skip(keyword.value)
            else:
                self._take(f"{path}.{keyword.arg}".lstrip("."), keyword.value)

    def _pretrained(self, call: ast.expr) -> str:
        """The Hugging Face model from whose name the call makes a bridge, or ""."""
        while isinstance(call, ast.Call):
            if _dotted(call.func).endswith(".from_hf_pretrained") and call.args:
                name = self.value(call.args[0])
                return name if isinstance(name, str) else ""
            call = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        return ""

    def _followed(self, call: ast.Call, changes: str | None) -> bool:
        """Read the function that a call names; returns whether there is one that concerns the configuration.

        With `changes`, the call stands alone and only changes the configuration that it is given; otherwise
        it returns one.
        """
        found = self.reader.modules.function(self.module, _dotted(call.func))
        if found is None or any(isinstance(one, ast.Starred) for one in call.args):
            return False
        home, function = found
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        given: dict[str, object] = {}
        pairs = [*zip(names, call.args, strict=False)]
        pairs += [(one.arg, one.value) for one in call.keywords if one.arg]
        for name, value in pairs:
            given[name] = self.value(value)
            if given[name] is UNKNOWN and (path := self._path(value)) is not None:
                given[name] = _Config(path)
            elif given[name] is UNKNOWN and changes is None and isinstance(value, ast.Call):
                self._take("", value)  # the recipe that this one changes
                given[name] = _Config()
        if changes is not None and not any(isinstance(one, _Config) for one in given.values()):
            return False
        self.reader.body(home, function, given, self.depth + 1, whole=changes is None)
        return True

    def _skip(self, node: ast.stmt | ast.expr, path: str = "") -> None:
        line = self.module.text.splitlines()[node.lineno - 1].strip()
        shown = line if len(line) <= 80 else f"{line[:77]}..."
        self.reader.open.append((self.module.file, node.lineno, shown, path))

    def value(self, node: ast.expr) -> object:
        """A value that is written out, or `UNKNOWN`."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, bool | int | float | str | None) else UNKNOWN
        if isinstance(node, ast.Name):
            return self.names[node.id] if node.id in self.names else self._constant(node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.value(node.operand)
            return -inner if isinstance(inner, int | float) else UNKNOWN
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.value(node.operand)
            return UNKNOWN if inner is UNKNOWN or isinstance(inner, _Config) else not inner
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = self.value(node.left), self.value(node.right)
            numbers = [
                one
                for one in sides
                if isinstance(one, int) and not isinstance(one, bool) and abs(one) < 2**40
            ]
            return numbers[0] * numbers[1] if len(numbers) == 2 else UNKNOWN
        if isinstance(node, ast.List | ast.Tuple):
            parts = [self.value(one) for one in node.elts]
            return UNKNOWN if UNKNOWN in parts else parts
        return UNKNOWN

    def _constant(self, name: str) -> object:
        found = self.reader.modules.constant(self.module, name)
        if found is None or self.depth > 2 * _MOST_NESTED:
            return UNKNOWN
        home, node = found
        return _Scope(self.reader, home, {}, self.depth + 1).value(node)

    def _attribute(self, node: ast.Attribute) -> object:
        """A data type of PyTorch, or what the recipe has set before."""
        if _dotted(node).startswith("torch."):
            return node.attr
        path = self._path(node)
        settings = reversed(self.reader.settings) if path is not None else ()
        return next((value for name, value, _, _ in settings if name == path), UNKNOWN)

    def _compared(self, node: ast.Compare) -> object:
        one, other = self.value(node.left), self.value(node.comparators[0])
        if any(side is UNKNOWN or isinstance(side, _Config) for side in (one, other)):
            return UNKNOWN
        if isinstance(node.ops[0], ast.Eq | ast.Is):
            return one == other
        return one != other if isinstance(node.ops[0], ast.NotEq | ast.IsNot) else UNKNOWN


def _built(function: ast.FunctionDef, *, strict: bool) -> set[str]:
    """The local names that stand for the configuration: those that are returned, or else that are changed."""
    walked = list(ast.walk(function))
    returned = {
        one.value.id for one in walked if isinstance(one, ast.Return) and isinstance(one.value, ast.Name)
    }
    changed = {
        _dotted(target).partition(".")[0]
        for one in walked
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Attribute)
    }
    return returned if strict else returned | (changed - {""})


def _registers(call: ast.Call) -> bool:
    """Whether a call names the flavor of a model of torchtitan."""
    return _dotted(call.func) == "model_registry"


def _dotted(node: ast.expr) -> str:
    """'cfg.train.micro_batch_size' of an attribute, or "" of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""
