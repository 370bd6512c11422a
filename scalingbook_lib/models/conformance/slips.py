"""Mistakes that calculators of models make, each with the value that it gives.

A value is explained by the first slip that gives it, to a part in two thousand. Chapter: Transformers.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from scalingbook_lib.models import catalog
from scalingbook_lib.models.arithmetic import flops
from scalingbook_lib.models.conformance.vectors import CONTEXTS, published, table
from scalingbook_lib.models.quantization import storage
from scalingbook_lib.models.transformer import Transformer

NEAR = 5e-4  # relative: a number that was rounded for people


def slip(name: str, quantity: str, value: float) -> str:
    """The known slip that explains this value of a model's quantity; '' where none does."""
    config = next(one["config"] for one in table()["models"] if one["model"] == name)
    model = catalog.from_hf(config, name=name)
    right = published()[name][quantity]["value"]
    kind = quantity.split("/")[0].split("@")[0]
    for why, wrong in (*_scales(right), *_SLIPS.get(kind, lambda *_: ())(model, right, quantity)):
        if wrong and wrong != right and abs(value / wrong - 1) <= NEAR:
            return why
    return ""


def _scales(right: float) -> Iterator[tuple[str, float]]:
    """Slips of units, which any row may have."""
    for prefix, ten, two in (("k", 1e3, 2**10), ("M", 1e6, 2**20), ("G", 1e9, 2**30), ("T", 1e12, 2**40)):
        yield f"{prefix}i written for {prefix}: powers of two for powers of ten", right * ten / two
        yield f"{prefix} written for {prefix}i: powers of ten for powers of two", right * two / ten
        yield f"given in units of {prefix}, not of one", right / ten
        yield f"given in units of {prefix}i, not of one", right / two
    yield "bits given for bytes", right * 8


def _parameters(m: Transformer, right: float, quantity: str) -> Iterator[tuple[str, float]]:
    active = quantity == "active_parameters"
    by = m.active_by_part if active else m.by_part
    table_ = m.V * m.D
    if m.tied:
        yield "tied embeddings counted twice", right + table_
    else:
        yield "embeddings counted as tied, which they are not", right - table_
    yield "embedding left out", right - by.get("embedding", 0)
    yield "embedding and unembedding left out", right - by.get("embedding", 0) - by.get("unembedding", 0)
    yield "norms left out", right - by.get("norms", 0)
    yield "biases left out", right - by.get("biases", 0)
    if m.next_params:
        yield "layers that predict a token more counted too", right + m.next_params
    if m.vision_params:
        yield "vision encoder counted too", right + m.vision_params
    if not m.blocks and not m.latent and m.K != m.N:
        yield (
            "GQA forgotten: as many key-value heads as query heads",
            replace(m, K=m.N).params if not active else (replace(m, K=m.N).active_params),
        )
    if m.gated and not m.blocks:
        yield "gate matrix of the MLP forgotten", _of(replace(m, gated=False), active)
    if m.experts:
        yield from _sparse(m, right, by, active)


def _sparse(m: Transformer, right: float, by: Mapping[str, int], active: bool) -> Iterator[tuple[str, float]]:
    shared = by.get("shared experts", 0)
    yield "active without the shared expert" if active else "shared experts left out", right - shared
    yield "router left out", right - by.get("router", 0)
    if active:
        yield "all parameters given for the active ones", m.params
        routed = m.active_by_part.get("experts", 0)
        yield (
            "one routed expert counted instead of k",
            right - routed + routed / (m.experts.k if m.experts else 1),
        )
        yield "active without any expert", right - routed - shared
        yield "embedding left out of the active parameters", right - m.by_part.get("embedding", 0)
    elif not m.blocks and m.experts and m.experts.first_dense:
        every = replace(m, experts=replace(m.experts, first_dense=0))
        yield "experts counted in the dense layers too", every.params
    if not active:
        yield "active parameters given for all", m.active_params


def _of(m: Transformer, active: bool) -> float:
    return m.active_params if active else m.params


def _cache(m: Transformer, right: float, quantity: str) -> Iterator[tuple[str, float]]:
    yield "K only: keys counted without values, or one byte for two", right / 2
    yield "fp32 elements counted, or keys and values twice", right * 2
    if not m.latent and not m.blocks:
        yield "GQA forgotten: as many key-value heads as query heads", right * m.N / m.K
        yield "head width taken as D / N", right * (m.D / m.N) / m.H
        yield "one layer counted, not all", right / m.L
    if a := m.latent:
        for width in (a.qk, a.nope):
            heads = 2 * m.L * m.N * (width + a.v)
            yield "MLA's keys and values counted for every head, not its latent vector", heads
        yield "MLA's rotary part of the key left out", 2 * m.L * (a.kv_rank + a.index_width)
        if a.index_width:
            yield "the indexer's keys left out", 2 * m.L * a.cached
    full = sum(k.layers for k in m.layer_kinds)
    if full != m.L and not m.blocks:
        yield "every layer counted as softmax attention", right * m.L / full
    if "/" not in quantity:
        windowed = sum(2 * k.layers * k.kv_elements_per_token / k.every for k in m.layer_kinds if k.window)
        if windowed and windowed != right:
            yield "layers with a window left out", right - windowed


def _flops(m: Transformer, right: float, quantity: str) -> Iterator[tuple[str, float]]:
    S = int(quantity.partition("@")[2] or CONTEXTS[0])
    counted = flops(m, 1, 1, S=S, absorbed=True)
    yield "MACs given for FLOPs", right / 2
    yield "training FLOPs given for forward ones", right * 3
    yield "attention to the context left out", counted.weights
    yield "2 · active parameters, without attention", 2 * m.active_params
    yield "2 · all parameters, without attention", 2 * m.params
    yield "unembedding left out", right - counted.get("unembedding")
    pairs = sum(2 * k.heads * sum(k.widths(True)) * k.layers * (S // k.every) for k in m.layer_kinds)
    indexed = counted.get("index scores") + counted.get("linear attention state")
    yield (
        "windows or chosen positions ignored: all of the context attended",
        counted.weights + pairs + indexed,
    )
    yield "the indexer's scores left out", right - counted.get("index scores")


def _bytes(m: Transformer, right: float, quantity: str) -> Iterator[tuple[str, float]]:
    yield "all weights counted in bf16, whatever the file stores", 2 * m.params
    yield "all weights counted in one byte", m.params
    yield "all weights counted in four bits", m.params / 2
    if m.quantization:
        exact = storage(m)
        scales = sum(n for _, n in exact.parts)
        bare = sum(elements * _element(name) for name, elements in exact.formats)
        yield "block scales left out", right - (scales - bare)


def _element(name: str) -> float:
    return {"bf16": 2, "fp16": 2, "fp32": 4}.get(name, 0.5 if "4" in name else 1)


def _state(m: Transformer, right: float, quantity: str) -> Iterator[tuple[str, float]]:
    yield "state counted in bf16 instead of fp32", right / 2
    yield "state counted in fp32 instead of bf16", right * 2


_SLIPS: dict[str, Callable[[Transformer, float, str], Iterator[tuple[str, float]]]] = {
    "parameters": _parameters,
    "active_parameters": _parameters,
    "kv_bytes_per_token": _cache,
    "forward_flops": _flops,
    "weight_bytes": _bytes,
    "state_bytes": _state,
    "convolution_bytes": _state,
}
