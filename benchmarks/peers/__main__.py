"""Collect the predictions of other tools for the same published runs: `python -m benchmarks.peers [names]`.

Each peer is installed in an environment of its own below `_build/peers`. It is asked to predict the visible
rows of training and serving in its own terms, and its answers are written to `data/peers.csv` with version
and day. A server's batch is part of the question, because no peer determines what fits as engines do.
"""

import csv
import datetime
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.peers import questions
from tools.environment import ROOT

HERE = Path(__file__).parent
TABLE = ROOT / "data" / "peers.csv"
COLUMNS = ("peer", "version", "date", "table", "run_id", "predicted", "refused")
PINS = {
    "llm_analysis": ("--no-deps", "llm-analysis==0.2.2", "fire==0.7.1", "termcolor==3.2.0"),
    "genz": ("genz-llm==0.0.16",),
    "aiconfigurator": ("aiconfigurator==0.12.0",),
    "mlsysim": ("mlsysim==0.3.0",),
}


def environment(name: str) -> Path:
    """Return the peer's own Python: its pins conflict with ours and with those of other peers."""
    home = ROOT / "_build" / "peers" / name
    python = home / "bin" / "python"
    if not python.exists():
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(home)], check=True)
        subprocess.run([*uv, "pip", "install", "-q", "--python", str(python), *PINS[name]], check=True)
    return python


def answers(name: str, asked: list[dict]) -> list[dict[str, str]]:
    """Return a peer's answers to every question, as rows of the table."""
    run = [str(environment(name)), str(HERE / f"ask_{name}.py")]
    told = subprocess.run(run, input=json.dumps(asked), capture_output=True, text=True, check=False)
    if told.returncode:
        raise RuntimeError(f"{name}: {told.stderr[-2000:]}")
    found = json.loads(told.stdout)
    tables = {one["id"]: one["table"] for one in asked}
    common = {"peer": name, "version": found["version"], "date": datetime.date.today().isoformat()}
    rows = []
    for one in found["answers"]:
        says = f"{one['says']:.6g}" if "says" in one else ""
        own = {"table": tables[one["id"]], "run_id": one["id"], "predicted": says}
        rows.append(common | own | {"refused": one.get("refused", "")})
    return rows


def main(names: list[str]) -> None:
    """Ask these peers again, and keep the answers of the others."""
    kept = []
    if TABLE.exists():
        with TABLE.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["peer"] not in names]
    asked = questions.every()
    rows = [*kept, *(row for name in names for row in answers(name, asked))]
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (row["peer"], row["table"], row["run_id"])))
    for name in names:
        own = [row for row in rows if row["peer"] == name]
        print(f"{name}: {sum(bool(row['predicted']) for row in own)} of {len(own)} questions answered")


if __name__ == "__main__":
    main(sys.argv[1:] or list(PINS))
