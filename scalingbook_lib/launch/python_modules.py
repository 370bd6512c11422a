"""The functions and constants of Python files and of the files that they import, read without executing any.

An import is followed to the file of the module, if the given opener finds it; otherwise the name stays
unknown.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from scalingbook_lib.launch.settings import MOST_CHARACTERS, LaunchError

UNKNOWN = object()
"""A value that is not written out."""

_MOST_FILES = 60
_MOST_HOPS = 20  # files that pass a name on


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """One parsed file: its name, its folder within the checkout, and what its top level defines."""

    file: str
    folder: str
    text: str
    functions: dict[str, ast.FunctionDef]
    assigned: dict[str, ast.expr]
    imported: dict[str, tuple[tuple[str, ...], str]]  # by name: candidate files, and the name there
    starred: tuple[tuple[str, ...], ...]  # candidate files of `from x import *`
    packages: tuple[str, ...]  # modules that are imported, with their dots


@dataclass(slots=True)
class Modules:
    """Files that have been read, by name; `opener` returns the text of a file of the checkout, or None."""

    opener: Callable[[str], str | None]
    read: dict[str, Module | None] = field(default_factory=dict)

    def start(self, text: str, file: str) -> Module:
        """The first file; a LaunchError if it is not valid Python."""
        return _parsed(text, file, "")

    @property
    def files(self) -> list[str]:
        """The names of the files that were read besides the first one."""
        return [one.file for one in self.read.values() if one]

    def function(self, module: Module, name: str) -> tuple[Module, ast.FunctionDef] | None:
        """The function that a name stands for, and the file that defines it; None if it is not found."""
        for home, there in self._homes(module, name):
            if there in home.functions:
                return home, home.functions[there]
        return None

    def constant(self, module: Module, name: str) -> tuple[Module, ast.expr] | None:
        """The expression that a name at the top level stands for, and its file; None if it is not found."""
        for home, there in self._homes(module, name):
            if there in home.assigned:
                return home, home.assigned[there]
        return None

    def _homes(self, module: Module, name: str, hops: int = 0) -> list[tuple[Module, str]]:
        """The files that may define a name, the nearest first, and what it is called there."""
        found = [(module, name)]
        if hops == _MOST_HOPS or name in module.functions or name in module.assigned:
            return found
        imports = [module.imported[name]] if name in module.imported else []
        imports = imports or [(files, name) for files in module.starred]
        for files, original in imports:
            if other := self._first(files):
                found += self._homes(other, original, hops + 1)
        return found

    def _first(self, files: tuple[str, ...]) -> Module | None:
        for file in files:
            if file not in self.read:
                if len(self.read) >= _MOST_FILES:
                    return None
                text = self.opener(file)
                folder = file.rpartition("/")[0]
                self.read[file] = None if text is None else _parsed(text, file, folder)
            if self.read[file]:
                return self.read[file]
        return None


def _parsed(text: str, file: str, folder: str) -> Module:
    if len(text) > MOST_CHARACTERS:
        raise LaunchError(f"{file} has more than {MOST_CHARACTERS:,} characters; give a shorter one")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        raise LaunchError(f"{where}{file} is not valid Python; correct it") from error
    assigned = {
        target.id: one.value
        for one in tree.body
        if isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None
        for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
        if isinstance(target, ast.Name)
    }
    froms = [one for one in tree.body if isinstance(one, ast.ImportFrom)]
    imported = {
        alias.asname or alias.name: (_candidates(one, folder), alias.name)
        for one in froms
        for alias in one.names
        if alias.name != "*"
    }
    return Module(
        file=file,
        folder=folder,
        text=text,
        functions={one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)},
        assigned=assigned,
        imported=imported,
        starred=tuple(_candidates(one, folder) for one in froms if one.names[0].name == "*"),
        packages=tuple(
            name
            for one in ast.walk(tree)
            if isinstance(one, ast.Import | ast.ImportFrom)
            for name in (
                [one.module or ""] if isinstance(one, ast.ImportFrom) else [a.name for a in one.names]
            )
        ),
    )


def _candidates(one: ast.ImportFrom, folder: str) -> tuple[str, ...]:
    """The files that `from a.b import c` may mean, by the folder of the file that imports."""
    parts = (one.module or "").split(".") if one.module else []
    if one.level:
        above = folder.split("/") if folder else []
        up = one.level - 1
        kept = above[: len(above) - up] if up <= len(above) else [".."] * (up - len(above))
        parts = [*kept, *parts]
    stem = "/".join(parts)
    return (f"{stem}.py", f"{stem}/__init__.py") if stem else ("__init__.py",)
