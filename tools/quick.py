"""Does a day's change hold? Style, types and floors, and the tests that touch what has changed.

`python -m tools.quick [COMMIT]` compares with that commit, or with the last one that is a day old. A test is
run that has changed, or that imports a module that has, or the room of one, or does so through a helper of
tests; of notebooks those whose source has changed. `make test` runs everything; this is for the three minutes
between two thoughts.
"""

import ast
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.environment import ROOT

BIN = Path(sys.executable).parent
TESTS = ("tests/core", "tests/lab", "tests/book", "tests/web", "tests/trust", "tests/viz", "tests/cli")
LIMIT_S = 180


def git(*words: str) -> list[str]:
    """What git says, line by line."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def changed(base: str = "") -> set[str]:
    """The files that differ from a commit, or are new, by their path below the root."""
    if not base:
        old = git("rev-list", "-1", "--before=24 hours ago", "HEAD")
        base = old[0] if old else "HEAD"
    return {*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")}


def rooms(path: str) -> set[str]:
    """A module by its dotted name, and the rooms that hold it but for the library itself."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return {".".join(parts[:n]) for n in range(2, len(parts) + 1)}


@cache
def imported(path: Path) -> frozenset[str]:
    """The modules and names that a Python file imports, dotted, and what the helpers of tests import."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    # A helper stands in tests/core, where pytest puts it on the path, or is named from the root on.
    named = (ROOT / way / f"{name.replace('.', '/')}.py" for name in found for way in ("tests/core", "."))
    helpers = {file for file in named if file.is_relative_to(ROOT / "tests") and file.exists()} - {path}
    return frozenset(found.union(*({f"tests/{helper.stem}"} | imported(helper) for helper in helpers)))


def tests(of: set[str]) -> Iterator[str]:
    """The tests and notebooks to run for these files."""
    touched = {name for path in of if path.startswith("scalingbook_lib/") for name in rooms(path)}
    touched |= {f"tests/{Path(path).stem}" for path in of if path.startswith("tests/")}
    for path in sorted(p for folder in TESTS for p in (ROOT / folder).rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name in of or imported(path) & touched:
            yield name
    for path in sorted(of):
        notebook = (ROOT / path).with_suffix(".ipynb")
        if path.startswith(("chapters/", "solutions/")) and path.endswith(".md") and notebook.exists():
            yield notebook.relative_to(ROOT).as_posix()


def main() -> int:
    """Run them; 1 where something is wrong."""
    started, of = time.monotonic(), changed(*sys.argv[1:2])
    chosen = list(tests(of))
    python = [path for path in sorted(of) if path.endswith(".py") and (ROOT / path).exists()]
    typed = [path for path in python if path.startswith(("scalingbook_lib/", "tools/", "web/"))]
    ruff = BIN / "ruff"
    steps = [[ruff, "check", "-q", *python], [ruff, "format", "-q", "--check", *python]] if python else []
    if typed:
        steps += [[BIN / "pyright", "--warnings", *typed], [BIN / "lint-imports", "--no-cache"]]
    if chosen:
        steps.append([sys.executable, "-m", "pytest", "-q", "-n", "2", "--nbval", "--maxfail=3", *chosen])
    for step in steps:
        if code := subprocess.run(step, cwd=ROOT, check=False).returncode:
            return code
    took = time.monotonic() - started
    late = f": more than {LIMIT_S}; name a later commit" if took > LIMIT_S else ""
    print(f"{len(of)} files changed, {len(chosen)} files of tests and notebooks hold, {took:.0f} s{late}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
