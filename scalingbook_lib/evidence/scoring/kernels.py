"""How long are somebody's kernels and collectives predicted to take, and how many parameters has a model?

Chapters: Rooflines, GPUs, Transformers.
"""

import re
from typing import NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.evidence.measured.inference_runs import NVFP4
from scalingbook_lib.evidence.predicted import COLLECTIVE_FACTOR, KERNEL_FACTOR, collective_s, kernel_s
from scalingbook_lib.evidence.reading.cells import Cells, Refused, needed, number, precision, text, whole
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.reading.model import configured
from scalingbook_lib.evidence.scoring.row import Found, Interval
from scalingbook_lib.units import BF16, FP4, FP8, DType, MiB, dtype

LARGE_M, LARGE = 512, MiB
NARROW = {"nvfp4": (FP4, NVFP4.bytes), "mxfp8": (FP8, 1.0)}


class Work(NamedTuple):
    """Of one kernel: its class, what binds it (a name of `predicted.kernel_s`), its type, FLOPs and bytes."""

    kind: str
    what: str
    dtype: DType
    flops: float
    nbytes: float


def kernel(row: Cells) -> Found:
    """The seconds of a product, of attention, or of a copy."""
    work, on = _work(row), chip(text(row, "chip", "system"))
    latency, reached, moved = (number(row, name) for name in ("latency_us", "tflops", "hbm_GBps"))
    measured = latency / 1e6 if latency else work.flops / reached / 1e12 if reached else None
    measured = measured or (work.nbytes / moved / 1e9 if moved else None)
    if not measured:
        raise Refused("the row prints no latency_us, tflops or hbm_GBps")
    seconds = kernel_s(on, work.dtype, flops=work.flops, nbytes=work.nbytes, what=work.what)
    return _found(work.kind, on.name, measured, seconds, KERNEL_FACTOR)


def _found(kind: str, chip: str, measured: float, predicted: float, factor: float) -> Found:
    same = Interval(measured, measured), Interval(predicted, predicted)
    return Found(kind=kind, chip=chip, measured=same[0], predicted=same[1], factor=factor)


def _work(row: Cells) -> Work:
    op, name = text(row, "op").lower(), precision(text(row, "dtype"))
    kind, width = NARROW.get(name) or ((found := dtype(name)), found.bytes)
    if re.search(r"gemm|matmul|linear|dot", op):
        m, n, k = (needed(row, letter) for letter in "mnk")
        told = f"products m {'>=' if m >= LARGE_M else '<'} {LARGE_M}"
        return Work(told, "matmul", kind, 2.0 * m * n * k, (m + n) * k * width + 2.0 * m * n)
    if re.search(r"attention|attn|fmha|flash", op):
        return _attention(row, not re.search(r"generation|decode|decoding", op))
    if re.search(r"copy|stream|triad|memcpy", op):
        nbytes = re.search(r"([\d,]+)-byte", text(row, "notes"))
        if not nbytes:
            raise Refused("the row of a copy does not say how many bytes")
        return Work("copies", "matmul", BF16, 1.0, 2.0 * int(nbytes[1].replace(",", "")))
    raise Refused(f"op is {op[:40]!r}; gemm, context_attention and generation_attention are understood")


def _attention(row: Cells, prompt: bool) -> Work:
    """Of a prompt, half of the pairs of positions; of a step, the cache is read."""
    B, T, N = (needed(row, column) for column in ("batch", "seq", "heads"))
    K, H = whole(row, "kv_heads") or N, needed(row, "head_dim")
    width = dtype(precision(text(row, "kv_dtype", "dtype"))).bytes
    if prompt:
        moved = (2 * N * BF16.bytes + 2 * K * width) * B * T * H
        return Work("attention prompt", "attention", BF16, 2.0 * B * N * T * T * H, moved)
    return Work("attention decode", "kv", BF16, 4.0 * B * N * T * H, 2.0 * B * K * T * H * width)


def collective(row: Cells) -> Found:
    """The seconds of a collective; an all-to-all's size is one chip's part, as NCCL counts."""
    on, size = chip(text(row, "chip", "system")), needed(row, "size_bytes")
    kind, n = Collective.named(text(row, "collective")).hlo, needed(row, "n_devices")
    hosts = whole(row, "n_nodes") or -(-n // (on.domain_chips or n))
    ring = text(row, "algo_or_tool").startswith("Ring")
    nbytes = size * n if kind == "all-to-all" else size
    seconds = collective_s(on, kind, n=n, hosts=hosts, nbytes=nbytes, ring=ring)
    told = f"collectives {'>=' if size >= LARGE else '<'} 1 MiB"
    return _found(told, on.name, _collective_s(row, kind, n, size), seconds, COLLECTIVE_FACTOR)


def _collective_s(row: Cells, kind: str, n: int, size: int) -> float:
    """As printed; else from a rate that has two digits, of which a bus carries an all-reduce twice."""
    if time_us := number(row, "time_us"):
        return time_us / 1e6
    passes = (n - 1) / n * (2 if kind == "all-reduce" else 1)
    for column, nbytes in (("algbw_GBps", float(size)), ("busbw_GBps", passes * size)):
        digits = text(row, column).replace(".", "").strip("0")
        if len(digits) > 1 and (rate := number(row, column)):
            return nbytes / rate / 1e9
    raise Refused("the row prints no time_us, and no rate of two digits")


def parameters(row: Cells) -> Found:
    """All parameters, counted, beside the count of the reference code or else the published one."""
    counted, published = number(row, "total_params_computed", "published_params"), configured(row).params
    if not counted:
        raise Refused("the row has no total_params_computed and no published_params")
    return _found("parameters", "", counted, float(published), 1.0)
