"""Explorer of the time that a collective over the outer axis saves if an inner axis shards the array too."""

from collections.abc import Callable
from functools import lru_cache, partial

from scalingbook_book.reader.explorers.parts import (
    DOMAINS,
    Bars,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    bottleneck_within,
    cluster,
    domain_label,
    pluralize,
    within,
)
from scalingbook_lib import collectives
from scalingbook_lib.steps import limits
from scalingbook_lib.units import BF16, count, percent, si

_GATHER, _REDUCE, _SUM = "AllGather", "AllReduce", "in-network AllReduce"
_FORMULAS: dict[str, Callable[..., collectives.Transfer]] = {
    _GATHER: collectives.all_gather,
    _REDUCE: collectives.all_reduce,
    _SUM: partial(collectives.all_reduce, in_switch=True),
}
type Stages = tuple[float, float, float]  # in the domain, in the network, all: seconds


@lru_cache(maxsize=4096)
def stages(machine: str, n: int, Y: int, op: str) -> Stages:
    """The seconds of one byte of the whole array, split over Y inner chips and collected over the others."""
    over = cluster(machine, n, network_reduces=op == _SUM).mesh(Y=Y, X=n // Y).axes("X")
    if not over:
        return 0.0, 0.0, 0.0
    busy = limits.each_level(_FORMULAS[op], 1 / Y, *over)
    inside = busy.pop(within(machine), 0.0)
    return inside, max(busy.values(), default=0.0), _FORMULAS[op](1 / Y, *over).bandwidth_s


def rule(machine: str, n: int, Y: int, op: str) -> float:
    """The scaling book's rule for one byte, M/W_n · g/max(g, Y): what is there already is moved again."""
    g, here = DOMAINS[machine][1], cluster(machine, n)
    times = 2 if op == _REDUCE else 1
    inside = times / (here.levels[0].bytes_per_s * Y) if min(g, n) > Y or n <= g else 0.0
    return max(inside, times * g / (here.node_bytes_per_s * max(g, Y))) if n > g else inside


def _inner_axis(*, machine: str, n: int, Y: int, D: int, F: int, op: str) -> View:
    Y, nbytes = min(Y, n), BF16.bytes * D * F
    sizes = [2**e for e in range(n.bit_length())]
    found = [stages(machine, n, y, op) for y in sizes]
    here, guide = stages(machine, n, Y, op), rule(machine, n, Y, op)
    return View(
        _verdict(machine, n, Y, op, here=[nbytes * s for s in here], guide=nbytes * guide),
        (
            _chart(machine, n, op, nbytes, sizes=sizes, found=found, Y=Y),
            _bars(Y, [nbytes * s for s in (*here[:2], guide)]),
        ),
        (
            Readout("time", nbytes * here[2], "s"),
            Readout("time by the rule", nbytes * guide, "s"),
            Readout("array", nbytes, "B"),
            Readout("initial shard per GPU", nbytes / n if op == _GATHER else nbytes / Y, "B"),
            Readout("algorithm bandwidth", *_bandwidth(here[2])),
        ),
    )


def _bandwidth(seconds: float) -> tuple[float, str, str]:
    return (1 / seconds, "B/s", "") if seconds else (0.0, "", "nothing to move")


def _chart(
    machine: str, n: int, op: str, nbytes: float, *, sizes: list[int], found: list[Stages], Y: int
) -> Chart:
    moved = [(y, nbytes * all_s) for y, (_, _, all_s) in zip(sizes, found, strict=True) if all_s]
    guides = [nbytes * rule(machine, n, y, op) for y in sizes]
    inside = [(y, nbytes * s[0]) for y, s in zip(sizes, found, strict=True) if s[0]]
    g = DOMAINS[machine][1]
    here = [(y, s) for y, s in moved if y == Y]
    return Chart(
        Scale("inner axis Y", "GPUs", "pow2", 1, n),
        Scale("time", "s", "log", high=1.6 * max(guides)),
        (
            Curve("rule", sizes, guides, 5, dashed=True),
            Curve("within domains", [y for y, _ in inside], [s for _, s in inside], 1, dashed=True),
            Curve("exact", [y for y, _ in moved], [s for _, s in moved], 0),
            Points("", [y for y, _ in here], [s for _, s in here], [si(s, "s") for _, s in here], 3),
            *((RefLine(f"domain of {g}", g),) if g < n else ()),
        ),
    )


def _bars(Y: int, seconds: list[float]) -> Bars:
    names = ["within domains", "between domains", "rule"]
    return Bars(Scale("time", "s"), names, (Series("busy", seconds, 0),), title=f"At Y = {count(Y)}")


def _verdict(machine: str, n: int, Y: int, op: str, *, here: list[float], guide: float) -> str:
    inside, outside, total = here
    inner = f"Y = {pluralize(Y, 'inner GPU')}"
    said = f"{count(n)} GPUs in {domain_label(machine)}, with the array sharded over {inner}"
    if not total:
        return f"{said}: nothing is left to gather, but the rule of thumb still predicts {si(guide, 's')}."
    bottleneck = "the network between domains" if outside >= inside else bottleneck_within(machine)
    rule = f"is {percent(guide / total - 1)} too high" if guide > 1.005 * total else "agrees"
    return (
        f"{said}: {si(total, 's')}. The bottleneck is {bottleneck}, and the rule of thumb "
        f"{rule}.{_saved(machine, n, Y, op)}"
    )


def _saved(machine: str, n: int, Y: int, op: str) -> str:
    """What the inner axis has gained, beside none at all."""
    alone, split = stages(machine, n, 1, op)[2], stages(machine, n, Y, op)[2]
    if Y == 1:
        return ""
    gain = alone / split
    return (
        " At this size, Y does not save any time."
        if gain < 1.001
        else f" Without Y, the collective takes {count(gain)} times as long."
    )


INNER_AXIS = Explorer(
    key="gpus.inner_axis",
    title="AllGather with an inner axis",
    question="At what size does an inner axis make the collective over the outer axis faster?",
    controls={
        "machine": Chips("machine", tuple(DOMAINS)),
        "n": Slider("GPUs in total", 16, 2048, 256, "pow2"),
        "Y": Slider("inner axis Y", 1, 2048, 8, "pow2"),
        "D": Slider("D", 1024, 32768, 8192, "pow2"),
        "F": Slider("F", 1024, 131072, 32768, "pow2"),
        "op": Choice("collective over the outer axis", tuple(_FORMULAS)),
    },
    view=_inner_axis,
)
