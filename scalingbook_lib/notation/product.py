"""Which dimensions does a product contract, keep and batch over?

`A[I, J_X] · B[J_X, K] -> C[I, K]`: J is contracted, I and K are kept. A dimension in all three arrays is a batch.
"""

from dataclasses import dataclass, field

from ..told import Told
from .array import Array
from .error import NotationError
from .mesh import Mesh


@dataclass(frozen=True, slots=True)
class Product(Told):
    """Two sharded arrays, multiplied and summed over what the result does not have.

    A result that the operands cannot give without communication is legal: how to get there is a strategy.
    """

    a: Array
    b: Array
    c: Array
    text: str = field(default="", init=False, compare=False, repr=False)  # as it was read; lost by replace()

    def __post_init__(self) -> None:
        for label, operand in (("a", self.a), ("b", self.b)):
            for k, name in enumerate(operand.names):
                if name not in self.c.names and name not in (self.b if label == "a" else self.a).names:
                    raise self._lost(operand, name, f"{label}.dim.{k}")
        for k, name in enumerate(self.c.names):
            if name not in self.a.names + self.b.names:
                broke = f"dimension {name} of the result {self.c.name} is in neither {self.a.name} nor {self.b.name}"
                raise NotationError(
                    "result-only-dim",
                    str(self),
                    broke,
                    f"take {name} out of {self.c.name}",
                    part=f"c.dim.{k}",
                )

    def _lost(self, operand: Array, name: str, part: str) -> NotationError:
        broke = f"dimension {name} is only in {operand.name}, so it cannot be summed away"
        return NotationError(
            "lost-dim",
            str(self),
            broke,
            f"keep {name} in {self.c.name}, or give it to both operands",
            part=part,
        )

    def __str__(self) -> str:
        return self.text or self.canonical()

    def canonical(self) -> str:
        """The one way this product is written in the book."""
        return f"{self.a.canonical()} · {self.b.canonical()} -> {self.c.canonical()}"

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """Both operands and the result."""
        return self.a, self.b, self.c

    @property
    def names(self) -> tuple[str, ...]:
        """Every dimension, once."""
        return tuple(dict.fromkeys(self.a.names + self.b.names))

    @property
    def axes(self) -> tuple[str, ...]:
        """Every mesh axis that any of the three arrays uses, once."""
        return tuple(dict.fromkeys(axis for x in self.arrays for axis in x.axes + x.partial))

    @property
    def contracting(self) -> tuple[str, ...]:
        """The dimensions that are summed over: in both operands, not in the result."""
        return tuple(n for n in self.a.names if n in self.b.names and n not in self.c.names)

    @property
    def batch(self) -> tuple[str, ...]:
        """The dimensions of both operands and the result."""
        return tuple(n for n in self.a.names if n in self.b.names and n in self.c.names)

    @property
    def kept_a(self) -> tuple[str, ...]:
        """The dimensions of the result that only the first operand has."""
        return tuple(n for n in self.a.names if n not in self.b.names)

    @property
    def kept_b(self) -> tuple[str, ...]:
        """The dimensions of the result that only the second operand has."""
        return tuple(n for n in self.b.names if n not in self.a.names)

    @property
    def kept(self) -> tuple[str, ...]:
        """The dimensions of the result that only one operand has."""
        return self.kept_a + self.kept_b

    def check(self, mesh: Mesh) -> None:
        """Raise NotationError where an array uses an axis that the mesh does not have."""
        for array in self.arrays:
            array.check(mesh)
