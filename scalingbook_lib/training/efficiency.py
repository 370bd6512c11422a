"""What share of its documented peak does each class of operation reach? One table, stated and dated.

Nothing here is a property of a model or of a run. Chapter: Training.
"""

from dataclasses import dataclass

from scalingbook_lib.steps.placement import LINKS, LinkShares
from scalingbook_lib.units import Result, percent

MATH = ("matmul", "attention", "experts", "head")
LOST = (
    "ramp",
    "operands",
    "layer_s",
    "expert_layer_s",
    "ring_launch_s",
    "fixed_s",
)  # nothing of these is lost at the peak
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
    tokens; a share `operands` of the bytes that products read and write (narrower types are written first)
    is waited for at the rate of `memory`; `layer_s` is lost with each layer of a microbatch, forward once
    and backward twice, `expert_layer_s` more where it has experts; `ring_launch_s` to start each transfer of
    a ring of keys and values; `fixed_s` once a step.
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
    expert_layer_s: float = 0.0
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
