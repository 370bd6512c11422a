"""The two scopes of a test run, and which tests belong to each of them.

- ``quick`` is `make test`: every test that takes at most one CPU second, with a sample of the drawn
  examples and swept states, and the browser tests marked ``smoke``.
- ``all`` is `make test-all`: everything once. It is the default, so that a plain ``pytest`` never leaves
  anything out.

The scope comes from the environment variable ``TEST_SCOPE``, because the tests of the core also run where
nothing but pytest is installed. Standard library only, for the same reason.
"""

import csv
import os
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Literal, cast

from tools.environment import ROOT

type Scope = Literal["quick", "all"]

DURATIONS = ROOT / "tests" / "durations.csv"
SLOW_CPU_S = 1.0
SCOPES = ("quick", "all")
EXAMPLES_SHARE = 10  # `quick` draws one example for every ten of the full run


def current() -> Scope:
    """Return the scope of this run. Raises ValueError if ``TEST_SCOPE`` names none."""
    name = os.environ.get("TEST_SCOPE", "all")
    if name not in SCOPES:
        raise ValueError(f"TEST_SCOPE is {name!r}; write one of {', '.join(SCOPES)}")
    return cast(Scope, name)


def examples(full: int) -> int:
    """Return how many examples a property test draws if a full run draws `full`."""
    return max(5, full // EXAMPLES_SHARE) if current() == "quick" else full


def sample[T](states: Sequence[T], most: int = 10) -> Sequence[T]:
    """Return the states that a sweep visits: all, or in the quick scope a fixed sample of at most `most`."""
    if current() != "quick" or len(states) <= most:
        return states
    return Random(0).sample(states, most)


@cache
def slow() -> frozenset[str]:
    """Return the node ids of the tests that took more than `SLOW_CPU_S` when durations were last recorded."""
    with DURATIONS.open(encoding="utf-8", newline="") as file:
        return frozenset(row["test"] for row in csv.DictReader(file) if float(row["cpu_s"]) > SLOW_CPU_S)


def wanted(test: str, marks: set[str]) -> bool:
    """Return whether the current scope runs a test, given its node id and the names of its markers."""
    if current() == "all":
        return "quick_only" not in marks  # another test shows the same more thoroughly
    if test.startswith("tests/browser/"):
        return bool(marks & {"smoke", "quick_only"})
    return "sampled" in marks or test not in slow()
