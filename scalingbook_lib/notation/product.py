"""A matmul of two sharded arrays: its contracting, outer and batch dimensions.

In `A[I, J_X] · B[J_X, K] -> C[I, K]`, J is contracted and I and K are kept. A dimension that appears in all
three arrays is a batch dimension.
"""

from dataclasses import dataclass, field

from scalingbook_lib.notation.array import Array
from scalingbook_lib.notation.error import broken
from scalingbook_lib.units import Result


@dataclass(frozen=True, slots=True)
class Product(Result):
    """Two sharded arrays, multiplied and summed over the dimensions that the result lacks.

    A result that needs communication is legal: `sharded_matmul` finds how to compute it. Raises a
    NotationError if a dimension appears in the result only, or in one operand only.
    """

    a: Array
    b: Array
    c: Array
    # the text as it was read; replace() drops it
    text: str = field(default="", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._check_kept("a", self.a, self.b)
        self._check_kept("b", self.b, self.a)
        for k, name in enumerate(self.c.names):
            if name not in self.names:
                raise broken("result-only-dim", str(self), None, f"c.dim.{k}", name=name, array=self.c.name)

    def _check_kept(self, label: str, operand: Array, other: Array) -> None:
        """Raise a NotationError if an operand's dimension is in neither the other operand nor the result."""
        for k, name in enumerate(operand.names):
            if name not in other.names + self.c.names:
                words = {"name": name, "array": operand.name, "result": self.c.name}
                raise broken("lost-dim", str(self), None, f"{label}.dim.{k}", **words)

    def __str__(self) -> str:
        return self.text or self.canonical()

    def canonical(self) -> str:
        """The matmul in the book's spelling."""
        return f"{self.a.canonical()} · {self.b.canonical()} -> {self.c.canonical()}"

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """Both operands and the result."""
        return self.a, self.b, self.c

    @property
    def names(self) -> tuple[str, ...]:
        """Every dimension of the operands, each listed once."""
        return tuple(dict.fromkeys(self.a.names + self.b.names))

    @property
    def axes(self) -> tuple[str, ...]:
        """Every mesh axis that any of the three arrays uses, each listed once."""
        return tuple(dict.fromkeys(axis for x in self.arrays for axis in x.axes + x.partial))

    @property
    def contracting(self) -> tuple[str, ...]:
        """The contracting dimensions, which are in both operands and not in the result."""
        both = [name for name in self.a.names if name in self.b.names]
        return tuple(name for name in both if name not in self.c.names)
