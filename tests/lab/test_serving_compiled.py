"""The compiled decode step sends, holds and waits as `inference` says, on this machine and on TPU slices."""

import functools
from dataclasses import replace

import jax.numpy as jnp
import pytest

from scalingbook_lib import models
from scalingbook_lib.lab import quantize, serving_step
from scalingbook_lib.lab.layout import Config
from scalingbook_lib.lab.training import SMALL, SMALL_MOE

LAYER = replace(models.find("LLaMA-3 70B"), L=1)
BF = {"dtype": jnp.bfloat16, "kept": jnp.bfloat16}
WAYS = {
    "heads": {"Y": 8},
    "heads and sequences": {"Z": 2, "Y": 4},
    "heads and tokens": {"C": 2, "Y": 4},
    "heads, sequences and tokens": {"Z": 2, "C": 2, "Y": 2},
    "rows and columns": {"X": 2, "Y": 4},
    "more rows than columns": {"X": 4, "Z": 2},
    "rows and tokens": {"X": 2, "C": 2, "Y": 2},
    "groups": {"A": 8},
    "groups of heads": {"A": 2, "Y": 4},
    "groups of tokens": {"A": 2, "C": 2, "Y": 2},
}


@pytest.mark.parametrize("ways", WAYS)
def test_every_collective_is_predicted_in_kind_axes_count_and_bytes(ways):
    told = serving_step.of(Config(SMALL, WAYS[ways], sequences=16, tokens=32))
    assert len(told.lines) >= 2
    assert not told.differ, str(told)


def test_so_it_is_with_experts_in_every_group():
    told = serving_step.of(Config(SMALL_MOE, {"A": 4, "Y": 2}, sequences=16, tokens=32))
    assert not told.differ, str(told)


def test_several_tokens_at_once_send_as_much_for_each():
    config = Config(SMALL, {"Z": 2, "Y": 4}, sequences=16, tokens=32)
    told = serving_step.of(config, T=4)
    assert not told.differ, str(told)


def test_one_device_sends_nothing():
    assert not serving_step.of(Config(SMALL, {"Y": 1})).lines


# --- TPU slices ------------------------------------------------------------------------------------------


@functools.cache
def sliced(ways, sequences=32, tokens=8192, scanned=False, stored=None, codec=None, B=None):
    more = {"codec": codec} if codec else {}
    kind = Config if stored is None else functools.partial(quantize.Narrow, stored=stored)
    return kind(LAYER, WAYS[ways], sequences=sequences, tokens=tokens, scanned=scanned, topology="v5e:2x4",
                **BF, **more)  # fmt: skip


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize("ways", ["heads", "heads and sequences", "heads and tokens", "rows and columns"])
def test_a_tpu_slice_runs_the_collectives_that_were_predicted(ways):
    told = serving_step.of(sliced(ways))
    assert not told.differ, str(told)
