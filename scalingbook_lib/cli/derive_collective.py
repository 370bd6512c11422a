"""Why does a collective take that long? Its two terms in the book's letters, then in numbers."""

from collections.abc import Iterator
from itertools import groupby

from scalingbook_lib import collectives
from scalingbook_lib.cli.answer import Step
from scalingbook_lib.cli.numbers import added, figure, product
from scalingbook_lib.collectives import Network, Transfer
from scalingbook_lib.machines.clusters import Level
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.steps import limits

_TWICE = "all-reduce"  # a reduce-scatter, then an all-gather


def steps(
    which: str, transfer: Transfer, M: float, networks: tuple[Network, ...], *, in_switch: bool
) -> tuple[Step, ...]:
    """The bytes, the hops and their sum; nothing where nobody is there to talk to."""
    real = tuple(n for n in networks if n.size > 1)
    if not real:
        return ()
    axes = [n for n in real if isinstance(n, Axis)]
    levels = [n for n in real if isinstance(n, Level)]
    return (
        *(_torus(which, transfer, M, axes) if axes else _tree(which, transfer, M, levels, in_switch)),
        Step(name="T", formula="T_bytes + T_hops", value=transfer.total_s, unit="s",
             numbers=f"{figure(transfer.bandwidth_s)} + {figure(transfer.latency_s)}"),
    )  # fmt: skip


def _torus(which: str, transfer: Transfer, M: float, axes: list[Axis]) -> Iterator[Step]:
    n, twice = collectives.chips(*axes), "2 · " * (which == _TWICE)
    if which == "all-to-all":
        slow = _slowest(axes)
        formula = "(eighths of a chunk on the busiest link) · M / (8 · size · n · W_1)"
        links = product(8, slow.size, n, slow.link_bytes_per_s)
        numbers = f"{product(collectives.busiest_link_chunks(slow), M)} / ({links})"
    else:
        formula = f"{twice}(n - 1) · M / (n · ΣW_ici)"
        inflow = added(figure(axis.bytes_per_s) for axis in axes)
        numbers = f"{twice}{figure(n - 1)} · {figure(M)} / ({figure(n)} · ({inflow}))"
    yield Step(name="T_bytes", formula=formula, numbers=numbers, value=transfer.bandwidth_s, unit="s")
    yield _torus_hops(which, transfer, axes)


def _torus_hops(which: str, transfer: Transfer, axes: list[Axis]) -> Step:
    if which == "all-to-all":
        slow = _slowest(axes)
        numbers = product(len(axes), collectives.hops(slow), slow.hop_s)
        return Step(
            name="T_hops", formula="axes · hops · α", numbers=numbers, value=transfer.latency_s, unit="s"
        )
    twice = "2 · " * (which == _TWICE)
    hops = added(product(collectives.hops(axis), axis.hop_s) for axis in axes)
    numbers = f"{twice}({hops})" if twice else hops
    return Step(
        name="T_hops", formula=f"{twice}Σ hops · α", numbers=numbers, value=transfer.latency_s, unit="s"
    )


def _slowest(axes: list[Axis]) -> Axis:
    """The axis whose links carry most in an all-to-all."""
    return max(axes, key=lambda axis: collectives.busiest_link_chunks(axis) / axis.size)


def _tree(which: str, transfer: Transfer, M: float, levels: list[Level], in_switch: bool) -> Iterator[Step]:
    """Every level's own time: with all at work at once, the longest is the collective's."""
    cost = {"all-gather": collectives.all_gather, "reduce-scatter": collectives.reduce_scatter,
            "all-reduce": collectives.all_reduce, "all-to-all": collectives.all_to_all}[which]  # fmt: skip
    how = {"in_switch": True} if in_switch else {}
    times = limits.each_level(lambda nbytes, *networks: cost(nbytes, *networks, **how), M, *levels)
    for level, below, reach, sums in _entered(levels):
        formula, numbers = _at_level(
            which, M, level, below, reach, collectives.chips(*levels), in_switch and sums
        )
        yield Step(
            name=f"T_{level.name}", formula=formula, numbers=numbers, value=times[level.name], unit="s"
        )
    longest = f"max({', '.join(figure(seconds) for seconds in times.values())})"
    yield Step(
        name="T_bytes",
        formula="the longest of the levels",
        numbers=longest,
        value=transfer.bandwidth_s,
        unit="s",
    )
    hops = ", ".join(f"{level.name} {figure(level.hop_s)} s" for level in levels)
    yield Step(name="T_hops", formula="the hops of every level, one after the other", numbers=hops,
               value=transfer.latency_s, unit="s")  # fmt: skip


def _entered(levels: list[Level]) -> Iterator[tuple[Level, int, int, bool]]:
    """Each level, the chips below it, those that its port reaches, and whether all its switches sum."""
    done: list[Level] = []
    for _, group in groupby(levels, key=lambda level: level.port):
        port = list(group)
        reach = collectives.chips(*done, *port)
        for level in port:
            yield level, collectives.chips(*done), reach, all(one.reduces for one in port)
            done.append(level)


def _at_level(
    which: str, M: float, level: Level, below: int, reach: int, n: int, summed: bool
) -> tuple[str, str]:
    """b chips below share what their ports bring, of r chips that the ports reach."""
    W = level.bytes_per_s
    if summed:
        return "M / (b · W)", f"{figure(M)} / ({product(below, W)})"
    if which == "all-to-all":
        return (
            "M · (r - b) / (n · r · W)",
            f"{figure(M)} · {figure(reach - below)} / ({product(n, reach, W)})",
        )
    twice = "2 · " * (which == _TWICE)
    numbers = f"{twice}{figure(M)} · {figure(reach - below)} / ({product(reach, below, W)})"
    return f"{twice}M · (r - b) / (r · b · W)", numbers
