"""Low-precision number formats: their representable values, rounding errors and bytes per element.

An `Element` is a floating-point type (spacing proportional to the value) or an integer type (equal spacing).
A `Format` multiplies elements by a scale, one for the whole tensor or one for each block. Chapter: Low
precision.

>>> print(NVFP4)
NVFP4: E2M1, 15 numbers up to 6, a scale for each 16; 0.5625 bytes per element
>>> NVFP4.quantized([0.1, 3.2, -6])
[0.0, 3.0, -6.0]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import copysign, floor, frexp, log2, sqrt
from random import Random

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import BF16, DType, Result, count, matrix_unit_dtype

_POWER_BITS = 8  # bits of a power-of-two scale (E8M0)


@dataclass(frozen=True, slots=True)
class Element(Result):
    """A number type by its bits: a sign, `exponent` bits (0 for an integer) and `mantissa` bits."""

    name: str
    exponent: int
    mantissa: int
    largest: float

    @property
    def bits(self) -> int:
        """The width in bits: sign, exponent and mantissa."""
        return 1 + self.exponent + self.mantissa  # one sign bit

    @property
    def smallest(self) -> float:
        """The smallest positive value: a subnormal 2^(2 - 2^(e-1) - m), or 1 for an integer."""
        # the bias is 2^(e-1) - 1, the least normal number 2^(1 - bias), and the subnormal step 2^-m of that
        return 2.0 ** (2 - 2 ** (self.exponent - 1) - self.mantissa) if self.exponent else 1.0

    @property
    def numbers(self) -> int:
        """The number of distinct finite values."""
        return 2 * len(self.positive_values) + 1  # both signs, and zero

    @property
    def positive_values(self) -> tuple[float, ...]:
        """Every positive value, ascending. Raises a ValueError for a type of more than eight bits."""
        if self.bits > 8:
            raise ValueError(f"{self.name} has too many values to list; use `ulp` at a value")
        found, x = [], 0.0
        while x < self.largest:
            x += self.ulp(x)
            found.append(x)
        return tuple(found)

    def ulp(self, x: float) -> float:
        """The unit in the last place: the distance from the value at or below |x| to the next one."""
        if not self.exponent:
            return 1.0
        # 2^m values per binade; equal steps below the least normal number
        return max(self.smallest, 2.0 ** (frexp(abs(x))[1] - 1 - self.mantissa)) if x else self.smallest

    def nearest(self, x: float) -> float:
        """The representable value nearest to x, ties to even; values beyond the range saturate."""
        step = self.ulp(x)
        # Python rounds halves to even, as IEEE 754 does
        return copysign(min(round(abs(x) / step) * step, self.largest), x)

    def stochastic(self, x: float, rng: Random) -> float:
        """The value above or below x, chosen at random so that the mean over many draws of `rng` is x."""
        step = self.ulp(x)
        return min(max(floor(x / step + rng.random()) * step, -self.largest), self.largest)

    def __str__(self) -> str:
        kind = "equal steps" if not self.exponent else f"{self.exponent} bits of exponent"
        return (
            f"{self.name}: {self.bits} bits, {kind}, {self.mantissa} bits of mantissa, up to {self.largest:g}"
        )


# OCP's 8-bit floating point (2023) and microscaling formats (2023); IEEE 754's for the wider ones
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
    """An element type and how its scale is shared: by `block` consecutive elements, or by all of them (0).

    `scale` is the type of the scale itself; None is a power of two in 8 bits (E8M0). An 8-bit scale type has
    a second scale above it, in fp32 for the whole tensor.
    """

    name: str
    element: Element
    block: int = 0
    scale: Element | None = FP32_ELEMENT

    @property
    def bytes(self) -> float:
        """The bytes per element, including its share of the block's scale: (bits + s/q) / 8."""
        scale = self.scale.bits if self.scale else _POWER_BITS
        return (self.element.bits + (scale / self.block if self.block else 0)) / 8

    @property
    def dtype(self) -> DType:
        """This format as a `DType`, for formulas that count bytes."""
        return DType(self.name, self.bytes)

    def quantized(self, values: Sequence[float]) -> list[float]:
        """The values after quantization and dequantization."""
        most = max(map(abs, values), default=0.0)
        q = self.block or len(values) or 1
        blocks = (values[k : k + q] for k in range(0, len(values), q))
        return [x for block in blocks for x in self._block(block, most)]

    def _block(self, block: Sequence[float], most: float) -> list[float]:
        scale = self._scale(max(map(abs, block)), most)
        return [scale * self.element.nearest(x / scale) if scale else 0.0 for x in block]

    def _scale(self, most: float, of_tensor: float) -> float:
        """The scale that maps the block's largest value to the largest of the element type, or near it."""
        if not most:
            return 0.0
        if self.scale is None:  # OCP MX 1.0, 6.3: values beyond the range are then clipped
            return 2.0 ** (floor(log2(most)) - floor(log2(self.element.largest)))
        if self.scale.bits > 8:
            return most / self.element.largest
        # so that the largest block's scale is the largest value of its type
        outer = of_tensor / (self.element.largest * self.scale.largest)
        return outer * self.scale.nearest(most / self.element.largest / outer)

    def __str__(self) -> str:
        shared = f"a scale for each {count(self.block)}" if self.block else "one scale for the tensor"
        e = self.element
        what = f"{e.numbers:,} numbers" if e.bits <= 8 else f"{e.bits} bits"
        return (
            f"{self.name}: {e.name}, {what} up to {e.largest:g}, {shared}; {self.bytes:.7g} bytes per element"
        )


MXFP8 = Format(name="MXFP8", element=E4M3, block=32, scale=None)
MXFP6 = Format(name="MXFP6", element=E2M3, block=32, scale=None)
MXFP4 = Format(name="MXFP4", element=E2M1, block=32, scale=None)
NVFP4 = Format(name="NVFP4", element=E2M1, block=16, scale=E4M3)
FP8_ROWS = Format(name="fp8 1x128", element=E4M3, block=128)  # DeepSeek-V3's activations
FP8_TILES = Format(name="fp8 128x128", element=E4M3, block=128 * 128)  # and its weights
INT8_256 = Format(name="int8 by 256", element=INT8_ELEMENT, block=256)  # of 8-bit optimizers
FORMATS = {f.name: f for f in (MXFP8, MXFP6, MXFP4, NVFP4, FP8_ROWS, FP8_TILES, INT8_256)}


def relative_rms_error(values: Sequence[float], written: Iterable[float]) -> float:
    """The root mean square of the rounding errors over that of the values."""
    off = sum((x - y) ** 2 for x, y in zip(values, written, strict=True))
    return sqrt(off / sum(x * x for x in values))


def accumulate(
    element: Element, start: float, update: float, steps: int, rng: Random | None = None
) -> list[float]:
    """The running sum kept in `element` after each step.

    It is rounded to nearest, or stochastically if `rng` is given.
    """
    sums = [start]
    for _ in range(steps):
        x = sums[-1] + update
        sums.append(element.stochastic(x, rng) if rng else element.nearest(x))
    return sums


def compute_dtype(chip: Chip, dtype: DType) -> DType:
    """The type in which the chip multiplies stored operands: `dtype` if faster than bf16, else bf16."""
    multiplied = matrix_unit_dtype(dtype)
    return multiplied if chip.rates().get(multiplied.name, 0.0) > chip.flops_per_s(BF16) else BF16
