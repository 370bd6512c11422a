"""Figures of measured matmuls, the compiler's estimates, and layers that are never compute-bound."""

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
    """Attained fraction of the roofline over the batch, on three GPUs."""
    best = max(row.attained for row in measured.MATMULS)
    return Figure(
        key="rooflines.shares",
        alt="Attained fraction of the roofline over the batch, as a multiple of the critical batch size, for "
        "layers of 16,384 by 16,384 in bf16 on A100, H100 and B200. All points lie below 100%. The curves are "
        "nearly flat to the left of the critical batch size, and fall near it.",
        caption="Attained fraction of the roofline against batch size, on three GPUs. No measured matmul "
        f"beats its roofline, and the best of {len(measured.MATMULS)} attains {percent(best)} of it. "
        "Above the critical batch size, newer GPUs attain a lower median fraction.",
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
        Scale("batch / critical batch size", "", "log", 0.003, 120),
        Scale("attained fraction of the roofline", "%", low=0, high=110),
        (RefLine("roofline", 100, axis="y"), RefLine("critical batch", 1), *curves),
    )


def knees() -> Figure:
    """Lower bound and compiler estimates of one matmul over its rows, on a v5e."""
    seen = ESTIMATES["TPU v5e, bf16"]
    few = si(seen.bytes_per_s, "B/s")
    return Figure(
        key="rooflines.knees",
        alt="Time over rows, both logarithmic, for weights of 8,192 by 8,192 on a TPU v5e. The lower bound is "
        "flat and then rises. The compiler's estimates, as dots, lie above the flat part and on the rising part. "
        f"The bound bends at {seen.critical_batch:.0f} rows, the estimates at {seen.knee:.0f}.",
        caption="Time of a matmul against its rows: lower bound and compiler estimates. The estimates have "
        f"the shape of the roofline, but the compiler assumes that the weights are read at {few} "
        f"instead of {si(V5E.hbm_bytes_per_s, 'B/s')}, so its knee is at {seen.knee:.0f} rows "
        f"instead of {seen.critical_batch:.0f}. (TPU v5e, weights of 8,192 × 8,192.)",
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
    """Memory and compute time over the batch, for a layer in which they cross and one in which they do not."""
    exact = rules.matmul_critical_batch(WIDTHS[0], WIDTHS[0], V5E)
    return Figure(
        key="rooflines.hopeless",
        alt=f"Two charts of time over batch on linear axes, for layers of width {WIDTHS[0]:,} and "
        f"{WIDTHS[1]}. In the first, memory time starts higher but rises more slowly than compute time, which "
        f"overtakes it at {exact:.0f} rows. In the second, memory time rises faster, and the lines never meet.",
        caption="Memory time and compute time against batch size, for a wide and a narrow layer. Each "
        "additional row of X and Y costs memory time as well as compute time. In the narrow layer, "
        "it costs more memory time than compute time, so no batch is large enough to make the layer "
        "compute-bound. (TPU v5e, linear axes, each chart on its own time scale.)",
        parts=lambda wide: [_pair(wide)],
    )


def _pair(wide: float) -> Sketch:
    """Memory and compute time of both layers, side by side if there is room, each on its own linear axes."""
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
                x=left + 8, y=foot - high - 10, text=f"↑ time, D = F = {width:,}", align="start", bold=True
            ),
            Arrow(x0=left, y0=foot, x1=left, y1=foot - high - 16, thick=1),
            Arrow(x0=left, y0=foot, x1=left + long + 16, y1=foot, thick=1),
            Words(x=left + long, y=foot + 18, text="rows B →", align="end", quiet=True),
        ]
        for name, start, end, color in (
            ("memory", first.memory_s, last.memory_s, MEMORY),
            ("compute", first.math_s, last.math_s, MATH),
        ):
            y0, y1 = foot - unit * start, foot - unit * end
            shapes.append(Arrow(x0=left, y0=y0, x1=left + long, y1=y1, color=color, thick=2.6, heads=0))
            shapes.append(Words(x=left + long + 6, y=y1 + 8, text=name, align="start", color=color))
        if x:
            shapes.append(Arrow(x0=x, y0=foot, x1=x, y1=foot - high * 0.6, heads=0, dashed=True, thick=1))
            shapes.append(Words(x=x, y=foot + 18, text=f"{exact:.0f}", bold=True))
    return Sketch(wide, high + 50 if room else 2 * high + 120, shapes)
