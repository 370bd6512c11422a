"""What share of its documented peak does each class of operation reach in serving? Tables, stated and dated.

Nothing here is a property of a model or of a run. Chapter: Inference.
"""

from collections.abc import Callable
from dataclasses import dataclass

from scalingbook_lib.steps.placement import LINKS, LinkShares
from scalingbook_lib.units import DType, Result, percent, si

# Shares of a documented peak: of the matrix unit's FLOPs/s by what it multiplies, of the HBM's bytes/s by
# what is read, of the links' bytes/s.
_PRODUCTS, _READS = ("matmul", "experts", "head", "attention"), ("weights", "expert_weights", "head_weights")
SHARES = (*_PRODUCTS, *_READS, "kv", "memory")
# What no share can tell, as it does not grow with the work: seconds for each kernel, collective or sequence.
_LOST_S = ("dequantize", "layer", "expert_layer", "collective", "network", "fixed", "sequence", "host")
LOST = tuple(f"{name}_s" for name in _LOST_S)
_RULES: tuple[tuple[tuple[str, ...], Callable[[float], bool], str], ...] = (
    ((*SHARES, *LINKS), lambda share: 0 < share <= 1, "write a share of the peak, above 0 and at most 1"),
    (LOST, lambda lost: lost >= 0, "write a number of at least 0"),
    (("overlap", "apart"), lambda share: 0 <= share <= 1, "write a share from 0 to 1"),
)


@dataclass(frozen=True, slots=True)
class ByType(Result):
    """A number that depends on the data type, with a default: `by_type(0.9, int4=0.6)`."""

    default: float
    types: tuple[tuple[str, float], ...] = ()

    def __call__(self, dtype: DType) -> float:
        """The number for a data type."""
        return dict(self.types).get(dtype.name, self.default)

    @property
    def values(self) -> tuple[float, ...]:
        """The default and the numbers of all named types."""
        return (self.default, *(value for _, value in self.types))

    def __str__(self) -> str:
        return ", ".join((f"{self.default:.3g}", *(f"{name} {value:.3g}" for name, value in self.types)))


def by_type(default: float, **types: float) -> ByType:
    """A number for all data types except those named: `by_type(0.9, fp8=0.8, int4=0.6)`."""
    return ByType(default, tuple(sorted(types.items())))


type Figure = float | ByType


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingEfficiency(LinkShares, Result):
    """The achieved share of each peak, and the overheads of a step; a number may depend on the data type.

    Shares of the matrix unit's peak, by the type that computes: `matmul` (dense matmuls), `experts` (grouped
    matmuls), `head` (the unembedding) and `attention`. Shares of the HBM bandwidth: `weights`,
    `expert_weights` and `head_weights` (by the type in which they are stored), `kv` (by the type of the
    cache) and `memory` (activations). Shares of the link bandwidth: `torus`, `domain` (NVLink, or a full
    mesh), `network` and `dcn`. `overlap` is the share of collectives that other work can hide.

    The overheads, all 0 at the peak:

    - `apart`: a matmul takes the longer of its compute and memory times, plus this share of the shorter one,
      because a kernel starts by reading and ends by computing.
    - `dequantize_s`: for each weight that is stored in a narrower type than it computes in.
    - `layer_s`: for each layer of a step (its kernels; by the type of the weights).
      `expert_layer_s` is added for a layer with experts.
    - `collective_s`: for each collective, beside its hops; `network_s` is added if it leaves a domain.
    - `fixed_s`: once per step (for each microbatch, with pipeline stages); `sequence_s`: for each sequence.
    - `host_s`: the time that the host needs per sequence of a group to prepare a step. It does so while the
      chips execute the previous step, so no step is shorter. With pipeline stages, this time is exposed.

    `expert_skew` says how unevenly tokens choose experts (`steps.expert_load`): all chips of an
    expert-parallel group wait for the busiest one. None is a perfectly even load.
    """

    matmul: Figure = 1.0  # shares of the matrix unit's rate
    experts: Figure = 1.0
    head: Figure = 1.0
    attention: Figure = 1.0
    weights: Figure = 1.0  # shares of HBM's rate
    expert_weights: Figure = 1.0
    head_weights: Figure = 1.0
    kv: Figure = 1.0
    memory: Figure = 1.0
    overlap: float = 0.0  # share of collectives
    apart: float = 0.0  # share of the shorter of two times
    dequantize_s: Figure = 0.0  # a weight
    layer_s: Figure = 0.0  # a layer that a step passes
    expert_layer_s: Figure = 0.0
    collective_s: float = 0.0  # a collective, beside its hops
    network_s: float = 0.0
    fixed_s: float = 0.0  # a step
    sequence_s: float = 0.0  # a sequence of a step
    host_s: float = 0.0  # a sequence of a group
    expert_skew: float | None = None  # None: an even load
    name: str = "peak"
    source: str = ""

    def __post_init__(self) -> None:
        for names, allowed, write in _RULES:
            for name in names:
                figure = getattr(self, name)
                if not all(map(allowed, figure.values if isinstance(figure, ByType) else (figure,))):
                    raise ValueError(f"{name}={figure}: {write}")

        if self.expert_skew is not None and not self.expert_skew >= 0:
            raise ValueError(f"expert_skew={self.expert_skew}: write a number of at least 0, or None")

    def of(self, name: str, dtype: DType) -> float:
        """The figure of that name for a data type."""
        figure = getattr(self, name)
        return figure(dtype) if isinstance(figure, ByType) else figure

    @property
    def stated(self) -> dict[str, Figure]:
        """What differs from the peak."""
        names = (*SHARES, *LINKS, "overlap", "apart", *LOST)
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(PEAK, name)}

    def __str__(self) -> str:
        said = ", ".join(f"{name} {_said(name, v)}" for name, v in self.stated.items())
        return f"{self.name}: {said or 'everything at its documented peak'}"


def _said(name: str, figure: Figure) -> str:
    if isinstance(figure, ByType):
        return f"({figure})"
    return si(figure, "s") if name in LOST else percent(figure)


PEAK = ServingEfficiency()
