"""A reader of machine names as people and clouds write them: 'v5p:4x4x8', 'v6e-8', '8xH100'.

A Cloud TPU's accelerator type counts TensorCores: v5p-128 has 64 chips, because each has two, and v6e-8 has
8, because each has one (Google's documentation of v5p and v6e). Its slice is the most compact one with that
many chips, which is what AI-Hypercomputer/xpk at 367c8382 chooses for all 194 sizes of v5p and TPU7x.

>>> named = read("v5p-128")
>>> print(named.machine.name, named.note, sep="; ")
TPU v5p 4x4x4; v5p-128 counts TensorCores, two per chip: it is 64 chips, the slice 4x4x4
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from scalingbook_lib.machines import Machine, chips
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.machines.torus import Shape, SliceError, write_shape
from scalingbook_lib.units import parse, si

MOST_CHIPS = 2**40
_FIRST = re.compile(r"([0-9][0-9,_]*)\s*(?:[x×*]\s*|(?=[a-z]))(.+)", re.I | re.S)  # 8xH100, 8 x v5e, 8 L4
_LAST = re.compile(r"(.+?)\s*[x×*]\s*([0-9]+)", re.I | re.S)  # H100x8
_TYPE = re.compile(r"(.*\D.*?)-([0-9]+)", re.S)  # v5p-128
_TOPOLOGY = re.compile(r"(.*?)-([0-9]+(?:[x×][0-9]+)+)", re.I | re.S)  # tpu7x-4x8x8
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
    name, colon, size = text.partition(":")
    if colon:
        return _sized(chip_of(name), size.strip(), text)
    if topology := _TOPOLOGY.fullmatch(text.strip()):
        return NamedMachine(Slice.of(_torus_chip(topology[1], topology[2], chip_of), topology[2]))
    try:
        return _unsized(chip_of(text), text)
    except ValueError as unknown:
        if found := _FIRST.fullmatch(text.strip()):
            return _counted(chip_of(found[2]), _count(found[1]), text.strip())
        if found := _LAST.fullmatch(text.strip()):
            return _counted(chip_of(found[1]), _count(found[2]), text.strip())
        if found := _TYPE.fullmatch(text.strip()):
            return _accelerator_type(chip_of(found[1]), int(found[2]), text.strip())
        raise unknown


def _sized(chip: Chip, size: str, text: str) -> NamedMachine:
    """The machine of a size after a colon: the shape of a slice, or a number of chips."""
    if chip.torus and not size.isdecimal():
        return NamedMachine(Slice.of(chip, size))
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
    return NamedMachine(Cluster.of(chip, chip.domain_chips or chip.chips_per_host))


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
    counted = f"{n:,} chip{'s' * (n > 1)}, the slice {write_shape(shape)}"
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


def _count(text: str) -> int:
    """The number of chips in a text: '8', '1,024', '1Ki', '512 chips'."""
    read_ = parse(text)
    if read_.unit not in ("", "chips") or not 1 <= read_.value <= MOST_CHIPS or read_.value % 1:
        raise ValueError(f"{text!r} is not a number of chips; write one as in 8 or 1Ki")
    return int(read_.value)
