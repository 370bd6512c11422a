"""Figures of the page on a training step: the shardings of its stages, and how trace viewers show it."""

from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, NETWORK, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models
from scalingbook_lib.units import si

STATE_BYTES = 12 * models.find("Llama 3.2 1B").params  # fp32 parameters and two fp32 moments
SIDE = 96.0
CALM = 4  # the color of rows that name what runs, not which unit is busy
STAGES = (  # name, mesh, blocks of a weight W[D, F] down and across, what a layer communicates
    ("one device", "1 × 1", (1, 1), "no collectives"),
    ("FSDP", "8 × 1", (8, 1), "gather weights\nscatter gradients"),
    ("FSDP and TP", "4 × 2", (4, 2), "also gather and\nscatter activations"),
    ("FSDP and experts", "4 × 2", (4, 2), "the same, and\nexperts over Y"),
)


def step_stages() -> Figure:
    """One weight of the model in the four stages of the page."""
    one, eight = si(STATE_BYTES, "B"), si(STATE_BYTES / 8, "B")
    return Figure(
        key="jax.step_stages",
        alt="Four drawings of one weight. One device holds all of it. With FSDP it is divided into eight blocks of rows. "
        "With FSDP and TP it is divided into four by two blocks. With experts, eight small weights are divided over Y by "
        "expert and over X by rows.",
        caption="One weight of the MLP in the four stages of this page. The program stays the same; only "
        "the sharding rules and the mesh change. The state of the dense model takes "
        f"{one} on one device and {eight} per chip on eight. (Each block is on one device; the two colors mark the two positions along Y. D runs down, F across.)",
        parts=lambda wide: [_stages(wide, one, eight)],
    )


def _stages(wide: float, one: str, eight: str) -> Sketch:
    columns = 4 if wide > 400 else 2
    pitch, deep = wide / columns, 214.0
    shapes: list[Shape] = []
    for k, (name, mesh, (rows, across), communicates) in enumerate(STAGES):
        x, y = (k % columns) * pitch + 2, (k // columns) * deep
        shapes += [
            Words(x=x, y=y + 16, text=name, bold=True, align="start"),
            Words(x=x, y=y + 34, text=f"mesh {mesh}", quiet=True, align="start"),
            *(_experts(x, y + 46) if k == 3 else _blocks(x, y + 46, rows, across)),
            Words(x=x, y=y + 164, text=communicates, align="start", quiet=True),
        ]
        if k < 3:
            shapes.append(
                Words(x=x, y=y + 204, text=f"state {one if k == 0 else eight}", align="start", quiet=True)
            )
    return Sketch(wide, deep * (len(STAGES) // columns), shapes)


def _blocks(x: float, y: float, rows: int, across: int) -> list[Shape]:
    """A weight as rows × across blocks, colored by its position along Y."""
    high, long = SIDE / rows, SIDE / across
    return [
        Area(
            x=x + long * j, y=y + high * i, wide=long - 2, high=high - 2, color=(MATH, NETWORK)[j], shade=0.4
        )
        for i in range(rows)
        for j in range(across)
    ]


def _experts(x: float, y: float) -> list[Shape]:
    """Eight experts: four for each position along Y, and four blocks of rows in each."""
    long, high = SIDE / 4, SIDE / 2
    return [
        Area(
            x=x + long * expert,
            y=y + high * j + high / 4 * i,
            wide=long - 3,
            high=high / 4 - 2,
            color=(MATH, NETWORK)[j],
            shade=0.4,
        )
        for j in range(2)
        for expert in range(4)
        for i in range(4)
    ]


def step_profile() -> Figure:
    """The rows of XProf's and Perfetto's timelines for one step on a TPU."""
    return Figure(
        key="jax.step_profile",
        alt="Two timelines of one training step. In XProf's Trace Viewer, the rows of one TPU core are Steps, XLA Modules, "
        "Framework Name Scope, XLA Ops and Async XLA Ops. In Perfetto, tracks of the host and of two TPUs show the call, "
        "the operations and the transfers. In both, a gap in the operations stands under a transfer that is still running.",
        caption="One training step in XProf's Trace Viewer (top) and in Perfetto (bottom). Both show the same "
        "events. A gap in the row of operations means that the core waits for the transfer that is still "
        "running in the row of asynchronous operations. (Schematic; not to scale.)",
        parts=lambda wide: [
            lanes(wide, _xprof(), title="XProf: Trace Viewer, one TPU core", end=24),
            lanes(wide, _perfetto(), title="Perfetto: one track per thread and device", end=24),
        ],
    )


def _xprof() -> list[Span]:
    ops = [
        Span("XLA Ops", 0, 3, "fusion", MATH),
        Span("XLA Ops", 3, 6, "fusion", MATH),
        Span("XLA Ops", 6, 8, "", IDLE),
        Span("XLA Ops", 8, 19, "while: backward", MATH),
        Span("XLA Ops", 19, 24, "AdamW", MEMORY),
    ]
    transfers = [
        Span("Async XLA Ops", 1, 8, "all-gather", NETWORK),
        Span("Async XLA Ops", 9, 17, "reduce-scatter", NETWORK),
    ]
    return [
        Span("Steps", 0, 24, "step 5", CALM),
        Span("XLA Modules", 0, 24, "jit_step", CALM),
        Span("Framework Name Scope", 0, 8, "jvp", CALM),
        Span("Framework Name Scope", 8, 19, "transpose(jvp)", CALM),
        Span("Framework Name Scope", 19, 24, "", CALM),
        *ops,
        *transfers,
    ]


def _perfetto() -> list[Span]:
    spans = [Span("host: Python", 0, 2, "train", CALM), Span("host: Python", 2, 24, "", IDLE)]
    for k in range(2):
        spans += [
            Span(f"TPU {k}: ops", 0, 6, "fusions", MATH),
            Span(f"TPU {k}: ops", 6, 8, "", IDLE),
            Span(f"TPU {k}: ops", 8, 19, "while: backward", MATH),
            Span(f"TPU {k}: ops", 19, 24, "AdamW", MEMORY),
            Span(f"TPU {k}: async", 1, 8, "all-gather", NETWORK),
            Span(f"TPU {k}: async", 9, 17, "reduce-scatter", NETWORK),
        ]
    return spans
