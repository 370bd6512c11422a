"""Predict runs that are not yet measured: `python -m tools.predictions [ID ...]`.

Writes `data/predictions/<id>.json` for each case that has no file, and adds its digest to `SHA256SUMS`. A
file that exists is never written again: what was predicted stays, and a later model of the library writes a
new file, whose id ends in a new number.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scalingbook_lib.evidence.predictions import COVERAGE, UNIT, Prediction, read
from tools.environment import ROOT

FOLDER = ROOT / "data" / "predictions"
DIGESTS = "SHA256SUMS"
BEHIND = (
    "scalingbook_lib",
    ":!scalingbook_lib/evidence",
    "scalingbook_cli/plan.py",
    "scalingbook_cli/serve.py",
)
"""What git may say has changed since a commit that made a prediction."""

RECIPES = {  # batch size in sequences and length, as each model was trained
    "llama-3.1-405b": ("--batch", "2048", "--sequence", "8192"),
    "deepseek-v3": ("--batch", "15360", "--sequence", "4096"),
    "kimi-k2": ("--batch", "16384", "--sequence", "4096"),
}
WORKLOAD = ("--prompt", "8192", "--output", "1024", "--itl", "50ms", "--weights", "fp8", "--kv", "fp8")
FP8 = ("--compute", "fp8")
TPU_8T = ("--figure", "fp8=6300T", "--figure", "bf16=3150T")
TPU_8I = ("--figure", "fp8=5050T", "--figure", "bf16=2525T")
HALVED = "the fp8 rate is half of the announced fp4 rate, and the bf16 rate is a quarter of it"
TRAINED_ON = {"rubin:1152": (), "mi455x:1152": (), "trn3:1024": (), "tpu8t:8x8x16": TPU_8T}
SERVED_ON = {"rubin:72": (), "mi455x:72": (), "trn3:64": (), "tpu8i:64": TPU_8I}

AS_K2 = "Kimi K3's batch size and sequence length are those of Kimi K2"
NEWLY_TRAINED = {"kimi-k3": (RECIPES["kimi-k2"], AS_K2)}
"""Models without a published training speed: a recipe, and what is assumed in it."""
NEWLY_SERVED = ("trinity-large", "k-exaone-236b-a23b")
"""Models without a published serving speed on a rack."""
RACKS = {"gb300": 72, "rubin": 72}
"""GPUs in a rack: one that exists and one that is announced. A training run has 16 of them."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question, with the id of its prediction."""

    id: str
    kind: str
    input: tuple[str, ...]
    assumed: tuple[str, ...]


def cases() -> Iterator[Case]:
    """Yield every question: training steps and servers of each model on each machine."""
    for model, recipe in RECIPES.items():
        for machine, rates in TRAINED_ON.items():
            yield _training(model, machine, recipe + FP8 + rates, (HALVED,) if rates else ())
        for machine, rates in SERVED_ON.items():
            yield _serving(model, machine, rates, (HALVED,) if rates else ())
    for chip, rack in RACKS.items():
        for model, (recipe, assumed) in NEWLY_TRAINED.items():
            yield _training(model, f"{chip}:{16 * rack}", recipe + FP8, (assumed,))
        for model in NEWLY_SERVED:
            yield _serving(model, f"{chip}:{rack}")


def _training(model: str, machine: str, options: tuple[str, ...], assumed: tuple[str, ...]) -> Case:
    return Case(_id("train", model, machine), "training", ("plan", model, machine, *options), assumed)


def _serving(model: str, machine: str, rates: tuple[str, ...] = (), assumed: tuple[str, ...] = ()) -> Case:
    arguments = ("serve", model, machine, *WORKLOAD, *FP8, *rates)
    return Case(_id("serve", model, machine), "serving", arguments, assumed)


def _id(verb: str, model: str, machine: str) -> str:
    return f"{verb}-{model}-{machine.replace(':', '-')}-1"


def predict(case: Case, commit: str, day: str) -> Prediction:
    """Return the prediction that the command line makes for a question."""
    answer = _answer(case.input)
    training = case.kind == "training"
    value = (
        answer["tokens_per_s"] / answer["plan"]["chips"]
        if training
        else answer["output_tokens_per_s_per_chip"]
    )
    factor = answer["band_factor"]
    specifications = _answer(("chips", case.input[2].partition(":")[0]))
    return Prediction(
        id=case.id,
        kind=case.kind,
        model=answer["model"],
        machine=answer["machine"],
        chip=specifications["name"],
        input=case.input,
        plan=_plan(answer),
        value=value,
        low=value / factor,
        high=value * factor,
        unit=UNIT,
        coverage=COVERAGE,
        date=day,
        commit=commit,
        assumed=case.assumed,
        specifications=specifications,
    )


def _answer(arguments: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "scalingbook_cli", *arguments, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"scalingbook {' '.join(arguments)} failed: {(done.stderr or done.stdout).strip()}")
    return json.loads(done.stdout)


def _plan(answer: Mapping[str, Any]) -> str:
    """Return the degrees above 1 and the settings, as `name=value`."""
    chosen = answer.get("plan") or answer["layout"]
    named = {
        name: value for name, value in chosen.items() if name == "zero" or value not in (None, False, True, 0)
    }
    if "layout" in answer:
        named |= {"batch": round(answer["batch_size_sequences"]), "policy": answer["policy"]}
    return " ".join(f"{name}={value}" for name, value in named.items())


def text(prediction: Prediction) -> str:
    """Return the file of a prediction."""
    found = {field.name: getattr(prediction, field.name) for field in fields(Prediction)}
    found["specifications"] = dict(prediction.specifications)
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def write(prediction: Prediction, folder: Path = FOLDER) -> Path:
    """Write a new prediction and its digest, and return its path; raise FileExistsError if it exists."""
    path = folder / f"{prediction.id}.json"
    with path.open("x", encoding="utf-8") as file:  # never over a file that exists
        file.write(text(prediction))
    read(path)
    with (folder / DIGESTS).open("a", encoding="utf-8") as digests:
        digests.write(f"{digest(path)}  {path.name}\n")
    return path


def digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def changed(folder: Path = FOLDER) -> list[str]:
    """Return what is wrong: predictions without a digest, with another one, or that are gone."""
    lines = (folder / DIGESTS).read_text(encoding="utf-8").splitlines()
    stored = {name: value for value, name in (line.split("  ") for line in lines)}
    there = {path.name: digest(path) for path in folder.glob("*.json")}
    names = sorted(stored.keys() | there.keys())
    return [
        f"{name} was edited, added by hand or removed"
        for name in names
        if stored.get(name) != there.get(name)
    ]


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    if git("status", "--porcelain", "--", *BEHIND):
        raise SystemExit(
            "commit the changes to the library first: a prediction names the commit that made it"
        )
    return git("log", "-1", "--format=%H", "--", *BEHIND).strip()


def main(ids: Sequence[str]) -> None:
    """Predict these cases, or all that have no file."""
    known = {case.id: case for case in cases()}
    if unknown := [id for id in ids if id not in known]:
        raise SystemExit(f"there is no case {', '.join(unknown)}; write one of {', '.join(known)}")
    if there := [id for id in ids if (FOLDER / f"{id}.json").exists()]:
        raise SystemExit(f"{', '.join(there)} was predicted already, and a prediction is never written again")
    FOLDER.mkdir(parents=True, exist_ok=True)
    commit, day = _commit(), datetime.now(UTC).date().isoformat()
    for id in ids or known:
        if not (FOLDER / f"{id}.json").exists():
            print(write(predict(known[id], commit, day)).relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
