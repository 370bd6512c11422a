"""Tests of imported progress files: in any order, and files of other origin."""

import json
import random
import subprocess
from pathlib import Path

import pytest

from web import vendor

SCRIPT = Path(__file__).with_name("kept.mjs")
SEEDS = range(200)
KEPT = {
    "rooflines.no-overlap": {
        "solved": True, "tries": 3, "hints": 1, "when": "2026-11-23T18:00:00.000Z", "answer": "43 µs",
    }
}  # fmt: skip
NO_JSON, NO_BOOK = "it is not JSON", "it is not an export of this book"
NO_VERSION = "it does not state its version"
LATER = "a later edition of the book wrote it; import it there"
REFUSED = {
    "": NO_JSON, "<script>alert(1)</script>": NO_JSON, "[" * 200_000: NO_JSON,
    "[1]": NO_BOOK, "null": NO_BOOK, "3": NO_BOOK, '"scalingbook"': NO_BOOK, '{"book": "another"}': NO_BOOK,
    '{"__proto__": {"book": "scalingbook"}}': NO_BOOK, "[" * 9000 + "]" * 9000: NO_BOOK,
    '{"book": "scalingbook"}': NO_VERSION, '{"book": "scalingbook", "version": "1"}': NO_VERSION,
    '{"book": "scalingbook", "version": 2}': LATER,
    '{"book": "scalingbook", "version": 1, "progress": []}': "its progress is not kept by exercise",
    " " * (2**20 + 1): "it has 1.0 MB, and an export less than 1",
}  # fmt: skip
HOSTILE = (None, True, 3, "x", [], {}, [{"solved": True}], {"solved": "yes"}, {"solved": 1})


def asked(tried):
    """What the module says to each file, given what was held before."""
    question = [{"file": f, "held": held} for f, held in tried]
    done = subprocess.run(
        [vendor.node(), str(SCRIPT)], input=json.dumps(question), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def added(tried):
    """The same for files that are taken."""
    files = [(json.dumps({"book": "scalingbook", "version": 1, "progress": p}), held) for p, held in tried]
    return [told["progress"] for told in asked(files)]


def state(chance):
    """What a reader may have done with a few exercises."""

    def entry():
        one = {"solved": chance.random() < 0.5, "tries": chance.randrange(4), "hints": chance.randrange(3)}
        said = {
            "when": chance.choice(("2026-10-01", "2026-11-23", "2026-11-23T18:00:00.000Z")),
            "answer": chance.choice(("", "1 s", "2 s")), "guess": chance.choice(("", "much")),
            "judged": chance.choice(("", "near", "wrong")), "page": "rooflines",
        }  # fmt: skip
        return one | {name: text for name, text in said.items() if chance.random() < 0.5}

    keys = (
        "rooflines.int8-weights",
        "rooflines.no-overlap",
        "jax.scattered-sum",
        "guess.rooflines-batch-1",
        "gone.for-good",
    )
    return {key: entry() for key in keys if chance.random() < 0.7}


@pytest.fixture(scope="module")
def states():
    raw = [[state(random.Random(3 * seed + k)) for k in range(3)] for seed in SEEDS]
    flat = iter(added([(one, {}) for three in raw for one in three]))
    return [[next(flat) for _ in three] for three in raw]


def test_the_order_of_files_does_not_matter_and_none_counts_twice(states):
    both = added([(b, a) for a, b, _ in states])
    assert added([(a, b) for a, b, _ in states]) == both
    thrice = added([(c, ab) for ab, (_, _, c) in zip(both, states, strict=True)])
    others = added([(c, b) for _, b, c in states])
    assert added([(bc, a) for bc, (a, _, _) in zip(others, states, strict=True)]) == thrice
    assert added([(b, ab) for ab, (_, b, _) in zip(both, states, strict=True)]) == both


def test_nothing_solved_is_lost_no_count_falls_and_the_newer_answer_is_kept(states):
    for (a, b, _), merged in zip(states, added([(b, a) for a, b, _ in states]), strict=True):
        assert merged.keys() == a.keys() | b.keys()
        for key, one in merged.items():
            held = [old[key] for old in (a, b) if key in old]
            assert one["solved"] == any(old["solved"] for old in held)
            assert (one["tries"], one["hints"]) == tuple(max(o[n] for o in held) for n in ("tries", "hints"))
            said = [old for old in held if old.get("answer") or old.get("guess")]
            newest = max((old.get("when", "") for old in said), default="")
            assert one.get("answer") in [o.get("answer") for o in said or held if o.get("when", "") >= newest]


def test_a_foreign_file_is_refused_with_a_reason():
    assert [told.get("refused") for told in asked([(file, {}) for file in REFUSED])] == list(REFUSED.values())


def test_invalid_entries_are_ignored_and_existing_ones_kept():
    held = KEPT
    hostile = {
        "__proto__": held["rooflines.no-overlap"],
        "constructor": {"solved": True},
        "<b>.x": {"solved": True},
    }
    hostile |= {f"rooflines.odd-{k}": value for k, value in enumerate(HOSTILE)}
    wrong = {"solved": True, "tries": -1e99, "hints": "9", "when": "<img>", "answer": {"a": 1}, "more": [1]}
    long = {"solved": False, "tries": 1e300, "hints": 0.5, "answer": "x" * 9999}
    (told,) = added([(hostile | {"rooflines.no-overlap": wrong, "jax.long": long}, held)])
    assert told.keys() == held.keys() | {"jax.long"}
    assert told["rooflines.no-overlap"] == held["rooflines.no-overlap"]
    assert told["jax.long"] == {"solved": False, "tries": 10**6, "hints": 0, "answer": "x" * 500}
