"""A reader of machine names as people and clouds write them: 'v5p:4x4x8', '8xH100', 'p5.48xlarge:4'.

A number after a colon counts chips, or instances of a cloud, or systems such as 'dgx-h100'; '4x p5.48xlarge'
and 'p5.48xlarge*4' are other spellings. '2x8xH100' is two nodes of eight chips. An instance brings the
network that it has in `instances.csv`.

A Cloud TPU's accelerator type counts TensorCores: v5p-128 has 64 chips, because each has two, and v6e-8 has
8, because each has one (Google's documentation of v5p and v6e). Its slice is the most compact one with that
many chips, which is what AI-Hypercomputer/xpk at 367c8382 chooses for all 194 sizes of v5p and TPU7x.

>>> named = read("v5p-128")
>>> print(named.machine.name, named.note, sep="; ")
TPU v5p 4x4x4; v5p-128 counts TensorCores, two per chip: it is 64 chips, the slice 4x4x4
>>> print(read("4x p5.48xlarge").note)
4x p5.48xlarge is 32 H100, 8 per instance (AWS); an instance has 3,200 Gb/s of network, 50 GB/s per chip
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from scalingbook_lib.machines import Machine, chips, instances
from scalingbook_lib.machines.chip import Chip, Source
from scalingbook_lib.machines.clusters import Cluster, ClusterError
from scalingbook_lib.machines.instances import Instance
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.machines.torus import Shape, SliceError, write_shape
from scalingbook_lib.units import parse, si
from scalingbook_lib.words import pluralize

MOST_CHIPS = 2**40
_FIRST = re.compile(r"([0-9][0-9,_]*)\s*(?:[x×*]\s*|(?=[a-z]))(.+)", re.I | re.S)  # 8xH100, 8 x v5e, 8 L4
_LAST = re.compile(r"(.+?)\s*[x×*]\s*([0-9]+)", re.I | re.S)  # H100x8
_TYPE = re.compile(r"(.*\D.*?)-([0-9]+)", re.S)  # v5p-128
_TOPOLOGY = re.compile(r"(.*?)-([0-9]+(?:[x×][0-9]+)+)", re.I | re.S)  # tpu7x-4x8x8
_NODES = re.compile(  # 2x8xH100, 2 nodes of 8 H100; a number of chips has at most 3 digits, unlike a 4090
    r"([0-9][0-9,_]*)\s*(?:[x×*]|nodes?\s*(?:[x×*]|of))\s*([0-9]{1,3})(?:\s*[x×*]\s*|\s+|(?=[a-z]))(.+)",
    re.I | re.S,
)
_PER_NODE = re.compile(r"([0-9]{1,7})\s*[x×*]\s*([0-9]{1,7})")  # the 2x8 of h100:2x8
_SYSTEM = re.compile(r"\b(?:dgx|hgx|nvl8|nvl72)\b", re.I)  # names of nodes and racks, not of chips
_NUMBERS = {1: "one", 2: "two"}


@dataclass(frozen=True, slots=True)
class NamedMachine:
    """A machine, and a sentence on how its name was interpreted, "" if the name is unambiguous."""

    machine: Machine
    note: str = ""


def read(text: str, chip_of: Callable[[str], Chip] = chips.find) -> NamedMachine:
    """The machine of that name; `chip_of` reads the chip in it.

    Raises a ValueError that says what to write instead if there is no such machine.
    """
    found = _instances(text.strip(), chip_of) or _counted_or_sized(text, chip_of)
    machine, chip = found.machine, found.machine.chip
    notes = [found.note] if found.note else []
    if chip.name.endswith(" GCD") and "gcd" not in text.lower():
        package = chip.name.removesuffix(" GCD")
        notes.append(f"{text.strip()} is {pluralize(machine.chips, 'GCD')}, of which an {package} has two")
    if isinstance(machine, Cluster) and machine.assumed:
        notes.append(machine.assumed)
    return replace(found, note="; ".join(notes))


def _counted_or_sized(text: str, chip_of: Callable[[str], Chip]) -> NamedMachine:
    """The machine of a chip's name, alone or with a number of chips or a shape."""
    name, colon, size = text.partition(":")
    if colon:
        return _sized(_chip(name, chip_of), size.strip(), text)
    if topology := _TOPOLOGY.fullmatch(text.strip()):
        return NamedMachine(Slice.of(_torus_chip(topology[1], topology[2], chip_of), topology[2]))
    try:
        return _unsized(chip_of(text), text)
    except ValueError:
        if found := _NODES.fullmatch(text.strip()):
            return _in_nodes(_chip(found[3], chip_of), _count(found[1]), _count(found[2]), text.strip())
        if found := _FIRST.fullmatch(text.strip()):
            return _counted(_chip(found[2], chip_of), _count(found[1]), text.strip())
        if found := _LAST.fullmatch(text.strip()):
            return _counted(_chip(found[1], chip_of), _count(found[2]), text.strip())
        if (found := _TYPE.fullmatch(text.strip())) and not instances.nearest(text):
            return _accelerator_type(chip_of(found[1]), int(found[2]), text.strip())
        _chip(text, chip_of)
        raise


def _instances(text: str, chip_of: Callable[[str], Chip]) -> NamedMachine | None:
    """The machine of one or more instances of a cloud, or of nodes or racks; None if the text names none."""
    name, _, size = text.partition(":")
    first, last = _FIRST.fullmatch(text), _LAST.fullmatch(text)
    readings = [(text, "1"), (name, size), *([(first[2], first[1])] if first else [])]
    for named, count in (*readings, *([(last[1], last[2])] if last else [])):
        if found := instances.find(named):
            return _rented(found, _count(count.strip(), "instances"), text, chip_of)
        if chip := _system(named, chip_of):
            most = chip.domain_chips or chip.chips_per_host
            return _in_nodes(chip, _count(count.strip(), "nodes"), most, text)
    return None


def _system(name: str, chip_of: Callable[[str], Chip]) -> Chip | None:
    """The chip of a named node or rack, such as 'dgx-h100' or 'gb200-nvl72'; None for any other name."""
    if not _SYSTEM.search(name):
        return None
    try:
        chip = chip_of(name)
    except ValueError:
        return None
    return None if chip.torus or _SYSTEM.search(chip.name) else chip  # a DGX Spark is a chip


def _rented(instance: Instance, count: int, text: str, chip_of: Callable[[str], Chip]) -> NamedMachine:
    """The machine of that many instances, which brings their network."""
    own = chip_of(instance.chip)
    chip, n = instance.joined(own), count * instance.chips
    made = f"{text} is {n:,} {own.name}"
    told = f"{made}, {instance.chips} per instance ({instance.cloud})" if count > 1 else made
    if chip.torus:
        shape = _compact(chip, n, f"{text!r} is {n:,} chips")
        return NamedMachine(Slice(chip, shape), f"{told}, taken as the slice {write_shape(shape)}")
    share = si(chip.dcn_bytes_per_s or 0, "B/s")
    if instance.network:
        network = f"an instance has {instance.network} of network, {share} per chip"
        if chip.dcn_bytes_per_s != own.dcn_bytes_per_s and own.dcn_bytes_per_s:
            network += f", where the catalog's {own.name} has {si(own.dcn_bytes_per_s, 'B/s')}"
    else:
        network = f"the network of this instance is not documented, so a chip has the catalog's {share}"
    return NamedMachine(Cluster.of(chip, n), f"{told}; {network}")


def _in_nodes(chip: Chip, nodes: int, per_node: int, text: str) -> NamedMachine:
    """The machine of that many nodes with that many chips in each."""
    n, most = nodes * per_node, chip.domain_chips or chip.chips_per_host
    if chip.torus:
        return _counted(chip, n, text)
    if per_node > max(most, chip.chips_per_host):
        raise ClusterError(
            f"{text!r} has {per_node} chips per node, but at most {most} {chip.name} are joined in one; "
            "write "
            + (f"{n // most}x{most}x{chip.name}" if n % most == 0 else f"at most {most} chips per node")
        )
    note = f"{text} is {n:,} {chip.name} in {pluralize(nodes, 'node')} of {per_node}"
    if per_node not in (most, chip.chips_per_host) and nodes > 1 and chip.joined != "cube mesh":
        given = Source(text=f"as written: {text}", as_of=chip.sources["chips_per_host"].as_of)
        host = min(per_node, chip.chips_per_host)
        chip = instances.in_hosts(chip, chips_per_host=host, domain_chips=per_node, source=given)
    path = _host_path(chip) if n > 1 else ""
    return NamedMachine(Cluster.of(chip, n), f"{note}; {path}" if path else note)


def _chip(name: str, chip_of: Callable[[str], Chip]) -> Chip:
    """The chip of that name; an error names the nearest instances if the name resembles one of theirs."""
    try:
        return chip_of(name)
    except ValueError as unknown:
        if near := instances.nearest(name):
            raise ValueError(
                f"{name.strip()!r} is neither a chip of the catalog nor an instance of a cloud in it; the "
                f"nearest instances are {', '.join(near)}; a number of chips, as in h100:8, is a machine too"
            ) from unknown
        raise


def _sized(chip: Chip, size: str, text: str) -> NamedMachine:
    """The machine of a size after a colon: the shape of a slice, or a number of chips."""
    if chip.torus and not size.isdecimal():
        return NamedMachine(Slice.of(chip, size))
    if nodes := _PER_NODE.fullmatch(size):
        name, n = text.partition(":")[0], int(nodes[1]) * int(nodes[2])
        raise ClusterError(
            f"{size!r} is not a number of chips, and {chip.name} is not joined in a torus; write {name}:{n} "
            f"for {n} chips, or {nodes[1]}x{nodes[2]}x{name} for {nodes[1]} nodes of {nodes[2]}"
        )
    return _counted(chip, _count(size), text)


def _unsized(chip: Chip, text: str) -> NamedMachine:
    """The machine of a chip's name alone: one domain of chips under switches, or one PCIe board."""
    if chip.torus:
        raise SliceError(
            f"{chip.name} is joined in a torus; write the shape of its slice, as in "
            f"{text}:{'x'.join('4' * chip.torus.dims)}, or its number of chips, as in {text}:8"
        )
    if chip.joined == "PCIe":
        return NamedMachine(
            Cluster.of(chip, 1), f"{text} is one PCIe board; write {text}:4 for four of them in a host"
        )
    if chip.joined == "cube mesh":  # which is not modeled
        return NamedMachine(Cluster.of(chip, 1), f"{text} is one {chip.name}")
    n = chip.domain_chips or chip.chips_per_host
    note = f"{text} is one domain of {n} {chip.name}; write {text}:1 for one chip" if n > 1 else ""
    return NamedMachine(Cluster.of(chip, n), note)


def _counted(chip: Chip, count: int, text: str) -> NamedMachine:
    """The machine with that many chips: a cluster, or the most compact slice."""
    if not chip.torus:
        return NamedMachine(Cluster.of(chip, count), _host_path(chip) if count > 1 else "")
    shape = _compact(chip, count, f"{text!r} is {count:,} chips")
    return NamedMachine(Slice(chip, shape), f"{text} is taken as the slice {write_shape(shape)}")


def _host_path(chip: Chip) -> str:
    """How PCIe boards communicate, as text; "" for other chips."""
    if chip.joined != "PCIe":
        return ""
    one_way, both = (si(ways * chip.link_bytes_per_s, "B/s") for ways in (1, 2))
    return (
        f"{chip.name} boards have no switch between them: they communicate through the PCIe of their host, "
        f"{one_way} each way and {both} in total"
    )


def _accelerator_type(chip: Chip, count: int, text: str) -> NamedMachine:
    """The machine of an accelerator type, which counts a TPU's TensorCores, or any other chip's chips."""
    if not chip.torus:
        return _counted(chip, count, text)
    cores = chip.cores or 1
    if count % cores:
        raise SliceError(
            f"{text!r} counts TensorCores, {_NUMBERS[cores]} per {chip.name}, and {count} is odd; write "
            "an "
            f"even number, or the shape of the slice, as in {text.rpartition('-')[0]}:"
            f"{'x'.join('4' * chip.torus.dims)}"
        )
    n = count // cores
    shape = _compact(chip, n, f"{text!r} counts TensorCores and is {n:,} chips")
    counted = f"{pluralize(n, 'chip')}, the slice {write_shape(shape)}"
    note = f"{text} counts TensorCores, {_NUMBERS[cores]} per chip: it is {counted}"
    return NamedMachine(Slice(chip, shape), note)


def _compact(chip: Chip, count: int, what: str) -> Shape:
    """The slice of that many chips whose sides are closest to equal."""
    by_size: dict[int, list[Shape]] = {}
    for shape in chip.topology().shapes():
        by_size.setdefault(math.prod(shape), []).append(shape)
    if count in by_size:
        return min(by_size[count], key=lambda shape: (sum(shape), shape))
    near = sorted(by_size, key=lambda size: abs(math.log(size / max(count, 1))))[:2]
    shapes = " or ".join(
        f"{size:,} ({write_shape(min(by_size[size], key=lambda shape: (sum(shape), shape)))})"
        for size in sorted(near)
    )
    raise SliceError(
        f"{what}, but {chip.name} has no slice of that size; write an available number of chips: {shapes}"
    )


def _torus_chip(name: str, shape: str, chip_of: Callable[[str], Chip]) -> Chip:
    chip = chip_of(name)
    if not chip.torus:
        raise SliceError(
            f"{chip.name} is not joined in a torus, so {shape} is not a machine; write a number of chips, "
            f"as in {name}:8"
        )
    return chip


def _count(text: str, what: str = "chips") -> int:
    """The number of chips or instances in a text: '8', '1,024', '1Ki', '512 chips'."""
    read_ = parse(text)
    if read_.unit not in ("", what) or not 1 <= read_.value <= MOST_CHIPS or read_.value % 1:
        raise ValueError(f"{text!r} is not a number of {what}; write one as in 8 or 1Ki")
    return int(read_.value)
