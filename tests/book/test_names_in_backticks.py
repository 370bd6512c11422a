"""Tests that names in backticks in docstrings, comments and pages exist."""

import ast
import importlib
import inspect
import io
import pkgutil
import re
import tokenize
from collections import defaultdict
from functools import cache

import pytest

from scalingbook_book.chapters import checks, explorers, figures
from tools.environment import PACKAGES, ROOT

DOTTED = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(.*?\))?`(?!`)")
SINGLE = re.compile(r"(?<!`)`([A-Za-z_]\w*)(?:\([^`]*)?`(?!`)")
FILES = re.compile(r"\.(bib|cff|csv|css|h|html|ipynb|js|json|lock|md|mjs|py|sh|toml|txt|xml|yml)$")
PAGES = [p for room in (".", "chapters", "solutions", "tools", "data") for p in (ROOT / room).glob("*.md")]
CODE = [p for folder in (*PACKAGES, "tools", "benchmarks") for p in (ROOT / folder).rglob("*.py")]
SPOKEN = {  # how people call what has a longer name
    "compiled": "jax.stages.Compiled", "jnp": "jax.numpy", "lax": "jax.lax",
    "AxisType": "jax.sharding.AxisType", "topologies": "jax.experimental.topologies",
    "model": "scalingbook_lib.models.transformer.Transformer",
}  # fmt: skip
GONE = {"jax.lax.pvary", "lax.pvary"}  # an older JAX's, and said to be
ELSEWHERE = {
    "nnx",
    "plgpu",
}  # Flax, which is not installed; Pallas for GPUs, which imports where there is one


@cache
def modules():
    """Every module of the library, under each of the names by which a text may call it."""
    found = defaultdict(list)
    walked = (
        module
        for package in map(importlib.import_module, PACKAGES)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    )
    for module in walked:
        if not module.name.endswith("__main__"):
            parts = module.name.split(".")
            for start in range(len(parts)):
                found[tuple(parts[start:])].append(importlib.import_module(module.name))
    return found


@cache
def classes():
    """Every class of the library, by its name and by what an instance is called: `plan` for a `Plan`."""
    found = defaultdict(set)
    for module in {m for some in modules().values() for m in some}:
        for name, value in vars(module).items():
            if inspect.isclass(value) and value.__module__.startswith("scalingbook_"):
                found[name].add(value)
                found[name.lower()].add(value)
    return found


def has(owner, names):
    """Whether attributes lead from one to the next; what a field or a property holds is not known."""
    for name in names:
        annotated = {n for cls in getattr(owner, "__mro__", ()) for n in getattr(cls, "__annotations__", {})}
        if not hasattr(owner, name):
            return name in annotated
        owner = getattr(owner, name)
        if isinstance(owner, property) or inspect.isdatadescriptor(owner) or hasattr(owner, "func"):
            return True
    return True


def ours(names):
    """Whether a path leads through a module or a class of the library."""
    heads = ((modules().get(tuple(names[:k]), ()), names[k:]) for k in range(len(names), 0, -1))
    return any(has(module, rest) for some, rest in heads for module in some) or any(
        has(cls, names[1:]) for cls in classes().get(names[0], ())
    )


def anybodys(names):
    """Whether a path leads through a module that is installed, JAX's above all."""
    for k in range(len(names), 0, -1):
        try:
            return has(importlib.import_module(".".join(names[:k])), names[k:])
        except ImportError:
            continue
    return False


@cache
def aliases():
    """As what notebooks import a module: `compat` is `spelled` in all of them."""
    told = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    found = defaultdict(set)
    for room, names in re.findall(r"^from ([\w.]+) import (.+)$", told, re.M):
        for name, alias in re.findall(r"(\w+) as (\w+)", names):
            found[alias].add(f"{room}.{name}")
    return found


@cache
def exists(told):
    """Whether a dotted name is one: of a file, an exercise, explorer or figure, or of what is installed."""
    head, *rest = told.split(".")
    if told in GONE or head in ELSEWHERE or FILES.search(told):
        return True
    if any(told in room.catalog() for room in (checks, explorers, figures)):
        return True
    paths = [[*path.split("."), *rest] for path in aliases().get(head, {SPOKEN.get(head, head)})]
    return any(ours(path) or anybodys(path) for path in paths)


def texts(path):
    """What a file tells people: all of a page; of code, its strings and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return [text]
    nodes = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [s for s in nodes if isinstance(s, str)] + [t.string for t in tokens if t.type == tokenize.COMMENT]


def given(text):
    """What a page's own cells give a name to."""
    return {name for names in re.findall(r"^ *(\w+(?:, \w+)*) = ", text, re.M) for name in names.split(", ")}


def test_every_dotted_name_exists():
    told = [(path, text) for path in (*PAGES, *CODE) if path.name != "CHANGELOG.md" for text in texts(path)]
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path, text in told
        for name in DOTTED.findall(text)
        if len(name.partition(".")[0]) > 1 and name.partition(".")[0] not in given(text)
    }
    assert {(path, name) for path, name in found if not exists(name)} == set()
    assert len(found) > 250, "it reads pages and code"


def identifiers():
    """Every word of the library's code that is no comment and no docstring."""
    for path in (p for package in PACKAGES for p in (ROOT / package).rglob("*.py")):
        yield from path.relative_to(ROOT).with_suffix("").parts
        tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
        for token in tokens:
            if (
                token.type in (tokenize.NAME, tokenize.STRING, tokenize.FSTRING_MIDDLE)
                and token.string[:3] != '"""'
            ):
                yield from re.findall(r"\w+", token.string)


def test_every_name_in_a_docstring_occurs_in_the_code():
    known = {*identifiers(), "cost_analysis"}  # JAX's
    told = {
        (path.name, name)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for name in SINGLE.findall(ast.get_docstring(node) or "")
    }
    assert {(path, name) for path, name in told if name not in known} == set()
    assert len(told) > 500, "it reads docstrings"


@pytest.mark.parametrize(
    "name", ["limits.exchange_over", "collectives.all_gatter", "plan.tensor", "jax.no_such"]
)
def test_a_name_that_does_not_exist_is_reported(name):
    assert not exists(name)
