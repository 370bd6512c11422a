"""How a file stores its weights: `quantization_config` read into formats, and the bytes of every part.

A `QuantizedFormat` is a number of bits with its block scales; a `Scheme` says which matrices have which
format, by the module names that published files use. `storage` counts the bytes. What a file does not
quantize keeps its base type: embeddings, norms, biases, routers and, unless it says otherwise, the
unembedding.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

from scalingbook_lib.models.modules import matches, names_of
from scalingbook_lib.models.parts import Weight
from scalingbook_lib.units import BF16, DTYPES, DType, Result, binary, count

if TYPE_CHECKING:
    from scalingbook_lib.models.transformer import Transformer

BASES = {"bf16": 2, "fp16": 2, "fp32": 4}


@dataclass(frozen=True, slots=True)
class QuantizedFormat:
    """Elements of `bits`, with a scale of `scale_bytes` for each block [rows, columns] of a matrix.

    A block of 0 rows or columns is as long as the matrix. `matrix_bytes` are further scales of each matrix.
    """

    name: str
    bits: int
    block: tuple[int, int] | None = None
    scale_bytes: float = 0.0
    matrix_bytes: float = 0.0

    def nbytes(self, rows: int, columns: int) -> float:
        """The bytes of a matrix of so many rows (outputs) and columns (inputs)."""
        scales = 0.0
        if self.block:
            high, wide = (size or whole for size, whole in zip(self.block, (rows, columns), strict=True))
            scales = self.scale_bytes * ceil(rows / high) * ceil(columns / wide)
        return rows * columns * self.bits / 8 + scales + self.matrix_bytes


@dataclass(frozen=True, slots=True)
class Scheme:
    """The formats of a file: `named` ones by module, `default` for the other matrices but those to `skip`.

    `parts` are the only parts that the default covers, where it does not cover all. `kv` is the type of the
    KV cache. `inputs` is the type to which the inputs of quantized matrices are cast, and in which they are
    multiplied; "" where only the weights are quantized, and kernels convert them.
    """

    method: str
    default: QuantizedFormat | None
    skip: tuple[str, ...] = ()
    named: tuple[tuple[str, QuantizedFormat], ...] = ()
    parts: tuple[str, ...] = ()
    kv: str | None = None
    inputs: str = ""

    def format_of(self, names: tuple[str, ...], part: str, layer: int | None) -> QuantizedFormat | None:
        """The format of a matrix with these possible module names; None where it keeps the base type."""
        for pattern, own in _relevant(self.named, layer):
            if any(matches(pattern, name) for name in names):
                return own
        if any(matches(pattern, name) for pattern, _ in _relevant(self._skipped, layer) for name in names):
            return None
        return self.default if not self.parts or part in self.parts else None

    @property
    def _skipped(self) -> tuple[tuple[str, QuantizedFormat | None], ...]:
        return tuple((pattern, None) for pattern in self.skip)


@lru_cache(maxsize=512)
def _relevant(
    patterns: tuple[tuple[str, QuantizedFormat | None], ...], layer: int | None
) -> tuple[tuple[str, QuantizedFormat | None], ...]:
    """The patterns that can mean a module of this layer: a file may list thousands of modules by name."""
    general, own = _by_layer(patterns)
    return (*general, *own.get(layer, ()))


@lru_cache(maxsize=8)
def _by_layer(
    patterns: tuple[tuple[str, QuantizedFormat | None], ...],
) -> tuple[
    list[tuple[str, QuantizedFormat | None]], dict[int | None, list[tuple[str, QuantizedFormat | None]]]
]:
    general: list[tuple[str, QuantizedFormat | None]] = []
    own: dict[int | None, list[tuple[str, QuantizedFormat | None]]] = {}
    for pattern, form in patterns:
        number = None if pattern.startswith("re:") else re.search(r"layers[.](\d+)([.]|$)", pattern)
        (own.setdefault(int(number[1]), []) if number else general).append((pattern, form))
    return general, own


@dataclass(frozen=True, slots=True)
class WeightStorage(Result):
    """The bytes of a file's weights by part, and its elements by format."""

    name: str
    parts: tuple[tuple[str, float], ...]
    formats: tuple[tuple[str, int], ...]

    @property
    def nbytes(self) -> float:
        """The bytes of all weights, their scales included."""
        return sum(n for _, n in self.parts)

    def part(self, name: str) -> float:
        """The bytes of one part; 0 where there is none."""
        return dict(self.parts).get(name, 0.0)

    def __str__(self) -> str:
        formats = ", ".join(f"{count(n)} in {name}" for name, n in self.formats)
        return f"{self.name}: {binary(self.nbytes)} of weights as stored ({formats})"


def storage(model: "Transformer") -> WeightStorage:
    """The bytes of the weights as the file stores them; all in its base type where it quantizes none."""
    nbytes, formats = defaultdict[str, float](float), Counter[str]()
    base = model.base_dtype
    for w, layers in placed(model):
        rows, columns = matrix(w)
        kept = 0
        for layer in layers:
            form = _format(model.quantization, w, layer)
            if form is None:
                kept += 1
                continue
            nbytes[w.part] += w.copies * form.nbytes(rows, columns)
            formats[form.name] += w.params
        nbytes[w.part] += kept * w.params * BASES[base]
        formats[base] += kept * w.params
    order = {part: nbytes[part] for part in model.by_part}
    return WeightStorage(model.name, tuple(order.items()), tuple((f, n) for f, n in formats.items() if n))


def _format(scheme: Scheme | None, w: Weight, layer: int | None) -> QuantizedFormat | None:
    if scheme is None or not w.matmul:
        return None
    if w.name == "unembed":
        return scheme.format_of(("lm_head", "head"), w.part, None)
    names = () if layer is None else names_of(w.name, layer)
    return scheme.format_of(names, w.part, layer) if names else None


def matrix(w: Weight) -> tuple[int, int]:
    """The rows (outputs) and columns (inputs) of a weight as a matrix."""
    if len(w.shape) < 2:
        return 1, w.size
    inputs = w.size // w.shape[-1] if w.name in ("o", "linear o", "delta o") else w.shape[0]
    return w.size // inputs, inputs


def placed(model: "Transformer") -> Iterator[tuple[Weight, tuple[int | None, ...]]]:
    """Each weight as one layer has it, with the layers that have it; None for what is outside of them."""
    inside = {w.name for block in model.sublayers for w in block.weights}
    for w in model.weights():
        if w.name not in inside and w.copies:
            yield w, (None,)
    for block in model.sublayers:
        for w in block.weights:
            yield w, block.at


def serving_types(model: "Transformer") -> dict[str, DType]:
    """The types in which a server holds this model's weights and cache, by the fields of a layout.

    A type's bytes are the mean of its part, scales included. Where the inputs of quantized matrices are cast
    too, it also has the type of their matmuls. Empty where the file names none.
    """
    found: dict[str, DType] = {}
    if model.quantization is None:
        return found
    if model.quantization.kv:
        found["kv"] = model.cache_dtype
    if model.quantization.default is None and not model.quantization.named:
        return found
    kept = storage(model)
    groups = {"experts": ("experts",), "outer": ("embedding", "positions", "unembedding")}
    inner = tuple(part for part in model.by_part if part not in (*groups["experts"], *groups["outer"]))
    for field, parts in (groups | {"weights": inner}).items():
        elements = sum(model.by_part.get(part, 0) for part in parts)
        if elements:
            mean = sum(map(kept.part, parts)) / elements
            found[field] = _nearest(mean, [name for name, _ in kept.formats])
    if model.quantization.inputs:
        for field, multiplied in (("weights", "compute"), ("experts", "experts_compute")):
            if field in found:
                cast = found[field].name not in ("bf16", "fp16", "fp32")
                found[multiplied] = DTYPES[model.quantization.inputs] if cast else BF16
    return found


def _nearest(mean: float, formats: list[str]) -> DType:
    """A type with that many bytes for an element, under the name of the format whose bytes are nearest."""
    sizes = {name: DTYPES[name].bytes if name in DTYPES else _bits(name) / 8 for name in formats}
    name = min(sizes, key=lambda one: abs(sizes[one] - mean))
    return DTYPES[name] if name in DTYPES and DTYPES[name].bytes == mean else DType(name, mean)


def _bits(name: str) -> int:
    number = re.search(r"\d+", name)
    return int(number[0]) if number else 16
