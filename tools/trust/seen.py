"""Which tests run a line of the library? Each is run once, and its lines are kept."""

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
from tools.trust.mutants import LIBRARY, Mutant
from tools.trust.state import FOLDER

KEPT = FOLDER / "seen.pickle"
NEAR = 8  # lines


@dataclass(frozen=True)
class Seen:
    """The tests by name, the seconds of the processor that each took, and those that ran each line."""

    names: list[str]
    took_s: list[float]
    ran: dict[tuple[str, int], list[int]]

    @classmethod
    def of_tests(cls, items: list[pytest.Item], apart: Callable[[Callable[[], int]], int]) -> Self:
        """As it was kept for these tests; else they are run, in a process that stands apart."""
        names = [item.nodeid for item in items]
        if not KEPT.exists() or (kept := pickle.loads(KEPT.read_bytes())).names != names:
            print(f"looking what {len(items)} tests run", flush=True)
            apart(lambda: look(items))
            kept = pickle.loads(KEPT.read_bytes())
        return kept

    def of(self, mutant: Mutant, most_s: float) -> tuple[list[int], float]:
        """The tests of a mutant's line, those of its room first, the shortest first; how long they take."""
        room, chosen, total_s = self.room(mutant), [], 0.0
        above = (self.ran.get((mutant.path, mutant.line - n), []) for n in range(NEAR))
        tests = next(filter(None, above), [])  # a line amid a statement may not be told apart
        for n in sorted(tests, key=lambda n: (room not in self.names[n], self.took_s[n])):
            if total_s + self.took_s[n] < most_s:
                chosen.append(n)
                total_s += self.took_s[n]
        return chosen, total_s

    def files(self, mutant: Mutant, most_s: float) -> list[str]:
        """The files of tests that run a mutant's module, those of its line and its room first."""
        touching: Counter[str] = Counter()
        for (path, line), tests in self.ran.items():
            if path == mutant.path:
                weight = 1000 if line == mutant.line else 1
                touching.update({self.names[n].split("::")[0]: weight for n in tests})
        room, chosen, total_s = self.room(mutant), [], 0.0
        for file in sorted(touching, key=lambda file: (room not in file, -touching[file])):
            if not chosen or total_s + self.file_s[file] < most_s:
                chosen.append(file)
                total_s += self.file_s[file]
        return chosen

    @cached_property
    def file_s(self) -> dict[str, float]:
        """The seconds of the processor that each file of tests takes."""
        took_s: dict[str, float] = defaultdict(float)
        for name, seconds in zip(self.names, self.took_s, strict=True):
            took_s[name.split("::")[0]] += seconds
        return took_s

    @staticmethod
    def room(mutant: Mutant) -> str:
        return f"/{mutant.path.split('/')[1].removesuffix('.py')}/"


def look(items: list[pytest.Item]) -> int:
    """Run every test once, and keep what is seen; 0, as a process ends."""
    monitor, took_s = sys.monitoring, []
    ran: dict[tuple[str, int], list[int]] = defaultdict(list)
    root = f"{LIBRARY}/"

    def line(code: CodeType, number: int) -> object:
        if code.co_filename.startswith(root):
            ran[os.path.relpath(code.co_filename, ROOT), number].append(len(took_s))
        return monitor.DISABLE

    monitor.use_tool_id(monitor.COVERAGE_ID, "seen")
    monitor.register_callback(monitor.COVERAGE_ID, monitor.events.LINE, line)
    monitor.set_events(monitor.COVERAGE_ID, monitor.events.LINE)
    for item, following in zip(items, [*items[1:], None], strict=True):
        monitor.restart_events()
        started = time.process_time()
        runtestprotocol(item, log=False, nextitem=following)
        took_s.append(time.process_time() - started)
    KEPT.write_bytes(pickle.dumps(Seen([item.nodeid for item in items], took_s, dict(ran))))
    return 0
