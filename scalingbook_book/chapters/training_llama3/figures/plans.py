"""Figures from an estimate to a plan: four checks, whole numbers, four plans for a cube, a gather over a
slice.
"""

from scalingbook_book.chapters.training_llama3.figures.pod import BATCH, LLAMA, POD
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import Part, key, strip
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
from scalingbook_lib import rules, training
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5P
from scalingbook_lib.training import Plan
from scalingbook_lib.units import count, percent, si

T, SEQUENCES = 4096, BATCH // 4096
MIXED = Plan(fsdp=1024, tp=4)
CUBE, LONG = Slice.of(V5P, "16x16x16"), Slice.of(V5P, "4x32x32")
PLANS = {
    "TP 4, on part of an axis of 16": (MIXED, CUBE),
    "TP 4, on a ring of 4 (4 × 32 × 32)": (MIXED, LONG),
    "TP 4 with collective matmul": (Plan(fsdp=1024, tp=4, collective_matmul=True), CUBE),
    "no TP, CP 4": (Plan(fsdp=1024, cp=4), CUBE),
}
COPIES = Plan(dp=16, fsdp=16, cp=16, microbatch=4)  # what the compiler implements as intended


def four_checks() -> Figure:
    """Which check does the plan for a full pod pass first?"""
    each, alone = BATCH / POD.chips, rules.data_parallel_tokens(V5P, axes=3)
    together, in_turn = (rules.fsdp_with_tensor_tokens(LLAMA.F, V5P, dial=dial) for dial in (0, 1))
    gates = (
        (
            "1. Sequences",
            f"{count(SEQUENCES)} for\n{count(POD.chips)} chips",
            POD.chips <= SEQUENCES,
            "share sequences",
        ),
        ("2. Tokens", f"{each:.0f} per chip,\nFSDP needs {alone:.0f}", each > alone, "add TP"),
        (
            "3. Matrices",
            f"{each:.0f} per chip,\nboth need {together:.0f}\nor {in_turn:.0f}",
            each > in_turn,
            "larger batch",
        ),
        ("4. Pods", "only one pod,\nnothing to check", True, "larger batch"),
    )
    said = "; ".join(f"{name}, {why}, {'passes' if fine else 'fails'}" for name, why, fine, _ in gates)
    return Figure(
        key="training_llama3.four_checks",
        alt=f"Four checks in a row. {said}.".replace("\n", " "),
        caption="Four checks of the plan for a full pod. Each check that fails calls for the remedy below "
        f"it. With {count(POD.chips)} chips, the run fails two checks and passes the third, so it "
        "uses FSDP with tensor parallelism.",
        parts=lambda wide: [_gates(wide, gates)],
    )


def _gates(wide: float, gates: tuple[tuple[str, str, bool, str], ...]) -> Sketch:
    columns = 4 if wide > 400 else 2
    across = wide / columns
    shapes: list[Shape] = []
    for k, (name, why, fine, remedy) in enumerate(gates):
        x, y = across * (k % columns), 6 + 168.0 * (k // columns)
        shapes.append(Area(x=x + 4, y=y, wide=across - 22, high=112, color=MATH if fine else IDLE, shade=0.2))
        middle = x + across / 2 - 7
        shapes.append(Words(x=middle, y=y + 20, text=name, bold=True))
        shapes.append(Words(x=middle, y=y + 44, text=why))
        shapes.append(Words(x=middle, y=y + 102, text="✓ passes" if fine else "✗ fails", bold=True))
        if not fine:
            if k % columns < columns - 1:  # the next check is in the same row
                shapes.append(Arrow(x0=x + across - 17, y0=y + 56, x1=x + across + 3, y1=y + 56))
            shapes.append(Words(x=middle, y=y + 132, text=f"so: {remedy}", quiet=True))
    return Sketch(wide, 6 + 168.0 * (len(gates) // columns) - 16, shapes)


def a_place_for_35() -> Figure:
    """Which degrees can absorb the factors 5 and 7 of a pod?"""
    places = {
        "heads (TP)": LLAMA.N,
        "KV heads (TP)": LLAMA.K,
        "tokens per sequence (CP)": T,
        "width D (FSDP)": LLAMA.D,
        "sequences (data)": SEQUENCES,
        "layers (pipeline)": LLAMA.L,
        "9% more sequences": 1120,
    }
    fits = {name: tuple(size % factor == 0 for factor in (5, 7)) for name, size in places.items()}
    said = "; ".join(
        f"{name} {count(places[name])}: 5 {'divides it' if both[0] else 'does not'}, 7 {'divides it' if both[1] else 'does not'}"
        for name, both in fits.items()
    )
    return Figure(
        key="training_llama3.a_place_for_35",
        alt=f"The pod's chips as factors, 2 to the 8th, 5 and 7. A table tries 5 and 7 for each dimension of a plan. {said}.",
        caption="Which dimensions of a plan are divisible by the factors 5 and 7 of the pod's "
        f"{count(POD.chips)} = 2⁸ · 5 · 7 chips. Most dimensions of the model are powers of two, and "
        "only the number of layers is divisible by 5. A batch of 1,120 sequences, chosen for this "
        "purpose, is divisible by both, so 35 replicas of the model can share it.",
        parts=lambda wide: [_places(wide, places, fits)],
    )


def _places(wide: float, places: dict[str, int], fits: dict[str, tuple[bool, ...]]) -> Sketch:
    right = wide - 20 if wide < 400 else 520.0
    columns = (right - 66, right - 14)
    shapes: list[Shape] = []
    x = 2.0
    for name, color, long in (("2⁸ = 256", MEMORY, 120), ("5", MATH, 44), ("7", EXPERTS, 44)):
        shapes.append(Area(x=x, y=4, wide=long, high=34, text=name, color=color, bold=True))
        x += long + 8
    shapes += [
        Words(x=at, y=64, text=text, bold=True, color=color)
        for at, text, color in zip(columns, ("5", "7"), (MATH, EXPERTS), strict=True)
    ]
    for k, (name, both) in enumerate(fits.items()):
        y = 88.0 + 26 * k
        shapes.append(Words(x=2, y=y, text=name, align="start"))
        shapes.append(Words(x=right - 96, y=y, text=count(places[name]), align="end", quiet=True))
        shapes += [
            Words(x=at, y=y, text="✓" if fit else "✗", bold=fit, color=MATH if fit else None, quiet=not fit)
            for at, fit in zip(columns, both, strict=True)
        ]
    return Sketch(wide, 82 + 26.0 * len(fits), shapes)


def four_plans() -> Figure:
    """Which of four plans for the same cube waits, and for what?"""
    steps = {
        name: training.step(LLAMA, machine, plan, batch=SEQUENCES, T=T)
        for name, (plan, machine) in PLANS.items()
    }
    said = "; ".join(f"{name}: {si(s.total_s, 's')}, {percent(s.mfu)} MFU" for name, s in steps.items())
    return Figure(
        key="training_llama3.four_plans",
        alt=f"Four bars of time, divided into compute, memory and exposed communication of tensor parallelism. {said}.",
        caption="Step times of four plans. All have the same compute time. Two of them wait for tensor "
        "parallelism, half as long on a ring as on a line; one hides its communication behind the "
        "matmuls; and one does not use TP. (All at peak rates; percentages are MFU.)",
        parts=lambda wide: [_waits(wide, steps)],
    )


def _waits(wide: float, steps: dict[str, training.TrainingStep]) -> Sketch:
    most = max(step.total_s for step in steps.values())
    shapes: list[Shape] = []
    for k, (name, step) in enumerate(steps.items()):
        y, waits = 22.0 + 56 * k, step.exposed.get("tensor parallelism", 0.0)
        parts = (
            Part("compute", step.terms["compute"], MATH),
            Part("", step.total_s - step.terms["compute"] - waits, MEMORY),
            Part("exposed TP", waits, NETWORK),
        )
        said = f"{name}: {si(step.total_s, 's')}, {percent(step.mfu)}{' MFU' * (wide > 400)}"
        shapes.append(Words(x=2, y=y - 6, text=said, align="start"))
        shapes += strip(2, y, (wide - 4) * step.total_s / most, 24, [part for part in parts if part.size])
    names = {MATH: "compute", MEMORY: "memory and other", NETWORK: "exposed TP communication"}
    swatches, end = key(wide, 22 + 56.0 * len(steps), names)
    return Sketch(wide, end, [*shapes, *swatches])


def whole_slice() -> Figure:
    """How does the compiler implement a gather over all axes of a slice?"""
    whole = 2 * LLAMA.D * LLAMA.F  # bytes; a chip has its own shard, and an AllReduce moves the array twice
    rows = {ways: LLAMA.D // ways for ways in (CUBE.chips, COPIES.fsdp * COPIES.cp)}
    fewer_ways = COPIES.fsdp * COPIES.cp
    most, fewer = ((ways - 1) / ways * whole for ways in rows)
    moved = f"{si(fewer, 'B')}", f"{si(2 * most, 'B')}"
    return Figure(
        key="training_llama3.whole_slice",
        alt=f"Left, a gather over two axes, {fewer_ways} chips: an AllGather concatenates the shards, "
        f"{moved[0]}. Right, over all three, {count(CUBE.chips)} chips: each writes its rows into a "
        f"matrix of zeros, and an AllReduce adds the matrices, {moved[1]}.",
        caption="How the compiler gathers weights over two and over three axes of a cube. Over two axes, it "
        f"concatenates {fewer_ways} shards. Over all three, it adds {count(CUBE.chips)} matrices "
        "that are zero outside one shard. The result is the same, but the AllReduce moves twice the bytes.",
        parts=lambda wide: [_shards(wide, rows, moved)],
    )


def _shards(wide: float, rows: dict[int, int], moved: tuple[str, str]) -> Sketch:
    across = wide / 2 if wide > 400 else wide
    most, fewer = rows
    colors = (MEMORY, MATH, EXPERTS, CACHE)
    ends: list[Shape] = [
        Words(x=across / 2, y=16, text=f"two axes, {fewer} chips", bold=True),
        *(
            Area(x=20 + 58.0 * k, y=30 + 34.0 * k, wide=44, high=32, color=c, shade=0.5)
            for k, c in enumerate(colors)
        ),
        Arrow(x0=252, y0=98, x1=278, y1=98),
        *(Area(x=284, y=30 + 34.0 * k, wide=44, high=32, color=c, shade=0.5) for k, c in enumerate(colors)),
        Words(x=across / 2, y=186, text=f"AllGather: {moved[0]} received per chip"),
    ]
    x, y = (across, 0.0) if wide > 400 else (0.0, 206.0)
    zeros: list[Shape] = [
        Words(x=x + across / 2, y=y + 16, text=f"all three axes, {count(most)} chips", bold=True)
    ]
    for k, c in enumerate((*colors, None)):
        left = x + 20 + 58.0 * k + (32 if c is None else 0)
        zeros.append(Area(x=left, y=y + 30, wide=44, high=134, color=None, shade=0.03))
        mine = range(4) if c is None else (k,)
        zeros += [
            Area(x=left, y=y + 30 + 33.5 * i, wide=44, high=33.5, color=colors[i], shade=0.5) for i in mine
        ]
        if k < 3:
            zeros.append(Words(x=left + 51, y=y + 101, text="+"))
    zeros.append(Arrow(x0=x + 248, y0=y + 98, x1=x + 278, y1=y + 98))
    zeros.append(Words(x=x + across / 2, y=y + 186, text=f"AllReduce: {moved[1]} received per chip"))
    return Sketch(wide, y + 196, [*ends, *zeros])
