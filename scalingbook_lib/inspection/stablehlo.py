"""Reads what a StableHLO module states about its mesh and its arguments, before XLA compiles it."""

import math
import re
from collections.abc import Mapping

from scalingbook_lib.hlo.module import dtype_bytes
from scalingbook_lib.inspection.source import Argument

_MODULE = re.compile(r"^\s*(?:#\w+ = .*\n\s*)*module\b.*\{", re.M)
_MESH = re.compile(r'sdy\.mesh @(\w+) = <\[((?:"[\w.\-]+"=\d+(?:, )?)+)\]')
_PARTITIONS = re.compile(r"mhlo\.num_partitions = (\d+)")
_MAIN = re.compile(r"func\.func (?:public )?@main\((.*?)\) (?:->|\{)", re.S)
_ARGUMENT = re.compile(r"%(\w+): tensor<([^>]*)>((?:\s*\{(?:[^{}]|\{[^{}]*\})*\})?)")
_SHARDING = re.compile(r"sdy\.sharding = #sdy\.sharding<@\w+, \[(.*?)\]>")
_TYPES = {"i1": "pred", **{f"i{n}": f"s{n}" for n in (4, 8, 16, 32, 64)}} | {
    f"ui{n}": f"u{n}" for n in (4, 8, 16, 32, 64)
}


def is_module(text: str) -> bool:
    """Whether a text is a StableHLO module."""
    return bool(_MODULE.match(text))


def mesh(text: str) -> dict[str, int]:
    """The mesh that a module names; one axis for all partitions if it names none, {} for one device."""
    if found := _MESH.search(text):
        axes = re.findall(r'"([\w.\-]+)"=(\d+)', found[2])
        return {name: int(size) for name, size in axes}
    partitions = _PARTITIONS.search(text)
    return {"X": int(partitions[1])} if partitions and int(partitions[1]) > 1 else {}


def arguments(text: str, sizes: Mapping[str, int]) -> tuple[Argument, ...]:
    """The arguments of a module's main function with their shardings."""
    main = _MAIN.search(text)
    if main is None:
        return ()
    return tuple(_argument(found, sizes) for found in _ARGUMENT.finditer(main[1]))


def _argument(found: re.Match[str], sizes: Mapping[str, int]) -> Argument:
    """One argument, `%arg0: tensor<8x128xf32> {sdy.sharding = ...}`."""
    *written, element = found[2].split("x")
    dims = tuple(int(n) for n in written)
    sharding = _SHARDING.search(found[3])
    parts = re.findall(r"\{([^}]*)\}", sharding[1]) if sharding else [""] * len(dims)
    axes = [re.findall(r'"([\w.\-]+)"', part) for part in parts]
    used = {name for part in axes for name in part}
    shard = tuple(
        -(-n // math.prod(sizes.get(name, 1) for name in part)) for n, part in zip(dims, axes, strict=False)
    )
    dtype = _TYPES.get(element, element.lower())
    return Argument(
        name=found[1],
        dtype=dtype,
        shard=shard,
        dims=dims,
        nbytes=math.prod(shard) * dtype_bytes(dtype),
        replicated=tuple(name for name, n in sizes.items() if name not in used and n > 1),
    )
