"""The laws on size that CONTRIBUTING names: somebody who comes later can hold each piece in the head."""

import ast
import io
import re
import tokenize
from collections import Counter
from functools import cache
from statistics import median

import pytest

from tools import pages
from tools.environment import ROOT

LIBRARY = ROOT / "scalingbook_lib"
DRAWN_LINES_OF_A_CHAPTER = 320  # of its figures, which are content, as the text is
NOT_COMPUTING = ("reader", "chapters", "viz", "lab", "cli")
LINES, COMPUTING_LINES = 30_420, 13_920  # logical ones, without docstrings; a chapter more costs about 300
LINES_OF_A_MODULE, LINES_OF_A_FUNCTION, MEDIAN_OF_FUNCTIONS = 250, 40, 6
POSITIONAL, FILES, NAMES_AT_THE_TOP, UNFORMATTED = 5, 25, 20, 60
DRAWN = re.compile(r"scalingbook_lib/chapters/(\w+)/figures[./]")
CALLED_BY_CLICK = {"shell_complete", "get_metavar"}
CALLED_BY_PAGES = {"workbench_json"}


@cache
def sources(*folders):
    """Every module below these folders, by its path below the root."""
    found = [path for name in folders for path in sorted((ROOT / name).rglob("*.py"))]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in found
        if "node_modules" not in path.parts
    }


@cache
def tree(name):
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


def functions():
    """Every function of the library, with the module it stands in."""
    for name in sources("scalingbook_lib"):
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name}:{node.lineno} {node.name}", node


def called_by_others(name):
    return name.startswith("__") or name in CALLED_BY_CLICK | CALLED_BY_PAGES


def logical_lines(text):
    """Statements, whatever lines they stand on; comments and docstrings are free."""
    blank = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT}
    count, statement = 0, []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            count += statement != [tokenize.STRING]
            statement = []
        elif token.type not in blank:
            statement.append(token.type)
    return count


def test_the_library_is_small():
    every = {name: logical_lines(text) for name, text in sources("scalingbook_lib").items()}
    lines = {name: n for name, n in every.items() if not DRAWN.match(name)}
    computing = sum(n for name, n in lines.items() if name.split("/")[1] not in NOT_COMPUTING)
    assert sum(lines.values()) <= LINES
    assert computing <= COMPUTING_LINES


def test_the_drawings_of_a_chapter_are_short():
    drawn = Counter()
    for name, text in sources("scalingbook_lib").items():
        if found := DRAWN.match(name):
            drawn[found[1]] += logical_lines(text)
    limits = {
        room: DRAWN_LINES_OF_A_CHAPTER * sum(not page.deeper for page in pages.of(room)) for room in drawn
    }  # of a split one, two
    assert {room: n for room, n in drawn.items() if n > limits[room]} == {}


def test_the_top_of_the_library_has_few_names():
    names = [p.name for p in LIBRARY.iterdir() if p.name != "__pycache__"]
    assert len(names) <= NAMES_AT_THE_TOP, sorted(names)


def test_a_module_can_be_read_at_one_sitting():
    every = sources("scalingbook_lib", "web", "tools", "benchmarks", "tests").items()
    long = {name: n for name, text in every if (n := len(text.splitlines())) > LINES_OF_A_MODULE}
    assert long == {}


def test_a_folder_has_few_files():
    inside = Counter(name.rpartition("/")[0] for name in sources("scalingbook_lib", "tools", "web", "tests"))
    assert {folder: n for folder, n in inside.items() if n > FILES} == {}


def test_a_function_does_one_thing():
    long = {where: f.end_lineno - f.lineno + 1 for where, f in functions()}
    assert {where: n for where, n in long.items() if n > LINES_OF_A_FUNCTION} == {}
    assert median(long.values()) <= MEDIAN_OF_FUNCTIONS


def test_what_is_told_by_its_place_is_little():
    def places(f):
        return len([a for a in (*f.args.posonlyargs, *f.args.args) if a.arg not in ("self", "cls")])

    assert {where: n for where, f in functions() if (n := places(f)) > POSITIONAL} == {}


def test_what_no_formatter_touches_is_little():
    skipped = {name: text.count("# fmt:") for name, text in sources("scalingbook_lib").items()}
    assert sum(skipped.values()) < UNFORMATTED, {name: n for name, n in skipped.items() if n}


def test_somebody_uses_what_is_defined():
    readers = [
        *ROOT.glob("*.md"),
        *(p for name in ("chapters", "solutions", "jobs") for p in (ROOT / name).glob("*.*")),
    ]
    texts = [p.read_text(encoding="utf-8") for p in readers if p.suffix != ".ipynb"]
    used = Counter(
        re.findall(
            r"\w+", "\n".join([*sources("scalingbook_lib", "tools", "web", "benchmarks").values(), *texts])
        )
    )
    dead = {where for where, f in functions() if used[f.name] == 1 and not called_by_others(f.name)}
    assert dead == set()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('"""A docstring."""\n', 0),
        ("# a comment\n\nx = 1\n", 1),
        ("x = [\n    1,\n    2,\n]\ny = 2; z = 3\n", 2),
    ],
)
def test_statements_are_counted_whatever_lines_they_stand_on(text, lines):
    assert logical_lines(text) == lines
