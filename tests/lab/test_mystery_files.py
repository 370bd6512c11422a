"""The files of the mysteries are what `tools/mysteries` makes."""

import re

import pytest

from scalingbook_book import mysteries
from scalingbook_lab.compiler import aot
from tools.mysteries import programs, records


@pytest.mark.parametrize("name", ["idle-chip.json", "ranks.csv", "experts.csv", "long-context.sh"])
def test_a_file_is_made_again_to_the_letter(name):
    assert records.RECORDS[name]() == mysteries.text(name)


def test_the_losses_are_those_of_the_training_run():
    again = [line.split(",") for line in records.loss_by_rank(steps=5).splitlines()]
    stored = [line.split(",") for line in mysteries.text("loss-by-rank.csv").splitlines()]
    for made, kept in zip(again[1:], stored[1:], strict=False):
        assert [float(x) for x in made] == pytest.approx([float(x) for x in kept], abs=2e-4)


def test_the_log_has_the_messages_of_jax():
    again = records.compiler_log(steps=6)
    if aot.as_printed():
        assert mysteries.text("compile-log.txt").startswith(again)


def test_a_program_for_a_simulated_device_is_compiled_again():
    made, stored = programs.PROGRAMS["twelve-layers"](), mysteries.text("twelve-layers.hlo.gz")
    opcodes = [re.findall(r" ([a-z-]+)\(", text) for text in (made, stored)]
    if aot.as_printed():
        assert opcodes[0] == opcodes[1]
