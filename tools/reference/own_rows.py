"""Predictions for the book's own measurements on rented GPUs."""

from collections.abc import Iterator
from dataclasses import replace
from statistics import mean

from scalingbook_lib import evidence, training
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.reading.cells import Cells as Row
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary, signed
from scalingbook_lib.evidence.scoring import read_table
from scalingbook_lib.evidence.scoring.report import RowPrediction
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.units import BF16, GiB
from tools.environment import ROOT
from tools.published import Cells, share

TABLES = "own_kernels", "own_training", "own_inference"
LARGE = 16_384  # tokens of a batch whose logits dominate the memory of its step
PURE = "all in bf16"  # in a row's notes: there is no fp32 copy of the weights


def _counted() -> Iterator[tuple[Row, training.TrainingMemory]]:
    """Yield the rows of training runs with their predicted memory."""
    for row in read_table(ROOT / "data" / "own_training.csv"):
        found = planned(read(row))
        pure = {"weights": BF16, "gradients": BF16, "moments": BF16, "master": None}
        plan = replace(found.plan, **pure) if PURE in row["notes"] else found.plan
        yield row, training.memory(found.model, plan, batch=int(row["global_batch"]), T=int(row["seq"]))


def memory() -> dict[str, str]:
    """Measured over predicted peak memory for mixed-precision and pure bf16 models, and bytes per logit.

    The latter from large batches with full rematerialization: the peak minus weights, optimizer and inputs.
    """
    ratios, logits = {False: [], True: []}, []
    for row, m in _counted():
        peak, tokens = float(row["peak_mem_gib"]) * GiB, int(row["global_batch"]) * int(row["seq"])
        ratios[PURE in row["notes"]].append(peak / m.total)
        if row["family"].startswith("transformers") and row["remat"] == "full" and tokens >= LARGE:
            logits.append((peak - m.weights - m.optimizer - m.activations) / (tokens * int(row["vocab"])))
    small, large = ([f"{end(ratios[pure]):.2f}" for end in (min, max)] for pure in (False, True))
    (each,) = {f"{one:.0f}" for one in logits}
    return {
        "own_least": small[0],
        "own_most": small[1],
        "own_8b_least": large[0],
        "own_8b_most": large[1],
        "own_logit": each,
    }


def _found(*tables: str) -> list[tuple[str, RowPrediction]]:
    """Return the predictions for the rows of these tables, with what was run."""
    reports = (evidence.score(read_table(ROOT / "data" / f"{name}.csv")) for name in tables)
    return [
        (row.row["source"].partition(": ")[2], row.found)
        for report in reports
        for row in report.rows
        if row.found
    ]


def served() -> dict[str, str]:
    """Return the number of serving rows, and how many lie in the interval of unknown software."""
    found = [one for _, one in _found("own_inference")]
    factor = f"{min(one.factor for one in found):.2f}"  # without the doubts of some rows
    return {
        "own_band": factor,
        "own_held": f"{sum(one.in_interval for one in found)}",
        "own_words": f"{len(found)}",
    }


def kernels() -> list[RowPrediction]:
    """Return the predictions for the kernels that were measured on the book's own GPUs."""
    return [one for _, one in _found("own_kernels")]


def rows() -> Cells:
    """Errors by chip, by what was run, and by class; nothing was fitted to these rows."""
    found = _found(*TABLES)
    for (chip, by, kind), same in grouped(found, lambda pair: (pair[1].chip, pair[0], pair[1].kind)).items():
        errors = Summary.of(kind, [one.error for _, one in same])
        inside = share(mean(one.in_interval for _, one in same), 0)
        sizes = share(errors.mean), share(errors.median), signed(errors.bias)
        yield f"{chip}, {_program(by)}: {_in_words(kind)}", str(errors.runs), *sizes, inside


def quoted() -> dict[str, str]:
    """Return the largest mean error of the good classes, and the ranges of the bad ones and small models."""
    errors: dict[bool | None, list[float]] = {True: [], False: [], None: []}
    for (by, kind, _), same in grouped(
        _found(*TABLES), lambda pair: (pair[0], pair[1].kind, pair[1].chip)
    ).items():
        errors[_is_good(by, kind)].append(mean(abs(one.error) for _, one in same))
    return {
        "own_good_most": share(max(errors[True]), 0),
        "own_bad_least": share(min(errors[False]), 0).removesuffix("%"),
        "own_bad_most": share(max(errors[False]), 0),
        "own_small_least": share(min(errors[None]), 0).removesuffix("%"),
        "own_small_most": share(max(errors[None]), 0),
    }


def _is_good(by: str, kind: str) -> bool | None:
    """Return whether the text names a class among the good ones; None for training of small models."""
    if kind.startswith("training"):
        return True if by.endswith("8B") else None
    if kind.startswith("products"):
        return ("bf16" in by) == (">=" in kind)
    return kind.startswith("serving prefill")


def _program(name: str) -> str:
    """Return the program that was measured as the page prints it: 'Hugging Face transformers 5.17'."""
    return name.replace("lab.train", "our own trainer").replace("transformers", "Hugging Face transformers")


def _in_words(kind: str) -> str:
    """Return the class as the page prints it: 'matmuls with m < 512'."""
    return kind.replace("products m", "matmuls with m").replace("attention prompt", "attention in prefill")
