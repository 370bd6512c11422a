"""FLOPs and elements of a product of two arrays (einsum).

Every pair of numbers that meet costs one multiply and, where an index is summed over, one add. So the FLOPs
of a contraction are 2 · the sizes of all distinct indices, each counted once, and its gradient is two more
products over the same indices. Chapter: Transformers.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from scalingbook_lib.units import BF16, DType, Result, count, si


class EinsumError(ValueError):
    """Raised for a text that is not a product of two arrays, or sizes that do not fit it."""


@dataclass(frozen=True)
class Einsum(Result):
    """left · right → out, an index a letter; `sizes` has one size for each letter."""

    left: str
    right: str
    out: str
    sizes: tuple[tuple[str, int], ...]

    @cached_property
    def size(self) -> dict[str, int]:
        """The size of every index."""
        return dict(self.sizes)

    @property
    def text(self) -> str:
        """The product as text: 'BTD,DF->BTF'."""
        return f"{self.left},{self.right}->{self.out}"

    @property
    def contracting(self) -> str:
        """The indices of both inputs that the output lacks: they are summed over."""
        # einsum's three roles: an index is in two of the three arrays, or in all
        return "".join(i for i in self.left if i in self.right and i not in self.out)

    @property
    def batching(self) -> str:
        """The indices of both inputs and the output: one product for each of their values."""
        return "".join(i for i in self.out if i in self.left and i in self.right)

    @property
    def free(self) -> str:
        """The indices of one input and the output."""
        return "".join(i for i in self.out if (i in self.left) != (i in self.right))

    def role(self, index: str) -> str:
        """'contracting', 'batching' or 'free'."""
        roles = {"contracting": self.contracting, "batching": self.batching, "free": self.free}
        for name, indices in roles.items():
            if index in indices and index:
                return name
        raise EinsumError(
            f"{index!r} is not an index of {self.text!r}; its indices are {', '.join(self.size)}"
        )

    @property
    def multiplies(self) -> int:
        """The number of multiplies: the product of the sizes of all distinct indices."""
        return math.prod(self.size.values())  # as each is one loop of the program that does it

    @property
    def flops(self) -> int:
        """Forward FLOPs: one multiply for every pair, and one add where something is summed."""
        # a sum of n numbers has n - 1 adds; nobody counts the one that is missing
        return self.multiplies * (2 if self.contracting else 1)

    @property
    def backward(self) -> "tuple[Einsum, Einsum]":
        """The gradients of the two inputs, each a product of the output's gradient and the other input.

        The letters are the same three sets, so the multiplies are the same; a gradient has adds even where
        the product itself sums nothing.
        """
        return (
            Einsum(self.out, self.right, self.left, self.sizes),  # dX = dY · Wᵀ
            Einsum(self.left, self.out, self.right, self.sizes),  # dW = Xᵀ · dY
        )

    @property
    def backward_flops(self) -> int:
        """FLOPs of both gradients: twice the forward FLOPs where both inputs have a free index."""
        # 4 FLOPs for 2 forward ("The backward pass")
        return sum(gradient.flops for gradient in self.backward)

    @property
    def training_flops(self) -> int:
        """Forward and backward FLOPs: three times the forward FLOPs where both inputs have a free index."""
        return self.flops + self.backward_flops

    def elements(self, indices: str) -> int:
        """The number of elements of an array with these indices."""
        return math.prod(self.size[i] for i in indices)

    @property
    def out_elements(self) -> int:
        """The number of elements of the output."""
        return self.elements(self.out)

    @property
    def total_elements(self) -> int:
        """The number of elements of both inputs and the output."""
        # the least: each array crosses the memory once
        return sum(map(self.elements, (self.left, self.right, self.out)))

    def nbytes(self, dtype: DType = BF16) -> float:
        """The bytes of both inputs read and the output written, all of one type."""
        return dtype.bytes * self.total_elements

    def intensity(self, dtype: DType = BF16) -> float:
        """FLOPs per byte that is read or written."""
        return self.flops / self.nbytes(dtype)  # at best: each array crosses the memory once

    def __str__(self) -> str:
        roles = (("contracting", self.contracting), ("batching", self.batching), ("free", self.free))
        named = ", ".join(f"{name} {', '.join(indices)}" for name, indices in roles if indices)
        return f"{self.text}: {si(self.flops, 'FLOPs')}, {count(self.total_elements)} elements ({named})"


def einsum(text: str, **sizes: int) -> Einsum:
    """The product of two arrays of a text, as in `einsum("BTD,DF->BTF", B=2, T=8, D=16, F=64)`.

    Letters may be of either case, in the text and in the sizes; 'k' and 'K' are two indices only where the
    text has both. EinsumError where the text or the sizes are wrong.
    """
    left, right, out = _read(text)
    letters = dict.fromkeys(left + right)
    known = {i: _size(i, sizes, letters, text) for i in letters}
    meant = {*letters, *(i.swapcase() for i in letters)}
    if unused := [name for name in sizes if name not in meant]:
        raise EinsumError(
            f"{', '.join(unused)} is not an index of {text!r}; its indices are {', '.join(letters)}"
        )
    return Einsum(left, right, out, tuple(known.items()))


def _read(text: str) -> tuple[str, str, str]:
    """The indices of the two inputs and of the output."""
    inputs, arrow, out = "".join(text.split()).replace("→", "->").partition("->")
    arrays = inputs.split(",")
    if not arrow or len(arrays) != 2:
        raise EinsumError(
            f"{text!r} is not a product of two arrays; write two inputs and an output, as in 'BTD,DF->BTF'"
        )
    left, right = arrays
    for indices in (left, right, out):
        _check_indices(indices, text)
    if unknown := [i for i in out if i not in left + right]:
        raise EinsumError(f"the output of {text!r} has {unknown[0]}, which no input has; leave it out")
    # an index of one input alone would be a sum over that array, which no product needs
    if alone := [i for i in left + right if i not in out and (i in left) != (i in right)]:
        raise EinsumError(
            f"{alone[0]} in {text!r} is in one input alone; sum over it before, or keep it in the output"
        )
    return left, right, out


def _check_indices(indices: str, text: str) -> None:
    if indices and not (indices.isascii() and indices.isalpha()):
        raise EinsumError(
            f"{indices!r} in {text!r} is not a list of indices; write a letter for each, as in 'BTD'"
        )
    if twice := [i for i in indices if indices.count(i) > 1]:
        raise EinsumError(f"{indices!r} in {text!r} has {twice[0]} twice; give each dimension its own letter")


def _size(index: str, sizes: dict[str, int], letters: dict[str, None], text: str) -> int:
    """The size of an index, by its letter or, where the text has it in one case alone, by the other case."""
    other = index.swapcase()
    name = index if index in sizes or other in letters else other
    if name not in sizes:
        raise EinsumError(f"{text!r} needs a size for {index}; write {index}=...")
    size = sizes[name]
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise EinsumError(f"{index} = {size!r} in {text!r} is no size; write a whole number of at least 1")
    return size
