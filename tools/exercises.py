"""Read the exercises in `solutions/<stem>.md`, and blank them for the exercise notebooks.

docs/exercises.md defines the format. The page's answer boxes, the exercise notebooks and the tests read it
here.
"""

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from tools.environment import ROOT

_HEADING = re.compile(r"## (?P<number>\d+)\. (?P<title>[^\n]+)\n?(?P<question>.*)", re.DOTALL)
_KEY = re.compile(r"(?P<stem>\w+)\.(?=[0-9-]*[a-z])[a-z0-9]+(-[a-z0-9]+){0,2}")
# In a page: ```{exercises} <stem>, and in its body the names of those that it shows.
SHOWN = re.compile(r"^```\{exercises\} (?P<stem>\w+)\n(?P<names>[a-z0-9\s-]*)^```$", re.MULTILINE)
_CHECK = re.compile(r"""checks\.find\("(?P<key>[^"]+)"\)\((?P<name>\w+)\)\s*""")


class ExerciseError(ValueError):
    """A source that violates the format; the message says where and what to write."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a worked solution."""

    kind: str  # "markdown" or "code"
    source: str


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise as in its source; difficulty, unit and hints are in its check."""

    key: str
    number: int
    title: str
    question_md: str
    given: tuple[Cell, ...]  # code that the reader is given between question and answer
    stub: str  # what stands in the exercise notebook where the answer goes
    solution: tuple[Cell, ...]


def stems(root: Path = ROOT) -> tuple[str, ...]:
    """Return the chapters that have exercises."""
    return tuple(sorted(path.stem for path in (root / "solutions").glob("*.md")))


def source(stem: str, root: Path = ROOT) -> NotebookNode:
    """Return the source of a chapter's exercises as a notebook."""
    return jupytext.reads(_text(stem, root), fmt="md:myst")


def _text(stem: str, root: Path) -> str:
    return (root / "solutions" / f"{stem}.md").read_text(encoding="utf-8")


def read(stem: str, root: Path = ROOT) -> list[Exercise]:
    """Return a chapter's exercises in order; raises an ExerciseError if the source violates the format."""
    return list(_read(stem, _text(stem, root)))


@cache  # a build asks for each once a page
def _read(stem: str, text: str) -> tuple[Exercise, ...]:
    exercises = tuple(_exercise(cells) for cells in _groups(jupytext.reads(text, fmt="md:myst")))
    for expected, exercise in enumerate(exercises, 1):
        if exercise.number != expected:
            raise ExerciseError(
                f"solutions/{stem}.md: {exercise.key}, number {exercise.number}, stands in place {expected}; "
                "number the exercises in order"
            )
        if not (named := _KEY.fullmatch(exercise.key)) or named["stem"] != stem:
            raise ExerciseError(
                f"solutions/{stem}.md: {exercise.key} is no key; write {stem}. and one to three words "
                f"that say what is asked, as in {stem}.no-overlap"
            )
    if twice := {key for key, n in Counter(e.key for e in exercises).items() if n > 1}:
        raise ExerciseError(f"solutions/{stem}.md: {', '.join(sorted(twice))} stands twice")
    return exercises


@dataclass(frozen=True, slots=True)
class Output:
    """What a given cell shows: a text, or a figure; '' where there is none."""

    text: str = ""
    figure: str = ""  # as HTML


def output(stem: str, cell: Cell, root: Path = ROOT) -> Output:
    """What a given cell shows, as the executed notebook has stored it."""
    path = root / "solutions" / f"{stem}.ipynb"
    stored = _outputs(path, path.stat().st_mtime_ns) if path.exists() else {}
    return stored.get(cell.source.strip(), Output())


@cache  # a page asks for each of its cells
def _outputs(path: Path, _changed: int) -> dict[str, Output]:
    cells = nbformat.read(path, as_version=4).cells
    return {cell.source.strip(): _output(cell.outputs) for cell in cells if cell.cell_type == "code"}


def _output(outputs: list[NotebookNode]) -> Output:
    html = (one.get("data", {}).get("text/html", "") for one in outputs)
    figure = "\n".join(one for one in html if one.startswith("<figure"))
    return Output("" if figure else "".join(map(_text_of, outputs)), figure)


def _text_of(output: NotebookNode) -> str:
    return output.text if output.output_type == "stream" else output.get("data", {}).get("text/plain", "")


def asking(stem: str, root: Path = ROOT) -> dict[Path, list[str]]:
    """Return the pages that show exercises of a chapter, each with the names it lists; [] is all the rest."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / "chapters").glob("*.md"))}
    found = {
        path: [one for one in SHOWN.finditer(text) if one["stem"] == stem] for path, text in texts.items()
    }
    return {path: " ".join(one["names"] for one in lists).split() for path, lists in found.items() if lists}


def shown(stem: str, names: list[str], root: Path = ROOT) -> list[Exercise]:
    """Return the exercises that a page shows: those it names, or all that no page names."""
    every = {exercise.key.partition(".")[2]: exercise for exercise in read(stem, root)}
    named = [name for names in asking(stem, root).values() for name in names]
    if unknown := {*names, *named} - every.keys():
        raise ExerciseError(f"solutions/{stem}.md has no exercise {', '.join(sorted(unknown))}")
    if twice := sorted(name for name, times in Counter(named).items() if times > 1):
        raise ExerciseError(f"chapters/*.md show {stem}.{', '.join(twice)} more than once")
    return [every[name] for name in names or every if names or name not in named]


def blanked(notebook: NotebookNode) -> NotebookNode:
    """Return the exercise notebook of a source: solutions removed, stubs for the answers."""
    cells = [_blank(cell) for cell in notebook.cells if not _is_solution(cell) or "stub" in cell.metadata]
    metadata = {k: v for k, v in notebook.metadata.items() if k != "jupytext"}
    return NotebookNode(notebook | {"cells": cells, "metadata": NotebookNode(metadata)})


def _groups(notebook: NotebookNode) -> list[list[NotebookNode]]:
    """Return the cells of each exercise, from its heading to the next."""
    groups: list[list[NotebookNode]] = []
    for cell in notebook.cells:
        if "exercise" in cell.metadata:
            groups.append([])
        if groups:
            groups[-1].append(cell)
    return groups


def _exercise(cells: list[NotebookNode]) -> Exercise:
    head, *rest = cells
    key = head.metadata["exercise"]
    heading = _HEADING.fullmatch(head.source.strip())
    if head.cell_type != "markdown" or heading is None:
        raise ExerciseError(
            f'{key}: open it with `+++ {{"exercise": "{key}"}}` and a heading `## 3. Its title`'
        )
    answers = [cell for cell in rest if "stub" in cell.metadata]
    if len(answers) != 1 or not _is_solution(answers[0]):
        raise ExerciseError(
            f"{key}: give exactly one code cell the tag `solution` and a `:stub:`; it holds the answer"
        )
    name, check = _answer_name(answers[0]), _CHECK.fullmatch(rest[-1].source.strip())
    if check is None or (check["key"], check["name"]) != (key, name):
        raise ExerciseError(f'{key}: let its last cell be `checks.find("{key}")({name})`')
    cells_of = {
        wanted: tuple(_cell(c) for c in rest[:-1] if _is_solution(c) == wanted) for wanted in (True, False)
    }
    question = "\n\n".join(
        [heading["question"].strip(), *(c.source for c in cells_of[False] if c.kind == "markdown")]
    )
    given = tuple(c for c in cells_of[False] if c.kind == "code")
    return Exercise(
        key,
        int(heading["number"]),
        heading["title"].strip(),
        question.strip(),
        given,
        _stub(answers[0]),
        cells_of[True],
    )


def _cell(cell: NotebookNode) -> Cell:
    return Cell(cell.cell_type, cell.source)


def _is_solution(cell: NotebookNode) -> bool:
    return "solution" in cell.metadata.get("tags", ())


def _answer_name(cell: NotebookNode) -> str:
    """Return the name that the last statement of a solution assigns."""
    last = ast.parse(cell.source).body[-1] if cell.source.strip() else None
    if isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.targets[0], ast.Name):
        return last.targets[0].id
    raise ExerciseError(f"a solution has to end in an assignment of the answer to one name:\n{cell.source}")


def _stub(cell: NotebookNode) -> str:
    return f"{_answer_name(cell)} = ...  # {cell.metadata['stub']}"


def _blank(cell: NotebookNode) -> NotebookNode:
    """Return a cell as in the exercise notebook."""
    if "stub" not in cell.metadata:
        return cell
    kept = {k: v for k, v in cell.metadata.items() if k not in ("stub", "tags")}
    return NotebookNode(cell | {"source": _stub(cell), "metadata": NotebookNode(kept)})
