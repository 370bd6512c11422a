"""What share of its documented peak does each class of operation reach? One table, stated and dated.

Nothing here is a property of a model or of a run. Chapter: Training.
"""

from dataclasses import dataclass, fields

from scalingbook_lib.told import Told
from scalingbook_lib.units import percent

MATH = ("matmul", "attention", "experts", "head")
LINKS = ("torus", "domain", "network", "dcn")
_WORDS = {"name", "source"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Efficiency(Told):
    """Achieved over peak, by class of operation.

    `matmul`: products with the layers' dense weights, `experts`: those with experts' weights, `attention`:
    scores and weighted values, `head`: the unembedding, all of the matrix unit's rate. `memory`: what is only
    read and written (norms, activation functions, the optimizer), of the HBM's rate. `torus`, `domain`
    (NVLink, or a full mesh), `network` and `dcn`: collectives, of the rate of these links. `fixed_s` is lost
    once a step.
    """

    matmul: float = 1.0
    attention: float = 1.0
    experts: float = 1.0
    head: float = 1.0
    memory: float = 1.0
    torus: float = 1.0
    domain: float = 1.0
    network: float = 1.0
    dcn: float = 1.0
    fixed_s: float = 0.0
    name: str = "peak"
    source: str = ""

    def __post_init__(self) -> None:
        for name, value in self.shares.items():
            if not 0 < value <= 1:
                raise ValueError(f"{name}={value}: write a share of the peak, above 0 and at most 1")
        if not self.fixed_s >= 0:
            raise ValueError(f"fixed_s={self.fixed_s}: write a time of at least 0")

    @property
    def shares(self) -> dict[str, float]:
        """Every class with its share."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _WORDS | {"fixed_s"}}

    @classmethod
    def flat(cls, share: float, name: str = "") -> "Efficiency":
        """The same share for all that the matrix unit does, everything else at its peak."""
        return cls(**dict.fromkeys(MATH, share), name=name or f"{percent(share)} of the matrix unit")

    def __str__(self) -> str:
        if set(self.shares.values()) == {1.0}:
            return f"{self.name}: everything at its documented peak"
        return f"{self.name}: " + ", ".join(f"{n} {percent(v)}" for n, v in self.shares.items() if v < 1)


PEAK = Efficiency()
