"""What share of its documented peak does each class of operation reach? One table, stated and dated.

Nothing here is a property of a model or of a run. Chapter: Training.
"""

from dataclasses import dataclass, replace

from scalingbook_lib.steps.placement import LINKS, LinkShares
from scalingbook_lib.units import Result, percent

MATH = ("matmul", "attention", "experts", "head")
# nothing of these is lost at the peak
LOST = (
    *("ramp", "head_ramp", "attention_block", "operands", "permutation", "expert_tile"),
    *("layer_s", "expert_layer_s", "expert_launch_s", "ring_launch_s", "fixed_s"),
)
SHARES = (*MATH, "memory", *LINKS, "overlap")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingEfficiency(LinkShares, Result):
    """The achieved share of each peak rate, and the overheads of a training step.

    Shares of the matrix unit's peak: `matmul` (the dense weights of layers), `experts` (their weights),
    `attention` (scores and weighted values) and `head` (the unembedding). `memory` is the share of the HBM
    bandwidth for what is only read and written: norms, activation functions and the optimizer. `torus`,
    `domain` (NVLink, or a full mesh), `network` and `dcn` are the shares of link bandwidth that collectives
    reach. `overlap` is the hidden share of the communication that a plan can hide.

    The overheads, all 0 at the peak:

    - `ramp`: attention runs at half of its rate if a sequence has so many tokens.
    - `head_ramp`: a head of H elements takes 1 + head_ramp / H times as long per FLOP, because it has as many
      exponentials as a larger head. The share `attention` is that of heads of 128 elements.
    - `attention_block`: an attention window is so many tokens longer, because kernels compute whole blocks.
    - `operands`: matmuls wait for this share of the bytes that they read and write (including conversions to
      narrower types), at the rate of `memory`.
    - `layer_s`: for each layer of a microbatch, once in the forward and twice in the backward pass.
    - `ring_launch_s`: for each transfer of keys and values in a ring. `fixed_s`: once per step.
    - `expert_tile`: each expert computes whole tiles of so many rows and columns, which adds half a tile of
      rows on average.
    - `permutation`: how often the copies of tokens are read or written to sort them by expert and back.
    - `expert_layer_s`, `expert_launch_s`: the time that the host takes for a layer with experts, and for each
      expert on a chip, to learn the number of tokens per expert and to launch the kernels. It is exposed as
      far as the chip has no other work to hide it.

    `expert_skew` says how unevenly tokens choose experts (`steps.expert_load`): all chips wait for the
    busiest one. None is a perfectly even load.
    """

    matmul: float = 1.0
    attention: float = 1.0  # of the rate of the activations' type
    experts: float = 1.0
    head: float = 1.0
    memory: float = 1.0  # of HBM's bytes/s
    overlap: float = 1.0  # times `Plan.overlap`
    ramp: float = 0.0  # tokens of a sequence
    operands: float = 0.0  # share of bytes
    layer_s: float = 0.0  # a layer and microbatch; the backward pass loses it twice
    head_ramp: float = 0.0  # elements of a head
    attention_block: float = 0.0  # tokens
    permutation: float = 0.0  # passes over the copies of tokens
    expert_tile: float = 0.0  # elements of each side
    expert_layer_s: float = 0.0  # of the host; the backward pass takes it twice
    expert_launch_s: float = 0.0  # an expert of a chip
    expert_skew: float | None = None  # None: an even load
    ring_launch_s: float = 0.0  # a step of a context-parallel ring
    fixed_s: float = 0.0  # a step
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
        """The same without the terms that depend on where experts are, for a lower bound over placements."""
        return replace(self, permutation=0.0, expert_tile=0.0, expert_launch_s=0.0, expert_skew=None)

    @property
    def shares(self) -> dict[str, float]:
        """The share of each class of operation."""
        return {name: getattr(self, name) for name in SHARES}

    @classmethod
    def flat(cls, share: float) -> "TrainingEfficiency":
        """The same share for everything that the matrix unit computes, and the peak for all else."""
        return cls(**dict.fromkeys(MATH, share), name=f"{percent(share)} of the matrix unit")

    def __str__(self) -> str:
        if set(self.shares.values()) == {1.0}:
            return f"{self.name}: everything at its documented peak"
        return f"{self.name}: " + ", ".join(f"{n} {percent(v)}" for n, v in self.shares.items() if v < 1)


PEAK = TrainingEfficiency()
