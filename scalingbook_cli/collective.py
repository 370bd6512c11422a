"""The command `scalingbook collective`: the time of one collective."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import click

from scalingbook_cli import parameter_types
from scalingbook_cli.answer import (
    Answer,
    DerivationLine,
    TextTable,
    added,
    answer_command,
    fields_of,
    figure,
    name_value_table,
    product,
)
from scalingbook_cli.answer import nbytes as written
from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective, Network, Transfer
from scalingbook_lib.collectives.switched import NETWORK_PORT
from scalingbook_lib.machines import Axis, Level, Machine
from scalingbook_lib.steps import limits
from scalingbook_lib.units import percent, si

KINDS = tuple(kind for kind in Collective if kind is not Collective.PERMUTE)  # the collectives over an axis


@dataclass(frozen=True, kw_only=True)
class CollectiveRequest:
    """One collective of an array of M bytes over these networks, and its time."""

    kind: Collective
    M: float
    networks: tuple[Network, ...]
    in_switch: bool
    transfer: Transfer

    @property
    def twice(self) -> str:
        """The factor 2 of an all-reduce, which is a reduce-scatter followed by an all-gather, or ""."""
        return "2 · " * (self.kind is Collective.ALL_REDUCE)


def _known(text: str) -> Collective:
    """The collective with that name in any spelling: AllGather, all-gather, all_gather."""
    found = next((kind for kind in KINDS if kind.is_called(text)), None)
    if found is None:
        known = ", ".join(kind.hlo for kind in KINDS)
        raise ValueError(f"{text!r} is no collective of this command; write one of {known}")
    return found


WHICH = parameter_types.ArgumentType("collective", _known, [kind.hlo for kind in KINDS])


@click.command("collective", short_help="The time of AllGather, ReduceScatter, AllReduce or AllToAll.")
@click.argument("which", metavar="COLLECTIVE", type=WHICH)
@click.argument("nbytes", metavar="BYTES", type=parameter_types.BYTES)
@click.argument("machine", type=parameter_types.MACHINE)
@click.option("--mesh", type=parameter_types.MESH, help="Mesh axes over the machine, as in X=8,Y=128.")
@click.option("--over", metavar="AXES", help="The mesh axes that the collective is over, as in X or XY.")
@click.option("--in-switch", is_flag=True, help="An all-reduce that is summed in the switches that can.")
@parameter_types.chip_options
@answer_command
def command(
    *,
    which: Collective,
    nbytes: float,
    machine: Machine,
    mesh: dict[str, int] | None,
    over: str | None,
    in_switch: bool,
) -> Answer:
    """The time of a COLLECTIVE of an array of so many BYTES over a MACHINE, or over some of its mesh axes.

    \b
    COLLECTIVE       BYTES are those of
      all-gather       the gathered array, as every chip holds it in the end
      reduce-scatter   the unreduced array, as every chip holds it at the start
      all-reduce       the array, as every chip holds it before and after
      all-to-all       the array over all chips of the axis: each holds its share

    MACHINE is a slice as in v5p:4x4x8 or v5p-256, or a cluster as in h100:1024. On a slice a mesh axis is a
    product of whole torus axes; on a cluster the first axis is the innermost.
    """
    networks = _networks(machine, mesh, over)
    if in_switch and which is not Collective.ALL_REDUCE:
        raise ValueError("--in-switch is for all-reduce; the others sum nothing that a switch could")
    took = collectives.FORMULAS[which](nbytes, *networks, **({"in_switch": True} if in_switch else {}))
    asked = CollectiveRequest(kind=which, M=nbytes, networks=networks, in_switch=in_switch, transfer=took)
    return Answer(
        summary=f"{machine.name}{f' over {over}' * bool(over)}: {took}",
        tables=(_network_table(networks), _time_table(asked)),
        values=_values(asked) | {"machine": machine.name, "mesh": mesh, "over": over, "in_switch": in_switch},
        steps=tuple(_derivation(asked)),
    )


def _networks(machine: Machine, mesh: dict[str, int] | None, over: str | None) -> tuple[Network, ...]:
    """The networks of the collective: the whole machine, or the named mesh axes."""
    if mesh is None and over:
        raise ValueError("--over names axes of a mesh; write the mesh too, as in --mesh X=8,Y=128")
    if mesh is not None:
        if not over:
            raise ValueError(
                f"say which of {', '.join(mesh)} the collective is over, as in --over {next(iter(mesh))}"
            )
        return machine.mesh(**mesh).axes(over)
    return getattr(machine, "axes", None) or getattr(machine, "levels", ())


def _network_table(networks: tuple[Network, ...]) -> TextTable:
    rows = []
    for network in networks:
        what = network.name if isinstance(network, Level) else "ring" if network.wrapped else "line"
        rows.append((what, f"{network.size:,}", si(network.bytes_per_s, "B/s"), si(network.hop_s, "s")))
    return TextTable("", ("from the inside out", "size", "into one chip", "one hop"), tuple(rows))


def _time_table(asked: CollectiveRequest) -> TextTable:
    took = asked.transfer
    rows = (
        ("array", written(asked.M)),
        ("each chip must receive", written(_received(asked))),
        ("T_bytes", si(took.bandwidth_s, "s")),
        ("T_hops", si(took.latency_s, "s")),
        ("T", si(took.total_s, "s")),
        ("the textbook's form", f"{si(took.textbook_s, 's')} ({percent(took.textbook_error)} off)"),
    )
    return name_value_table(took.name, rows)


def _received(asked: CollectiveRequest) -> float:
    return collectives.bytes_received(asked.kind, asked.M, collectives.chips(*asked.networks))


def _values(asked: CollectiveRequest) -> dict[str, object]:
    formula = collectives.FORMULAS[asked.kind]
    terms = ("bandwidth_s", "latency_s", "total_s", "bound", "textbook_s", "textbook_error")
    return {
        "collective": asked.kind.hlo,
        "array_bytes": asked.M,
        "chips": collectives.chips(*asked.networks),
        "networks": [_network(network) for network in asked.networks],
        **fields_of(asked.transfer, *terms),
        "received_bytes_per_chip": _received(asked),
        "latency_bound_below_bytes": collectives.latency_bound_below(*asked.networks, collective=formula),
    }


def _network(network: Network) -> dict[str, object]:
    shared = fields_of(network, "size", "bytes_per_s", "hop_s")
    if isinstance(network, Level):
        return {"level": network.name, **shared, "sums": network.reduces}
    return {"level": "torus axis", **shared, **fields_of(network, "wrapped", "link_bytes_per_s")}


def _derivation(asked: CollectiveRequest) -> Iterator[DerivationLine]:
    """The lines for bytes, hops and their sum; none on a single chip."""
    axes = [n for n in asked.networks if n.size > 1 and isinstance(n, Axis)]
    levels = [n for n in asked.networks if n.size > 1 and isinstance(n, Level)]
    if not axes and not levels:
        return
    if levels:
        yield from _tree(asked, levels)
    else:
        yield from (_exchanged if asked.kind is Collective.ALL_TO_ALL else _torus)(asked, axes)
    took = asked.transfer
    numbers = f"{figure(took.bandwidth_s)} + {figure(took.latency_s)}"
    yield DerivationLine("T", "T_bytes + T_hops", numbers, took.total_s, "s")


def _torus(asked: CollectiveRequest, axes: list[Axis]) -> Iterator[DerivationLine]:
    n, twice, took = collectives.chips(*axes), asked.twice, asked.transfer
    inflow = added(figure(axis.bytes_per_s) for axis in axes)
    numbers = f"{twice}{figure(n - 1)} · {figure(asked.M)} / ({figure(n)} · ({inflow}))"
    yield DerivationLine("T_bytes", f"{twice}(n - 1) · M / (n · ΣW_ici)", numbers, took.bandwidth_s, "s")
    hops = added(product(collectives.hops(axis), axis.hop_s) for axis in axes)
    numbers = f"{twice}({hops})" if twice else hops
    yield DerivationLine("T_hops", f"{twice}Σ hops · α", numbers, took.latency_s, "s")


def _exchanged(asked: CollectiveRequest, axes: list[Axis]) -> Iterator[DerivationLine]:
    """The lines of an all-to-all on a torus, limited by the axis with the busiest links."""
    slow = max(axes, key=lambda axis: collectives.busiest_link_chunks(axis) / axis.size)
    links = product(8, slow.size, collectives.chips(*axes), slow.link_bytes_per_s)
    formula = "(eighths of a chunk on the busiest link) · M / (8 · size · n · W_1)"
    numbers = f"{product(collectives.busiest_link_chunks(slow), asked.M)} / ({links})"
    yield DerivationLine("T_bytes", formula, numbers, asked.transfer.bandwidth_s, "s")
    numbers = product(len(axes), collectives.hops(slow), slow.hop_s)
    yield DerivationLine("T_hops", "axes · hops · α", numbers, asked.transfer.latency_s, "s")


def _tree(asked: CollectiveRequest, levels: list[Level]) -> Iterator[DerivationLine]:
    """The lines of a collective on switches: the slowest level determines the time."""
    cost = collectives.FORMULAS[asked.kind]
    times = limits.each_level(partial(cost, in_switch=True) if asked.in_switch else cost, asked.M, *levels)
    done: list[Level] = []
    for _, group in groupby(levels, key=lambda level: level.port):
        port = list(group)
        reach = collectives.chips(*done, *port)
        for level in port:
            if asked.in_switch and all(one.reduces for one in port):
                formula, numbers = _summed(asked, level, collectives.chips(*done), reach)
            else:
                formula, numbers = _shared(asked, level, collectives.chips(*done), reach, levels)
            yield DerivationLine(f"T_{level.name}", formula, numbers, times[level.name], "s")
            done.append(level)
    longest = f"max({', '.join(map(figure, times.values()))})"
    yield DerivationLine("T_bytes", "the longest of the levels", longest, asked.transfer.bandwidth_s, "s")
    hops = ", ".join(f"{level.name} {figure(level.hop_s)} s" for level in levels)
    yield DerivationLine(
        "T_hops", "the hops of every level, one after the other", hops, asked.transfer.latency_s, "s"
    )


def _summed(asked: CollectiveRequest, level: Level, b: int, r: int) -> tuple[str, str]:
    """Formula and numbers of a level whose switches sum: a network's in a tree, a domain's part by part."""
    if level.port == NETWORK_PORT:
        return "M / (b · W)", f"{figure(asked.M)} / ({product(b, level.bytes_per_s)})"
    if r <= 3:  # the chips sum, as that carries no more
        return _shared(asked, level, b, r, [level])
    numbers = f"{figure(asked.M)} · {figure(r + 1)} / ({product(r, b, level.bytes_per_s)})"
    return "M · (r + 1) / (r · b · W)", numbers


def _shared(asked: CollectiveRequest, level: Level, b: int, r: int, levels: list[Level]) -> tuple[str, str]:
    """Formula and numbers of a level whose b chips share ports that reach r chips."""
    moved = f"{asked.twice}{figure(asked.M)} · {figure(r - b)}"
    if asked.kind is Collective.ALL_TO_ALL:
        links = product(collectives.chips(*levels), r, level.bytes_per_s)
        return "M · (r - b) / (n · r · W)", f"{moved} / ({links})"
    return f"{asked.twice}M · (r - b) / (r · b · W)", f"{moved} / ({product(r, b, level.bytes_per_s)})"
