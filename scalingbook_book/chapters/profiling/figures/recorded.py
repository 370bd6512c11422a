"""Figures from records: four faults before and after their fix, compilation stages, and live ranges.

`tools.compiled.profiled` writes the records, because neither JAX nor a trace reader is available here.
"""

from collections.abc import Sequence
from typing import Any

from scalingbook_book.reader.draw.svg import measure
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    EXPERTS,
    IDLE,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Arrow,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.evidence import resources
from scalingbook_lib.units import MiB, binary, si

KINDS = {  # what a block is, by a part of its name: its word and its color
    "all-gather": ("AllGather of {moved}", NETWORK),
    "all-reduce": ("AllReduce", NETWORK),
    "wrapped_copy": ("copy", MEMORY),
    "tanh": ("tanh", MEMORY),
    "compile": ("compiles", EXPERTS),
    "read": ("reads", CACHE),
    "ynn_fusion": ("matmul", MATH),
}
LANES = {"computes": "compute", "moves": "transfers"}  # the records' lanes, as they are printed
FAULTS = {  # by the name of its traces: the fault, and its fix
    "sharding": ("an array gathered for nothing", "one subscript changed"),
    "recompile": ("recompilation", "padded to one length"),
    "serial": ("AllReduce in the loop", "one AllReduce after it"),
    "input": ("waiting for data", "a thread reads ahead"),
}


def _row(title: str) -> dict[str, Any]:
    return next(row for row in resources.record("compiled_profiling") if row["title"] == title)


def _span(title: str) -> str:
    return si(1e-6 * _row(title)["span_us"], "s")


def before_after() -> Figure:
    """One layer with two shardings of its hidden layer, recorded."""
    slow, fast = _span("sharding-before"), _span("sharding-after")
    return Figure(
        key="profiling.before_after",
        alt=f"Two runs of one layer on the same time axis, each with a compute lane and a transfer lane. The first takes {slow}: a matmul, a copy, a long AllGather, a tanh, a matmul and an AllReduce. The second takes {fast}: "
        "two matmuls with a short tanh, and an AllReduce.",
        caption="One device in two recorded runs. In the first, the device copies its part of the hidden "
        "layer, an AllGather brings the whole layer to every device, and each device applies tanh to all of "
        f"it; the run takes {slow}. "
        f"With one subscript changed, the run takes {fast}, most of which is waiting for the slowest "
        "of four CPU devices on one machine. (The durations are real, but they are not those of a "
        "TPU.)",
        parts=lambda wide: [_two(wide)],
    )


def _two(wide: float) -> Sketch:
    end = _row("sharding-before")["span_us"]
    shapes: list[Shape] = []
    for k, (when, said) in enumerate((("before", "H[B, F]"), ("after", "H[B, F_{X}]"))):
        y, title = 110.0 * k, f"sharding-{when}"
        words = f"the hidden layer as {said}: {_span(title)}"
        shapes.append(Words(x=4, y=y + 15, text=words, align="start", bold=True))
        shapes += _tracks(title, ("computes", "moves"), y + 26, wide, end, high=30)
    return Sketch(wide, 206, shapes)


def _tracks(
    title: str, lanes: Sequence[str], y: float, wide: float, end: float, *, high: float, x: float = 0.0
) -> list[Shape]:
    """The recorded blocks in their lanes, with words where they fit."""
    left = x + 74
    scale = (x + wide - left - 8) / end
    shapes: list[Shape] = []
    for k, lane in enumerate(lanes):
        top = y + (high + 6) * k
        name = LANES.get(lane, lane)
        shapes.append(Words(x=left - 8, y=top + high / 2 + 5, text=name, align="end", quiet=True))
        shapes.append(Arrow(x0=left, y0=top + high, x1=x + wide - 8, y1=top + high, heads=0, thick=0.4))
        for own, what, start, took in _row(title)["blocks"]:
            if own == lane:
                at, long = left + scale * start, max(scale * took, 0.8)
                shapes.append(_block(what, at, min(long, x + wide - 4 - at), top, high))
    return shapes


def _block(what: str, x: float, long: float, y: float, high: float) -> Area:
    said, color = next((kind for part, kind in KINDS.items() if part in what), ("", MEMORY))
    said = said.format(moved=what.rpartition(" of ")[2])
    room = (text for text in (said, said.partition(" ")[0]) if measure(text) + 4 < long)
    text = next(room, "") if high > 20 else ""
    return Area(x=x, y=y, wide=long, high=high, text=text, color=color, shade=0.5)


def four_faults() -> Figure:
    """Four faults as timelines, before and after their fix."""
    told = "; ".join(
        f"{name}, {_span(f'{key}-before')}, and {cure}, {_span(f'{key}-after')}"
        for key, (name, cure) in FAULTS.items()
    )
    return Figure(
        key="profiling.four_faults",
        alt=f"Four recorded faults as small timelines, each next to its fix on the same time axis: {told}.",
        caption="Four recorded problems and their fixes. Each problem looks different in a trace: an "
        "operation that was not predicted, gaps in which the host compiles, the same operation many "
        "times, and gaps in which the host reads data. (Recorded on CPU devices; the two timelines "
        "of a pair have the same time axis.)",
        parts=lambda wide: [_board(wide)],
    )


def _board(wide: float) -> Sketch:
    abreast = wide > 400
    across = wide / 2 if abreast else wide
    shapes: list[Shape] = []
    y = 0.0
    for key, words in FAULTS.items():
        end = _row(f"{key}-before")["span_us"]
        lanes = ("computes", "moves") if key in ("sharding", "serial") else ("host", "computes")
        for k, when in enumerate(("before", "after")):
            x, top = (across * k, y) if abreast else (0.0, y + 74 * k)
            title = f"{key}-{when}"
            said = f"{words[k]}: {_span(title)}"
            shapes.append(Words(x=x + 4, y=top + 15, text=said, align="start", bold=not k))
            shapes += _tracks(title, lanes, top + 24, across, end, high=16, x=x)
        y += 82 if abreast else 156
    return Sketch(wide, y - 8, shapes)


def stages() -> Figure:
    """One line of Python in every stage of compilation."""
    rungs = _row("stages")["stages"]
    told = "; ".join(f"{name}, {lines:,} lines" for name, lines, _, _ in rungs)
    return Figure(
        key="profiling.stages",
        alt=f"The stages from a line of Python down to instructions, each with one line of its language: {told}.",
        caption="One line of Python on its way to the chip. A name given with jax.named_scope stays with "
        "the line through all stages. The optimized HLO is what runs, and one of its lines became "
        f"{rungs[-1][1]:,} bundles of instructions.",
        parts=lambda wide: [_ladder(wide)],
    )


def _ladder(wide: float) -> Sketch:
    abreast = wide > 400
    pitch = 42.0 if abreast else 66.0
    rungs = [("Python", 0, 0, "h = jnp.tanh(x @ w)"), *_row("stages")["stages"]]
    shapes: list[Shape] = []
    for k, (name, lines, _, line) in enumerate(rungs):
        y, compiled = 4 + pitch * k, k > len(rungs) - 4
        color = MATH if compiled else IDLE
        name = "bundles" if name == "LLO" else name
        shapes.append(Area(x=4, y=y, wide=120, high=26, text=name, color=color, shade=0.25, bold=compiled))
        x, low = (132.0, y + 17) if abreast else (4.0, y + 43)
        shapes.append(Words(x=x, y=low, text=_short(line), align="start", size=12 if abreast else 11))
        if lines:
            said = f"{lines:,} lines"
            shapes.append(Words(x=wide - 4, y=y + 17, text=said, align="end", quiet=True))
        if lines and abreast:
            shapes.append(Arrow(x0=60, y0=y - pitch + 27, x1=60, y1=y - 1, thick=1.2))
    return Sketch(wide, pitch * len(rungs) - (12 if abreast else 14), shapes)


def _short(line: str) -> str:
    """The line without its metadata; for a bundle, its instruction alone."""
    bare = line.partition(", metadata")[0]
    return bare.partition("{ ")[2].removesuffix(" }") if "vmatmul" in bare else bare


def alive() -> Figure:
    """The live range of every buffer of a layer."""
    row = _row("alive")
    peak, name = _peak(row)
    return Figure(
        key="profiling.alive",
        alt=f"The kernels of a layer from top to bottom, and to their right each buffer as a rectangle: its width shows its bytes, and its height the kernels that need it. Scores and probabilities are side by side "
        f"at one kernel, {name}, with {binary(peak)}. Every other buffer is small.",
        caption="Buffers of one layer over the kernels that need them. A buffer occupies memory from the "
        f"kernel that writes it to the last kernel that reads it. The peak of {binary(peak)} is "
        "where both attention scores and probabilities are needed. (Widths are proportional "
        "to bytes. The layer of this chapter, one TPU v5e.)",
        parts=lambda wide: [_ranges(wide)],
    )


def _peak(row: dict[str, Any]) -> tuple[float, str]:
    """The most bytes in use at any kernel, and the name of that kernel."""
    return max(
        (sum(n for _, n, born, last in row["buffers"] if born <= at <= last), name)
        for name, at, _ in row["kernels"]
    )


def _ranges(wide: float) -> Sketch:
    row, left, pitch = _row("alive"), 84.0, 24.0
    scale = (wide - left - 10) / _peak(row)[0]
    places = [at for _, at, _ in row["kernels"]]
    shapes: list[Shape] = []
    for k, (_, _, scope) in enumerate(row["kernels"]):
        shapes.append(Words(x=left - 10, y=pitch * k + 17, text=scope, align="end", quiet=True))
    taken: list[tuple[float, int]] = []  # ends of those before, and until when
    for name, nbytes, born, last in row["buffers"]:
        x = max((end for end, until in taken if until >= born), default=0.0)
        taken.append((x + nbytes, last))
        rows = [k for k, at in enumerate(places) if born <= at <= last]
        said = {"bitcast_reduce_fusion": "scores", "divide_convert_fusion": "probabilities"}.get(name, "")
        beside = f"{binary(nbytes)}" if not said and nbytes > 100 * MiB else ""
        shapes.append(
            Area(
                x=left + scale * x,
                y=pitch * rows[0] + 2,
                wide=scale * nbytes,
                high=pitch * len(rows) - 4,
                text=f"{said}\n{binary(nbytes)}" if said else "",
                right=beside,
                color=MEMORY,
                shade=0.4,
            )
        )
    return Sketch(wide, pitch * len(places) + 4, shapes)
