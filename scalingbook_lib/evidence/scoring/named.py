"""Which model is meant? By its name, by its shapes, or by both: what a row says more exactly counts.

A name is trusted where its own size agrees ("OPT-13B" is not OPT 1.3B), and where the row's parameters do.
Shapes that no name explains are built in the form (gated or not, tied or not, experts) whose parameters come
nearest to the row's.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import log

from scalingbook_lib import models
from scalingbook_lib.evidence.measured import shapes
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scoring.cells import Cells, Refused, number, text, whole
from scalingbook_lib.models import Experts, Latent, Transformer
from scalingbook_lib.models.catalogue import ALIASES

SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) ?([mbt])(?![a-z0-9])")  # '70B', not 'A3B'
UNITS = {"m": 1e6, "b": 1e9, "t": 1e12}
NEAR_NAME, NEAR_PARAMS = 0.35, 0.12  # Gemma-2 2B has 2.6 billion; heads of a vocabulary count or do not
HEAD_WIDTH = re.compile(r"head[_ ]dim(?:ension)? ?=? ?(\d+)")
CHOSEN = re.compile(r"(\d+) experts?,? top[- ]?(\d+)")


def model(row: Cells, T: int = 0) -> Transformer:
    """The model of a row; Refused where neither its name nor its shapes say which."""
    name, params = text(row, "transformer", "model", "name"), number(row, "params", "total_params_computed")
    found = list(_by_name(f"{name} {text(row, 'name')}", params))
    if not whole(row, "d_model"):
        return found[0] if found else _alike(row, name, params)
    for one in found:
        L = whole(row, "layers") or one.L
        same = one if L == one.L else replace(one, name=f"{one.name}, {L} layers", L=L)
        if _same_shapes(row, same):
            return same
    return _built(row, name, params, T)


def configured(row: Cells) -> Transformer:
    """The model of a row of configurations: by name, if nothing contradicts it, else as its columns say."""
    name, biased = text(row, "model", "name"), _true(row, "attention_bias") or _true(row, "mlp_bias")
    for one in _by_name(name, None):
        if not whole(row, "d_model") or (_same_shapes(row, one) and bool(one.biases) == biased):
            return one
    plain = replace(next(_forms(row, name, 0)), gated=_true(row, "gated_mlp"))
    attention = ("q", "k", "v") if plain.gated else ("q", "k", "v", "o")
    ranks = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    kv_rank, nope, rope, v = (whole(row, column) or 0 for column in ranks)
    latent = (
        Latent(q_rank=whole(row, "q_lora_rank"), kv_rank=kv_rank, nope=nope, rope=rope, v=v)
        if kv_rank
        else None
    )
    said = re.search(r"seq (\d+)", name)  # learned positions, of which a count says for how many
    return replace(
        plain,
        tied=_true(row, "tied_embeddings"),
        biases=(*(attention * _true(row, "attention_bias")), *(("mlp",) * _true(row, "mlp_bias"))),
        norm_bias=_true(row, "mlp_bias"),
        qk_norm="head" if _true(row, "qk_norm") else None,
        positions=int(said[1]) if said and "position" in text(row, "notes") else 0,
        latent=latent,
        K=plain.N if latent else plain.K,
        H=latent.qk if latent else plain.H,
    )


def _true(row: Cells, column: str) -> bool:
    return text(row, column).lower() in ("true", "yes", "1")


def _same_shapes(row: Cells, m: Transformer) -> bool:
    """Whether a row contradicts a model in nothing; d_ff may be that of the dense MLP or of an expert."""
    N, K, F = (whole(row, *names) for names in (("heads",), ("kv_heads",), ("d_ff", "d_ff_dense")))
    widths = {m.F, m.experts.F} if m.experts else {m.F}
    same = whole(row, "d_model") == m.D and (N or m.N) == m.N
    return same and (m.latent is not None or (K or m.K) == m.K) and (F or m.F) in widths


def _by_name(name: str, params: float | None) -> Iterator[Transformer]:
    """The model with the longest known name in this one, if sizes do not contradict it; then by its size."""
    key = re.sub(r"[^a-z0-9]", "", name.lower())
    for known, found in _known().items():
        if known in key:
            yield from (one for one in found if _plausible(name, one, params))
    yield from (m for m in models.CATALOGUE if params and abs(params / m.params - 1) < 1e-3)


def _alike(row: Cells, name: str, params: float | None) -> Transformer:
    """Where a size alone is known: the dense model of the catalogue next to it, with as many layers."""
    sizes = [float(n) * UNITS[unit] for n, unit in SIZE.findall(_spaced(name))]
    size = params or (sizes[0] if len(sizes) == 1 else None)
    if not size or re.search(r"moe|a\d+b|\dx\d|expert", name.lower()):
        raise Refused(f"no model {name[:60]!r} is known, and the row has no shapes (layers, d_model, ...)")
    reached, rate = number(row, "tflops_per_chip"), number(row, "tokens_per_s_per_chip")
    if reached and rate and not 0.6 < reached * 1e12 / rate / (6 * size) < 1.6:
        raise Refused(
            f"{name[:60]!r} is not known, and a token's FLOPs are not those of {size:,.0f} parameters"
        )
    dense = [m for m in models.CATALOGUE if m.gated and not m.experts and not m.linear]
    near = min(dense, key=lambda m: abs(log(m.params / size)))
    L = max(round(near.L * size / near.params), 1)
    return replace(near, name=f"{name[:60]}, as {near.name}", L=L)


def _spaced(name: str) -> str:
    return re.sub(r"[-_/ ]+", " ", name.lower())


def _plausible(name: str, found: Transformer, params: float | None) -> bool:
    written = SIZE.findall(_spaced(name))
    sizes = [float(n) * UNITS[unit] for n, unit in written]
    counts = found.params, found.active_params
    if sizes and not any(abs(size / n - 1) <= NEAR_NAME for size in sizes for n in counts):
        return False
    return params is None or abs(params / found.params - 1) <= NEAR_PARAMS


@cache
def _known() -> dict[str, list[Transformer]]:
    """Models by their names in small letters and digits alone, the longest first."""
    every = (*shapes.others()[::-1], *models.CATALOGUE)  # PaLM as it was served before PaLM as trained
    named = grouped(every, lambda m: re.sub(r"[^a-z0-9]", "", m.name.split(",")[0].lower()))
    named = {alias: [models.find(name)] for alias, name in ALIASES.items()} | named
    return {key: named[key] for key in sorted(named, key=len, reverse=True)}


def _built(row: Cells, name: str, params: float | None, T: int) -> Transformer:
    """Of all forms that such shapes can have, the one whose parameters are nearest to the row's."""
    forms = list(_forms(row, name or "unnamed", T))
    if params is None:
        return forms[0]
    best = min(forms, key=lambda m: abs(log(m.params / params)))
    if abs(best.params / params - 1) > 2 * NEAR_PARAMS:
        raise Refused(f"the row's shapes make {best.params:,} parameters, and it says {params:,.0f}")
    return best


def _forms(row: Cells, name: str, T: int) -> Iterator[Transformer]:
    """The likeliest first: GPT's, where the MLP is four times as wide as the model and no keys are shared."""
    said = f"{name} {text(row, 'notes')}".lower()
    D, L, N = (whole(row, column) or 0 for column in ("d_model", "layers", "heads"))
    if not (D and L and N):
        raise Refused(f"no model {name[:60]!r} is known, and of layers, d_model and heads the row lacks one")
    K, F = whole(row, "kv_heads") or N, whole(row, "d_ff", "d_ff_dense", "d_ff_expert") or 4 * D
    width = HEAD_WIDTH.search(said)
    H = whole(row, "head_dim") or (128 if "maxtext" in said else int(width[1]) if width else max(D // N, 1))
    V = whole(row, "vocab") or shapes.GPT2_WORDS
    plain = Transformer(name=name[:80], D=D, L=L, V=V, N=N, K=K, H=H, F=F)
    routed = _experts(row, said, plain)
    if routed:
        yield replace(plain, experts=routed)
        return
    gpt = shapes.gpt(name[:80], L=L, D=D, N=N, V=V, T=T)
    four = F == 4 * D and "maxtext" not in said
    if four and K == N:
        yield gpt
    bare = replace(plain, gated=False)
    yield from (bare, plain) if four else (plain, bare)
    yield from (replace(plain, tied=True), replace(bare, tied=True))


def _experts(row: Cells, said: str, plain: Transformer) -> Experts | None:
    """So many as columns, notes or the name say ('8x22B'); None where all that makes a dense model."""
    E, k, chosen = whole(row, "experts"), whole(row, "experts_per_token"), CHOSEN.search(said)
    if not E and chosen:
        E, k = int(chosen[1]), int(chosen[2])
    if not E and (times := re.search(r"\b(\d+) ?x ?\d+b", said)):
        E = int(times[1])
    if not E or E < 2:
        return None
    F = whole(row, "d_ff_expert", "d_ff") or plain.F
    shared, first = whole(row, "shared_experts") or 0, whole(row, "first_dense_layers") or 0
    return Experts(E=E, k=k or 2, F=F, shared=shared, first_dense=first)
