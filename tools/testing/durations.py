"""Record how much processor time each test takes: `make durations`, or `python -m tools.testing.durations`.

Every test of the full run writes its node id and its CPU seconds, those of its child processes included, to
`.make/durations.jsonl`; browser tests write wall-clock seconds, because Chromium is not a child process that
the test waits for. `tests/durations.csv` then lists the tests that took more than a second, in the order of
their node ids. The file is rewritten by hand, after tests were added or made faster; no test fails because of
a time.
"""

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.environment import ROOT
from tools.testing.scope import DURATIONS

RECORD = ROOT / ".make" / "durations.jsonl"
VARIABLE = "TEST_DURATIONS"  # the file to which a run records them
LEAST_S = 1.0
FOLDERS = ("tests", "chapters", "solutions", "exercises")


def cpu_s() -> float:
    """Return the CPU seconds of this process and of the children it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


@contextmanager
def recorded(test: str) -> Iterator[None]:
    """Append the time that the block takes to the record, if a run asks for one."""
    path = os.environ.get(VARIABLE)
    if path is None:
        yield
        return
    clock = time.monotonic if test.startswith("tests/browser/") else cpu_s
    started = clock()
    yield
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps([test, clock() - started]) + "\n")


def write(record: Path = RECORD, table: Path = DURATIONS) -> int:
    """Write the table from a record; return how many tests it lists."""
    lines = record.read_text(encoding="utf-8").splitlines()
    took = dict(json.loads(line) for line in lines)  # for a test that ran twice, the later time
    rows = sorted((test, f"{seconds:.1f}") for test, seconds in took.items() if seconds > LEAST_S)
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("test", "cpu_s"), *rows])
    return len(rows)


def main() -> int:
    """Run everything once with two workers, record each test's time, and rewrite the table."""
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.unlink(missing_ok=True)
    environment = os.environ | {VARIABLE: str(RECORD), "TEST_SCOPE": "all"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--nbval", *FOLDERS]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    print(f"{write()} tests that take more than {LEAST_S:g} s are listed in {DURATIONS.relative_to(ROOT)}")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
