"""A collective equals its name in the book and is found by each of its other names."""

import copy
import json
import pickle

import pytest

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective


@pytest.mark.parametrize("kind", Collective)
def test_a_collective_is_its_name_in_the_book_and_is_found_by_any_of_its_names(kind):
    assert {Collective.named(name) for name in (kind, kind.value, kind.hlo, kind.call)} == {kind}
    assert {kind.value: 1}[kind] == 1
    assert (str(kind), repr(kind), json.dumps(kind)) == (kind.value, repr(kind.value), f'"{kind.value}"')
    assert copy.deepcopy(kind) is kind is pickle.loads(pickle.dumps(kind))
    assert collectives.FORMULAS[kind] is getattr(collectives, kind.call)


def test_an_unknown_collective_lists_the_known():
    with pytest.raises(ValueError, match="all-gather, reduce-scatter"):
        collectives.bus_bandwidth("gossip", 1, 2, 1)
    with pytest.raises(ValueError, match="all-gather, reduce-scatter"):
        collectives.bytes_received("gossip", 1, 2)
