"""How long are somebody's kernels and collectives predicted to take, and how many parameters has a model?

By the fitted tables of `evidence.kernels` and `evidence.fabrics`. The factors of their bands hold four in
five of the visible rows of other systems. Chapters: Rooflines, GPUs, Transformers.
"""

import re
from dataclasses import replace
from typing import NamedTuple

from scalingbook_lib import roofline
from scalingbook_lib.collectives import FORMULAS
from scalingbook_lib.evidence import fabrics
from scalingbook_lib.evidence import kernels as fitted
from scalingbook_lib.evidence.reading.cells import (
    Cells,
    Refused,
    first,
    needed,
    number,
    precision,
    text,
    whole,
)
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.reading.model import configured
from scalingbook_lib.evidence.scoring.report import Found, Ideal, Interval
from scalingbook_lib.machines import Chip
from scalingbook_lib.roofline.attained import Attending
from scalingbook_lib.units import BF16, MiB, dtype

LARGE_M, LARGE = 512, MiB
FACTORS = {
    "products m >= 512": 1.19,
    "products m < 512": 1.2,
    "attention prompt": 1.17,
    "attention decode": 1.27,
    "copies": 1.2,
    "collectives >= 1 MiB": 1.22,
    "collectives < 1 MiB": 1.25,
}
OF_OTHERS = (
    1.25  # wider yet where its software is none that was measured: cuDNN's and FlashAttention's on an H100
)
OPS = {"attention": "attention|attn|fmha", "products": "gemm|matmul|linear|dot", "copies": "copy|triad"}
NARROW = {"nvfp4": "fp4", "mxfp8": "fp8"}


class Timed(NamedTuple):
    """Of one kernel: its class, its predicted seconds, its FLOPs and bytes.

    `math_s` is what the FLOPs take at the documented rate; 0 where only the bytes count. The band is
    `wider` times as wide.
    """

    kind: str
    seconds: float
    flops: float
    nbytes: float
    math_s: float = 0.0
    wider: float = 1.0


def _found(
    kind: str, chip: str, measured: float, predicted: float, ideal: Ideal | None = None, *, wider: float = 1.0
) -> Found:
    return Found(
        kind=kind,
        chip=chip,
        measured=Interval(measured, measured),
        predicted=Interval(predicted, predicted),
        factor=wider * FACTORS.get(kind, 1.0),
        ideal=ideal,
    )


def kernel(row: Cells) -> Found:
    """The seconds of a product, of attention, or of a copy; as printed, or from a rate."""
    on, op = chip(text(row, "chip", "system")), first(OPS, text(row, "op"))
    if op is None:
        raise Refused(f"op is {text(row, 'op')[:40]!r}; gemm and attention are known")
    one = {"attention": _attention, "products": _product, "copies": _copy}[op](row, on)
    latency, reached, moved = (number(row, name) for name in ("latency_us", "tflops", "hbm_GBps"))
    measured = latency / 1e6 if latency else one.flops / reached / 1e12 if reached else 0.0
    measured = measured or (one.nbytes / moved / 1e9 if moved else 0.0)
    if not measured:
        raise Refused("the row prints no latency_us, tflops or hbm_GBps")
    math, memory = one.math_s / measured, one.nbytes / on.hbm_bytes_per_s / measured
    ideal = Ideal(precision(text(row, "dtype")), max(math, memory), math or memory)
    return _found(one.kind, on.name, measured, one.seconds, ideal, wider=one.wider)


def _product(row: Cells, on: Chip) -> Timed:
    """In its type; or in bf16, where the weights alone are stored in it or the chip cannot compute in it."""
    m, n, k = (needed(row, letter) for letter in "mnk")
    said = text(row, "dtype").lower()
    name = precision(said)
    kind = dtype(NARROW.get(name, name))
    alone = re.search("_?wo$|weight|a16|awq|gptq", said) or kind.name not in on.rates()
    computed = BF16 if alone else kind
    line = fitted.products(on, replace(kind, name="fp8_block") if "block" in said else computed, _by(row))
    bound = roofline.matmul(m, k, n, on, computed, weights=kind, out=BF16)
    told = f"products m {'>=' if m >= LARGE_M else '<'} {LARGE_M}"
    seconds = line.seconds(m, k, n, on, computed, weights=kind)
    return Timed(told, seconds, bound.flops, bound.bytes, bound.math_s)


def _attention(row: Cells, on: Chip) -> Timed:
    """Of a prompt, half of the pairs of positions; of a step, the cache is read."""
    B, T, N, H = (needed(row, column) for column in ("batch", "seq", "heads", "head_dim"))
    kv_bytes = dtype(precision(text(row, "kv_dtype", "dtype"))).bytes
    of, one = Attending(B, T, N, whole(row, "kv_heads") or N, H, kv_bytes), fitted.attention(on)
    if re.search("generation|decod", text(row, "op")):
        return Timed("attention decode", one.token_s(of, on), of.token_flops, of.cache_bytes)
    math_s = of.prompt_flops / on.bf16_flops_per_s
    wider = 1.0 if _by(row) else OF_OTHERS
    return Timed("attention prompt", one.prompt_s(of, on), of.prompt_flops, of.cache_bytes, math_s, wider)


def _by(row: Cells) -> str:
    """Whose kernel it is, of those that were measured."""
    return fitted.software(" ".join(text(row, column) for column in ("software", "op", "source", "notes")))


def _copy(row: Cells, on: Chip) -> Timed:
    """Read and written, at the share of the HBM's rate that products reach."""
    size = re.search(r"([\d,]+)-byte", text(row, "notes"))
    if not size:
        raise Refused("the row of a copy does not say how many bytes")
    nbytes = 2 * float(size[1].replace(",", ""))
    return Timed("copies", fitted.copy_s(nbytes, on), 0.0, nbytes)


def collective(row: Cells) -> Found:
    """The seconds of a collective, on switches, on a torus, or through the host."""
    one = fabrics.timed(row, chip(text(row, "chip", "system")))
    ideal = FORMULAS[one.what](one.nbytes, *one.networks).bandwidth_s / one.seconds
    told = f"collectives {'>=' if needed(row, 'size_bytes') >= LARGE else '<'} 1 MiB"
    return _found(told, one.chip.name, one.seconds, fabrics.seconds(one), Ideal("", ideal, ideal))


def parameters(row: Cells) -> Found:
    """All parameters, counted, beside the count of the reference code or else the published one.

    That has the layers which predict a token more, what sees pictures, both or neither: nobody says which.
    """
    published, m = number(row, "total_params_computed", "published_params"), configured(row)
    if not published:
        raise Refused("the row has no total_params_computed and no published_params")
    all_of = (m.params + a + b for a in (0, m.next_params) for b in (0, m.vision_params))
    counted = min(all_of, key=lambda n: abs(n - published))
    return _found("parameters", "", published, float(counted))
