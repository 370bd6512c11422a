"""Models without attention: what a sequence keeps, and that they can be planned and served."""

import pytest

from scalingbook_lib import models
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.models import ModelError, arithmetic
from scalingbook_lib.training import Plan, step

ATTENTION_FREE = ("Mamba 2.8B", "Falcon Mamba 7B", "Mamba Codestral 7B")
RWKV_169M = {"model_type": "rwkv", "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 50277}


@pytest.mark.parametrize("name", ATTENTION_FREE)
def test_a_state_has_one_size_whatever_the_length_of_the_sequence(name):
    m = models.find(name)
    assert m.layer_kinds == ()
    assert (m.softmax_layers, m.kv_elements_per_token) == (0, 0)
    kept = {arithmetic.cache_profile(m, S).stored_bytes for S in (1, 100_000)}
    assert kept == {4 * m.state_elements + 2 * m.convolution_elements}  # fp32, and inputs in bf16


@pytest.mark.parametrize("name", ATTENTION_FREE)
def test_every_flop_but_those_of_the_recurrence_belongs_to_a_weight(name):
    m = models.find(name)
    flops = arithmetic.flops(m, 1, 512)
    products = sum(w.flops_per_token for w in m.weights())
    assert flops.total == 512 * (products + m.state_flops)
    assert flops.attention == 512 * m.state_flops  # the recurrence alone


@pytest.mark.parametrize("tp", [1, 4])
@pytest.mark.parametrize("remat", ["none", "selective", "full"])
def test_a_training_step_has_a_time_and_its_recomputation_costs_no_scores(tp, remat):
    m = models.find("Mamba Codestral 7B")
    plan = Plan(fsdp=8 // tp, tp=tp, remat=remat)
    assert step(m, Cluster.of(chips.H100, 8), plan, batch=8, T=2048).total_s > 0


def test_rwkv_keeps_three_numbers_for_each_channel_and_two_tokens():
    m = models.from_hf(RWKV_169M)
    assert m.params == 169_342_464  # RWKV/rwkv-4-169m-pile
    assert (m.state_elements, m.convolution_elements) == (12 * 3 * 768, 12 * 2 * 768)
    assert m.embedding_norm


def test_recurrentgemma_mixes_windows_and_recurrences():
    m = models.find("RecurrentGemma 2B")
    (kind,) = m.layer_kinds
    assert (kind.layers, kind.window, kind.kv_elements_per_token) == (8, 2048, 512)
    assert m.state_elements == 18 * 2560
    assert m.F == 15360 // 2  # the file has the width of both matrices together


def test_a_model_whose_layers_share_weights_is_refused_with_that_reason():
    with pytest.raises(ModelError, match="a Transformer block whose weights several layers share"):
        models.from_hf({"model_type": "zamba2", "hidden_size": 2560})
