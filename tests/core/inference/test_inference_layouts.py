"""What each layout makes of a model: rows, groups, stages, states, and caches split in every way."""

import pytest

from scalingbook_lib import inference, models
from scalingbook_lib.inference import Layout
from scalingbook_lib.inference.passes import Load, passed
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import FP8

L70B, L405B, V3 = (models.find(n) for n in ("Llama 3 70B", "Llama 3.1 405B", "DeepSeek-V3"))
NEXT = models.find("Qwen3-Next 80B-A3B")
OPEN, HOST, HOSTS = Slice.of(chips.V5E, "4x4"), Cluster.of(chips.H100, 8), Cluster.of(chips.H100, 64)


def shape(model, machine, layout):
    return inference.case(model, machine, layout).shape


def named(model, machine, layout):
    return {row.name: row for row in inference.case(model, machine, layout).traffic}


def test_two_dimensions_hold_every_weight_once():
    s = shape(L70B, OPEN, Layout(tp=16, rows=4))
    whole = shape(L70B, OPEN, Layout())
    assert s.projections.stored * 16 == whole.projections.stored
    assert s.mlp.stored * 16 == whole.mlp.stored
    assert s.head.met * 16 == whole.head.met
    one = shape(L70B, OPEN, Layout(tp=16))  # keys and values of eight heads on sixteen chips: twice
    kv = sum(w.params for w in L70B.weights() if w.name in ("k", "v"))
    assert one.projections.stored * 16 == whole.projections.stored + kv


def test_rows_scatter_the_sequences_of_a_cache_as_far_as_they_go():
    assert "queries to sequences" not in named(L70B, OPEN, Layout(tp=16, rows=4, kv_batch=4))
    more = named(L70B, OPEN, Layout(tp=16, rows=2, kv_batch=4))["queries to sequences"]
    assert more.n == 2
    assert more.per_token == 2 * 64 * 128 / 4 / 2  # heads over four chips; each row has half of the tokens


def test_a_cache_over_sequences_and_tokens_exchanges_each_its_part():
    found = named(L70B, OPEN, Layout(tp=16, kv_batch=2, kv_sequence=4))
    assert found["queries to sequences"].per_token == 2 * 64 * 128 / (2 * 4)
    assert found["queries to tokens"].per_token == 2 * 64 * 128 / 2 / 2


@pytest.mark.parametrize("layout", [Layout(tp=16, kv_batch=2), Layout(tp=16, kv_batch=4, kv_sequence=2)])
def test_a_cache_split_in_any_way_is_attended_to_once(layout):
    B, S = 64, 2000
    s = shape(L70B, OPEN, layout)
    here = B / layout.kv_batch * S / layout.kv_sequence
    counted = arithmetic.flops(L70B, B, 1, S=S).attention
    assert sum(k.flops for k in s.kinds) * here * 16 == pytest.approx(counted)
    one = inference.decode(L70B, OPEN, layout, batch=B, S=S).times.one
    assert one.kv_s == pytest.approx(arithmetic.kv_cache(L70B, S, sequences=B).nbytes / 16 / 819e9)


def test_with_expert_ways_each_group_holds_dense_and_shared_weights():
    s = shape(V3, HOSTS, Layout(tp=64, ep=64, attention_dp=16))
    part = V3.by_part
    assert s.mlp.stored == pytest.approx((part["mlp"] + part["shared experts"]) / 4)
    assert s.experts.stored == pytest.approx(part["experts"] / 64)
    without = shape(V3, HOSTS, Layout(tp=64, attention_dp=16))
    assert without.mlp.stored == pytest.approx((part["mlp"] + part["shared experts"]) / 64)


def test_the_longest_stage_has_whole_layers():
    """126 layers in four stages: 32 of them in the first."""
    held = inference.memory(L405B, Layout(tp=8, pp=4), HOSTS, batch=1, S=1).weights
    layers = sum(n for part, n in L405B.by_part.items() if part in ("attention", "mlp"))
    end = L405B.D * L405B.V
    norms = 2 * L405B.D * 126 + L405B.D
    assert held == pytest.approx(2 * (32 / 126 * (layers / 8 + norms) + end / 8))


def test_linear_attention_reads_and_writes_its_state_and_counts_its_products():
    s = shape(NEXT, HOST, Layout(tp=8))
    counted = arithmetic.flops(NEXT, 1, 1, S=100)
    assert 6 * s.state * 8 == pytest.approx(counted.get("linear attention state"))
    a = NEXT.linear
    assert a
    state = 4 * (NEXT.L - NEXT.softmax_layers) * a.v_heads * a.key * a.value
    cache = arithmetic.kv_cache(NEXT, 100, sequences=5).nbytes
    assert inference.memory(NEXT, Layout(), HOST, batch=5, S=100).kv == pytest.approx(5 * state + cache)
    quick = inference.case(NEXT, HOST, Layout())
    each = (2 * state + cache / 5) / chips.H100.hbm_bytes_per_s
    assert passed(quick.constants, Load(batch=5, kv_tokens=500)).kv_s == pytest.approx(5 * each)


def test_a_latent_chunk_expands_the_context_where_that_is_less():
    T = before = 4096
    one = inference.mixed(
        V3, Cluster.of(chips.H200, 1), Layout(), batch=0, S=0, chunk=T, chunk_context=before
    ).times.one
    counted = arithmetic.flops(V3, 1, T, S=T + before, causal=True)
    late = (
        counted.get("latent up-projection") * before / (T + before)
    )  # new tokens' are among the projections
    assert one.attention_s == pytest.approx((counted.attention + late) / chips.H200.bf16_flops_per_s)
    absorbed = arithmetic.flops(V3, 1, T, S=T + before, causal=True, absorbed=True).attention
    assert counted.attention + late < absorbed


@pytest.mark.parametrize("prompts", [1, 4, 10])
def test_prompts_follow_one_another_through_the_stages(prompts):
    layout = Layout(tp=4, pp=4)
    step = inference.prefill(L70B, OPEN, layout, P=2048, prompts=prompts)
    one = inference.prefill(L70B, OPEN, layout, P=2048)
    layers = one.times.lasts_s - one.times.one.head_s
    longest = layers / 4 + one.times.one.head_s  # twenty layers each, the last with the unembedding
    assert step.times.lasts_s == pytest.approx(one.times.lasts_s + (prompts - 1) * longest)


@pytest.mark.parametrize("B", [1, 2, 4, 8])
def test_a_stage_without_a_microbatch_waits(B):
    step = inference.decode(L70B, OPEN, Layout(tp=4, pp=4), batch=B, S=100)
    busy = sum(s for name, s in step.terms.items() if name != "bubble")
    assert step.times.microbatches == min(B, 4)
    assert busy == pytest.approx(step.times.one.total_s * min(B, 4) / 4)
    assert step.times.one.total_s <= step.total_s


def test_groups_read_their_prompts_at_once():
    layout = Layout(tp=8, ep=8, attention_dp=8, weights=FP8, compute=FP8)
    found = inference.serve(V3, HOST, layout, P=1000, G=101, batch=64)
    step = inference.decode(V3, HOST, layout, batch=64, S=1050.5)
    read = inference.prefill(V3, HOST, layout, P=1000, prompts=8)
    assert found.cycle_s == pytest.approx(100 * found.step.total_s + 8 * read.total_s)
    assert found.step.total_s == pytest.approx(step.total_s, rel=1e-3)


def test_chunks_attend_to_the_mean_of_what_is_read_before_them():
    found = inference.serve(L70B, HOST, Layout(tp=8), P=4096, G=200, batch=50, policy="chunked", chunk=512)
    assert found.reading.load.context == (4096 - 512) / 2
    known = inference.serve(
        L70B, HOST, Layout(tp=8), P=4096, G=200, batch=50, policy="chunked", chunk=512, cached=1024
    )
    assert known.reading.load.context == 1024 + (3072 - 512) / 2
    alone = inference.serve(
        L70B, HOST, Layout(tp=8), P=4096, G=200, batch=1, policy="chunked", chunk=512, cached=1024
    )
    assert alone.ttft_s == pytest.approx(6 * alone.reading.total_s)
    # 50 slots need 300 chunks of a cycle, and 199 steps follow a prompt: the rest is waiting in the queue
    assert known.ttft_s == pytest.approx((50 * 6 - 199) * known.reading.total_s)


def test_a_hand_off_by_layers_ends_one_layer_after_the_prompt():
    slow = inference.transfer(L70B, P=8192, bytes_per_s=1e9)
    assert slow.waited_s(1.0) == pytest.approx(slow.seconds - 79 / 80)
    assert slow.waited_s(100.0) == pytest.approx(slow.seconds / 80)


def test_a_chunk_reads_its_own_heads_of_the_context():
    """One token late in a long prompt waits for the cache: eight heads over sixteen chips, one each."""
    for layout in (Layout(tp=16), Layout(tp=16, kv_batch=4)):
        one = inference.mixed(L70B, OPEN, layout, batch=0, S=0, chunk=1, chunk_context=29_999).times.one
        assert one.kv_s == pytest.approx(arithmetic.kv_cache(L70B, 30_000).nbytes / 8 / 819e9)


def test_a_ring_also_passes_what_the_cache_has_of_a_prompt():
    """The second half of a prompt is read beside the keys of all of it."""
    layout = Layout(tp=4, cp=4)
    half = inference.prefill(L70B, OPEN, layout, P=8192, cached=4096)
    whole = inference.prefill(L70B, OPEN, layout, P=8192)
    assert half.collectives["keys and values"] == pytest.approx(whole.collectives["keys and values"])
    assert half.collectives["MLP output"] < whole.collectives["MLP output"]
    assert sum(half.collectives.values()) == pytest.approx(half.network_s)


def test_steps_without_a_chunk_are_as_many_as_prompts_leave():
    """64 slots read 1 step and decode 100: in 64 steps of 101 a prompt of 1,000 is read."""
    found = inference.serve(L70B, HOST, Layout(tp=8), P=1000, G=101, batch=64, policy="chunked", chunk=1024)
    busy = 64 / 101
    assert pytest.approx(64 - busy) == found.batch
    assert found.reading.load.chunk == 1000
    assert found.itl_s == pytest.approx(busy * found.reading.total_s + (1 - busy) * found.step.total_s)


def test_an_indexer_reads_every_key_and_attention_reads_the_tokens_that_it_selects():
    """DeepSeek-V3.2 at 128 Ki tokens: 61 (2,048 · 656 + 131,072 · 132) bytes; it keeps 61 · 788 of each."""
    sparse, layout = models.find("DeepSeek-V3.2"), Layout(tp=16, ep=16, attention_dp=16, kv=FP8)
    S = 131_072
    s = shape(sparse, HOSTS, layout)
    assert sum(kind.elements * min(S, kind.window) for kind in s.kinds) == 61 * (2048 * 656 + S * 132)
    assert inference.memory(sparse, layout, HOSTS, batch=16, S=S).kv == 61 * 788 * S

    def times(S):
        steps = (inference.decode(m, HOSTS, layout, batch=512, S=S) for m in (V3, sparse))
        return [step.terms.get("KV", 0.0) + step.terms.get("attention", 0.0) for step in steps]

    dense_s, sparse_s = times(S)
    assert 5 < dense_s / sparse_s < 7  # V3 has 576 bytes of a token without scales
    dense_s, sparse_s = times(1024)  # here every token is selected, and the index comes on top
    assert sparse_s > dense_s
