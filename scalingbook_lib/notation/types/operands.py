"""Operands of an operation in JAX's explicit mode, and the texts that JAX's errors print for them."""

from dataclasses import dataclass

from scalingbook_lib.notation import Array, Mesh
from scalingbook_lib.notation.types import spec
from scalingbook_lib.units import Result

MESH = Mesh(X=2, Y=4)
TYPE = "bfloat16"


class Refusal(Exception):
    """An operation that JAX refuses: its error message, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Operands:
    """The sharded operands of an operation, its `out_sharding` if one is given, and the global sizes."""

    a: Array
    b: Array
    out: Array | None
    sizes: dict[str, int]

    def typed(self, array: Array) -> str:
        """The array's type as `jax.typeof` prints it."""
        return spec.typed(array, array.shape(**self.sizes), TYPE)

    def short(self, array: Array) -> str:
        """The array's type as some of JAX's errors abbreviate it: bf16[...]."""
        return spec.typed(array, array.shape(**self.sizes), spec.SHORT[TYPE])


@dataclass(frozen=True, slots=True)
class TypedResult(Result):
    """The resulting array, or None with JAX's error message and what to write instead."""

    array: Array | None
    words: str = ""
    instead: str = ""

    def __str__(self) -> str:
        return self.array.canonical() if self.array else f"JAX refuses: {self.words}"


def one(axes: tuple[str, ...]) -> str:
    """The axes of one dimension as a tuple: ('X',)."""
    return f"({spec.entry(axes)},)"


def each(array: Array) -> str:
    """The axes of all dimensions as a tuple: ('X', None)."""
    return f"({', '.join(spec.entry(dim.axes) for dim in array.dims)})"


def unordered(axes: tuple[str, ...]) -> str:
    """The axes of a partial sum: frozenset({'Y'})."""
    return f"frozenset({{{', '.join(map(repr, sorted(axes)))}}})"
