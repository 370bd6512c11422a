"""The share of its documented peak that each class of operation reaches in training.

Nothing here is a property of a model or of a run. Chapter: Training.
"""

from dataclasses import dataclass, replace

from scalingbook_lib.steps.placement import LINKS, LinkShares
from scalingbook_lib.units import Result, percent

MATH = ("matmul", "attention", "experts", "head")
# losses, all of which are 0 at the peak
LOST = (
    *("ramp", "head_ramp", "attention_block", "operands", "permutation", "expert_tile"),
    *("layer_s", "expert_layer_s", "expert_launch_s", "ring_launch_s", "fixed_s"),
)
SHARES = (*MATH, "memory", *LINKS, "overlap")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingEfficiency(LinkShares, Result):
    """The attained share of the documented peak, by class of operation, and further losses of real chips.

    Shares of the matrix unit's rate: `matmul` (matmuls with the layers' dense weights), `experts` (with
    experts' weights), `attention` (dot-product attention) and `head` (the unembedding). `memory` is the share
    of the HBM bandwidth that norms, activation functions and the optimizer reach. `torus`, `domain` (NVLink,
    or a full mesh), `network` and `dcn` are shares of the bandwidth of these links. `overlap` is the fraction
    of the overlappable communication that is hidden.

    The other fields are losses, all of them 0 at the peak:

    - Attention reaches half of its rate at sequences of `ramp` tokens. A head of H elements takes
      1 + `head_ramp` / H times as long per FLOP, relative to heads of 128, because it computes as many
      exponentials as a wide one. A window is effectively `attention_block` tokens longer, because kernels
      compute whole blocks.
    - A share `operands` of the bytes that matmuls read and write is exposed, at the rate of `memory`. (Inputs
      of a narrower dtype are written first.)
    - `layer_s` is lost per layer per microbatch, once forward and twice backward. `ring_launch_s` starts each
      transfer in a ring of keys and values. `fixed_s` is lost once per step.
    - Experts compute whole tiles of `expert_tile` x `expert_tile` elements, on average half a tile of rows
      too many. Routed tokens are read or written `permutation` times to sort them by expert and back. The
      host takes `expert_layer_s` per layer, and `expert_launch_s` per expert of a chip, to count the tokens
      and to launch kernels; this is exposed unless the chip has enough work to hide it.
    - `expert_skew` describes how unevenly tokens are routed (`steps.expert_load`); all chips wait for the
      busiest one. None stands for a perfectly even load.
    """

    matmul: float = 1.0
    attention: float = 1.0  # of the rate for the activations' dtype
    experts: float = 1.0
    head: float = 1.0
    memory: float = 1.0  # of HBM's bytes/s
    overlap: float = 1.0  # times `Plan.overlap`
    ramp: float = 0.0  # tokens per sequence
    operands: float = 0.0  # share of bytes
    layer_s: float = 0.0  # per layer per microbatch; twice in the backward pass
    head_ramp: float = 0.0  # elements per head
    attention_block: float = 0.0  # tokens
    permutation: float = 0.0  # passes over the routed tokens
    expert_tile: float = 0.0  # elements per side
    expert_layer_s: float = 0.0  # host time per layer; twice in the backward pass
    expert_launch_s: float = 0.0  # host time per expert of a chip
    expert_skew: float | None = None  # None: an even load
    ring_launch_s: float = 0.0  # per step of a context-parallel ring
    fixed_s: float = 0.0  # per training step
    name: str = "peak"
    source: str = ""

    def __post_init__(self) -> None:
        for name, value in self.shares.items():
            if not 0 < value <= 1:
                raise ValueError(f"{name}={value}: write a share of the peak, above 0 and at most 1")
        for name in LOST:
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)}: write a number of at least 0")
        if self.expert_skew is not None and not self.expert_skew >= 0:
            raise ValueError(f"expert_skew={self.expert_skew}: write a number of at least 0, or None")

    def without_placement(self) -> "TrainingEfficiency":
        """Return the efficiency without losses that depend on where experts are, as a bound."""
        return replace(self, permutation=0.0, expert_tile=0.0, expert_launch_s=0.0, expert_skew=None)

    @property
    def shares(self) -> dict[str, float]:
        """The attained share of every class of operation and link."""
        return {name: getattr(self, name) for name in SHARES}

    @classmethod
    def flat(cls, share: float) -> "TrainingEfficiency":
        """Return an efficiency with the same share for all matmuls and attention; the rest is at its peak."""
        return cls(**dict.fromkeys(MATH, share), name=f"{percent(share)} of the matrix unit")

    def __str__(self) -> str:
        if set(self.shares.values()) == {1.0}:
            return f"{self.name}: everything at its documented peak"
        return f"{self.name}: " + ", ".join(f"{n} {percent(v)}" for n, v in self.shares.items() if v < 1)


PEAK = TrainingEfficiency()
