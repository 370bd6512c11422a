"""A sample of the programs of the page "Predicted and compiled", compiled again: what was recorded."""

import pytest

from scalingbook_lib.lab.compiler import aot
from tools.compiled import facts
from tools.compiled.cases import cases

SAMPLE = (
    "train: copies, tied, without a gate",
    "train by hand: experts over four chips",
    "prefill: Gemma 2B over 8",
    "decode: DeepSeek-V2-Lite over 8",
)


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize("name", SAMPLE)
def test_the_compiler_writes_what_was_recorded(name):
    found, kept = facts.ask(cases()[name]), facts.recorded()[name]
    assert found.flops == kept.flops
    if aot.as_printed():
        assert found.moved == kept.moved
        assert found.held == kept.held
