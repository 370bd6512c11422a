"""Figures of the bandwidth of each memory and network, and of what a plan moves over them."""

from math import ceil, log

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, NETWORK, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import roofline
from scalingbook_lib.machines.chips import V5E, Slice
from scalingbook_lib.sharded_matmul.overlap import FETCH, HOSTS, SEND, MatvecChain
from scalingbook_lib.units import binary, percent, si

RATES = roofline.levels(V5E)
PLANS = {plan: MatvecChain(Slice.of(V5E, "4x4"), 131_072, 8, HOSTS, plan, 1) for plan in (FETCH, SEND)}
COLORS = {"VMEM": MEMORY, "HBM": MEMORY, "ICI": NETWORK, "PCIe": NETWORK, "DCN": NETWORK}


def ladder() -> Figure:
    """Every level with its rate, and the rows that it needs."""
    needs = {name: ceil(V5E.bf16_flops_per_s / rate) for name, rate in RATES.items()}
    said = "; ".join(f"{name} {si(rate, 'B/s')}, {needs[name]:,} rows" for name, rate in RATES.items())
    return Figure(
        key="tpus.ladder",
        alt=f"A staircase from VMEM on the left down to DCN on the right, on a logarithmic scale, with the factor of each step. {said}.",
        caption="Bandwidth of each memory and link of a v5e, and the number of rows that each needs. Each "
        "level is slower than the one to its left by the factor shown, so a weight that comes from there "
        "must be used for that many times as many rows. From the leftmost level to the rightmost, the factor is "
        f"{RATES['VMEM'] / RATES['DCN']:,.0f}.",
        parts=lambda wide: [_stairs(wide, needs)],
    )


def _stairs(wide: float, needs: dict[str, int]) -> Sketch:
    names, across, deep = list(RATES), (wide - 4) / len(RATES), 250.0
    top = {
        n: 40 + 145 * log(RATES["VMEM"] / rate) / log(RATES["VMEM"] / RATES["DCN"])
        for n, rate in RATES.items()
    }
    shapes: list[Shape] = []
    for k, name in enumerate(names):
        x = 2 + across * k
        words = f"{name}\n{si(RATES[name], 'B/s', 2 + (name == 'HBM'))}"
        shapes.append(Words(x=x + across / 2, y=top[name] - 22, text=words, bold=True, size=12))
        shapes.append(
            Area(
                x=x,
                y=top[name],
                wide=across - 2,
                high=deep - top[name],
                color=COLORS[name],
                text=f"{needs[name]:,}\nrows",
                size=12,
            )
        )
        if k:
            fall = f"÷ {RATES[names[k - 1]] / RATES[name]:.0f}"
            shapes.append(Words(x=x + 4, y=top[name] - 50, text=fall, align="start", quiet=True, size=12))
    shapes.append(
        Words(x=wide - 2, y=deep + 18, text="height: bandwidth, log scale", align="end", quiet=True)
    )
    return Sketch(wide, deep + 24, shapes)


def chain() -> Figure:
    """Both plans: what moves, and what each lane takes."""
    slow = {plan: made.pipeline.slowest for plan, made in PLANS.items()}
    said = "; ".join(
        f"{plan}: " + ", ".join(f"{lane} {si(t, 's', 2)}" for lane, t in _lanes(made).items())
        for plan, made in PLANS.items()
    )
    return Figure(
        key="tpus.chain",
        alt=f"Two plans with four stages each. {said}. Next to each plan, the array that moves between chips: "
        f"a large square of {binary(PLANS[FETCH].matrix_bytes)}, and a dot of "
        f"{binary(PLANS[SEND].vector_bytes)}.",
        caption="Time of each stage in the two plans. In the first plan, A moves between chips, and "
        f"{slow[FETCH]} is the slowest stage. If x moves instead, the slowest stage is {slow[SEND]}, "
        "which both plans need.",
        parts=lambda wide: [_plans(wide)],
    )


def _lanes(made: MatvecChain) -> dict[str, float]:
    times = {lane: t for lane, t in made.pipeline.chunk_s.items() if lane != "VMEM"}
    return times | {"ICI": times["ICI"] + made.return_s}  # y comes back over the same links


def _plans(wide: float) -> Sketch:
    shapes: list[Shape] = []
    most = max(_lanes(PLANS[FETCH]).values())
    square = 76.0
    for k, (plan, made) in enumerate(PLANS.items()):
        y, left = 138.0 * k, square + 70
        moved = made.matrix_bytes if plan == FETCH else made.vector_bytes
        side = max(square * (moved / PLANS[FETCH].matrix_bytes) ** 0.5, 2)
        shapes.append(Words(x=4, y=y + 14, text=f"{plan}: {binary(moved)} move", align="start", bold=True))
        shapes.append(
            Area(
                x=4 + (square - side) / 2,
                y=y + 26 + (square - side) / 2,
                wide=side,
                high=side,
                color=MEMORY,
                shade=0.5,
            )
        )
        for j, (lane, t) in enumerate(_lanes(made).items()):
            at, color = y + 26 + 24 * j, {"ICI": NETWORK, "PCIe": NETWORK, "HBM": MEMORY}.get(lane, MATH)
            shapes.append(
                Area(
                    x=left,
                    y=at,
                    wide=max((wide - left - 72) * t / most, 1),
                    high=18,
                    color=color,
                    shade=0.5,
                    left=lane,
                    right=si(t, "s"),
                )
            )
    return Sketch(wide, 264, shapes)


def wait() -> Figure:
    """A layer that comes from the host, and the product that waits for it."""
    layer = roofline.matmul(64, 8192, 8192, V5E)
    fetch_s = 2 * 8192**2 / (V5E.pcie_bytes_per_s or 1)
    return Figure(
        key="tpus.wait",
        alt=f"A timeline of PCIe and the chip. PCIe is busy for {si(fetch_s, 's')} with one layer. The matmul, read from HBM, "
        f"takes {si(layer.lower_s, 's')}, and then the chip waits for the next layer.",
        caption="Timeline of a model whose weights are streamed from the host. Fetching a layer's weights "
        f"over PCIe takes {fetch_s / layer.lower_s:.0f} times as long as the matmul that uses them takes at best, "
        f"so the chip is idle for {percent(fetch_s / (fetch_s + layer.lower_s))} of the time.",
        parts=lambda wide: [_waits(wide, fetch_s, layer.lower_s)],
    )


def _waits(wide: float, fetch_s: float, work_s: float) -> Sketch:
    left, scale = 66.0, (wide - 74) / (2 * (fetch_s + work_s))
    shapes: list[Shape] = [
        Words(x=59, y=27, text="PCIe", align="end"),
        Words(x=59, y=63, text="chip", align="end"),
    ]
    for k in range(2):
        x = left + (fetch_s + work_s) * scale * k
        end = x + fetch_s * scale
        shapes.append(
            Area(
                x=x,
                y=8,
                wide=fetch_s * scale,
                high=28,
                color=NETWORK,
                text=f"layer {k + 1}: {si(fetch_s, 's')}",
            )
        )
        shapes.append(
            Area(x=x, y=44, wide=fetch_s * scale, high=28, color=IDLE, shade=0.05, dashed=True, text="waits")
        )
        shapes.append(Area(x=end, y=44, wide=max(work_s * scale, 2), high=28, color=MATH, shade=0.8))
    end_words = f"computes for {si(work_s, 's', 2)}"
    shapes.append(Words(x=left + fetch_s * scale, y=90, text=end_words, color=MATH))
    return Sketch(wide, 96, shapes)
