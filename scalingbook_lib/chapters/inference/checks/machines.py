"""Can a reader spread a model and its cache over chips? Checks of exercises on inference."""

from dataclasses import replace
from math import ceil

from scalingbook_lib import inference
from scalingbook_lib.chapters.inference.checks.subjects import MODEL, SPARSE, V5E
from scalingbook_lib.inference import Layout, rules
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.reader.checks.check import Check, Mistake
from scalingbook_lib.units import BF16, INT8

_SIXTEEN = Slice.of(V5E, "4x4")
_EXPERTS = SPARSE.L * SPARSE.experts.E * 3 * SPARSE.D * SPARSE.F if SPARSE.experts else 0


def _fit(kv_batch: int = 1, kv_sequence: int = 1) -> float:
    types = Layout(tp=16, weights=INT8, kv=INT8, compute=INT8)
    layout = replace(types, kv_batch=kv_batch, kv_sequence=kv_sequence)
    return inference.largest_batch(MODEL, layout, _SIXTEEN, S=131_072)


def _prefill_ways(axes: int = 2, wrapped: bool = False, bf16: bool = False) -> float:
    kind = BF16 if bf16 else INT8
    return rules.tensor_ways(MODEL.F, V5E, axes=axes, wrapped=wrapped, activations=INT8, compute=kind)


def _read_s(experts: float, rest: float) -> float:
    elements = _EXPERTS / experts + (SPARSE.params - _EXPERTS) / rest
    return elements * INT8.bytes / V5E.hbm_bytes_per_s


def _checked(G: int = 8, e: float = 1.0, S: int = 8192) -> float:
    """T S G · 4 / (2 e S + 4 T G) reaches the ridge R: T = e S R / (2 G (S - R))."""
    R = V5E.bf16_flops_per_s / V5E.hbm_bytes_per_s
    return ceil(e * S * R / (2 * G * (S - R)))


MACHINES = (
    Check(
        key="inference.9",
        title="Two halves",
        answer=lambda: _fit(kv_batch=2),
        unit="sequences",
        difficulty=2,
        rel_tol=0,
        hints=(
            "What is left of 16 × 16 GiB beside the weights, and how much of it has each half of the chips?",
            "A sequence lies in one half. How many whole ones fit into a half?",
        ),
        mistakes=(
            Mistake(
                lambda: _fit(kv_sequence=2),
                "So many fit if each is spread over all chips. Here each lies in one half of them.",
            ),
            Mistake(lambda: _fit(kv_batch=2) / 2, "That is one half of the chips."),
        ),
        right="Right: the room of half a sequence is left in each half, and nobody can use it.",
    ),
    Check(
        key="inference.10",
        title="How many ways for a prompt?",
        answer=_prefill_ways,
        unit="ways",
        difficulty=2,
        hints=(
            "When do a gather of the inputs and a scatter of the outputs take as long as the products?",
            "Both axes send at once; without wraparound an end chip takes in over one link of an axis.",
            "An activation is one byte here, and C is the rate of int8.",
        ),
        mistakes=(
            Mistake(
                2.0,
                "Twice too many: no axis wraps, so an end chip has one link of it; and C is that of int8.",
            ),
            Mistake(0.5, "Both axes of the slice carry the traffic."),
            Mistake(
                lambda: _prefill_ways(bf16=True, wrapped=True),
                "Four times too many: no axis wraps here, and the multiplication runs in int8.",
            ),
        ),
    ),
    Check(
        key="inference.11",
        title="Experts over a larger slice",
        answer=lambda: _read_s(128, 8),
        unit="s",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "How many bytes of the experts has each of the 128 chips?",
            "All other weights are there sixteen times; eight chips share one copy.",
        ),
        mistakes=(
            Mistake(lambda: _read_s(128, 128), "Attention and embedding are split eight ways only."),
            Mistake(lambda: _read_s(16, 8), "The eight chips of an expert split it."),
            Mistake(2.0, "An int8 weight is one byte."),
        ),
    ),
    Check(
        key="inference.12",
        title="Enough tokens at once",
        answer=_checked,
        unit="tokens",
        difficulty=2,
        rel_tol=0,
        hints=(
            "For one key-value head: 4 T S G H FLOPs; S keys and values of H bytes each, T G queries and "
            "outputs of 2 H bytes each.",
            "The queries and outputs matter little, and keep the answer a little above its round estimate.",
        ),
        mistakes=(
            Mistake(lambda: _checked(G=1), "Eight query heads share a key."),
            Mistake(lambda: _checked(e=2), "In int8 an element of the cache is one byte."),
            Mistake(lambda: _checked(e=0.5), "A multiply and an add, for scores and for values: four FLOPs."),
            Mistake(lambda: _checked() - 1, "Not quite: the last one is needed to get over the ridge."),
        ),
        right="Right: only then does attention compute rather than wait, whatever the batch.",
    ),
)
