"""What is a chip, in figures, and what is a slice of them?

The nouns: `Source`, `Chip`, `Slice`, `SliceMesh`. The chips themselves are in `chips`, which also hands on
these names, so that a reader imports `chips` alone. Chapters: Rooflines, TPUs.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date

from scalingbook_lib.told import Told
from scalingbook_lib.torus import Axis, Shape, SliceError, Torus, read_shape, write_shape
from scalingbook_lib.units import BF16, DTYPES, DType, binary, si


def _rate_of(dtype: str) -> str:
    return f"{dtype}_ops_per_s" if dtype.startswith("int") else f"{dtype}_flops_per_s"


_WORDS = {"name", "vendor", "sources"}  # every other field is a figure, and needs a source


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a figure comes from, when it was read there, and what other sources print instead."""

    text: str
    as_of: str
    url: str = ""
    disagreement: str = ""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("a source needs a text that says where the figure was read")
        date.fromisoformat(self.as_of)

    def __str__(self) -> str:
        also = f"; {self.disagreement}" if self.disagreement else ""
        return f"{self.text}, read {self.as_of}{also}"


@dataclass(frozen=True, kw_only=True)
class Chip(Told):
    """Peak figures of one accelerator chip, in base units.

    FLOP/s are dense, without sparsity. Every link figure is one link in one direction, at its documented
    peak; `link_achieved_fraction` is what large collectives reach of it, and no formula applies it by
    itself. Network and PCIe figures are per chip and one way. None: the chip has no such unit, or nobody
    documents it. For a what-if, `dataclasses.replace(chip, name=..., hbm_bytes_per_s=...)`: give it a name.
    """

    name: str
    vendor: str
    bf16_flops_per_s: float
    hbm_bytes: float
    hbm_bytes_per_s: float
    link_bytes_per_s: float
    links: int
    link_achieved_fraction: float
    hop_s: float = 1e-6
    fp16_flops_per_s: float | None = None
    fp8_flops_per_s: float | None = None
    fp4_flops_per_s: float | None = None
    int8_ops_per_s: float | None = None
    int4_ops_per_s: float | None = None
    vector_flops_per_s: float | None = None
    vmem_bytes: float | None = None
    vmem_bytes_per_s: float | None = None
    pcie_bytes_per_s: float | None = None
    dcn_bytes_per_s: float | None = None
    chips_per_host: int
    clock_hz: float | None = None
    torus: Torus | None = None
    sources: Mapping[str, Source] = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, value in self.figures().items():
            if name not in self.sources:
                raise ValueError(f"{self.name}: {name} has no source; say where it was read, in `sources`")
            if not isinstance(value, Torus) and value <= 0:
                raise ValueError(
                    f"{self.name}: {name} is {value}; write a positive figure, or None where unknown"
                )

    def figures(self) -> dict[str, float | Torus]:
        """Every figure this chip has, by name."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _WORDS}
        return {name: value for name, value in named.items() if value is not None}

    def flops_per_s(self, dtype: DType = BF16) -> float:
        """The peak rate of the matrix unit on operands of that type."""
        rate = self.rates().get(dtype.name)
        if rate is None:
            raise ValueError(
                f"{self.name} has no {dtype.name} matrix unit; compute in one of "
                f"{', '.join(self.rates())} and say how the operands are stored"
            )
        return rate

    def rates(self) -> dict[str, float]:
        """The peak rate of every data type that the matrix unit knows, by the type's name."""
        named = {d: getattr(self, _rate_of(d), None) for d in DTYPES}
        return {name: rate for name, rate in named.items() if rate is not None}

    def axis(self, size: int, *, wrapped: bool | None = None) -> Axis:
        """One torus axis of that size, a ring by this generation's rule unless `wrapped` says otherwise."""
        if wrapped is None:
            wrapped = self._torus().wraps(size)
        return Axis(size, wrapped, self.link_bytes_per_s, self.hop_s)

    def _torus(self) -> Torus:
        if self.torus is None:
            raise SliceError(f"{self.name} is joined by switches, not in a torus; take a TPU")
        return self.torus

    def __str__(self) -> str:
        return (
            f"{self.name}: {si(self.bf16_flops_per_s, 'FLOPs/s')} in bf16, {binary(self.hbm_bytes)} of HBM "
            f"at {si(self.hbm_bytes_per_s, 'B/s')}, {self.links} links of "
            f"{si(self.link_bytes_per_s, 'B/s')} each way"
        )


@dataclass(frozen=True)
class Slice(Told):
    """Chips joined into a torus: TPU v5p in 4x4x8. A shape that does not exist raises SliceError."""

    chip: Chip
    shape: Shape

    @classmethod
    def of(cls, chip: Chip, shape: str) -> "Slice":
        """`Slice.of(chips.V5P, "4x4x8")`."""
        return cls(chip, read_shape(shape))

    def __post_init__(self) -> None:
        torus = self.chip._torus()
        if not torus.exists(self.shape):
            read, near = write_shape(self.shape), ", ".join(map(write_shape, torus.nearest(self.shape)))
            raise SliceError(f"{self.chip.name} does not come as {read}; the nearest slices are {near}")

    @property
    def name(self) -> str:
        """'TPU v5p 4x4x8'."""
        return f"{self.chip.name} {write_shape(self.shape)}"

    @property
    def chips(self) -> int:
        """How many chips."""
        return math.prod(self.shape)

    @property
    def hosts(self) -> int:
        """How many hosts (machines) hold them; a slice smaller than a host counts as one."""
        return math.ceil(self.chips / self.chip.chips_per_host)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The torus axes in the order of the shape."""
        wraps = self.chip._torus().wrapped_axes(self.shape)
        return tuple(self.chip.axis(n, wrapped=w) for n, w in zip(self.shape, wraps, strict=True))

    @property
    def links(self) -> int:
        """How many cables: each joins two chips and carries `link_bytes_per_s` in each direction."""
        return sum(self.chips // a.size * (a.size if a.wrapped else a.size - 1) for a in self.axes)

    @property
    def diameter_hops(self) -> int:
        """The hops between the two chips farthest apart."""
        return sum(a.diameter_hops for a in self.axes)

    @property
    def mean_hops(self) -> float:
        """The mean distance of two chips drawn at random."""
        return sum(a.mean_hops for a in self.axes)

    @property
    def bisection_bytes_per_s(self) -> float:
        """What can cross the narrowest cut into two halves, in one direction."""
        cuts = [self.chips // a.size * a.bytes_per_s for a in self.axes if a.size > 1]
        return min(cuts, default=math.inf)

    @property
    def hbm_bytes(self) -> float:
        """The HBM of all chips together."""
        return self.chips * self.chip.hbm_bytes

    def flops_per_s(self, dtype: DType = BF16) -> float:
        """The peak rate of all chips together."""
        return self.chips * self.chip.flops_per_s(dtype)

    def mesh(self, **sizes: int) -> "SliceMesh":
        """Name mesh axes, `slice.mesh(X=4, Y=16)`: each is a product of whole torus axes."""
        return SliceMesh(self, tuple(sizes.items()))

    def __str__(self) -> str:
        rings = " and ".join(str(a.size) for a in self.axes if a.wrapped)
        chips, hosts = (
            f"{n:,} {word}{'s' * (n > 1)}" for n, word in ((self.chips, "chip"), (self.hosts, "host"))
        )
        cut = f", bisection {si(self.bisection_bytes_per_s, 'B/s')} each way" * (self.chips > 1)
        return f"{self.name}: {chips} on {hosts}, {f'rings of {rings}' if rings else 'no axis wraps'}{cut}"


@dataclass(frozen=True)
class SliceMesh(Told):
    """Mesh axes laid over a slice: which torus axes, and so which bandwidth, each of them has."""

    slice: Slice
    named: tuple[tuple[str, int], ...]
    _laid: dict[str, tuple[Axis, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.named or min(size for _, size in self.named) < 1:
            raise SliceError("a mesh needs at least one axis, of at least one chip, as in mesh(X=4, Y=16)")
        object.__setattr__(self, "_laid", self._lay())

    def _lay(self) -> dict[str, tuple[Axis, ...]]:
        """The first way, in the order of the torus, to give each torus axis to one mesh axis."""
        torus = [a for a in self.slice.axes if a.size > 1]
        for owners in itertools.product(self.sizes, repeat=len(torus)):
            given = list(zip(owners, torus, strict=True))
            laid = {name: tuple(a for owner, a in given if owner == name) for name in self.sizes}
            if all(math.prod(a.size for a in laid[name]) == size for name, size in self.named):
                return laid
        wanted = ", ".join(f"{name}={size}" for name, size in self.named)
        raise SliceError(
            f"a mesh of {wanted} does not fit {self.slice.name}: each mesh axis is a product of whole "
            f"torus axes ({', '.join(str(a.size) for a in torus)}), and all {self.slice.chips} chips are used"
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each mesh axis, in order."""
        return dict(self.named)

    @property
    def chip(self) -> Chip:
        """The chip that the mesh is made of."""
        return self.slice.chip

    def size(self, names: str) -> int:
        """How many chips share these mesh axes: `size("XY")` is X · Y."""
        return math.prod(self.sizes[name] for name in self._known(names))

    def axes(self, names: str) -> tuple[Axis, ...]:
        """The torus axes under these mesh axes: `axes("XY")`."""
        return tuple(itertools.chain.from_iterable(self._laid[name] for name in self._known(names)))

    def bytes_per_s(self, names: str) -> float:
        """The bandwidth of these mesh axes: what one chip can take in along all their torus axes at once."""
        return sum(a.bytes_per_s for a in self.axes(names))

    def _known(self, names: str) -> str:
        unknown = [name for name in names if name not in self.sizes]
        if unknown or len(set(names)) < len(names):
            known = ", ".join(self.sizes)
            raise SliceError(f"{names!r} is no set of axes of this mesh; name each of {known} at most once")
        return names

    def __str__(self) -> str:
        laid = ", ".join(f"{name}{size} at {si(self.bytes_per_s(name), 'B/s')}" for name, size in self.named)
        return f"{self.slice.name} as {laid}"
