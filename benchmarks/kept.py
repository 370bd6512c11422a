"""Describe the machine of a benchmark and store its results; shared by all benchmarks."""

import argparse
import datetime
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


def device() -> str:
    """Return the device of the measurement, in words."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    return f"{os.cpu_count()} cores, {model}, {platform.system()}"


def circumstances() -> dict:
    """Return the day, the machine, and its load."""
    return {
        "date": datetime.date.today().isoformat(),
        "device": device(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def verdicts(targets: list[tuple[bool, str]]) -> None:
    """Print each target, and whether it is met."""
    print()
    for met, words in targets:
        print("met   " if met else "MISSED", words)


def main(stem: str, doc: str | None, measure: Callable[..., dict], tell: Callable[[dict], None],
         **paths: Path) -> None:  # fmt: skip
    """Measure, print, and with --keep write results/<stem>.json; `paths` are options of `measure`."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{stem}", description=doc)
    for name, path in paths.items():
        parser.add_argument(f"--{name}", type=Path, default=path)
    parser.add_argument("--keep", action="store_true", help=f"write benchmarks/results/{stem}.json")
    given = vars(parser.parse_args())
    keep = given.pop("keep")
    found = measure(**given)
    tell(found)
    if keep:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{stem}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
