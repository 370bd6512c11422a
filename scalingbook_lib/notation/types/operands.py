"""What does an operation of JAX's explicit mode see? Its operands' types; and how it words a refusal."""

from dataclasses import dataclass

from scalingbook_lib.notation import Array, Mesh
from scalingbook_lib.notation.types import spec
from scalingbook_lib.units import Result

MESH = Mesh(X=2, Y=4)
TYPE = "bfloat16"


class Refusal(Exception):
    """What JAX says, and what to write instead: its two arguments."""


@dataclass(frozen=True, slots=True)
class Operands:
    """The sharded operands of an operation, the `out_sharding` where one is given, and the global sizes."""

    a: Array
    b: Array
    out: Array | None
    sizes: dict[str, int]

    def typed(self, array: Array) -> str:
        """What `jax.typeof` prints for it."""
        return spec.typed(array, array.shape(**self.sizes), TYPE)

    def short(self, array: Array) -> str:
        """The same as some of JAX's errors write it: bf16[...]."""
        return spec.typed(array, array.shape(**self.sizes), spec.SHORT[TYPE])


@dataclass(frozen=True, slots=True)
class TypedResult(Result):
    """The array that comes out, or None with JAX's words and what to write instead."""

    array: Array | None
    words: str = ""
    instead: str = ""

    def __str__(self) -> str:
        return self.array.canonical() if self.array else f"JAX refuses: {self.words}"


def one(axes: tuple[str, ...]) -> str:
    """A tuple of one dimension: ('X',)."""
    return f"({spec.entry(axes)},)"


def each(array: Array) -> str:
    """A tuple of all dimensions: ('X', None)."""
    return f"({', '.join(spec.entry(dim.axes) for dim in array.dims)})"


def unordered(axes: tuple[str, ...]) -> str:
    """The axes of a partial sum: frozenset({'Y'})."""
    return f"frozenset({{{', '.join(map(repr, sorted(axes)))}}})"
