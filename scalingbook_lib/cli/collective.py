"""How long does one collective take? `scalingbook collective`."""

import re

import click

from scalingbook_lib import collectives
from scalingbook_lib.cli import derive_collective, kinds
from scalingbook_lib.cli.answer import Answer, Table
from scalingbook_lib.cli.answering import answering
from scalingbook_lib.cli.numbers import nbytes as written
from scalingbook_lib.collectives import Network, Transfer
from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.clusters import Level
from scalingbook_lib.units import percent, si

KINDS = {
    "all-gather": collectives.all_gather,
    "reduce-scatter": collectives.reduce_scatter,
    "all-reduce": collectives.all_reduce,
    "all-to-all": collectives.all_to_all,
}


class Which(kinds.Kind):
    """The name of a collective, however it is written: AllGather, all-gather, all_gather."""

    def __init__(self) -> None:
        super().__init__("collective", _known, KINDS)


def _known(text: str) -> str:
    plain = {name.replace("-", ""): name for name in KINDS}
    name = re.sub(r"[-_\s]", "", text.lower())
    if name not in plain:
        raise ValueError(f"{text!r} is no collective of this command; write one of {', '.join(KINDS)}")
    return plain[name]


@click.command("collective", short_help="The time of AllGather, ReduceScatter, AllReduce or AllToAll.")
@click.argument("which", metavar="COLLECTIVE", type=Which())
@click.argument("nbytes", metavar="BYTES", type=kinds.BYTES)
@click.argument("machine", type=kinds.MACHINE)
@click.option("--mesh", type=kinds.MESH, help="Mesh axes over the machine, as in X=8,Y=128.")
@click.option("--over", metavar="AXES", help="The mesh axes that the collective is over, as in X or XY.")
@click.option("--in-switch", is_flag=True, help="An all-reduce that is summed in the switches that can.")
@answering
def command(
    which: str,
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

    MACHINE is a slice as in v5p:4x4x8 or a cluster as in h100:1024. On a slice a mesh axis is a product of
    whole torus axes; on a cluster the first axis is the innermost.
    """
    networks = _networks(machine, mesh, over)
    how = {"in_switch": True} if in_switch else {}
    if in_switch and which != "all-reduce":
        raise ValueError("--in-switch is for all-reduce; the others sum nothing that a switch could")
    transfer = KINDS[which](nbytes, *networks, **how)
    return Answer(
        told=f"{machine.name}{f' over {over}' * bool(over)}: {transfer}",
        tables=(_network_table(networks), _time_table(transfer, which, nbytes, networks)),
        values=_values(which, transfer, nbytes, networks)
        | {"machine": machine.name, "mesh": mesh, "over": over, "in_switch": in_switch},
        steps=derive_collective.steps(which, transfer, nbytes, networks, in_switch=in_switch),
    )


def _networks(machine: Machine, mesh: dict[str, int] | None, over: str | None) -> tuple[Network, ...]:
    """What the collective runs on: all of the machine, or the axes that are named."""
    if mesh is None and over:
        raise ValueError("--over names axes of a mesh; write the mesh too, as in --mesh X=8,Y=128")
    if mesh is not None:
        if not over:
            raise ValueError(
                f"say which of {', '.join(mesh)} the collective is over, as in --over {next(iter(mesh))}"
            )
        return machine.mesh(**mesh).axes(over)
    return getattr(machine, "axes", None) or getattr(machine, "levels", ())


def _network_table(networks: tuple[Network, ...]) -> Table:
    rows = []
    for network in networks:
        what = network.name if isinstance(network, Level) else "ring" if network.wrapped else "line"
        rows.append((what, f"{network.size:,}", si(network.bytes_per_s, "B/s"), si(network.hop_s, "s")))
    return Table("", ("from the inside out", "size", "into one chip", "one hop"), tuple(rows))


def _time_table(transfer: Transfer, which: str, nbytes: float, networks: tuple[Network, ...]) -> Table:
    received = collectives.bytes_received(which, nbytes, collectives.chips(*networks))
    rows = (
        ("array", written(nbytes)),
        ("each chip must receive", written(received)),
        ("T_bytes", si(transfer.bandwidth_s, "s")),
        ("T_hops", si(transfer.latency_s, "s")),
        ("T", si(transfer.total_s, "s")),
        ("the textbook's form", f"{si(transfer.textbook_s, 's')} ({percent(transfer.textbook_error)} off)"),
    )
    return Table(transfer.name, ("", ""), rows)


def _values(
    which: str, transfer: Transfer, nbytes: float, networks: tuple[Network, ...]
) -> dict[str, object]:
    chips = collectives.chips(*networks)
    return {
        "collective": which, "array_bytes": nbytes, "chips": chips,
        "networks": [_network(network) for network in networks],
        "bandwidth_s": transfer.bandwidth_s, "latency_s": transfer.latency_s, "total_s": transfer.total_s,
        "bound": transfer.bound, "textbook_s": transfer.textbook_s, "textbook_error": transfer.textbook_error,
        "received_bytes_per_chip": collectives.bytes_received(which, nbytes, chips),
        "latency_bound_below_bytes": collectives.latency_bound_below(*networks, collective=KINDS[which]),
    }  # fmt: skip


def _network(network: Network) -> dict[str, object]:
    shared = {"size": network.size, "bytes_per_s": network.bytes_per_s, "hop_s": network.hop_s}
    if isinstance(network, Level):
        return {"level": network.name, **shared, "sums": network.reduces}
    one_link = network.link_bytes_per_s
    return {"level": "torus axis", **shared, "wrapped": network.wrapped, "link_bytes_per_s": one_link}
