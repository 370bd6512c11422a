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
    """Achieved over peak, by class of operation.

    `matmul`: products with the layers' dense weights, `experts`: those with experts' weights, `attention`:
    scores and weighted values, `head`: the unembedding, all of the matrix unit's rate. `memory`: what is only
    read and written (norms, activation functions, the optimizer), of the HBM's rate. `torus`, `domain`
    (NVLink, or a full mesh), `network` and `dcn`: collectives, of the rate of these links. `overlap`: what
    is hidden of that which a plan can hide.

    What else real chips lose, nothing at the peak: attention has half of its rate at sequences of `ramp`
    tokens; a head of H elements takes 1 + `head_ramp` / H times as long per FLOP, because its exponentials
    do not get fewer, relative to the heads of 128 that `attention` is the share of; a window is
    `attention_block` tokens longer, because kernels compute whole blocks; a share `operands` of the bytes
    that products read and write (narrower types are written first) is waited for at the rate of `memory`;
    `layer_s` is lost with each layer of a microbatch, forward once and backward twice; `ring_launch_s` starts
    each transfer of a ring of keys and values; `fixed_s` is lost once a step.

    Of layers with experts: each expert computes whole tiles of `expert_tile` by as many elements, half a tile
    of rows too many on average; the copies of tokens are read or written `permutation` times to bring them
    into the order of their experts and back; the host takes `expert_layer_s`, and `expert_launch_s` for each
    expert of a chip, to learn how many tokens each expert has and to launch its kernels, which the chip waits
    for as far as its own work does not hide it. `expert_skew` is how much tokens prefer some experts
    (`steps.expert_load`): all chips wait for the busiest one. None is a perfectly even load.
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
        """The same without what depends on where experts are: a lower bound for every place of them."""
        return replace(self, permutation=0.0, expert_tile=0.0, expert_launch_s=0.0, expert_skew=None)

    @property
    def shares(self) -> dict[str, float]:
        """Every class with its share."""
        return {name: getattr(self, name) for name in SHARES}

    @classmethod
    def flat(cls, share: float) -> "TrainingEfficiency":
        """The same share for all that the matrix unit does, everything else at its peak."""
        return cls(**dict.fromkeys(MATH, share), name=f"{percent(share)} of the matrix unit")

    def __str__(self) -> str:
        if set(self.shares.values()) == {1.0}:
            return f"{self.name}: everything at its documented peak"
        return f"{self.name}: " + ", ".join(f"{n} {percent(v)}" for n, v in self.shares.items() if v < 1)


PEAK = TrainingEfficiency()
