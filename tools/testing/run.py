"""Run the steps of a test run on two cores, and show how far they are: `python -m tools.testing quick`.

`make test` runs the scope ``quick``, and `make test-all` and `.ci/run` run the scope ``all`` (see
`tools.testing.scope`). Each step is a command whose output goes to `.make/test/<step>.log`.
The output of a step is printed only where it fails, and the other steps still run.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.environment import ROOT
from tools.testing import changes
from tools.testing.scope import SCOPES, Scope

CORES = 2
LOGS = ROOT / ".make" / "test"
BARE = ROOT / ".make" / "bare"
PYTEST = (sys.executable, "-m", "pytest", "-q", "--durations=25", "--durations-min=5")
LIBRARY_TESTS = (
    "tests/lab",
    "tests/book",
    "tests/web",
    "tests/trust",
    "tests/show",
    "tests/cli",
    "tests/launch",
)
SHOWN_S = 20.0  # between two lines of progress where the output is no terminal
_PERCENT = re.compile(rb"\[ *(\d+)%\]")
_SUMMARY = re.compile(r"^=* ?((?:\d[\d,]* \w+(?:, )?)+ in [\d.]+s.*?)=*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """A command of the run, and how many cores it keeps busy."""

    name: str
    command: tuple[str, ...]
    cores: int = 1
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Running:
    """A running step."""

    step: Step
    process: subprocess.Popen[bytes]
    started: float

    @property
    def log(self) -> Path:
        return LOGS / f"{self.step.name}.log"

    def percent(self) -> str:
        """Return the progress of a step of tests, or nothing if its output does not show it."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - 2000))
            found = _PERCENT.findall(file.read())
        return f" {int(found[-1])}%" if found else ""


def steps(scope: Scope) -> Iterator[Step]:
    """Yield the steps of a scope in the order in which they start."""
    yield Step("site", (sys.executable, "-m", "web.site", "build"))
    yield Step("lint", ("make", "lint"))
    chapters = "tests/core/chapters"
    yield _bare("core-chapters", chapters)
    yield _bare("core", f"--ignore={chapters}", "tests/core")
    alone = ("--only", "colab", "conclusion") if scope == "quick" else ("--with-jax",)
    cores = 1 if scope == "quick" else CORES
    yield Step("notebooks-alone", (sys.executable, "-m", "tools.isolated_run", *alone), cores)
    yield _tests(scope)
    yield Step("browser", (*PYTEST, "-n", "2", "--dist", "worksteal", "tests/browser"), CORES)


def _bare(name: str, *arguments: str) -> Step:
    """Return the step that tests the core where only pytest is installed, because it needs nothing else."""
    fuzz = "--ignore-glob=*test_fuzz_*"  # these need Hypothesis and run among the library's tests
    python = str(BARE / "bin" / "python")
    return Step(name, (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", fuzz, *arguments))


def _tests(scope: Scope) -> Step:
    """Return the step with every other test of the library and the tools, and the cells of notebooks."""
    folders = ("chapters", "solutions", "exercises")
    if scope == "quick":
        names, left_out = changes.chosen(changes.changed())
        folders = tuple(f"{name}.ipynb" for name in names)
        if left_out:
            print(
                f"{len(names)} notebooks are run; `make test-all` runs {left_out} more that import a change"
            )
    fuzz = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/core/*/test_fuzz_*.py"))
    # The long files first, so that neither worker waits for the other at the end: a file is not divided.
    files = (*fuzz, *folders, *LIBRARY_TESTS)
    return Step("tests", (*PYTEST, "-n", "2", "--no-loadscope-reorder", "--nbval", *files), CORES)


def prepare() -> None:
    """Provide what the steps share: the packages of the site's scripts, and the bare environment."""
    LOGS.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "web.site", "vendor"], cwd=ROOT, check=True)
    uv = str(Path(sys.executable).with_name("uv"))
    sync = [uv, "sync", "--quiet", "--frozen", "--no-install-project", "--only-group", "bare"]
    environment = os.environ | {"UV_PROJECT_ENVIRONMENT": str(BARE)}
    subprocess.run([*sync, "--python", sys.executable], cwd=ROOT, env=environment, check=True)


def chromium() -> dict[str, str]:
    """Return the variable that names this machine's browser, which is installed if possible."""
    done = subprocess.run(["tools/chromium.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr or "tools/chromium.sh found no Chromium")
    return {"CHROMIUM": done.stdout.strip()}


class Run:
    """All steps of a scope, on two cores."""

    def __init__(self, scope: Scope) -> None:
        self.variables = os.environ | {"TEST_SCOPE": scope} | chromium()
        self.waiting = list(steps(scope))
        self.running: list[Running] = []
        self.failed: list[Step] = []
        self.started = self.shown = time.monotonic()

    def clock(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self.started), 60)
        return f"{minutes}:{seconds:02}"

    def start(self) -> None:
        """Start the next steps in order, as long as a core is free; a step may need more than are free."""
        while self.waiting and sum(one.step.cores for one in self.running) < CORES:
            step = self.waiting.pop(0)
            with (LOGS / f"{step.name}.log").open("wb") as log:
                process = subprocess.Popen(
                    step.command, cwd=ROOT, env=self.variables | step.variables, stdout=log, stderr=log
                )
            self.running.append(Running(step, process, time.monotonic()))

    def finish(self) -> None:
        """Report the steps that have ended."""
        for one in [one for one in self.running if one.process.poll() is not None]:
            self.running.remove(one)
            text = one.log.read_text(encoding="utf-8", errors="replace")
            summaries = _SUMMARY.findall(text)
            told = summaries[-1].strip() if summaries else f"done in {time.monotonic() - one.started:.0f} s"
            if one.process.returncode:
                self.failed.append(one.step)
                print(f"\n{text[-20_000:]}\n{self.clock()}  {one.step.name}: FAILED: {told}", flush=True)
            else:
                print(f"{self.clock()}  {one.step.name}: {told}", flush=True)

    def show(self) -> None:
        """Print now and then which steps are running and their progress."""
        if time.monotonic() - self.shown > SHOWN_S and self.running:
            self.shown = time.monotonic()
            at_work = ", ".join(f"{one.step.name}{one.percent()}" for one in self.running)
            print(f"{self.clock()}  ... {at_work}; {len(self.waiting)} steps to come", flush=True)

    def through(self) -> int:
        """Run everything; return 1 if a step failed."""
        try:
            while self.waiting or self.running:
                self.start()
                time.sleep(0.2)
                self.finish()
                self.show()
        finally:
            for one in self.running:
                one.process.terminate()
        for step in self.failed:
            print(f"failed: {step.name} (its output is in .make/test/{step.name}.log)")
        return 1 if self.failed else 0


def main(arguments: list[str] | None = None) -> int:
    """Run the steps of the scope that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tools.testing", description=__doc__)
    parser.add_argument("scope", choices=SCOPES)
    scope = parser.parse_args(arguments).scope
    prepare()
    run = Run(scope)
    code = run.through()
    print(f"{'failed' if code else 'passed'} after {run.clock()}")
    return code
