"""Which numbers does a narrow format have, how far off does it write others, in how many bytes?

An `Element` is a ruler: its marks are in proportion (a float) or equally far apart (an integer). A `Format`
moves the ruler with a scale, one for the whole tensor or one for each block. Chapter: Smaller numbers.

>>> print(NVFP4)
NVFP4: E2M1, 15 numbers up to 6, a scale for each 16; 0.5625 bytes an element
>>> NVFP4.written([0.1, 3.2, -6])
[0.0, 3.0, -6.0]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import copysign, floor, frexp, log2, sqrt
from random import Random

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import BF16, DType, Result, count

_POWER_BITS = 8  # of a scale that is a power of two (E8M0)


@dataclass(frozen=True, slots=True)
class Element(Result):
    """A number by its bits: a sign, an exponent (none: an integer), a mantissa."""

    name: str
    exponent: int
    mantissa: int
    largest: float

    @property
    def bits(self) -> int:
        """All of them."""
        return 1 + self.exponent + self.mantissa  # the sign is one

    @property
    def smallest(self) -> float:
        """The first mark above zero."""
        # bias 2^(e-1) - 1: the least normal number is 2^(1 - bias), a subnormal step 2^-m of it
        return 2.0 ** (2 - 2 ** (self.exponent - 1) - self.mantissa) if self.exponent else 1.0

    @property
    def numbers(self) -> int:
        """How many different finite numbers there are."""
        return 2 * len(self.marks) + 1  # both signs, and zero

    @property
    def marks(self) -> tuple[float, ...]:
        """Every number above zero; of at most eight bits."""
        if self.bits > 8:
            raise ValueError(f"{self.name} has too many numbers to list; ask for its `step` at one")
        found, x = [], 0.0
        while x < self.largest:
            x += self.step(x)
            found.append(x)
        return tuple(found)

    def step(self, x: float) -> float:
        """From the mark at or below |x| to the next."""
        if not self.exponent:
            return 1.0
        # 2^m marks between two powers of two; below the least normal number, equal steps
        return max(self.smallest, 2.0 ** (frexp(abs(x))[1] - 1 - self.mantissa)) if x else self.smallest

    def nearest(self, x: float) -> float:
        """The mark next to x, of two the even one; beyond the end of the ruler, the end."""
        step = self.step(x)
        # Python rounds halves to even, as IEEE 754 does
        return copysign(min(round(abs(x) / step) * step, self.largest), x)

    def stochastic(self, x: float, chance: Random) -> float:
        """The mark below or above, by chance, so that the mean over many draws is x."""
        step = self.step(x)
        return min(max(floor(x / step + chance.random()) * step, -self.largest), self.largest)

    def __str__(self) -> str:
        kind = "equal steps" if not self.exponent else f"{self.exponent} bits of exponent"
        return f"{self.name}: {self.bits} bits, {kind}, {self.mantissa} of mantissa, up to {self.largest:g}"


# OCP's 8-bit floating point (2023) and microscaling formats (2023); IEEE 754's for the wide ones
E4M3, E5M2 = Element("E4M3", 4, 3, 448.0), Element("E5M2", 5, 2, 57_344.0)
E2M3, E3M2, E2M1 = Element("E2M3", 2, 3, 7.5), Element("E3M2", 3, 2, 28.0), Element("E2M1", 2, 1, 6.0)
INT8_ELEMENT, INT4_ELEMENT = Element("int8", 0, 7, 127.0), Element("int4", 0, 3, 7.0)
BF16_ELEMENT = Element("bf16", 8, 7, (2 - 2**-7) * 2.0**127)
FP16_ELEMENT = Element("fp16", 5, 10, 65_504.0)
FP32_ELEMENT = Element("fp32", 8, 23, (2 - 2**-23) * 2.0**127)
ELEMENTS = {
    e.name: e for e in (BF16_ELEMENT, FP16_ELEMENT, E4M3, E5M2, INT8_ELEMENT, E3M2, E2M3, E2M1, INT4_ELEMENT)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Result):
    """An element and who shares a scale: `block` of them in a row, or all (0).

    `scale`: how the scale itself is written; None is a power of two in 8 bits. One of 8 bits has a second
    one above it, in fp32 for the tensor.
    """

    name: str
    element: Element
    block: int = 0
    scale: Element | None = FP32_ELEMENT

    @property
    def bytes(self) -> float:
        """Of an element, with its part of the block's scale: (bits + s/q) / 8."""
        scale = self.scale.bits if self.scale else _POWER_BITS
        return (self.element.bits + (scale / self.block if self.block else 0)) / 8

    @property
    def dtype(self) -> DType:
        """The same where bytes are counted."""
        return DType(self.name, self.bytes)

    def written(self, values: Sequence[float]) -> list[float]:
        """The values as they are read again."""
        most = max(map(abs, values), default=0.0)
        q = self.block or len(values) or 1
        blocks = (values[k : k + q] for k in range(0, len(values), q))
        return [x for block in blocks for x in self._block(block, most)]

    def _block(self, block: Sequence[float], most: float) -> list[float]:
        step = self._scale(max(map(abs, block)), most)
        return [step * self.element.nearest(x / step) if step else 0.0 for x in block]

    def _scale(self, most: float, of_tensor: float) -> float:
        """What brings the block's largest value to the end of the ruler, or near it."""
        if not most:
            return 0.0
        if self.scale is None:  # OCP MX 1.0, 6.3: what lies beyond the end is then cut
            return 2.0 ** (floor(log2(most)) - floor(log2(self.element.largest)))
        if self.scale.bits > 8:
            return most / self.element.largest
        # so that the largest block's scale is the largest that its type has
        outer = of_tensor / (self.element.largest * self.scale.largest)
        return outer * self.scale.nearest(most / self.element.largest / outer)

    def __str__(self) -> str:
        shared = f"a scale for each {count(self.block)}" if self.block else "one scale for the tensor"
        e = self.element
        what = f"{e.numbers:,} numbers" if e.bits <= 8 else f"{e.bits} bits"
        return (
            f"{self.name}: {e.name}, {what} up to {e.largest:g}, {shared}; {self.bytes:.7g} bytes an element"
        )


MXFP8 = Format(name="MXFP8", element=E4M3, block=32, scale=None)
MXFP6 = Format(name="MXFP6", element=E2M3, block=32, scale=None)
MXFP4 = Format(name="MXFP4", element=E2M1, block=32, scale=None)
NVFP4 = Format(name="NVFP4", element=E2M1, block=16, scale=E4M3)
FP8_ROWS = Format(name="fp8 1x128", element=E4M3, block=128)  # DeepSeek-V3's activations
FP8_TILES = Format(name="fp8 128x128", element=E4M3, block=128 * 128)  # and its weights
INT8_256 = Format(name="int8 by 256", element=INT8_ELEMENT, block=256)  # of 8-bit optimizers
FORMATS = {f.name: f for f in (MXFP8, MXFP6, MXFP4, NVFP4, FP8_ROWS, FP8_TILES, INT8_256)}


def error(values: Sequence[float], written: Iterable[float]) -> float:
    """The root of the mean square of what was changed, over that of the values."""
    off = sum((x - y) ** 2 for x, y in zip(values, written, strict=True))
    return sqrt(off / sum(x * x for x in values))


def added(
    element: Element, start: float, update: float, steps: int, chance: Random | None = None
) -> list[float]:
    """A sum kept in that type, after each of the steps: to the nearest mark, or by chance."""
    sums = [start]
    for _ in range(steps):
        x = sums[-1] + update
        sums.append(element.stochastic(x, chance) if chance else element.nearest(x))
    return sums


def computed_in(chip: Chip, dtype: DType) -> DType:
    """In which type the chip multiplies what is stored so: itself where that is faster, else bf16."""
    return dtype if chip.rates().get(dtype.name, 0.0) > chip.flops_per_s(BF16) else BF16
