"""Find the tests that run a line of the library: run each test once and store its lines."""

import os
import pickle
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Self

import pytest
from _pytest.runner import runtestprotocol

from tools.environment import ROOT
from tools.trust.mutants import FOLDERS, Mutant
from tools.trust.state import FOLDER

KEPT = FOLDER / "seen.pickle"
NEAR = 8  # lines


def watch(line: Callable[[str, int], object]) -> None:
    """From now on, report each line of the library once when it first runs."""
    monitor, roots = sys.monitoring, tuple(f"{ROOT / folder}/" for folder in FOLDERS)

    def ran(code: CodeType, number: int) -> object:
        if code.co_filename.startswith(roots):
            line(os.path.relpath(code.co_filename, ROOT), number)
        return monitor.DISABLE

    monitor.use_tool_id(monitor.COVERAGE_ID, "seen")
    monitor.register_callback(monitor.COVERAGE_ID, monitor.events.LINE, ran)
    monitor.set_events(monitor.COVERAGE_ID, monitor.events.LINE)


@dataclass(frozen=True)
class Seen:
    """The tests by name, the CPU seconds of each, and the tests that run each line."""

    names: list[str]
    took_s: list[float]
    ran: dict[tuple[str, int], list[int]]

    @classmethod
    def of_tests(cls, items: list[pytest.Item], apart: Callable[[Callable[[], int]], int]) -> Self:
        """Load the stored result; new tests are run in a separate process."""
        kept = pickle.loads(KEPT.read_bytes()) if KEPT.exists() else cls([], [], {})
        known = set(kept.names)
        if new := [item for item in items if item.nodeid not in known]:
            print(f"looking what {len(new)} tests run", flush=True)
            apart(lambda: kept.look(new))
            kept = pickle.loads(KEPT.read_bytes())
        return kept

    def of(self, mutant: Mutant, most_s: float) -> tuple[list[str], float]:
        """Return the tests of a mutant's line, shortest first with its own package's before others, and their
        time.
        """
        room, chosen, total_s = self.room(mutant), [], 0.0
        above = (self.ran.get((mutant.path, mutant.line - n), []) for n in range(NEAR))
        tests = next(filter(None, above), [])  # a line within a statement may have no entry of its own
        for n in sorted(tests, key=lambda n: (room not in self.names[n], self.took_s[n])):
            if total_s + self.took_s[n] < most_s:
                chosen.append(self.names[n])
                total_s += self.took_s[n]
        return chosen, total_s

    def files(self, mutant: Mutant, most_s: float) -> list[str]:
        """Return the test files that run a mutant's module, those of its line and its package first.

        A module that only defines things runs before any test does; then all files are tried, as time allows.
        """
        touching: Counter[str] = Counter()
        for (path, line), tests in self.ran.items():
            if path == mutant.path:
                weight = 1000 if line == mutant.line else 1
                touching.update({self.names[n].split("::")[0]: weight for n in tests})
        room, chosen, total_s = self.room(mutant), [], 0.0
        for file in sorted(touching or self.file_s, key=lambda file: (room not in file, -touching[file])):
            if not chosen or total_s + self.file_s[file] < most_s:
                chosen.append(file)
                total_s += self.file_s[file]
        return chosen

    @cached_property
    def file_s(self) -> dict[str, float]:
        """The CPU seconds of each test file."""
        took_s: dict[str, float] = defaultdict(float)
        for name, seconds in zip(self.names, self.took_s, strict=True):
            took_s[name.split("::")[0]] += seconds
        return took_s

    def look(self, items: list[pytest.Item]) -> int:
        """Run these tests once and store their lines; return 0 as exit status."""
        watch(lambda path, number: self.ran.setdefault((path, number), []).append(len(self.took_s)))
        for item, following in zip(items, [*items[1:], None], strict=True):
            sys.monitoring.restart_events()
            started = time.process_time()
            runtestprotocol(item, log=False, nextitem=following)
            self.names.append(item.nodeid)
            self.took_s.append(time.process_time() - started)
            if following is None or following.path != item.path:
                self.keep()
        return 0

    def keep(self) -> None:
        """Store the result, so that an interrupted run continues after the last complete test file."""
        new = KEPT.with_suffix(".new")
        new.write_bytes(pickle.dumps(self))
        new.replace(KEPT)

    @staticmethod
    def room(mutant: Mutant) -> str:
        return f"/{mutant.path.split('/')[1].removesuffix('.py')}/"
