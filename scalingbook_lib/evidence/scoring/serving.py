"""Predicted speed of servers in any table: prefill and decode in seconds, saturated servers in tokens/s.

A row gives its work by `phase`, lengths and batch. Its chips form chips / (tp · pp) replicas, which share the
work. What the row leaves open is left open here too, and the prediction is the geometric mean. A row that is
faster than the roofline, or whose model does not fit by the count of memory, is scored with that finding.
Chapter: Inference.
"""

from collections.abc import Iterator
from dataclasses import replace

from scalingbook_lib import calibrated
from scalingbook_lib.calibrated import bands
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import inference
from scalingbook_lib.evidence.inference.scores import ROOFLINE
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun, read
from scalingbook_lib.evidence.reading.cells import Cells, text, whole
from scalingbook_lib.evidence.reading.stacks import SoftwareStack, software_of
from scalingbook_lib.evidence.scoring.report import FASTER, NO_ROOM, Interval, RowPrediction
from scalingbook_lib.inference import largest_batch
from scalingbook_lib.inference.vllm_defaults import default_max_sequences

SPLITS = (1, 2, 4, 8)  # chips per replica, if a row leaves them open
NEAR_BEST = 1.25  # slower layouts than this factor are ignored


def predict(row: Cells) -> RowPrediction:
    """Seconds of a prefill or step, or output tokens/s of all chips; may raise `Refused`."""
    run = read(row)
    stack = software_of("inference", row)
    chips = whole(row, "chips") or run.chips
    runs = list(_open(row, run, stack, chips))
    rates = [_rate(one) * chips / one.chips for one in runs]
    near = Interval(min(rate for rate in rates if rate * NEAR_BEST >= max(rates)), max(rates))
    measured = run.tokens_per_s * chips / run.chips
    saturated = run.kind == "serving" or "static" in text(row, "phase").lower()
    kind = "saturated" if saturated else "prefill" if run.kind == "prefill" else "decode"
    B = (run.B or 1) * chips / run.chips
    done = B * {"prefill": run.P, "decode": 1}.get(
        run.kind, run.G
    )  # tokens of the prompts, of a step, or of the answers
    rated = Interval(measured, measured)
    values = record("inference").values
    own = f"{run.chip.name}: reads" in values
    known = stack.measured and f"{run.software[0]}: slowness" in values
    name = f"serving {kind}, {'experts' if run.experts else 'dense'}"
    band = bands.serving_band(experts=run.experts, full=run.kind == "serving", known=known)
    band = replace(band, rows=bands.class_rows(name))
    said = {
        "layout not given": len({one.tp for one in runs}) > 1,
        "batch not given": len({one.most_sequences for one in runs}) > 1,
        "software not known": not stack.known,
        "software not in the fit": stack.known and not stack.measured,
        "chip by its kin": not own,
        "shapes by size alone": ", as " in run.model.name,
        "type of the cache not given": not text(row, "kv_dtype"),
        "band not calibrated": not band.calibrated,
        NO_ROOM: not any(map(_fits, runs)),
    }
    assumed = tuple(told for told, holds in said.items() if holds)
    # only a row that is faster than predicted can be faster than the roofline
    suspect = measured > near.high and measured > max(_roofline(one) * chips / one.chips for one in runs)
    findings = (FASTER,) * suspect + (NO_ROOM,) * (NO_ROOM in assumed)
    return RowPrediction(
        kind=name,
        chip=run.chip.name,
        stack=stack.name,
        params=run.model.params,
        measured=rated if saturated else rated.over(done),
        predicted=near if saturated else near.over(done),
        factor=band.widened(assumed),
        assumed=assumed,
        findings=findings,
    )


def _rate(run: InferenceRun) -> float:
    return inference.tokens_per_s(run, calibrated.serving(run.chip, run.compute, run.software[0]))


def _roofline(run: InferenceRun) -> float:
    return inference.tokens_per_s(run, ROOFLINE)


def _fits(run: InferenceRun) -> bool:
    """Whether its sequences fit; of a saturated server, one sequence."""
    p = inference.planned(run)
    room = largest_batch(run.model, p.layout, p.machine, S=max(run.P + run.G, run.S or 0))
    return room >= (1 if run.kind == "serving" else run.B or 1)


def _open(row: Cells, run: InferenceRun, stack: SoftwareStack, chips: int) -> Iterator[InferenceRun]:
    """The runs that a row allows: unnamed layouts use any small replica, and vLLM its default batch."""
    said = whole(row, "tp") or (run.ep or 1) > 1
    small = run.kind == "serving" and not said and not run.chip.torus
    for ways in [n for n in SPLITS if chips % (n * run.pp) == 0] if small else [run.tp]:
        one = replace(run, tp=ways, chips=ways * run.pp)
        yield one
        vllm = stack.fitted_as == "vLLM" or not stack.known
        if vllm and run.kind == "serving" and not (run.B or run.most_sequences):
            yield replace(one, most_sequences=default_max_sequences(run.chip))
