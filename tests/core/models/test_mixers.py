"""Costs of token mixers agree with the rest of the library and with published figures."""

from dataclasses import replace

import pytest

from scalingbook_book.chapters.architectures.case import (
    DENSE,
    DSA,
    K3,
    MLA,
    NSA,
    V3,
    V3_2,
    V4,
    V4_ACTIVE,
)
from scalingbook_lib import models
from scalingbook_lib.inference import Layout, shape
from scalingbook_lib.models import arithmetic
from scalingbook_lib.models.arithmetic import (
    Entries,
    RecurrentState,
    bidirectional_flops,
    flops,
    kv_cache,
    stack,
    video_tokens,
)
from scalingbook_lib.models.blocks import recurrent
from scalingbook_lib.units import BF16, FP32, GiB

MILLION = 2**20
QWEN = models.find("Qwen3-Next 80B-A3B")
NAMES = ("Llama 3 70B", "Gemma-2 27B", "gpt-oss 120B", "DeepSeek-V3", "Kimi K2", "Qwen3-Next 80B-A3B")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("S", [1, 100, 5000])
def test_a_stack_counts_as_the_rest_of_the_library_does(name, S):
    model = models.find(name)
    layers, state = stack(model), 0.0
    if model.linear:
        state = shape.shape(model, Layout(tp=1)).state * shape.STATE_BYTES
    assert layers.L == model.L
    assert layers.cached_bytes(S) == kv_cache(model, S).nbytes + state
    assert layers.read_bytes(S) == kv_cache(model, S).nbytes + 2 * state
    assert layers.flops(S) == flops(model, 1, 1, S=S, absorbed=True).attention


def test_an_index_of_a_model_scores_all_and_attends_to_few():
    assert V3.latent
    indexed = replace(V3, latent=replace(V3.latent, index_heads=64, index_width=128))
    every, few = stack(indexed), stack(indexed, chosen=2048)
    assert every.cached_bytes(9000) == few.cached_bytes(9000) == 2 * 9000 * indexed.kv_elements_per_token
    assert every.flops(2048) == few.flops(2048)
    assert every.flops(9000) - few.flops(9000) == V3.L * (9000 - 2048) * DENSE.pair_flops
    assert few.flops(10**6) - few.flops(10**6 - 1) == V3.L * DSA.index_flops


@pytest.mark.parametrize("erases", [False, True])
@pytest.mark.parametrize("chunk", [1, 32, 64, 1000])
def test_a_chunk_costs_its_closed_form(erases, chunk):
    state = RecurrentState(heads=5, key=48, value=80, erases=erases)
    reads, squares = (6, 4) if erases else (4, 2)
    assert state.chunk_flops(chunk) == pytest.approx(
        5 * (reads * 48 * 80 + squares * chunk * (48 + 80)), rel=1e-12
    )
    assert state.chunk_flops(chunk, 128) >= state.chunk_flops(chunk)
    square = replace(state, key=128, value=128)
    assert square.chunk_flops(256, 128) == square.chunk_flops(256)


@pytest.mark.parametrize(
    ("dtype", "erases", "found"), [(FP32, True, 0.75), (BF16, True, 1.5), (BF16, False, 1)]
)
def test_a_decode_step_of_a_state_stays_below_two_flops_per_byte(dtype, erases, found):
    state = RecurrentState(heads=3, key=64, value=32, dtype=dtype, erases=erases)
    assert state.intensity == found < 2
    assert state.cached_bytes(10**6) == state.cached_bytes(1) == 3 * 64 * 32 * dtype.bytes


def test_the_handoff_is_a_state_and_with_erasure_one_more_matrix():
    state = RecurrentState(heads=96, key=128, value=64)
    assert state.handoff_bytes() == 96 * 128 * 64 * 2
    assert replace(state, erases=True).handoff_bytes(FP32) == 96 * (128 * 64 + 128 * 128) * 4


def test_a_window_stops_growing_and_every_few_tokens_divide():
    window, few = Entries(pair_flops=4, nbytes=10, window=100), Entries(pair_flops=4, nbytes=10, every=4)
    assert [window.cached_bytes(S) for S in (50, 100, 10_000)] == [500, 1000, 1000]
    assert (few.cached_bytes(400), few.flops(400), few.read_bytes(400)) == (1000, 400, 1000)


def test_published_figures_come_out_of_published_shapes():
    assert K3.cached_bytes(MILLION) / GiB == pytest.approx(27.2, abs=0.05)
    assert 93 * MLA.cached_bytes(MILLION) / GiB == pytest.approx(104.6, abs=0.05)
    v3_2, v4 = 2 * V3.active_params + V3_2.flops(MILLION), 2 * V4_ACTIVE + V4.flops(MILLION)
    assert v4 / v3_2 == pytest.approx(0.27, abs=0.01)
    assert V4.cached_bytes(MILLION) / V3_2.cached_bytes(MILLION) == pytest.approx(0.10, abs=0.005)
    assert V4.cached_bytes(MILLION) / (61 * 4096 * MILLION) == pytest.approx(0.02, abs=0.0005)
    assert 65_536 / sum(part.flops(65_536) for part in NSA) == pytest.approx(11.6, abs=0.05)
    assert V4.flops(2**20) > V4.flops(2**19) > V4.flops(128)


def test_pictures_and_videos_are_tokens_that_all_see_one_another():
    assert video_tokens(81, 720, 1280) == 75_600
    assert video_tokens(1, 720, 1280) == 45 * 80
    assert bidirectional_flops(7, 10, 3, 2) == (140, 2400)


@pytest.mark.parametrize(
    "call",
    [lambda: RecurrentState(heads=1, key=1, value=1).products(0), lambda: bidirectional_flops(-1, 1, 1, 1)],
)
def test_negative_sizes_are_refused(call):
    with pytest.raises(ValueError, match="write"):
        call()


def test_parts_and_stacks_print_as_one_line():
    assert "2,048 chosen" in str(V3_2)
    assert "state of 32 × 128 × 128" in str(stack(QWEN))


def test_one_token_for_one_expert_is_sent_once():
    assert arithmetic.all_to_all_bytes(1, 1, 1) == 2
    assert arithmetic.all_to_all_bytes(16, 4, 1024) == 16 * 4 * 1024 * 2
    with pytest.raises(ValueError, match="k"):
        arithmetic.all_to_all_bytes(16, 0, 1024)


def test_a_delta_rule_reads_corrects_and_reads_its_state_for_each_token():
    block = recurrent.delta_net(64, k_heads=2, v_heads=4, key=8, value=16, conv=4)
    assert block.state == 4 * 8 * 16
    assert block.state_flops == 3 * 2 * block.state  # a multiplication and an addition per element each time
