"""Figures of the four laws, one picture each."""

from math import log

from scalingbook_book.reader.explorers.view import Bars, Chart, Points, RefLine, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
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
from scalingbook_lib import collectives, models, rules, training
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import H100, V5P
from scalingbook_lib.training import Plan
from scalingbook_lib.units import count, si
from scalingbook_lib.words import join_and

LLAMA, DEEPSEEK = models.find("Llama 3 70B"), models.find("DeepSeek-V3")
ROWS, D, F = 4096, 8192, 28672  # of the sharded matmul
ZERO = ("replicated", "ZeRO-1", "ZeRO-2", "FSDP")
CUBE = Slice.of(V5P, "4x4x4")


def asked() -> dict[str, dict[str, float]]:
    """C/W of every boundary, from the chip outward, in FLOPs per byte."""
    rates = {
        "TPU v5p": {
            "HBM": V5P.hbm_bytes_per_s,
            "3 axes": 6 * V5P.link_bytes_per_s,
            "1 axis": 2 * V5P.link_bytes_per_s,
        },
        "H100": {
            "HBM": H100.hbm_bytes_per_s,
            "NVLink": H100.links * H100.link_bytes_per_s,
            "network": H100.dcn_bytes_per_s or 0.0,
        },
    }
    return {
        chip.name: {name: chip.bf16_flops_per_s / W for name, W in rates[chip.name].items()}
        for chip in (V5P, H100)
    }


def boundaries() -> Figure:
    """What is C/W at each boundary?"""
    found = asked()
    said = ". ".join(
        f"{chip}: {', '.join(f'{name} {count(round(ratio))}' for name, ratio in each.items())}"
        for chip, each in found.items()
    )
    return Figure(
        key="conclusion.boundaries",
        alt=f"For each of two chips, an arrow to the right with its boundaries marked on a logarithmic axis of FLOPs per byte. {said}.",
        caption="C/W, the FLOPs per byte that hide a transfer across each boundary of a chip. The farther out the "
        f"boundary, the more FLOPs each byte needs: {count(round(found['H100']['HBM']))} at the HBM "
        f"of an H100, and {count(round(found['H100']['network']))} at its network.",
        parts=lambda wide: [_outward(wide, found)],
    )


def _outward(wide: float, found: dict[str, dict[str, float]]) -> Sketch:
    left, right, low, high = 8.0, wide - 34, 140.0, 22_000.0
    shapes: list[Shape] = []
    for k, (chip, each) in enumerate(found.items()):
        y = 52.0 + 92 * k
        shapes.append(Words(x=left, y=y - 36, text=chip, align="start", bold=True))
        shapes.append(Arrow(x0=left, y0=y, x1=wide - 4, y1=y, thick=1.2))
        for name, ratio in each.items():
            x = left + (right - left) * log(ratio / low) / log(high / low)
            color = MEMORY if name == "HBM" else NETWORK
            shapes.append(Area(x=x - 6, y=y - 6, wide=12, high=12, color=color, shade=0.9))
            shapes.append(Words(x=x, y=y - 14, text=name))
            shapes.append(Words(x=x, y=y + 23, text=count(round(ratio)), bold=True))
    shapes.append(Words(x=wide - 4, y=196, text="C/W in FLOPs per byte, log scale", align="end", quiet=True))
    return Sketch(wide, 202, shapes)


def times() -> dict[int, tuple[float, float]]:
    """Seconds of compute and AllReduce for a matmul with its contracting dimension sharded over n chips."""
    return {
        n: (
            2 * ROWS * F * D / (n * V5P.bf16_flops_per_s),
            collectives.all_reduce(2 * ROWS * D, V5P.axis(n, wrapped=True)).bandwidth_s,
        )
        for n in (4, 8, 16)
    }


def split() -> Figure:
    """What gets shorter with more chips, and what does not?"""
    found = times()
    said = "; ".join(
        f"{n} chips {si(math, 's')} and {si(traffic, 's')}" for n, (math, traffic) in found.items()
    )
    return Figure(
        key="conclusion.split",
        alt=f"Three pairs of bars, compute and AllReduce: {said}.",
        caption=f"Compute and AllReduce time of a sharded matmul on {join_and(map(str, found))} chips. Doubling the "
        f"number of chips halves the compute time, but not the time of the AllReduce. (X[{ROWS}, "
        f"{F}] times W[{F}, {D}] in bf16, with the contracting dimension sharded over one axis of "
        "v5p.)",
        parts=lambda wide: [_halving(found)],
    )


def _halving(found: dict[int, tuple[float, float]]) -> Bars:
    math, traffic = zip(*found.values(), strict=True)
    series = [Series("compute", math, MATH), Series("AllReduce", traffic, NETWORK)]
    return Bars(Scale("time", "s"), [f"{n} chips" for n in found], series)


def zero() -> dict[str, tuple[float, float]]:
    """Training state per chip and seconds that its links are busy, by ZeRO stage."""
    found = {}
    for stage, name in enumerate(ZERO):
        step = training.step(LLAMA, CUBE, Plan(fsdp=CUBE.chips, zero=stage), batch=256, T=4096)
        found[name] = (step.memory.state, sum(row.seconds for row in step.traffic))
    return found


def copies() -> Figure:
    """What does a replica cost, and what does a gather?"""
    found = zero()
    said = "; ".join(f"{name} {si(state, 'B')} and {si(busy, 's')}" for name, (state, busy) in found.items())
    return Figure(
        key="conclusion.copies",
        alt=f"Four points of time that links are busy against training state per chip: {said}. A line marks the HBM of a v5p.",
        caption="Time that the links are busy against the training state per chip, for plain data "
        "parallelism and the stages of ZeRO. The less state a chip holds, the more it has to move. "
        "Only FSDP fits in the HBM of a v5p. (Llama 3 70B, 16 bytes per "
        f"parameter, {CUBE.chips} TPU v5p, four microbatches.)",
        parts=lambda wide: [_traded(found)],
    )


def _traded(found: dict[str, tuple[float, float]]) -> Chart:
    state, busy = zip(*found.values(), strict=True)
    dots = Points("ZeRO stages", state, busy, labels=tuple(found), color=NETWORK)
    return Chart(
        x=Scale("training state per chip", "B", "log", low=1.5e10, high=3e12),
        y=Scale("link time per step", "s"),
        marks=(dots, RefLine(f"HBM of a v5p, {si(V5P.hbm_bytes, 'B')}", V5P.hbm_bytes)),
    )


def tokens() -> dict[str, float]:
    """The smallest number of tokens that hides each kind of traffic, on TPU v5p in bf16."""
    return {
        "decode": rules.critical_batch(V5P).tokens,
        "decode, MoE": rules.critical_batch(V5P, sparsity=DEEPSEEK.sparsity).tokens,
        "FSDP, per chip": rules.data_parallel_tokens(V5P, axes=3),
        "ring attention, per chip": rules.context_parallel_tokens(LLAMA.G, V5P),
        "two pods, per pod": rules.cross_pod_tokens(V5P, 2),
    }


def prices() -> Figure:
    """How many tokens does each kind of parallelism need?"""
    found = tokens()
    said = ", ".join(f"{name} {count(round(price))}" for name, price in found.items())
    return Figure(
        key="conclusion.prices",
        alt=f"Five squares on a logarithmic axis of tokens, first serving, then training: {said}.",
        caption="Tokens needed to be compute-bound, in serving (first two rows) and in training. Each threshold "
        f"is C/W times a factor of its own. Decode of a dense model needs {count(round(found['decode']))} "
        "sequences, and training over two pods needs "
        f"{count(round(found['two pods, per pod']))} tokens in each pod. (TPU v5p, bf16.)",
        parts=lambda wide: [_priced(wide, found)],
    )


def _priced(wide: float, found: dict[str, float]) -> Sketch:
    left, low, high, foot = 170.0, 100.0, 100_000.0, 166.0
    most = wide - left - 34

    def at(price: float) -> float:
        return left + most * log(price / low) / log(high / low)

    shapes: list[Shape] = []
    for tick in (100, 1000, 10_000, 100_000) if wide > 400 else (100, 10_000):
        shapes.append(Arrow(x0=at(tick), y0=2, x1=at(tick), y1=foot, heads=0, thick=0.3, color=IDLE))
        shapes.append(Words(x=at(tick), y=foot + 16, text=count(tick), quiet=True))
    for k, (name, price) in enumerate(found.items()):
        y, color = 14.0 + 32 * k, CACHE if k < 2 else MATH
        shapes.append(Words(x=left - 12, y=y + 5, text=name, align="end", quiet=True))
        shapes.append(Area(x=at(price) - 6, y=y - 6, wide=12, high=12, color=color, shade=0.9))
        inward = at(price) > wide - 70
        x, align = (at(price) - 12, "end") if inward else (at(price) + 12, "start")
        shapes.append(Words(x=x, y=y + 5, text=count(round(price)), align=align))
    label = "sequences or tokens needed (log) →"
    shapes.append(Words(x=wide - 4, y=foot + 36, text=label, align="end", quiet=True))
    return Sketch(wide, foot + 42, shapes)
