"""Explorer of the pipeline schedules, simulated step by step."""

from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Cell,
    Choice,
    Explorer,
    Grid,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    Steps,
    Timeline,
    View,
)
from scalingbook_book.reader.explorers.parts import Span as Block
from scalingbook_lib.steps import pipelines
from scalingbook_lib.steps.pipelines import PipelineError, PipelineRun
from scalingbook_lib.units import percent

SCHEDULES = {
    "GPipe": "gpipe",
    "1F1B": "1f1b",
    "interleaved": "interleaved",
    "ZB-H1": "zero-bubble",
    "ZB-H2": "zb-h2",
    "ZB-V": "zb-v",
    "DualPipe": "dualpipe",
    "DualPipe-V": "dualpipe-v",
}
COLORS = {"F": 0, "B": 1, "W": 2}
_WORDS = {"F": "forward", "B": "backward", "W": "weight gradients"}


@lru_cache(maxsize=128)
def played(schedule: str, P: int, M: int, *, chunks: int, backward: float, hop: float) -> PipelineRun:
    """One step; a forward pass of one microbatch through a stage takes 1."""
    chunks = chunks if schedule == "interleaved" else 1
    return pipelines.simulate(SCHEDULES[schedule], P, M, chunks=chunks, backward_s=backward, hop_s=hop)


def _pipeline(*, schedule: str, P: int, M: int, chunks: int, backward: float, hop: float, step: int) -> View:
    run = played(schedule, P, M, chunks=chunks, backward=backward, hop=hop)
    frames = int(float(run.total_s)) + 1
    now = min(step, frames - 1)
    return View(
        _verdict(schedule, run),
        (
            _gantt(run, now),
            _stages(run, now),
            _compared(P=P, M=M, chunks=chunks, backward=backward, hop=hop),
        ),
        (
            Readout("step", float(run.total_s), "", f"{float(run.total_s):.4g} forward passes"),
            Readout.percent("idle fraction of the step", float(run.bubble), 3),
            Readout.percent("idle fraction without a barrier between steps", unsynchronized(run), 3),
            Readout.percent("idle time over work", float(run.overhead), 3),
            Readout("microbatches kept (maximum)", float(max(run.live))),
            Readout("stages of weights per chip", run.weight_copies, "×"),
        ),
        frames=frames,
    )


def unsynchronized(run: PipelineRun) -> float:
    """The idle fraction if no stage waits for the others between two steps."""
    within = run.idle_within_s
    return float(within / (within + min(run.work_s)))


def _gantt(run: PipelineRun, now: int) -> Timeline:
    lanes = [f"stage {s}" for s in range(run.stages)]
    named = run.microbatches * run.chunks <= 24
    blocks = [
        Block(
            lanes[s.stage],
            float(s.start),
            float(s.end),
            str(s.microbatch + 1) if named else "",
            COLORS[s.kind],
        )
        for s in run.spans
    ]
    return Timeline(
        lanes,
        blocks,
        "",
        float(run.total_s),
        (RefLine("now", now),),
        "Blue: forward; orange: backward; green: postponed weight gradients",
        "time, in forward passes",
    )


def _stages(run: PipelineRun, now: int) -> Grid:
    """What every stage does and keeps at this moment."""
    does = [[s for s in run.stage(stage) if s.start <= now < s.end] for stage in range(run.stages)]
    cells = [
        [_doing(tasks) for tasks in does],
        [Cell(f"{holds(run, stage, now):.3g}", level=0.4) for stage in range(run.stages)],
        [Cell(f"{float(most):.3g}", level=0.4) for most in run.live],
    ]
    columns = [f"{s}" for s in range(run.stages)]
    return Grid(f"Stages at time {now}", ("does", "keeps", "at most"), columns, cells)


def _doing(tasks: list[pipelines.TaskSpan]) -> Cell:
    if not tasks:
        return Cell("–", None, "idle")
    text = "+".join(f"{t.kind}{t.microbatch + 1}" for t in tasks)
    note = ", ".join(f"{_WORDS[t.kind]}, microbatch {t.microbatch + 1}" for t in tasks)
    return Cell(text, COLORS[tasks[0].kind], note)


def holds(run: PipelineRun, stage: int, now: float) -> float:
    """Microbatches whose activations a stage keeps: forward begun, backward pass not finished."""
    begun = {(t.microbatch, t.chunk) for t in run.stage(stage) if t.kind == "F" and t.start <= now}
    last: dict[tuple[int, int], float] = {}
    for t in run.stage(stage):
        last[t.microbatch, t.chunk] = max(float(t.end), last.get((t.microbatch, t.chunk), 0.0))
    return sum(last[task] > now for task in begun) / run.chunks if begun else 0.0


def _compared(*, P: int, M: int, chunks: int, backward: float, hop: float) -> Bars:
    """The idle fraction of every schedule; those that these numbers do not allow are left out."""
    runs: dict[str, PipelineRun] = {}
    for name in SCHEDULES:
        try:
            runs[name] = played(name, P, M, chunks=chunks, backward=backward, hop=hop)
        except PipelineError:
            continue
    labels = [
        f"{name}, keeps {float(max(run.live)):.3g}" + ", twice the weights" * (run.weight_copies > 1)
        for name, run in runs.items()
    ]
    idle = [100 * float(run.bubble) for run in runs.values()]
    title = "All schedules that these settings allow, and the microbatches whose activations a stage keeps"
    return Bars(Scale("idle fraction of the step", "%"), labels, (Series("idle", idle, 5),), title=title)


def _verdict(schedule: str, run: PipelineRun) -> str:
    idle = f"{percent(float(run.bubble))} of the step"
    held = (
        f"keeps the activations of up to {float(max(run.live)):.3g} microbatch{'es' * (max(run.live) != 1)}"
    )
    if run.stages == 1:
        return f"A single stage is never idle, and it {held}."
    price = " Each chip holds the weights of two stages, twice as many as with the other schedules." * (
        run.weight_copies > 1
    )
    freed = f" Without a barrier between steps, its idle time falls to {percent(unsynchronized(run))}." * (
        run.idle_within_s < run.idle_s
    )
    return f"{schedule}: a stage is idle for {idle} and {held}.{freed}{price}"


PIPELINE = Explorer(
    key="training.pipeline",
    title="Pipeline schedules, step by step",
    question="How long are the stages idle, and the activations of how many microbatches do they have to "
    "keep?",
    controls={
        "schedule": Choice("schedule", tuple(SCHEDULES), "1F1B"),
        "P": Slider("stages p", 2, 12, 4, step=2),
        "M": Slider("microbatches m", 1, 48, 8),
        "chunks": Slider("interleaved chunks", 2, 4, 2),
        "backward": Slider("backward pass, in forward passes", 1.0, 3.0, 2.0, step=0.5),
        "hop": Slider("P2P transfer, in forward passes", 0.0, 1.0, 0.0, step=0.125),
        "step": Steps("time", 6),
    },
    view=_pipeline,
)
