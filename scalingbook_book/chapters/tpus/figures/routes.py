"""Figures of the path of a message to a distant chip, and of bytes to another slice."""

from collections.abc import Sequence

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines.chips import V5E, Slice
from scalingbook_lib.units import MiB, si

WAY = Slice.of(V5E, "4x4").route((0, 0), (3, 3))
MESSAGE = WAY.message(16 * MiB)


def route() -> Figure:
    """Two ways from corner to corner, and what takes time."""
    times = si(MESSAGE.hops_s, "s"), si(MESSAGE.bytes_s, "s", 4)
    return Figure(
        key="tpus.route",
        alt="A grid of 4 × 4 chips. Two paths that share no link lead from one corner to the other, "
        f"{WAY.hops} hops each. Below, a bar of time: {times[0]} for the hops and {times[1]} for the bytes "
        "of 16 MiB.",
        caption="A message from corner to corner over two paths. The first byte arrives after the time of "
        "the hops, and the other bytes follow without a gap, half of them on each path. The two "
        "times therefore add up.",
        parts=lambda wide: [_grid(wide, *times)],
    )


def _grid(wide: float, hops: str, nbytes: str) -> Sketch:
    step, left, top = 46.0, wide / 2 - 85, 10.0
    spots = [(left + step * c, top + step * r) for r in range(4) for c in range(4)]
    ends = {0: MATH, 15: MATH}
    shapes: list[Shape] = [
        Area(x=x, y=y, wide=30, high=30, color=ends.get(k, IDLE), shade=0.6 if k in ends else 0.06)
        for k, (x, y) in enumerate(spots)
    ]
    for k in range(3):
        near, far, end = 30 + step * k, step * (k + 1), 3 * step + 15
        links = [(near, 15, far, 15), (end, near, end, far), (15, near, 15, far), (near, end, far, end)]
        shapes += [
            Arrow(
                x0=left + x0, y0=top + y0, x1=left + x1, y1=top + y1, color=NETWORK, thick=2.6, dashed=j > 1
            )
            for j, (x0, y0, x1, y1) in enumerate(links)
        ]
    bar, low = wide - 16, 206.0
    split = bar * MESSAGE.hops_s / MESSAGE.total_s
    shapes += [
        Area(x=8, y=low, wide=split, high=26, color=MATH, shade=0.6),
        Area(
            x=8 + split,
            y=low,
            wide=bar - split,
            high=26,
            color=NETWORK,
            text=f"{nbytes}: 16 MiB on two paths",
        ),
        Words(x=8, y=low + 42, text=f"{hops}: {WAY.hops} hops", align="start"),
    ]
    return Sketch(wide, low + 50, shapes)


def hosts() -> Figure:
    """From slice to slice: a pipe whose width is its rate."""
    rates = V5E.hbm_bytes_per_s, V5E.pcie_bytes_per_s or 0.0, V5E.dcn_bytes_per_s or 0.0
    pipe = list(zip(("HBM", "PCIe", "network", "PCIe", "HBM"), (*rates, *rates[1::-1]), strict=True))
    said = ", ".join(f"{name} {si(rate, 'B/s')}" for name, rate in pipe[:3])
    return Figure(
        key="tpus.hosts",
        alt="A pipe of five pieces from one chip to a chip in another slice, with heights proportional "
        f"to their bandwidth: {said}, and back up over PCIe and HBM. One gigabyte takes "
        f"{si(1e9 / rates[2], 's')} through the narrowest piece.",
        caption="One chip's share of the bandwidth along the path to another slice; the heights are to "
        f"scale. A gigabyte takes {si(1e9 / rates[0], 's')} out of HBM, {si(1e9 / rates[1], 's')} "
        f"over PCIe and {si(1e9 / rates[2], 's')} over the network.",
        parts=lambda wide: [_pipe(wide, pipe)],
    )


def _pipe(wide: float, pipe: Sequence[tuple[str, float]]) -> Sketch:
    across, tall, middle = (wide - 16) / len(pipe), 120.0, 66.0
    shapes: list[Shape] = []
    for k, (name, rate) in enumerate(pipe):
        high = max(tall * rate / pipe[0][1], 1.2)
        color = MEMORY if name == "HBM" else NETWORK
        x = 8 + across * k
        shapes.append(Area(x=x, y=middle - high / 2, wide=across - 2, high=high, color=color, shade=0.5))
        shapes.append(
            Words(x=x + across / 2, y=150, text=f"{name}\n{si(rate, 'B/s', 2 + (rate > 1e11))}", size=12)
        )
    places = [
        ("chip", 0.5),
        ("host", 1.5),
        (f"1 NIC for {V5E.chips_per_host // 2}", 2.5),
        ("host", 3.5),
        ("chip", 4.5),
    ]
    words = [Words(x=8 + across * at, y=192, text=name, quiet=True, size=11) for name, at in places]
    return Sketch(wide, 204, [*shapes, *words])
