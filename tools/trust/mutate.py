"""Test the tests: put 500 random small mistakes into the core, one at a time, and count those that are found.

`python -m tools.trust.mutate [--seed 0] [--count 500] [--among roofline] [TESTS ...]`, or `make mutate`; it
fails if the tests of the core, and of its readers of launch commands, find fewer than 92%. The tests are
collected once. A forked process replaces the function in question by a mutant and runs the tests that are
known to run its line, the shortest first. A survivor may be in a cached result or in code that runs while the
library is loaded, so it is tried again by whole test files in a new process. Results are stored: an
interrupted run continues where it stopped, and a later run tries only the survivors.
"""

import argparse
import functools
import gc
import inspect
import os
import re
import resource
import signal
import subprocess
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tools.environment import ROOT
from tools.trust import mutants
from tools.trust.mutants import Mutant
from tools.trust.seen import Seen
from tools.trust.state import State

ENOUGH = 0.92
MOST_S = 30  # CPU seconds on the unchanged library for the tests of one mutant
ANEW_S = 120  # CPU seconds
WAITS = 30  # wall-clock limit as a multiple of that, for a machine with other work
HELD, KILLED, OTHER, BROKEN = 0, 1, 9, 99  # exit statuses of a process; OTHER: no function is affected


def codes(code: CodeType) -> list[CodeType]:
    """Return a module's code, and all nested code, in order."""
    return [code, *(one for inner in code.co_consts if isinstance(inner, CodeType) for one in codes(inner))]


def put(mutant: Mutant) -> bool:
    """Replace the affected functions by the mutant's; return False if none is affected or replaceable."""
    old, new = (
        {(one.co_qualname, one.co_firstlineno): one for one in codes(mutant.code(changed=changed))}
        for changed in (False, True)
    )  # by name, because a mutant may lack a nested function
    changed = {a: b for name, a in old.items() if a != (b := new.get(name, a)) and a.co_name != "<module>"}
    functions, caches = library()
    concerned = [one for one in functions.get(str(ROOT / mutant.path), []) if one.__code__ in changed]
    for function in concerned:
        if len(function.__code__.co_freevars) != len(changed[function.__code__].co_freevars):
            return False  # it closes over other names
        function.__code__ = changed[function.__code__]
    for one in caches:
        one.cache_clear()
    return bool(concerned)


@functools.cache
def library() -> tuple[dict[str, list[FunctionType]], list[Any]]:
    """Return the library's loaded functions by file, and all caches of the library and its tests."""
    functions, caches = defaultdict(list), []
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename.startswith(str(ROOT)):
            functions[one.__code__.co_filename].append(one)
        elif type(one) is functools._lru_cache_wrapper:  # objects of tests may lie to isinstance
            code = getattr(inspect.unwrap(one), "__code__", None)  # a partial has none
            caches += [one] if code and code.co_filename.startswith(str(ROOT)) else []
    return functions, caches


def forked(work: Callable[[], int]) -> int:
    """Run this in a forked process without output; return its exit status, or -signal."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os._exit(work())
    finally:
        os._exit(BROKEN)


def tried(mutant: Mutant, items: list[pytest.Item], cpu_s: float) -> int:
    """Run these tests with the mutant, within this many CPU seconds; return the exit status."""
    if not items or not put(mutant):
        return OTHER
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 5))
    signal.alarm(WAITS * int(cpu_s))  # a mutant may wait forever, as for a pipe that nobody writes to
    for item, following in zip(items, [*items[1:], None], strict=True):
        try:
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
                return KILLED
        except BaseException:  # a mutant may end pytest itself
            return KILLED
    return HELD


def loaded(mutant: Mutant, files: list[str]) -> int:
    """Run these test files in this process, with the mutant in the library from the start."""
    usual = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        here = loader.path == str(ROOT / mutant.path)
        return mutant.code(changed=True) if here else usual(loader, name)

    SourceFileLoader.get_code = get_code  # pyright: ignore[reportAttributeAccessIssue]
    return pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files])


def anew(mutant: Mutant, files: list[str]) -> int:
    """Run these test files in a new process that loads the library with the mutant in it."""
    program = (
        f"from tools.trust.mutate import Mutant, loaded; raise SystemExit(loaded({mutant!r}, {files!r}))"
    )
    command = ["sh", "-c", f'ulimit -t {ANEW_S}; exec "$@"', "sh", sys.executable, "-c", program]
    everything = os.environ | {"TEST_SCOPE": "all"}  # whatever the scope of the current run
    return subprocess.run(command, cwd=ROOT, env=everything, capture_output=True, check=False).returncode


def verdict(mutant: Mutant, items: dict[str, pytest.Item], seen: Seen, most_s: float) -> str:
    """Return "killed", "survived", or '' if no function is affected."""
    tests, cpu_s = seen.of(mutant, most_s)
    ended = forked(lambda: tried(mutant, [items[name] for name in tests if name in items], 10 + 5 * cpu_s))
    if ended == BROKEN:
        raise RuntimeError(f"{mutant} could not be tried")
    return "" if ended == OTHER else told(ended)


def told(ended: int) -> str:
    """Return the verdict for an exit status of the tests."""
    return "survived" if ended == HELD else "killed" if ended == KILLED else f"killed: {ended}"


class Trial:
    """A pytest plug-in that tries mutants instead of running the collected tests."""

    def __init__(self, todo: list[Mutant], state: State, jobs: int, most_s: float) -> None:
        self.todo, self.state, self.jobs, self.most_s = todo, state, jobs, most_s

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        seen = Seen.of_tests(session.items, forked)
        items = {item.nodeid: item for item in session.items}
        library()
        gc.freeze()  # keeps collected objects shared with the forked processes
        started = [pid for part in range(self.jobs) if (pid := self.worker(part, items, seen))]
        for pid in started:
            os.waitpid(pid, 0)
        return True

    def found(self, mutant: Mutant, what: str) -> str:
        """Store the verdict on a mutant, if there is one."""
        if what:
            self.state.keep(mutant.key, what)
            print(f"{mutant}: {what}", flush=True)
        return what

    def worker(self, part: int, items: dict[str, pytest.Item], seen: Seen) -> int:
        """Start a process for a part of the mutants and return its number."""
        if pid := os.fork():
            return pid
        try:
            mine = self.todo[part :: self.jobs]
            found = [(one, self.found(one, verdict(one, items, seen, self.most_s))) for one in mine]
            for mutant in (one for one, what in found if what in ("", "survived")):
                files = seen.files(mutant, self.most_s)
                self.found(mutant, told(anew(mutant, files) if files else HELD))
        except BaseException:
            traceback.print_exc()  # otherwise the reason why this process ends would be lost
        finally:
            os._exit(0)


def main() -> int:
    """Try the mutants that are not known to be killed, and print the counts; return 1 if too many survive."""
    parser = argparse.ArgumentParser(prog="python -m tools.trust.mutate", description=__doc__)
    parser.add_argument(
        "tests", nargs="*", default=["tests/core", "tests/launch"], help="files or folders of tests"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--among", default="", help="those alone whose path has this, an expression")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=MOST_S, help="of tests for a mutant, at most")
    asked = parser.parse_args()
    drawn = [one for one in mutants.every(asked.seed)[: asked.count] if re.search(asked.among, one.path)]
    state = State("mutants")
    todo = [one for one in drawn if state.known.get(one.key, "survived") == "survived"]
    if todo:
        trial = Trial(todo, state, asked.jobs, asked.seconds)
        pytest.main(["-q", "-s", "-p", "no:cacheprovider", *asked.tests], plugins=[trial])
    known = State("mutants").known
    survived = [one for one in drawn if known.get(one.key) == "survived"]
    found = Counter(known.get(one.key, "not tried").split(":")[0] for one in drawn)
    print(*survived, sep="\n")
    print(f"{len(drawn)} mutants: {', '.join(f'{n} {word}' for word, n in found.items())}")
    return 0 if found["killed"] >= ENOUGH * len(drawn) else 1


if __name__ == "__main__":
    raise SystemExit(main())
