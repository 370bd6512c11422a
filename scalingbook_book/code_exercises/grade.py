"""Grade a reader's notebook: find with the book's own checks which exercises it solves.

Every notebook runs in a process of its own (this module is that process's program), in an empty folder, with
limits on time and memory, and with its output discarded. The last result of each exercise's check is appended
to a file. Cells know neither the name of the file nor the word that marks its lines. Each recorded success is
then judged again in this process, where no cell runs: a number or a text has to be the right one, and a
verdict the judge's.

This is not a sandbox. A notebook runs as the user who grades it, reads and sends what that user can, and a
process that it detaches lives on until its time is used up. It is not an examination either: a student who
searches the library finds the answers, can try them until one fits, write a verdict by hand, give the judge
an easier task, or copy from a neighbor. If that matters, grade in a container, and read the notebooks too.
"""

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scalingbook_book.chapters import checks
from scalingbook_book.reader.checks import given as reading
from scalingbook_book.reader.checks.check import Check, Outcome
from scalingbook_book.reader.checks.programs import CollectiveCount, ProgramVerdict

MOST_BYTES, MOST_CHARACTERS, MOST_PROCESSES = 64 * 2**20, 300, 4096
_FIND = re.compile(r"""find\(\s*["']([\w.-]{1,80})["']""")
_MAGIC = re.compile(r"^([ \t]*)(?:%%?time\b|(?:%%?|[!?])\w.*$)", re.MULTILINE)  # IPython's own syntax


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise of one notebook: the check's status, or "unchecked", and its message."""

    key: str
    status: str
    says: str


@dataclass(frozen=True, slots=True)
class Graded:
    """One notebook: all exercises of the chapters that it names, and its run-time problem, or ""."""

    name: str
    exercises: tuple[Exercise, ...] = ()
    problem: str = ""

    @property
    def solved(self) -> int:
        """The number of exercises that are right."""
        return sum(one.status == "right" for one in self.exercises)


def folder(where: Path, *, seconds: float = 120.0, gib: float = 16.0) -> Iterator[Graded]:
    """Grade every notebook of a folder and its subfolders in name order, or a single notebook file."""
    for path in [where] if where.is_file() else sorted(where.rglob("*.ipynb")):
        if ".ipynb_checkpoints" not in path.parts:
            name = _printable(str(path.relative_to(where)) if path != where else path.name)
            try:
                yield _graded(name, _cells(path), seconds, gib)
            except Exception as error:  # a file, or the record that cells write, may contain anything
                yield Graded(name, problem=_printable(f"it cannot be read: {error}"))


def _printable(text: str) -> str:
    """Return a text on one line, without characters that would control a terminal."""
    line = " ".join(text[:MOST_CHARACTERS].split())
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)


def _cells(path: Path) -> list[str]:
    """Return the code of a notebook's cells.

    Raises ValueError if the file is not a notebook, or is too large.
    """
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise ValueError(f"it is not a file of at most {MOST_BYTES:,} bytes; clear its outputs")
    read = json.loads(path.read_bytes())
    if not isinstance(read, dict) or not isinstance(cells := read.get("cells"), list):
        raise ValueError("it is not a notebook of format 4 with a list of cells; save it again in Jupyter")
    code = [c.get("source") for c in cells if isinstance(c, dict) and c.get("cell_type") == "code"]
    parts = (source if isinstance(source, list) else [source] for source in code)
    return ["".join(part for part in each if isinstance(part, str)) for each in parts]


def _graded(name: str, cells: list[str], seconds: float, gib: float) -> Graded:
    """Run a notebook's cells and judge its exercises.

    Raises ValueError if the notebook checks none of the book's exercises.
    """
    found = {k: n for n, cell in enumerate(cells, 1) for k in map(str, _FIND.findall(cell))}
    stems = sorted({key.partition(".")[0] for key in found} & {*checks.stems()})
    if not stems:
        raise ValueError("it does not check any exercise of the book, as in checks.find(key)(answer)")
    recorded, problem = _ran(cells, seconds, gib)
    every = (check for stem in stems for check in checks.catalog(stem).values())
    return Graded(name, tuple(_exercise(c, recorded, found.get(c.key), problem) for c in every), problem)


def _exercise(check: Check, recorded: dict[tuple, list], cell: int | None, problem: str) -> Exercise:
    """Return the status of an exercise, with the reason if its check did not run."""
    why = problem or "its check did not run" if cell else "not in this notebook"
    nothing = ["unchecked", *recorded.get(("failed", cell), [why]), None]
    status, says, value = recorded.get(("judged", check.key), nothing)
    if status == "right" and not _judged(check, value).ok:
        status, says = "wrong", "The answer that its check recorded is not right when it is judged again."
    return Exercise(check.key, status, _printable(says))


def _judged(check: Check, value: Any) -> Outcome:
    """Judge a recorded answer in this process; a verdict has to be about this very exercise."""
    if check.kind == "program" and isinstance(value, dict) and value["key"] == check.key:
        moves, required = (
            tuple(CollectiveCount(**move) for move in value[part]) for part in ("moves", "asked")
        )
        return check(ProgramVerdict(value["wrong"], moves, check.key, required, tuple(value["also"])))
    return check(... if check.kind == "program" else value)


def _ran(cells: list[str], seconds: float, gib: float) -> tuple[dict[tuple, list], str]:
    """Return what a notebook's process recorded, and why it ended early, or ""."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        (work := Path(home, "work")).mkdir()
        (record := Path(home, secrets.token_hex(8))).touch()
        word = secrets.token_hex(16)
        job = {"cells": cells, "record": str(record), "word": word, "seconds": seconds, "gib": gib}
        end = _process(json.dumps(job).encode(), work, seconds)
        with record.open(encoding="utf-8", errors="replace") as lines:
            rows = [json.loads(line[len(word) :]) for line in lines if line.startswith(word)]
    recorded = {(kind, key): what for kind, key, *what in rows}
    where = f"cell {recorded['at', 0][0]} of {len(cells)}" if ("at", 0) in recorded else "its start"
    return recorded, "" if ("ended", 0) in recorded else f"{where} {end}; the cells after it did not run"


def _process(job: bytes, work: Path, seconds: float) -> str:
    """Run a notebook's process and return how it ended. All processes of its session end with it."""
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    with subprocess.Popen(
        (sys.executable, "-P", "-m", "scalingbook_book.code_exercises.grade"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=work,
        env=os.environ | {"PYTHONPATH": path, "MPLBACKEND": "Agg", "TMPDIR": str(work)},
        start_new_session=True,
    ) as child:
        try:
            child.communicate(job, timeout=seconds)
            return f"ended Python (exit code {child.returncode})"
        except subprocess.TimeoutExpired:
            return f"ran longer than {seconds:g} s"
        finally:
            child.kill()
            with contextlib.suppress(AttributeError, OSError):  # no process groups here, or none left
                os.killpg(child.pid, signal.SIGKILL)


def _child() -> None:
    """Run the cells in order as the notebook's process; one that fails does not stop the others."""
    job = json.loads(sys.stdin.buffer.read())
    out, own, word = os.open(job["record"], os.O_WRONLY | os.O_APPEND), os.getpid(), job["word"]

    def record(*what: object) -> None:
        if os.getpid() == own:  # a forked process must not report for the notebook
            os.write(out, f"{word} {json.dumps(what, default=str)}\n".encode())

    _limit(int(job["gib"] * 2**30), int(job["seconds"] + 1) * (os.cpu_count() or 1))
    _listen(record)
    space = {"__name__": "__main__", "display": print, "get_ipython": lambda: None}
    for number, source in enumerate(job["cells"], 1):
        record("at", 0, number)
        try:
            exec(compile(_MAGIC.sub(r"\1pass;", source), f"<cell {number}>", "exec"), space)
        except BaseException as error:
            record("failed", number, f"{type(error).__name__}: {error}"[:MOST_CHARACTERS])
    record("ended", 0)
    os._exit(0)  # regardless of threads and exit hooks that the notebook leaves behind


def _limit(nbytes: int, cpu_s: int) -> None:
    """Limit memory, file size, CPU time and processes, if the platform can."""
    bounds = {"AS": nbytes, "FSIZE": nbytes, "CPU": cpu_s, "CORE": 0, "NPROC": MOST_PROCESSES}
    for name, bound in bounds.items():
        with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
            import resource

            kind = getattr(resource, f"RLIMIT_{name}")
            most = min(bound, resource.getrlimit(kind)[1] % 2**63)  # -1 means unlimited
            resource.setrlimit(kind, (most, most))


def _listen(record: Callable[..., None]) -> None:
    """Make every check record its outcome and, if right, the answer; none reveals its answer to a cell."""
    judge = Check.__call__

    def listening(check: Check, given: Any) -> Outcome:
        outcome = judge(check, given)
        value = given if outcome.ok else None  # for a wrong answer the sentence is enough
        if outcome.ok and check.kind == "number":
            value = reading.number(given, check.unit, check.words)
        plain = asdict(value) if isinstance(value, ProgramVerdict) else value
        record("judged", check.key, outcome.status, outcome.message[:MOST_CHARACTERS], plain)
        return outcome

    def hidden(check: Check, name: str) -> Any:
        if name == "answer" and sys._getframe(1).f_code.co_filename.startswith("<cell "):
            raise AttributeError("a check does not tell its answer where it is graded")
        return object.__getattribute__(check, name)

    for name, new in {"__call__": listening, "__getattribute__": hidden}.items():
        setattr(Check, name, new)


if __name__ == "__main__":
    _child()
