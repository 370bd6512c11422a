"""The memory of a training step: predicted, and as the TPU compiler reports it."""

import os
from dataclasses import replace

import pytest

from scalingbook_lab.compiler import aot
from scalingbook_lab.train import agreement
from scalingbook_lab.train.trainer import Trainer
from scalingbook_lib import models, training

# large enough for HBM: what is small stays in VMEM
MIDDLE = models.Transformer(name="middle", D=1024, L=6, V=1024, N=4, K=4, H=128, F=2048)
SLICE = "v5p:2x2x1"
WORDS = replace(MIDDLE, name="with many words", V=16384)


@pytest.mark.parametrize(("model", "mesh"), [(MIDDLE, {"X": 2, "Y": 2}), (WORDS, {"X": 4})])
def test_state_and_peak_are_as_predicted(model, mesh):
    if not aot.available():
        if os.environ.get("CI"):
            pytest.fail(aot.why_not())
        pytest.skip(aot.why_not())
    trainer = Trainer(model, mesh, batch=32, T=512, topology=SLICE)
    told = training.memory(model, agreement.plan(trainer), batch=32, T=512, loop=True)
    compiled = trainer.program.memory
    assert told.moment == "in a layer"
    assert compiled.arguments == pytest.approx(told["weights"] + told["optimizer"], rel=0.01), str(compiled)
    assert compiled.needed == pytest.approx(told.total, rel=0.1), str(compiled)
