"""Figures of the pipeline schedules: timelines on one scale, with the activations and weights of a stage."""

from collections.abc import Callable, Iterator
from itertools import batched

from scalingbook_book.chapters.training.explorers.pipeline import COLORS, SCHEDULES, played, unsynchronized
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import key
from scalingbook_book.reader.figures.shapes import MEMORY, Area, BlockRow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.steps.pipelines import PipelineRun
from scalingbook_lib.units import percent
from scalingbook_lib.words import pluralize

P, M, CHUNKS = 4, 8, 2
LANE, BLOCK, TOP = 18.0, 15.0, 26.0  # the height of a stage, of a task, and of a heading
SIDE, BAR = 132.0, 12.0  # the width of the column with memory, and the height of its bars
_SHADES = 0.5, 0.18  # of the first chunk or direction, and of the second
_FIRST, _SECOND = batched(SCHEDULES, 4)


def runs() -> dict[str, PipelineRun]:
    """One step of each schedule; a forward pass takes 1, a backward pass 2, a hop nothing."""
    return {name: played(name, P, M, chunks=CHUNKS, backward=2.0, hop=0.0) for name in SCHEDULES}


def schedules() -> Figure:
    """Timelines of GPipe, 1F1B, interleaved 1F1B and ZB-H1, with what a stage keeps."""
    return _figure(
        "training.schedules",
        _FIRST,
        f"Four schedules with {P} stages and {M} microbatches on the same time scale; gaps are idle time. With "
        "interleaving, a stage waits only for chunks, which are half as long as a stage. ZB-H1 fills gaps with "
        "weight gradients. The bars at the side compare the most microbatches whose activations a stage keeps. "
        "(A backward pass takes twice as long as a forward pass. Blocks marked 1 belong to the first "
        "microbatch, and pale blocks to the second chunk of a stage.)",
    )


def more_schedules() -> Figure:
    """Timelines of ZB-H2, ZB-V, DualPipe and DualPipe-V, with what a stage keeps."""
    made = runs()
    h1, h2 = (float(max(made[name].live)) for name in ("ZB-H1", "ZB-H2"))
    return _figure(
        "training.schedules-bidirectional",
        _SECOND,
        f"Four more schedules with {P} stages and {M} microbatches, on one time scale, which is larger than in the previous figure. "
        f"ZB-H2 keeps {h2:g} microbatches instead of {h1:g}, so that every stage works from its first task to its "
        "last without a gap. ZB-V does the same with two chunks per stage and the memory of 1F1B. DualPipe sends "
        "microbatches in from both ends, so each chip holds the weights of two stages. DualPipe-V folds this "
        "pipeline in the middle and holds them once. (Pale blocks belong to the second chunk of a stage, or to "
        "the second direction of DualPipe.)",
    )


def _figure(name: str, shown: tuple[str, ...], caption: str) -> Figure:
    made = {schedule: run for schedule, run in runs().items() if schedule in shown}
    told = "; ".join(
        f"{_told(schedule, run)}, {_kept(run)}, {_weights(run)}" for schedule, run in made.items()
    )
    longest_s = max(float(run.total_s) for run in made.values())

    def parts(wide: float) -> list[Sketch]:
        timelines = [_played(wide, schedule, run, longest_s=longest_s) for schedule, run in made.items()]
        return [*timelines, _key(wide)]

    return Figure(
        key=name,
        alt=f"Four timelines of {P} stages and {M} microbatches on the same scale, each with two bars for "
        "the activations and the weights that a stage holds. Forward passes, backward passes and postponed "
        f"weight gradients are blocks, and idle time is gaps. {told}.",
        caption=caption,
        parts=parts,
    )


def _told(name: str, run: PipelineRun) -> str:
    """The idle time, and what is left of it if no stage waits for the others between two steps."""
    freed = f", {percent(unsynchronized(run))} without a barrier" * (run.idle_within_s < run.idle_s)
    return f"{name}: idle {percent(float(run.bubble))}{freed}"


def _kept(run: PipelineRun) -> str:
    return f"keeps {float(max(run.live)):.3g} microbatches"


def _weights(run: PipelineRun) -> str:
    return f"weights of {pluralize(run.weight_copies, 'stage')}"


def _played(wide: float, name: str, run: PipelineRun, *, longest_s: float) -> Sketch:
    """One row per stage, with the number of the first microbatch; the memory is at the side or below."""
    roomy = wide > 400
    left, right = (54.0, wide - SIDE - 10) if roomy else (2.0, wide - 2)
    scale = (right - left) / longest_s
    blocks = [
        (
            left + scale * float(span.start),
            TOP + LANE * span.stage,
            scale * float(span.end - span.start),
            COLORS[span.kind],
        )
        for span in run.spans
    ]
    shapes: list[Shape] = [Words(x=left, y=14, text=_told(name, run), align="start", bold=True)]
    for chunk, shade in enumerate(_SHADES):
        of_chunk = [block for span, block in zip(run.spans, blocks, strict=True) if span.chunk == chunk]
        shapes += [BlockRow(stretches=of_chunk, high=BLOCK, shade=shade)] if of_chunk else []
    if roomy:
        shapes += [
            Words(x=left - 8, y=TOP + LANE * s + 12, text=f"stage {s}", align="end", quiet=True, size=12)
            for s in range(run.stages)
        ]
        shapes += [
            Words(x=x + long / 2, y=y + 11.5, text="1", size=11)
            for span, (x, y, long, _) in zip(run.spans, blocks, strict=True)
            if span.microbatch == 0 and long > 7  # units, a little more than a digit
        ]
    low = TOP + LANE * run.stages + (0 if roomy else 4)
    places = ((wide - SIDE, TOP), (wide - SIDE, TOP + 36)) if roomy else ((2.0, low), (wide / 2 + 8, low))
    return Sketch(wide, low + (8 if roomy else 40), [*shapes, *_memory(run, *places)])


def _memory(
    run: PipelineRun, activations: tuple[float, float], weights: tuple[float, float]
) -> Iterator[Shape]:
    """A bar for the activations of a stage, to the scale of all microbatches, and a box for each weight copy."""
    unit = (SIDE - 8) / M
    (x, y), (left, top) = activations, weights
    kept = f"activations: {float(max(run.live)):.3g} of {M}"
    yield Words(x=x, y=y + 11, text=kept, align="start", size=12)
    yield Area(x=x, y=y + 16, wide=unit * M, high=BAR, color=None, shade=0)
    yield Area(x=x, y=y + 16, wide=unit * float(max(run.live)), high=BAR, color=MEMORY, shade=0.5)
    yield Words(x=left, y=top + 11, text=_weights(run), align="start", size=12)
    for copy in range(2):
        filled = copy < run.weight_copies
        box = left + 42 * copy
        yield Area(x=box, y=top + 16, wide=38, high=BAR, color=MEMORY if filled else None, shade=0.5 * filled)


def _key(wide: float) -> Sketch:
    names = {"F": "forward", "B": "backward", "W": "weight gradients, postponed"}
    swatches, bottom = key(wide, 4, {COLORS[kind]: name for kind, name in names.items()})
    return Sketch(wide, bottom, swatches)


FIGURES: tuple[Callable[[], Figure], ...] = (schedules, more_schedules)
