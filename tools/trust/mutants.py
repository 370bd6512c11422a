"""Generate mutants of a module, each with one small change that a test should notice."""

import ast
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from tools.environment import ROOT

FOLDERS = ("scalingbook_lib", "scalingbook_book/chapters", "scalingbook_book/reader")
NOT_COMPUTING = {"figures", "explorers", "draw"}  # packages whose output is only looked at
OTHER: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
EXTREMES = {"min": "max", "max": "min"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module, and the site that is changed."""

    path: str
    digest: str  # of the unchanged module
    site: int
    line: int
    change: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.change}"

    @property
    def key(self) -> str:
        """The mutant's key in a state that outlives a run."""
        return f"{self.digest}:{self.site}"

    def tree(self, *, changed: bool) -> ast.Module:
        """Return the module's syntax tree, unchanged or with the change."""
        found = parsed(ROOT / self.path)
        if changed:
            list(sites(found))[self.site][2]()
        return ast.fix_missing_locations(found)

    def code(self, *, changed: bool) -> CodeType:
        """Return the same, compiled."""
        return compile(self.tree(changed=changed), str(ROOT / self.path), "exec")


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def told(node: ast.AST) -> list[ast.AST]:
    """Return the child nodes that are evaluated for their value, without annotations and decorators."""
    silent = {"annotation", "returns", "decorator_list", "type_params"}
    parts = [getattr(node, name) for name in node._fields if name not in silent]
    flat = [part for field in parts for part in (field if isinstance(field, list) else [field])]
    return [part for part in flat if isinstance(part, ast.AST) and getattr(part, "arg", "") != "strict"]


def below(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for part in told(node):
        yield from below(part)


def sites(tree: ast.Module) -> Iterator[tuple[int, str, Callable[[], object]]]:
    """Yield each place where one thing can be exchanged: its line, the replacement, and the change."""
    for node in list(below(tree)):
        for change, do in swaps(node):
            yield getattr(node, "lineno", 0), change, do


def swaps(node: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what can be exchanged in one node."""
    match node:
        case ast.Compare(ops=ops):
            for n, op in enumerate(ops):
                yield named(op), lambda n=n, op=op: ops.__setitem__(n, OTHER[type(op)]())
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:
            yield named(op), lambda: setattr(node, "op", OTHER[type(op)]())
        case ast.Constant(value=bool() | int() | float() as value):
            yield f"{value} -> {nearby(value)}", lambda: setattr(node, "value", nearby(value))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not dropped", lambda: become(node, ast.Call(ast.Name("bool", ast.Load()), [operand], []))
        case ast.Return(value=ast.AST()):
            yield "return None", lambda: setattr(node, "value", ast.Constant(None))
        case ast.Call(func=ast.Name(id="min" | "max") as name):
            yield f"{name.id} -> {EXTREMES[name.id]}", lambda: setattr(name, "id", EXTREMES[name.id])


def named(op: ast.AST) -> str:
    return f"{type(op).__name__} -> {OTHER[type(op)].__name__}"


def nearby(value: float) -> float:
    """Return another value of the same type, beyond any reasonable tolerance."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) and abs(value) < 100 else value * 2 or 1.0


def become(node: ast.AST, other: ast.AST) -> None:
    node.__class__ = type(other)
    node.__dict__ |= vars(other)


def computing() -> list[str]:
    """Return the modules of the core that compute."""
    paths = sorted(path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return [path.as_posix() for path in paths if not NOT_COMPUTING.intersection(path.with_suffix("").parts)]


def every(seed: int, among: str = "") -> list[Mutant]:
    """Return all mutants of the core in an order that depends on the seed but not on edits elsewhere."""
    found = []
    for name in (name for name in computing() if among in name):
        digest = hashlib.sha256((ROOT / name).read_bytes()).hexdigest()[:12]
        for site, (line, change, _) in enumerate(sites(parsed(ROOT / name))):
            found.append(Mutant(name, digest, site, line, change))
    return sorted(found, key=lambda one: hashlib.sha256(f"{seed} {one.path} {one.site}".encode()).digest())
