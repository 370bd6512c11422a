"""Why does a collective take that long? Its two terms in the book's letters, then in numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from scalingbook_lib import collectives
from scalingbook_lib.cli.answer import Line
from scalingbook_lib.cli.numbers import added, figure, product
from scalingbook_lib.collectives import Collective, Network, Transfer
from scalingbook_lib.machines.clusters import Level
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.steps import limits


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One collective of an array of M bytes over these networks, and how long it takes."""

    kind: Collective
    M: float
    networks: tuple[Network, ...]
    in_switch: bool
    transfer: Transfer

    @property
    def twice(self) -> str:
        """An all-reduce is a reduce-scatter, then an all-gather."""
        return "2 · " * (self.kind is Collective.ALL_REDUCE)


def steps(asked: Asked) -> Iterator[Line]:
    """The bytes, the hops and their sum; nothing where nobody is there to talk to."""
    axes = [n for n in asked.networks if n.size > 1 and isinstance(n, Axis)]
    levels = [n for n in asked.networks if n.size > 1 and isinstance(n, Level)]
    if not axes and not levels:
        return
    if levels:
        yield from _tree(asked, levels)
    else:
        yield from (_exchange if asked.kind is Collective.ALL_TO_ALL else _torus)(asked, axes)
    took = asked.transfer
    numbers = f"{figure(took.bandwidth_s)} + {figure(took.latency_s)}"
    yield Line("T", "T_bytes + T_hops", numbers, took.total_s, "s")


def _torus(asked: Asked, axes: list[Axis]) -> Iterator[Line]:
    n, twice, took = collectives.chips(*axes), asked.twice, asked.transfer
    inflow = added(figure(axis.bytes_per_s) for axis in axes)
    numbers = f"{twice}{figure(n - 1)} · {figure(asked.M)} / ({figure(n)} · ({inflow}))"
    yield Line("T_bytes", f"{twice}(n - 1) · M / (n · ΣW_ici)", numbers, took.bandwidth_s, "s")
    hops = added(product(collectives.hops(axis), axis.hop_s) for axis in axes)
    numbers = f"{twice}({hops})" if twice else hops
    yield Line("T_hops", f"{twice}Σ hops · α", numbers, took.latency_s, "s")


def _exchange(asked: Asked, axes: list[Axis]) -> Iterator[Line]:
    """An all-to-all waits for the axis whose links carry most."""
    slow = max(axes, key=lambda axis: collectives.busiest_link_chunks(axis) / axis.size)
    links = product(8, slow.size, collectives.chips(*axes), slow.link_bytes_per_s)
    formula = "(eighths of a chunk on the busiest link) · M / (8 · size · n · W_1)"
    numbers = f"{product(collectives.busiest_link_chunks(slow), asked.M)} / ({links})"
    yield Line("T_bytes", formula, numbers, asked.transfer.bandwidth_s, "s")
    numbers = product(len(axes), collectives.hops(slow), slow.hop_s)
    yield Line("T_hops", "axes · hops · α", numbers, asked.transfer.latency_s, "s")


def _tree(asked: Asked, levels: list[Level]) -> Iterator[Line]:
    """Every level's own time: with all at work at once, the longest is the collective's."""
    cost = collectives.FORMULAS[asked.kind]
    times = limits.each_level(partial(cost, in_switch=True) if asked.in_switch else cost, asked.M, *levels)
    done: list[Level] = []
    for _, group in groupby(levels, key=lambda level: level.port):
        port = list(group)
        reach = collectives.chips(*done, *port)
        for level in port:
            if asked.in_switch and all(one.reduces for one in port):
                formula, numbers = _summed(asked, level, done)
            else:
                formula, numbers = _shared(asked, level, collectives.chips(*done), reach, levels)
            yield Line(f"T_{level.name}", formula, numbers, times[level.name], "s")
            done.append(level)
    longest = f"max({', '.join(map(figure, times.values()))})"
    yield Line("T_bytes", "the longest of the levels", longest, asked.transfer.bandwidth_s, "s")
    hops = ", ".join(f"{level.name} {figure(level.hop_s)} s" for level in levels)
    yield Line("T_hops", "the hops of every level, one after the other", hops, asked.transfer.latency_s, "s")


def _summed(asked: Asked, level: Level, below: list[Level]) -> tuple[str, str]:
    """Everything once up to switches that sum, and once down."""
    return "M / (b · W)", f"{figure(asked.M)} / ({product(collectives.chips(*below), level.bytes_per_s)})"


def _shared(asked: Asked, level: Level, b: int, r: int, levels: list[Level]) -> tuple[str, str]:
    """b chips below share what their ports bring, of r chips that the ports reach."""
    moved = f"{asked.twice}{figure(asked.M)} · {figure(r - b)}"
    if asked.kind is Collective.ALL_TO_ALL:
        links = product(collectives.chips(*levels), r, level.bytes_per_s)
        return "M · (r - b) / (n · r · W)", f"{moved} / ({links})"
    return f"{asked.twice}M · (r - b) / (r · b · W)", f"{moved} / ({product(r, b, level.bytes_per_s)})"
