"""What a reader sees of a cell is a sentence, a table or a picture; and every table says what it shows."""

import ast
import re

import pytest

from tools import notebooks
from tools.environment import ROOT

PAGES = [pytest.param(n, id=str(n)) for n in notebooks.every() if n.folder != "exercises"]
CHAPTERS = [pytest.param(path, id=path.stem) for path in sorted(ROOT.glob("chapters/*.md"))]
UNSEEN = {"remove-cell", "remove-output", "hide-output"}
BARE = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp, ast.DictComp, ast.JoinedStr, ast.BinOp)
VALUES = re.compile(r"(?:\s*(?:True|False|None|[-+]?[\d.,_]+(?:e[-+]?\d+)?|nan|inf))+\s*")
REPR = re.compile(r"""^(?:\(.*,.*\)|\[(?:['"(]|.*,).*\]|\{.*:.*\}|'.*'|".*")$""", re.DOTALL)
EXACT = re.compile(r"(?<![\w.])\d[\d,]*\.\d+(?![\w.]*\.\d)")
CELL = re.compile(r"^```\{code-cell\}.*\n(?P<options>(?::.*\n)*)(?P<source>(?:.*\n)*?)^```$", re.MULTILINE)
RULE = re.compile(r"\|(?: *:?-+:? *\|)+")


def digits(number):
    return len(re.sub(r"[,.]", "", number).lstrip("0"))


def seen(notebook):
    """The text outputs that a page shows, each with the last line of its cell."""
    for cell in notebook.committed().cells:
        if cell.cell_type == "code" and not UNSEEN & set(cell.metadata.get("tags", ())):
            for output in cell.outputs:
                data = output.get("data", {"text/plain": output.get("text", "")})
                if set(data) <= {"text/plain"}:
                    yield data.get("text/plain", "").strip(), cell.source.splitlines()[-1]


@pytest.mark.parametrize("notebook", PAGES)
def test_no_output_is_a_bare_tuple_list_dictionary_string_or_value(notebook):
    bare = [(last, text[:80]) for text, last in seen(notebook) if REPR.match(text) or VALUES.fullmatch(text)]
    assert not bare, f"print a sentence with names and units, or show a table: {bare}"


@pytest.mark.parametrize("notebook", PAGES)
def test_no_output_has_a_fraction_of_more_than_six_digits(notebook):
    told = ((last, number) for text, last in seen(notebook) for number in EXACT.findall(text))
    found = [(last, number) for last, number in told if digits(number) > 6]
    assert not found, f"write the digits that the argument needs: {found}"


@pytest.mark.parametrize("notebook", PAGES)
def test_no_visible_cell_ends_in_a_bare_value(notebook):
    for cell in CELL.finditer(notebook.source_path.read_text(encoding="utf-8")):
        if not any(tag in cell["options"] for tag in UNSEEN):
            *_, last = ast.parse(cell["source"]).body
            ends_bare = isinstance(last, ast.Expr) and isinstance(last.value, BARE)
            assert not ends_bare, f"print a sentence, or show a table: {ast.unparse(last)[:80]}"


@pytest.mark.parametrize("path", CHAPTERS)
def test_a_title_stands_above_every_table(path):
    lines = path.read_text(encoding="utf-8").split("\n")
    for at, line in enumerate(lines):
        if RULE.fullmatch(line) and lines[at - 1].startswith("|"):
            assert lines[at - 3].startswith("Table: "), f"write `Table: ...` above it: {lines[at - 1]}"
            assert not lines[at - 2]


def test_bare_values_are_recognized():
    refused = ("(341764, '228 µs')", "['copy', 'matmul']", "[0.5, 0.3]", "[(1, 2)]", "{1: 2}", "'no GPU'")
    assert all(REPR.match(text) for text in refused)
    assert not any(REPR.match(text) for text in ("[[2. 3.]\n [4. 5.]]", "341,764 cycles", "(a) and then b"))
    assert all(VALUES.fullmatch(text) for text in ("1147.5", "True False", "31 31\n31", "1.713e-05", "-8"))
    assert not any(VALUES.fullmatch(text) for text in ("341,764 cycles", "[[2. 3.]]", "True of both"))
    assert [digits(number) for number in EXACT.findall("1023.5552243748965, 0.0012, 1,024.5")] == [17, 2, 5]
    assert not EXACT.findall("JAX 0.12.0.1 and v5e")
