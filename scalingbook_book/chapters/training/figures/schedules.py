"""Figure of the five pipeline schedules as timelines on one scale."""

from scalingbook_book.chapters.training.explorers.pipeline import COLORS, COPIES, SCHEDULES, played
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import key
from scalingbook_book.reader.figures.shapes import BlockRow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.steps.pipelines import PipelineRun
from scalingbook_lib.units import percent

P, M, CHUNKS = 4, 8, 2
LANE, HIGH, BLOCK = 18.0, 126.0, 15.0  # of one stage, of one schedule, of a piece of work


def runs() -> dict[str, PipelineRun]:
    """One step of each schedule; a forward pass takes 1, a backward pass 2, a hop nothing."""
    return {name: played(name, P, M, chunks=CHUNKS, backward=2.0, hop=0.0) for name in SCHEDULES}


def schedules() -> Figure:
    """Timelines of the five schedules, with their idle time and the microbatches they keep."""
    made = runs()
    said = "; ".join(_told(name, run) for name, run in made.items())
    return Figure(
        key="training.schedules",
        alt=f"Five timelines of {P} stages and {M} microbatches on the same scale. Forward passes, "
        f"backward passes and postponed weight gradients are blocks, and idle time is gaps. {said}.",
        caption=f"Five schedules with {P} stages and {M} microbatches on the same time scale; gaps are idle "
        "time. With interleaving, a stage waits only for chunks, which are half as long as a stage. "
        "Zero-bubble fills the gaps with weight gradients. DualPipe sends microbatches in from both "
        "ends, so each chip holds the weights of two stages. (A backward pass takes twice as long "
        "as a forward pass. Blocks marked 1 belong to the first microbatch, of each chunk and each "
        "direction.)",
        parts=lambda wide: [*(_played(wide, name, run) for name, run in made.items()), _key(wide)],
    )


def _told(name: str, run: PipelineRun) -> str:
    twice = ", 2× weights" * (COPIES[name] > 1)
    return f"{name}: idle {percent(float(run.bubble))}, keeps {float(max(run.live)):.3g}{twice}"


def _played(wide: float, name: str, run: PipelineRun) -> Sketch:
    """One row per stage; the first microbatch has its number."""
    left, top = (62.0 if wide > 400 else 2.0), 26.0
    longest = max(float(each.total_s) for each in runs().values())
    scale = (wide - left - 4) / longest
    blocks = [
        (
            left + scale * float(span.start),
            top + LANE * span.stage,
            scale * float(span.end - span.start),
            COLORS[span.kind],
        )
        for span in run.spans
    ]
    shapes: list[Shape] = [
        Words(x=left, y=14, text=_told(name, run), align="start", bold=True),
        BlockRow(stretches=blocks, high=BLOCK),
    ]
    if wide > 400:
        shapes += [
            Words(x=left - 8, y=top + LANE * s + 12, text=f"stage {s}", align="end", quiet=True, size=12)
            for s in range(run.stages)
        ]
        shapes += [
            Words(x=x + long / 2, y=y + 11.5, text="1", size=11)
            for span, (x, y, long, _) in zip(run.spans, blocks, strict=True)
            if span.microbatch == 0 and long > 8
        ]
    return Sketch(wide, HIGH - 20, shapes)


def _key(wide: float) -> Sketch:
    names = {"F": "forward", "B": "backward", "W": "weight gradients, postponed"}
    swatches, bottom = key(wide, 4, {COLORS[kind]: name for kind, name in names.items()})
    return Sketch(wide, bottom, swatches)
