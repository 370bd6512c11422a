"""The share of its documented peak that each class of operation reaches in serving.

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
    """A number for all dtypes, with exceptions for some: `by_type(0.9, int4=0.6)`."""

    default: float
    types: tuple[tuple[str, float], ...] = ()

    def __call__(self, dtype: DType) -> float:
        """The figure of a data type."""
        return dict(self.types).get(dtype.name, self.default)

    @property
    def values(self) -> tuple[float, ...]:
        """All of its numbers."""
        return (self.default, *(value for _, value in self.types))

    def __str__(self) -> str:
        return ", ".join((f"{self.default:.3g}", *(f"{name} {value:.3g}" for name, value in self.types)))


def by_type(default: float, **types: float) -> ByType:
    """Return a number for all dtypes except those named: `by_type(0.9, fp8=0.8, int4=0.6)`."""
    return ByType(default, tuple(sorted(types.items())))


type Figure = float | ByType


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingEfficiency(LinkShares, Result):
    """The attained share of the documented peak by class of operation, and further losses of real chips.

    Each number may differ by dtype (`by_type`). Shares of the matrix unit's rate, by compute dtype: `matmul`
    (dense matmuls), `experts` (grouped matmuls), `head` (the unembedding) and `attention`. Shares of the HBM
    bandwidth: `weights`, `expert_weights` and `head_weights` (by stored dtype), `kv` (by the cache's dtype)
    and `memory` (activations). Shares of link bandwidth: `torus`, `domain` (NVLink, or a full mesh),
    `network` and `dcn`. `overlap` is the share of collectives that the rest of a step can hide.

    The other fields are losses, all of them 0 at the peak:

    - A matmul takes the longer of compute and reading, plus a share `apart` of the shorter, because kernels
      begin with reading and end with compute. `dequantize_s` is lost per weight whose stored dtype is
      narrower than its compute dtype.
    - `layer_s` is lost per layer (kernel launches; by the dtype of the weights), and `expert_layer_s` in
      addition if it has experts. `collective_s` is lost per collective in addition to its hops, and
      `network_s` more if it leaves a domain. `fixed_s` is lost per step (with stages, per microbatch), and
      `sequence_s` per sequence.
    - `host_s` is the host time per sequence of a group to prepare a step. The host works during the previous
      step, so no step is shorter than this; with stages, it is exposed.
    - `expert_skew` describes how unevenly tokens are routed (`steps.expert_load`); all chips of an
      expert-parallel group wait for the busiest one. None stands for a perfectly even load.
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
        """Return the number of that name for a dtype."""
        figure = getattr(self, name)
        return figure(dtype) if isinstance(figure, ByType) else figure

    @property
    def stated(self) -> dict[str, Figure]:
        """The fields that differ from those of the peak."""
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
