"""Do the tests hold in any order, under load, again and again? Each file is run with several seeds.

`python -m tools.trust.again [--times 3] [--more 20] [--load 4] [FILE ...]`, or `make trust`: every file of
tests three times, those that start processes, write files or open a browser 20 times, in random order, with
four busy loops beside them. It may be interrupted and goes on where it was, until what is tested changes.
"""

import argparse
import contextlib
import hashlib
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.environment import ROOT
from tools.trust.state import State

SEED = "SEED"  # the variable that a shuffled run reads
OUTSIDE = re.compile(
    r"subprocess|Popen|tmp_path|os\.fork|socket|multiprocessing|\bcdp\b|\bcontext\b|\.goto\("
)
MOST_S = 3600  # of a file of tests


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """As a plugin, this module shuffles the tests of a file."""
    random.Random(os.environ.get(SEED, "")).shuffle(items)


@contextlib.contextmanager
def load(loops: int) -> Iterator[None]:
    """Keep the machine busy meanwhile; what is killed takes its loops along."""
    program = "import os\nwhile os.getppid() == int(os.environ['PARENT']): sum(range(100_000))"
    environment = os.environ | {"PARENT": str(os.getpid())}
    busy = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(loops)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def found() -> list[str]:
    """Every file of tests."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))


def runs(files: list[str], times: int, more: int) -> list[tuple[str, str]]:
    """Each file with a seed, as often as it is to be run, all in one random order."""
    often = {f: more if OUTSIDE.search((ROOT / f).read_text(encoding="utf-8")) else times for f in files}
    every = [(file, str(n)) for file in files for n in range(often[file])]
    return random.Random(0).sample(every, len(every))


def tree() -> str:
    """A digest of what is tested, and of the tests."""
    digest = hashlib.sha256()
    for folder in ("scalingbook_lib", "tests", "tools", "web", "data"):
        for path in sorted(
            p for p in (ROOT / folder).rglob("*") if p.suffix in (".py", ".mjs", ".csv", ".json")
        ):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def command(file: str) -> list[str]:
    """What runs a file of tests in random order."""
    quiet = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return [sys.executable, "-m", "pytest", "-p", "tools.trust.again", *quiet, file]


def run(file: str, seed: str) -> str:
    """How a file of tests ended: 'held', or what failed."""
    environment = os.environ | {SEED: seed}
    try:
        done = subprocess.run(
            command(file), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=MOST_S
        )
    except subprocess.TimeoutExpired:
        return f"no end after {MOST_S} s"
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "held" if done.returncode == 0 else "\n".join(told) or (done.stdout + done.stderr)[-600:]


def main() -> int:
    """Run what has not been run on this tree; 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.trust.again", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--more", type=int, default=20, help="for processes, files and browsers")
    parser.add_argument("--load", type=int, default=4, help="busy loops beside the tests")
    asked = parser.parse_args()
    state, of = State("again"), tree()
    todo = runs([path.as_posix() for path in asked.files] or found(), asked.times, asked.more)
    with load(asked.load):
        for file, seed in todo:
            if (key := f"{of} {file} {seed}") not in state.known:
                state.keep(key, ended := run(file, seed))
                if ended != "held":
                    print(f"SEED={seed} python -m pytest -p tools.trust.again {file}\n{ended}", flush=True)
    ends = Counter(state.known[f"{of} {file} {seed}"] == "held" for file, seed in todo)
    print(f"{len(todo)} runs: {ends[True]} held, {ends[False]} failed")
    return 1 if ends[False] else 0


if __name__ == "__main__":
    raise SystemExit(main())
