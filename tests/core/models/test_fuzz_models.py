"""Any configuration is counted or refused by field, without a crash or a silent zero."""

import json
import math
from dataclasses import replace

import pytest

pytest.importorskip("hypothesis")
from hf_configs import CONFIGS
from hypothesis import given
from hypothesis import strategies as st

from scalingbook_lib import models
from scalingbook_lib.models import KNOWN_TYPES, Experts, Latent, ModelError, Transformer
from tests.core import repeatable

FLAT = {name: config.get("text_config") or config for name, config in CONFIGS.items()}
FIELDS = sorted({field for config in FLAT.values() for field in config})
HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 1, 2, 3, 10**9, 10**9 + 1, 10**400, math.nan, math.inf, -0.0, 1e308]),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.one_of(st.integers(), st.text(max_size=20), st.none()), max_size=5),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)
KIND = st.fixed_dictionaries({"model_type": st.sampled_from(KNOWN_TYPES)})
RANDOM = st.dictionaries(st.sampled_from(FIELDS), HOSTILE, max_size=25)
SIZE = st.integers(1, 64)
# Fields whose zero would make weights vanish; a zero elsewhere (shared experts, dense layers) has a meaning.
NEVER_ZERO = {
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size"),
    *(
        "intermediate_size",
        "head_dim",
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "num_kv_heads",
    ),
    *("num_experts_per_tok", "moe_intermediate_size", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim"),
    *("qk_rope_head_dim", "q_lora_rank", "n_embd", "n_head", "n_layer", "n_positions", "ffn_dim", "d_model"),
    *(
        "n_heads",
        "n_layers",
        "expansion_ratio",
        "n_embed",
        "max_position_embeddings",
        "intermediate_size_mlp",
    ),
    *("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim"),
    *("linear_conv_kernel_dim", "full_attention_interval", "interleave_moe_layer_step"),
}


def read(config):
    """The model, or the refusal; any other exception fails the test."""
    try:
        return models.from_hf(config)
    except ModelError as error:
        return error


def counted_or_refused(config):
    m = read(config)
    if isinstance(m, ModelError):
        assert m.field
        assert len(str(m)) < 1000
        assert str(m).isprintable()
        return
    assert m.params == sum(m.by_part.values()) >= m.active_params > 0
    assert all(w.size > 0 for w in m.weights())
    assert {"embedding", "mlp", "experts"} & set(m.by_part) != {"embedding"}
    assert m.kv_elements_per_token >= 0
    assert min(m.L, m.D, m.V, m.N, m.K, m.H) > 0


@repeatable.examples(500)
@given(
    name=st.sampled_from(sorted(FLAT)), changes=RANDOM, dropped=st.sets(st.sampled_from(FIELDS), max_size=3)
)
def test_a_published_config_with_hostile_changes_is_counted_or_refused(name, changes, dropped):
    config = {key: value for key, value in FLAT[name].items() if key not in dropped}
    few = dict(list(changes.items())[:3])
    counted_or_refused(config | few)
    counted_or_refused({"model_type": config.get("model_type"), "text_config": config | few})


@repeatable.examples(250)
@given(kind=KIND, config=RANDOM)
def test_random_fields_are_counted_or_refused(kind, config):
    counted_or_refused(config | kind)


@repeatable.examples(250)
@given(kind=KIND, sizes=st.fixed_dictionaries(dict.fromkeys(sorted(NEVER_ZERO), SIZE)))
def test_small_sizes_of_every_kind_are_counted_or_refused(kind, sizes):
    counted_or_refused(sizes | kind)


@repeatable.examples(500)
@given(data=st.data(), name=st.sampled_from(sorted(FLAT)))
def test_a_truncated_text_is_refused(data, name):
    text = json.dumps(CONFIGS[name])
    cut = data.draw(st.integers(1, len(text) - 1))
    with pytest.raises(ModelError) as error:
        models.from_hf(text[:cut])
    assert error.value.field == "config"


@repeatable.examples(500)
@given(text=st.one_of(st.text(max_size=200), st.text(max_size=200).map("{".__add__)))
def test_any_text_is_counted_or_refused(text):
    counted_or_refused(text)


@repeatable.examples(500)
@given(
    thing=st.recursive(HOSTILE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner))
)
def test_any_object_is_counted_or_refused(thing):
    counted_or_refused(thing)
    counted_or_refused({"text_config": thing, "model_type": "llama"})


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("zero", [0, -1, 0.0, "4096", True, math.nan, 10**30, []], ids=repr)
def test_no_size_may_be_zero_or_anything_but_a_number(name, zero):
    for field in NEVER_ZERO & set(FLAT[name]):
        if FLAT[name][field] is None:
            continue
        with pytest.raises(ModelError) as error:
            models.from_hf(FLAT[name] | {field: zero})
        assert error.value.field in (field, "word_embed_proj_dim"), field


@pytest.mark.parametrize("name", FLAT)
def test_a_field_that_is_left_out_is_named_or_has_a_default(name):
    for field in FLAT[name]:
        config = {key: value for key, value in FLAT[name].items() if key != field}
        m = read(config)
        if isinstance(m, ModelError):
            assert field in str(m) or m.field == "num_attention_heads", field  # the width of its heads
        else:
            assert m.params > 0


EXPERT_FIELDS = {"n_routed_experts", "n_shared_experts", "first_k_dense_replace", "moe_intermediate_size"}
EXPERT_FIELDS |= {
    "num_experts_per_tok",
    "num_experts",
    "num_local_experts",
    "shared_expert_intermediate_size",
}


@pytest.mark.parametrize("name", FLAT)
def test_no_part_vanishes_where_a_field_is_left_out(name):
    for field in EXPERT_FIELDS & set(FLAT[name]):
        with pytest.raises(ModelError) as error:
            models.from_hf({key: value for key, value in FLAT[name].items() if key != field})
        assert error.value.field == field


@st.composite
def transformers(draw):
    K, G = draw(SIZE), draw(st.integers(1, 8))
    N = K * G
    letters = {letter: draw(SIZE) for letter in "DLVHF"}
    return Transformer(
        name="drawn",
        **letters | {"N": N, "K": K},
        gated=draw(st.booleans()),
        biases=tuple(draw(st.sets(st.sampled_from(["q", "k", "v", "o", "mlp", "unembedding"])))),
        norm_bias=draw(st.booleans()),
        qk_norm=draw(st.sampled_from([None, "head", "all"])),
        windows=tuple(draw(st.lists(st.one_of(st.none(), SIZE), min_size=1, max_size=4))),
    )


@repeatable.examples(500)
@given(m=transformers(), E=SIZE, k=SIZE, F=SIZE)
def test_laws_of_counting(m, E, k, F):
    assert m.params - replace(m, tied=True).params == m.V * m.D
    assert replace(m, K=m.N).by_part["attention"] == 4 * m.L * m.D * m.N * m.H
    deeper = replace(m, L=2 * m.L).params - m.params
    assert replace(m, L=3 * m.L).params - m.params == 2 * deeper  # layers add up
    sparse = replace(m, experts=Experts(E=max(E, k), k=k, F=F))
    idle = sparse.params - sparse.active_params
    assert idle == m.L * (max(E, k) - k) * (3 if m.gated else 2) * m.D * F
    assert sum(kind.layers for kind in m.layer_kinds) == m.L
    assert m.kv_elements_per_token == 2 * m.L * m.K * m.H


@repeatable.examples(300)
@given(m=transformers(), kv=SIZE, nope=SIZE, rope=SIZE, v=SIZE, q=st.one_of(st.none(), SIZE))
def test_laws_of_latent_attention(m, kv, nope, rope, v, q):
    latent = Latent(q_rank=q, kv_rank=kv, nope=nope, rope=rope, v=v)
    mla = replace(m, K=m.N, H=nope + rope, latent=latent, biases=(), qk_norm=None)
    queries = m.D * m.N * (nope + rope) if q is None else q * (m.D + m.N * (nope + rope))
    per_layer = queries + m.D * (kv + rope) + kv * m.N * (nope + v) + m.N * v * m.D
    assert mla.by_part["attention"] == m.L * per_layer
    assert mla.kv_elements_per_token == m.L * (kv + rope)
