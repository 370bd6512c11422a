"""Break down the time of a decode step of gpt-fast on one to eight A100s, by the data type of the weights."""

from scalingbook_lib import calibrated, inference
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence.inference.planned import planned
from scalingbook_lib.evidence.measured.inference_runs import RUNS, InferenceRun, find
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, si
from tools.published import Cells, share


def values() -> dict[str, str]:
    """Fitted overheads of single-sequence decode on one A100."""
    one = calibrated.serving(find("inf-0019").chip, BF16, "gpt-fast")
    lost = {"layer": one.layer_s, "fixed": one.fixed_s, "collective": one.collective_s}
    half, whole = find("inf-0020"), find("inf-0019")
    return {
        "weights_share": share(one.of("weights", BF16), 0),
        "dequantize": f"{record('inference').values['dequantize']:.1f}",
        "vector": si((chips.A100.vector_flops_per_s or 0) / 2),
        "int8_speedup": f"{half.tokens_per_s / whole.tokens_per_s:.2f}",
        **{name: si(float(s), "s", 2) for name, s in lost.items()},
    }


def rows() -> Cells:
    """Decode steps of a single sequence, in milliseconds."""
    for run in RUNS:
        if run.family == "gpt-fast":
            yield run.model.name, str(run.weights), str(run.chips), *(f"{1e3 * s:.1f}" for s in _parts(run))


def _parts(run: InferenceRun) -> tuple[float, ...]:
    efficiency, p = calibrated.serving(run.chip, run.compute, run.software[0]), planned(run)
    step = inference.decode(run.model, p.machine, p.layout, batch=1, S=run.S or 0, efficiency=efficiency)
    held = shape(run.model, p.layout)
    stored = held.projections.stored + held.mlp.stored + held.head.stored
    narrow = run.weights.bytes < run.compute.bytes
    widening = stored * efficiency.of("dequantize_s", run.weights) if narrow else 0.0
    reading = step.terms["weights"] - widening
    sent = sum(step.collectives.values())
    rest = step.total_s - reading - widening - sent
    bytes_s = stored * run.weights.bytes / run.chip.hbm_bytes_per_s
    return reading, widening, rest, sent, step.total_s, 1 / run.tokens_per_s, bytes_s
