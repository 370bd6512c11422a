"""What do chips, compilers and narrow layers say? Measured shares, estimates, lines that never meet."""

from scalingbook_book.reader.explorers.view import Chart, Curve, Points, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import EXPERTS, MATH, MEMORY, NETWORK, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import roofline, rules
from scalingbook_lib.evidence import measured
from scalingbook_lib.evidence.compiled.cycles import ESTIMATES, ROWS
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import percent, si

SHOWN = {"A100": NETWORK, "H100": MATH, "B200": EXPERTS}


def shares() -> Figure:
    """Is any measured product faster than its roofline? None, and near the ridge all are slower."""
    best = max(row.attained for row in measured.MATMULS)
    return Figure(
        key="rooflines.shares",
        alt="Share of the roofline attained, over the batch as a multiple of the break-even batch, "
        "for layers of 16,384 by 16,384 in bf16 on A100, H100 and B200. All of them lie below the line "
        "at 100%. They are nearly level left of the break-even, and fall near it.",
        caption=f"No product beats the bound. Of {len(measured.MATMULS)} on record the best attains "
        f"{percent(best)}. Past the break-even, the newer the GPU, the smaller its share in the median.",
        parts=lambda _: [_shares()],
    )


def _shares() -> Chart:
    sweeps = {name: measured.SWEEPS[f"{name}, bf16, 16,384 wide"] for name in SHOWN}
    curves = [
        Curve(
            name,
            [row.batch / s.break_even for row in s.rows],
            [100 * row.attained for row in s.rows],
            SHOWN[name],
        )
        for name, s in sweeps.items()
    ]
    return Chart(
        Scale("batch over break-even batch", "", "log", 0.003, 120),
        Scale("attained share of the roofline", "%", low=0, high=110),
        (RefLine("bound", 100, axis="y"), RefLine("break-even", 1), *curves),
    )


def knees() -> Figure:
    """Has the compiler's own estimate a flat and a steep line, too?"""
    seen = ESTIMATES["TPU v5e, bf16"]
    few = si(seen.bytes_per_s, "B/s")
    return Figure(
        key="rooflines.knees",
        alt="Time over rows, both logarithmic, for weights of 8,192 by 8,192 on a TPU v5e. The "
        "lower bound is level, then rises; the compiler's estimates, as dots, lie above it "
        f"while it is level and on it where it rises. The bound turns at {seen.critical_batch:.0f} rows, "
        f"the estimates at {seen.knee:.0f}.",
        caption=f"The compiler sees the same roof. It plans to read the weights at {few}, not at "
        f"{si(V5E.hbm_bytes_per_s, 'B/s')}, and so its corner lies later: at {seen.knee:.0f} "
        "rows.",
        parts=lambda _: [
            Chart(
                Scale("rows B", "", "pow2", ROWS[0], ROWS[-1]),
                Scale("time", "s", "log"),
                (
                    Curve("lower bound", ROWS, [seen.bound(rows).lower_s for rows in ROWS], MEMORY),
                    Points("compiler", ROWS, [seen.seconds(rows) for rows in ROWS], color=MATH),
                ),
            )
        ],
    )


WIDTHS = (1024, 400)
MOST = 1000


def hopeless() -> Figure:
    """Why can no batch help a narrow layer? Because each row brings more bytes than FLOPs, in time."""
    exact = rules.matmul_critical_batch(WIDTHS[0], WIDTHS[0], V5E)
    return Figure(
        key="rooflines.hopeless",
        alt=f"Two charts of time over batch on plain axes, for layers of width {WIDTHS[0]:,} and "
        f"{WIDTHS[1]}. In the first the memory starts higher and rises more slowly than the "
        f"arithmetic, which overtakes it at {exact:.0f} rows. In the second the memory rises "
        "faster: the lines never meet.",
        caption="A row costs the memory its parts of X and Y, and the arithmetic a product with W. In "
        "the narrow layer a row takes the memory longer, so every further row widens the gap: "
        "no batch is enough.",
        parts=lambda wide: [_pair(wide)],
    )


def _pair(wide: float) -> Sketch:
    """Both layers' lines, side by side where there is room, each on plain axes of its own."""
    high, room = 170.0, wide > 400
    long = wide / 2 - 100 if room else wide - 90
    shapes: list[Shape] = []
    for k, width in enumerate(WIDTHS):
        left, foot = (6 + wide / 2 * k, high + 26) if room else (6, (high + 26) + (high + 70) * k)
        first, last = (roofline.matmul(b, width, width, V5E) for b in (1, MOST))
        unit = high / max(last.memory_s, last.math_s)
        exact = rules.matmul_critical_batch(width, width, V5E)
        x = left + long * exact / MOST if exact < MOST else 0.0
        shapes += [
            Words(
                x=left + 8, y=foot - high - 10, text=f"D = F = {width:,}, time ↑", align="start", bold=True
            ),
            Arrow(x0=left, y0=foot, x1=left, y1=foot - high - 16, thick=1),
            Arrow(x0=left, y0=foot, x1=left + long + 16, y1=foot, thick=1),
            Words(x=left + long, y=foot + 18, text="rows B →", align="end", quiet=True),
        ]
        for name, start, end, color in (
            ("memory", first.memory_s, last.memory_s, MEMORY),
            ("arithmetic", first.math_s, last.math_s, MATH),
        ):
            y0, y1 = foot - unit * start, foot - unit * end
            shapes.append(Arrow(x0=left, y0=y0, x1=left + long, y1=y1, color=color, thick=2.6, heads=0))
            shapes.append(Words(x=left + long + 6, y=y1 + 8, text=name, align="start", color=color))
        if x:
            shapes.append(Arrow(x0=x, y0=foot, x1=x, y1=foot - high * 0.6, heads=0, dashed=True, thick=1))
            shapes.append(Words(x=x, y=foot + 18, text=f"{exact:.0f}", bold=True))
    return Sketch(wide, high + 50 if room else 2 * high + 120, shapes)
