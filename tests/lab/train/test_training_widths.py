"""muP in the trainer: the rates and the start that it prescribes, and activations that do not grow."""

from dataclasses import replace

import numpy as np
import pytest

from scalingbook_lab.train import trainer as training
from scalingbook_lab.train import widths
from scalingbook_lab.train.trainer import Trainer


def test_mup_divides_the_rates_of_matrices_by_the_width():
    rates = Trainer(widths.sized(256), {"X": 1}, rate=0.01, base_width=64)._rates()
    assert rates["embed"] == rates["final norm"] == rates["mlp norm"] == 0.01
    assert {rates[name] for name in ("q", "k", "v", "o", "gate", "up", "down", "unembed")} == {0.0025}


def test_without_a_base_width_all_rates_are_equal():
    assert set(Trainer(widths.sized(256), {"X": 1}, rate=0.01)._rates().values()) == {0.01}


def test_only_the_unembedding_starts_smaller():
    plain, mup = (training.initial(widths.sized(256), 0, base)["weights"] for base in (None, 64))
    assert mup["unembed"] == pytest.approx(plain["unembed"] / 2)
    assert all(np.array_equal(plain[name], mup[name]) for name in plain if name != "unembed")


def test_at_the_base_width_mup_changes_nothing():
    plain = Trainer(widths.sized(64), {"X": 1}, batch=2, T=16)
    assert plain.train(2).losses == replace(plain, base_width=64).train(2).losses


def test_a_compiled_sweep_is_the_trainer():
    one = Trainer(widths.sized(64), {"X": 1}, batch=widths.BATCH, T=widths.T, remat=False, rate=2.0**-7)
    swept = widths.runs(64, mup=False, steps=3)(-7, 0)
    assert swept * widths.LAST == pytest.approx(sum(one.train(3).losses) / 3 * widths.LAST, rel=1e-4)
