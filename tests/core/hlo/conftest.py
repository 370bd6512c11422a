"""The texts of compiled programs that tests read."""

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def stored():
    """The text of a stored program, an excerpt of what a compiler wrote."""
    return lambda name: (PROGRAMS / f"{name}.txt").read_text()
