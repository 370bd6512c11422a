"""The numbers of one accelerator chip, each with the source that documents it.

The chips themselves are in `chips`, which re-exports these names, so that a reader imports only `chips`.
Chapters: Rooflines; TPUs; GPUs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Any, Literal, NoReturn, TypeGuard

from scalingbook_lib.machines.torus import Axis, SliceError, Torus
from scalingbook_lib.units import BF16, DTYPES, DType, Result, binary, si
from scalingbook_lib.words import pluralize

# all other fields are numbers, each with a source
_WORDS = {"name", "vendor", "status", "memory", "joined", "sources"}
_TAKES_S = re.compile(r"[A-Z]+\d+X?")  # names such as H100 and MI300X, whose plural is H100s and MI300Xs
type Joined = Literal["switches", "full mesh", "PCIe", "ring", "cube mesh"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """The source of a number, the day on which it was read, and differing values in other sources."""

    text: str
    as_of: str
    url: str = ""
    disagreement: str = ""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("a source needs a text that says where the number was read")
        date.fromisoformat(self.as_of)

    def __str__(self) -> str:
        also = f"; {self.disagreement}" if self.disagreement else ""
        return f"{self.text}, read {self.as_of}{also}"


class UnavailableRate(float):
    """A placeholder for a rate that the chip lacks.

    Any arithmetic with it raises a ValueError that lists the available rates.
    """

    message: str  # the error's message

    def _refuse(self, *_: object) -> NoReturn:
        raise ValueError(self.message)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __format__ = _refuse

    def __repr__(self) -> str:
        return "NoRate"


@dataclass(frozen=True, kw_only=True)
class Chip(Result):
    """Peak rates and sizes of one accelerator chip, in base units.

    FLOP/s are dense, without sparsity. Every link rate is one link in one direction, at its documented peak;
    `link_achieved_fraction` is the fraction of it that large collectives reach, and no formula applies it
    implicitly. Network, PCIe and host rates are per chip and unidirectional. None means that the chip has no
    such unit or that the number is not documented (bf16 is then an `UnavailableRate`: call
    `flops_per_s(FP16)` on a V100 and `flops_per_s(FP4)` on a TPU 8t). `status` is "shipping", or "announced"
    if nobody outside the vendor has been able to measure it; `memory` names the main memory if it is not HBM.
    For a what-if, use `dataclasses.replace(chip, name=..., hbm_bytes_per_s=...)` with a different name.

    `cores` are TensorCores, SMs or CUs; `matrix_units` counts the MXUs or tensor cores of the whole chip,
    each with `matrix_side` rows if the vendor documents it. Per core: `smem_bytes_per_core` (scalar memory of
    a TPU; L1 and shared memory together of a GPU), registers, tensor memory. `domain_chips` chips communicate
    at full speed, `joined` by switches, over one link per pair (a full mesh), around a ring, or as PCIe
    boards through their host, whose one link is the slot; V100s are joined in a hybrid cube mesh. `power_w`
    is the vendor's maximum; `usd_per_hour` is the price on the day of its source.
    """

    name: str
    vendor: str
    status: Literal["shipping", "announced"] = "shipping"
    memory: str = "HBM"  # or the memory that replaces it
    bf16_flops_per_s: float  # dense, of the whole chip
    hbm_bytes: float  # of the whole chip
    hbm_bytes_per_s: float  # reads and writes together
    link_bytes_per_s: float  # one link, one direction
    links: int  # of one chip
    link_achieved_fraction: float
    hop_s: float = 1e-6  # one link, between neighbors
    fp16_flops_per_s: float | None = None
    fp8_flops_per_s: float | None = None
    fp4_flops_per_s: float | None = None
    int8_ops_per_s: float | None = None
    int4_ops_per_s: float | None = None
    vector_flops_per_s: float | None = None
    vmem_bytes: float | None = None
    vmem_bytes_per_s: float | None = None
    pcie_bytes_per_s: float | None = None  # to the host
    dcn_bytes_per_s: float | None = None  # a chip's share of its host's NICs
    chips_per_host: int
    clock_hz: float | None = None
    cores: int | None = None
    matrix_units: int | None = None
    matrix_side: int | None = None  # in cells
    smem_bytes_per_core: float | None = None
    registers_bytes_per_core: float | None = None
    tmem_bytes_per_core: float | None = None
    l2_bytes: float | None = None
    l3_bytes: float | None = None
    host_bytes_per_s: float | None = None
    power_w: float | None = None  # the vendor's maximum
    usd_per_hour: float | None = None  # per chip
    domain_chips: int | None = None  # None: connected in a torus
    joined: Joined = "switches"  # if not in a torus
    torus: Torus | None = None
    sources: Mapping[str, Source] = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if not _known(self.bf16_flops_per_s):
            lacking = UnavailableRate(0)
            object.__setattr__(self, "bf16_flops_per_s", lacking)
            lacking.message = self._unavailable_message("bf16")
        for name, value in self.figures().items():
            if name not in self.sources:
                raise ValueError(f"{self.name}: {name} has no source; name where it was read, in `sources`")
            if not isinstance(value, Torus) and not value > 0:
                raise ValueError(
                    f"{self.name}: {name} is {value}; write a positive number, or None if unknown"
                )

    def __hash__(self) -> int:
        """The hash of its name, which equal chips share; a search looks values up by chip very often."""
        return hash(self.name)

    @property
    def full_mesh(self) -> bool:
        """Whether each pair of chips in a domain has its own link, without a switch."""
        return self.joined == "full mesh"

    def figures(self) -> dict[str, float | Torus]:
        """Every number that this chip has, by field name, in base units."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _WORDS}
        return {name: value for name, value in named.items() if _known(value)}

    def flops_per_s(self, dtype: DType = BF16) -> float:
        """The peak rate of the matrix units on operands of that type, in FLOPs/s.

        Raises a ValueError if no rate of that type is known.
        """
        name = dtype.multiplied or dtype.name
        rate = getattr(self, _rate_of(name), None)  # a single figure may call this hundreds of times
        if not _known(rate):
            raise ValueError(self._unavailable_message(name))
        return rate

    def _unavailable_message(self, dtype: str) -> str:
        """The error message for a type without a known rate, which the matrix units may support or not."""
        if not self.rates():
            return f"{self.name} has no published compute rate; use its memory numbers only"
        return (
            f"no {dtype} rate of {self.name} is known; compute in one of "
            f"{', '.join(self.rates())} and give the stored type separately"
        )

    def rates(self) -> dict[str, float]:
        """The peak rate in FLOPs/s of every data type whose rate is known, by the type's name."""
        named = {d: getattr(self, _rate_of(d), None) for d in DTYPES}
        return {name: rate for name, rate in named.items() if _known(rate)}

    def axis(self, size: int, *, wrapped: bool | None = None) -> Axis:
        """One torus axis of `size` chips.

        It is a ring if this generation wraps that size, or if `wrapped` says so.
        """
        if wrapped is None:
            wrapped = self.topology().wraps(size)
        return Axis(size, wrapped, self.link_bytes_per_s, self.hop_s)

    def topology(self) -> Torus:
        """The torus that connects chips of this generation.

        Raises a SliceError if the chips are connected by switches or a full mesh.
        """
        if self.torus is None:
            raise SliceError(f"{self.name} is joined {_JOINED[self.joined]}, not in a torus; choose a TPU")
        return self.torus

    def domain_bytes_per_s(self, chips: int | None = None) -> float:
        """The bytes/s that one chip sends to the other chips of a group in its domain at once.

        The group has `chips` chips (by default all of the domain). Through switches every link reaches every
        peer; in a full mesh each link reaches one. Raises a SliceError if the chips form a torus or the group
        does not fit one domain.
        """
        if self.domain_chips is None:
            raise SliceError(f"{self.name} is joined in a torus; use the bandwidth of the axes of a slice")
        size = self.domain_chips if chips is None else chips
        if not 2 <= size <= self.domain_chips:
            raise SliceError(
                f"{size} chips do not form a group in one domain of {self.name}; "
                f"write 2 to {self.domain_chips}"
            )
        # in a full mesh a link has one peer: a group of `size` uses size - 1 of them
        return self.link_bytes_per_s * (size - 1 if self.full_mesh else self.links)

    def counted(self, n: int) -> str:
        """So many of these chips, as a sentence names them: '1 H100', '1,024 H100s', '16 TPU v5p chips'."""
        noun = self.name if _TAKES_S.fullmatch(self.name) else f"{self.name} chip"
        return f"{n:,} {noun}{'s' * (n != 1)}"

    def __str__(self) -> str:
        rates = [f"{si(rate, 'FLOPs/s')} in {kind}" for kind, rate in self.rates().items()]
        links = f"{pluralize(self.links, 'link')} of {si(self.link_bytes_per_s, 'B/s')} each way"
        return ", ".join(
            (
                f"{self.name}: {rates[0] if rates else 'no published rate'}",
                f"{binary(self.hbm_bytes)} of {self.memory} at {si(self.hbm_bytes_per_s, 'B/s')}",
                links,
                *["announced"] * (self.status == "announced"),
            )
        )


_JOINED: dict[Joined, str] = {
    "switches": "by switches",
    "full mesh": "link by link to each other chip",
    "PCIe": "by the PCIe of its host",
    "ring": "in a ring",
    "cube mesh": "in a hybrid cube mesh",
}


def _known(figure: object) -> TypeGuard[Any]:
    return figure is not None and not isinstance(figure, UnavailableRate)


def _rate_of(dtype: str) -> str:
    return f"{dtype}_ops_per_s" if dtype.startswith("int") else f"{dtype}_flops_per_s"
