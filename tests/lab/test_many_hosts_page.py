"""Every command of the page on many hosts is one that the trainer reads, for a mesh its model can have."""

import math
import os
import re
import shlex
from pathlib import Path

import pytest

from scalingbook_lib.lab import train
from scalingbook_lib.lab.training import SMALL, Trainer
from scalingbook_lib.notation import Mesh

PAGE = (Path(__file__).parents[2] / "many-hosts.md").read_text()
LINES = re.findall(r"^python -m scalingbook_lib\.lab\.train (.*)$", PAGE, re.MULTILINE)
SLURM = {"HEAD": "host0", "SLURM_NNODES": "16", "SLURM_NODEID": "3"}


@pytest.fixture
def slurm(monkeypatch):
    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("line", LINES)
def test_the_trainer_reads_it(line, slurm):
    asked = train.arguments().parse_args(shlex.split(os.path.expandvars(line)))
    trainer = Trainer(
        SMALL, Mesh.parse(asked.mesh), batch=asked.batch, T=asked.T, microbatches=asked.microbatches
    )
    chips = math.prod(trainer.mesh.sizes.values())
    assert not asked.simulate or chips == asked.simulate * asked.processes
    assert 0 <= asked.process < asked.processes


def test_there_are_lines_for_one_process_for_two_and_for_a_pod():
    assert len(LINES) == 6
    assert sum("--pod" in line for line in LINES) == 1
    assert sum("--process " in line for line in LINES) == 3
