"""Finds the model that a row means, by its name, its shapes, or both; the more exact information counts.

A name is trusted if the size in it agrees ("OPT-13B" is not OPT 1.3B) and the row's parameters do. Shapes
that no known model has are built in the form (gated or not, tied or not, experts) whose parameter count is
closest to the row's. Chapter: Transformers.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from math import log
from typing import Any

from scalingbook_lib import models
from scalingbook_lib.evidence.reading.cells import Cells, UnpredictedRow, number, text, whole
from scalingbook_lib.evidence.resources import grouped, record
from scalingbook_lib.models import Experts, Latent, Transformer
from scalingbook_lib.models.catalog import ALIASES, normalize_name

SIZE_PATTERN = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) ?([mbt])(?![a-z0-9])")  # '70B', not 'A3B' or '8x7B'
UNITS = {"m": 1e6, "b": 1e9, "t": 1e12}
NEAR_NAME, NEAR_PARAMS = 0.35, 0.12  # Gemma-2 2B has 2.6 billion; embeddings may be counted or not
EXACT, ROUNDED = 1e-6, 5e-3  # tolerances for counts printed exactly, or to two digits
FEW_EXPERTS = 16
PARTS = {"experts": Experts, "latent": Latent}
GPT2_VOCABULARY = 51200  # GPT-2's padded vocabulary, where a source does not say
HEAD_WIDTH = re.compile(r"head[_ ]dim(?:ension)? ?=? ?(\d+)")
EXPERT_PATTERN = re.compile(r"(\d+) experts?,? top[- ]?(\d+)|\b(\d+) ?x ?\d+b")  # '8 experts top-2', '8x22B'


def model(row: Cells, T: int = 0) -> Transformer:
    """The model of a row; raises `Refused` if neither its name nor its shapes determine one."""
    name, params = text(row, "transformer", "model", "name") or "unnamed", number(row, "params")
    found = list(_by_name(f"{name} {text(row, 'name')}", params))
    if not whole(row, "d_model"):
        found = found or list(_in_catalog(row, params))
        return found[0] if found else _by_size(row, name, params)
    L = whole(row, "layers")
    deep = [replace(m, name=f"{m.name}, {L} layers", L=L) if L and L != m.L else m for m in found]
    same = next((one for one in deep if not _shapes_differ(row, one)), None)
    if same is None:
        return _from_shapes(row, name, params, T)
    forms = _forms(row, name, T) if params and not same.experts and text(row, "heads") else ()
    return next((m for m in (same, *forms) if params and abs(params / m.params - 1) < EXACT), same)


def model_from_config_row(row: Cells) -> Transformer:
    """The model of a row of configurations: by name if nothing contradicts it, else from its columns."""
    name, said = (
        text(row, "model", "name") or "unnamed",
        {c: text(row, c).lower() in ("true", "yes", "1") for c in row},
    )
    attends, mlp = said.get("attention_bias", False), said.get("mlp_bias", False)
    named = list(_by_name(name, None))
    if not whole(row, "d_model"):
        named = named or list(_in_catalog(row, None))
    for one in named:
        biased = "attention_bias" not in row or bool(one.biases) == (attends or mlp)
        if not whole(row, "d_model") or (biased and not _shapes_differ(row, one)):
            return one
    plain = replace(next(_forms(row, name, 0)), gated=said.get("gated_mlp", True))
    ranks = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    kv_rank, nope, rope, v = (whole(row, column) or 0 for column in ranks)
    latent = None
    if kv_rank:
        latent = Latent(q_rank=whole(row, "q_lora_rank"), kv_rank=kv_rank, nope=nope, rope=rope, v=v)
    learned = re.search(r"seq (\d+)", name)  # learned positions, if the name says how many
    projections = ("q", "k", "v") if plain.gated else ("q", "k", "v", "o")  # as in Qwen, and as in GPT
    drawn = replace(
        plain,
        tied=said.get("tied_embeddings", False),
        biases=(*(projections if attends else ()), *(("mlp",) if mlp else ())),
        norm_bias=mlp,
        qk_norm="head" if said.get("qk_norm") else None,
        positions=int(learned[1]) if learned and "position" in text(row, "notes") else 0,
        latent=latent,
        K=plain.N if latent else plain.K,
        H=latent.qk if latent else plain.H,
    )
    habits = record("model_habits").items()  # what families do that no column says
    own = next((fields for words, fields in habits if re.search(words, name.lower())), {})
    return replace(drawn, **own)


def _shapes_differ(row: Cells, m: Transformer) -> bool:
    """Whether a row's shapes differ from the model's; d_ff may be that of the dense MLP or of an expert."""
    D, L, N = (whole(row, column) for column in ("d_model", "layers", "heads"))
    K, F = whole(row, "kv_heads"), whole(row, "d_ff", "d_ff_dense")
    widths = {m.F, m.experts.F if m.experts else m.F}
    keys = m.K if m.latent else K or m.K  # tables disagree on the KV heads of latent attention
    return (D or m.D, L or m.L, N or m.N, keys) != (m.D, m.L, m.N, m.K) or (F or m.F) not in widths


def _by_name(name: str, params: float | None) -> Iterator[Transformer]:
    """Models whose known name is the longest in this one and whose size agrees; then those of equal size."""
    key = normalize_name(name)
    for known, found in _known().items():
        if known in key:
            yield from (one for one in found if _plausible(name, one, params))
    yield from (m for m in models.CATALOG if params and abs(params / m.params - 1) < EXACT)


def _in_catalog(row: Cells, params: float | None) -> Iterator[Transformer]:
    """The model of the whole catalog that a cell of the row names, as `scalingbook model` finds it."""
    for name in filter(None, (text(row, column) for column in ("transformer", "model", "name"))):
        try:
            found = replace(models.find_as_stored(name), quantization=None)  # the row says its types
        except models.ModelError:
            continue
        if _plausible("", found, params):
            yield found


def _plausible(name: str, found: Transformer, params: float | None) -> bool:
    sizes, counts = _sizes(name), (found.params, found.active_params)
    near = not sizes or any(abs(size / n - 1) <= NEAR_NAME for size in sizes for n in counts)
    return near and (params is None or abs(params / found.params - 1) <= NEAR_PARAMS)


def _sizes(name: str) -> list[float]:
    """The parameter counts in a name: 70e9 for 'Llama-3_70B'."""
    return [float(n) * UNITS[unit] for n, unit in SIZE_PATTERN.findall(re.sub(r"[-_/ ]+", " ", name.lower()))]


@cache
def _known() -> dict[str, list[Transformer]]:
    """Models by their names in lower-case letters and digits, the longest first."""
    every = (*others()[::-1], *models.CATALOG)  # PaLM as it was served before PaLM as trained
    named = {normalize_name(alias): [models.find(name)] for alias, name in ALIASES.items()}
    named |= grouped(every, lambda m: normalize_name(m.name.split(",")[0]))
    return {key: named[key] for key in sorted(named, key=len, reverse=True)}


def _by_size(row: Cells, name: str, params: float | None) -> Transformer:
    """For a size alone: the closest dense model of the catalog, with its layers scaled."""
    sizes, what = _sizes(name), f"no model {name[:60]!r} is known"
    size = params or (sizes[0] if len(sizes) == 1 else None)
    if not size or re.search(r"moe|a\d+b|\dx\d|expert", name.lower()):
        raise UnpredictedRow(f"{what}, and the row has no shapes (layers, d_model, ...)")
    reached, rate = number(row, "tflops_per_chip"), number(row, "tokens_per_s_per_chip")
    if reached and rate and not 0.6 < reached * 1e12 / rate / (6 * size) < 1.6:
        raise UnpredictedRow(f"{what}, and its FLOPs are not those of {size:,.0f} parameters")
    dense = [m for m in models.CATALOG if m.gated and not m.experts and not m.linear]
    near = min(dense, key=lambda m: abs(log(m.params / size)))
    return replace(near, name=f"{name[:60]}, as {near.name}", L=max(round(near.L * size / near.params), 1))


def _from_shapes(row: Cells, name: str, params: float | None, T: int) -> Transformer:
    """The form with these shapes whose parameter count is closest to the row's.

    Parameters that no dense form explains are attributed to experts: 2 active of few, or 8 active of many.
    """
    forms = list(_forms(row, name, T))
    if params is None:
        return forms[0]
    one = next((m for m in forms if m.gated), forms[0])
    E = 1 + round((params - one.params) / (3 * one.D * one.F * one.L))
    if E > 1:
        forms.append(replace(one, experts=Experts(E=E, k=2 if E <= FEW_EXPERTS else 8, F=one.F)))
    best = min(
        forms, key=lambda m: max(abs(m.params / params - 1), ROUNDED)
    )  # the first of equals is the likeliest
    if abs(best.params / params - 1) > 2 * NEAR_PARAMS:
        raise UnpredictedRow(f"the row's shapes make {best.params:,} parameters, and it says {params:,.0f}")
    return best


def _forms(row: Cells, name: str, T: int) -> Iterator[Transformer]:
    """The possible forms, the likeliest first: GPT's if the MLP is 4 D wide and keys are not shared."""
    said = f"{name} {text(row, 'notes')}".lower()
    D, L, N = (whole(row, column) or 0 for column in ("d_model", "layers", "heads"))
    if not (D and L and N):
        raise UnpredictedRow(
            f"no model {name[:60]!r} is known, and of layers, d_model and heads the row lacks one"
        )
    K, F = whole(row, "kv_heads") or N, whole(row, "d_ff", "d_ff_dense", "d_ff_expert") or 4 * D
    width, maxtext = HEAD_WIDTH.search(said), "maxtext" in said  # MaxText's own models: 128-wide heads, gated
    H = whole(row, "head_dim") or (128 if maxtext else int(width[1]) if width else max(D // N, 1))
    V = whole(row, "vocab") or GPT2_VOCABULARY
    plain = Transformer(name=name[:80], D=D, L=L, V=V, N=N, K=K, H=H, F=F, experts=_experts(row, said, F))
    if plain.experts:
        yield plain
        return
    four = F == 4 * D and not maxtext
    if four and K == N:
        yield gpt(name[:80], L=L, D=D, N=N, V=V, T=T)
    bare = replace(plain, gated=False)
    for form in (bare, plain) if four else (plain, bare):
        yield from (form, replace(form, tied=True))


def _experts(row: Cells, said: str, F: int) -> Experts | None:
    """The experts that columns, notes or the name give ('8x22B'); 2 per token if not given."""
    written = EXPERT_PATTERN.search(said)
    E = whole(row, "experts") or int(written[1] or written[3] if written else 0)
    if E < 2:
        return None
    k = whole(row, "experts_per_token") or int(written[2] or 2 if written else 2)
    shared, first = whole(row, "shared_experts") or 0, whole(row, "first_dense_layers") or 0
    return Experts(E=E, k=k, F=whole(row, "d_ff_expert") or F, shared=shared, first_dense=first)


@cache
def others() -> tuple[Transformer, ...]:
    """Models that published runs name and the catalog lacks: the rows of `other_models.json`."""
    return tuple(_other(**fields) for fields in record("other_models"))


def _other(*, biases: Iterable[str] = (), **fields: Any) -> Transformer:
    parts = {name: part(**fields.pop(name)) for name, part in PARTS.items() if name in fields}
    return Transformer(**fields, **parts, biases=tuple(biases))


@cache
def gpt(name: str, *, L: int, D: int, N: int, V: int, T: int) -> Transformer:
    """GPT-3's form: an ungated MLP of width 4 D, biases, learned positions, tied embeddings."""
    return Transformer(
        name=name,
        D=D,
        L=L,
        V=V,
        N=N,
        K=N,
        H=D // N,
        F=4 * D,
        gated=False,
        tied=True,
        norm_bias=True,
        biases=("q", "k", "v", "o", "mlp"),
        positions=T,
    )
