"""The stored programs: for every rule one that has the fault and one that has not, and a training step."""

import functools
import gzip
import re
from pathlib import Path

import pytest

from scalingbook_lib import inspection

PROGRAMS = Path(__file__).parent / "programs"
STEP = Path(__file__).parents[3] / "data" / "programs" / "train_step.hlo.gz"


@functools.cache
def text_of(path):
    return gzip.decompress(path.read_bytes()).decode()


@functools.cache
def reported(path, **how):
    return inspection.inspect(text_of(path), **how)


@pytest.fixture
def program():
    """`program("reduced, then sliced", faulty=True)` is the report on a stored program."""

    def found(rule, *, faulty):
        name = re.sub(r"[^a-z0-9]+", "-", rule.lower())
        return reported(PROGRAMS / f"{name}.{'faulty' if faulty else 'fixed'}.hlo.gz")

    return found


@pytest.fixture
def step():
    """The report on a training step of eight layers for 64 chips of v5p."""
    return reported(STEP)


@pytest.fixture
def step_text():
    return text_of(STEP)
