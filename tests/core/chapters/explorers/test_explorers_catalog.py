"""Laws of every explorer: whatever two controls say it paints or refuses, and no control is for nothing."""

import itertools
import json
import math
import random
import re

import pytest
from looked import values

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.controls import Choice, Notation, Slider, Steps, Switch
from tools.testing import scope

ALL = explorers.catalog()
LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
    "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "_name_or_path": "somebody/my-8b",
}  # fmt: skip
TEXTS = {  # what a reader types, beside what stands there at the start
    "tpus.route": ("16x16", "2x2x1", "2, 1", "fox"),
    "tpus.slices": ("16x16", "2x2x1", "2, 1", "fox"),
    "transformers.model": (json.dumps(LLAMA_8B),),
    "transformers.einsum": ("BTD,DF->BTF",),
    "transformers.balance": ("9 " * 63 + "400", "[" + "3, 1, " * 128 + "]"),
}
UNIT = r"no \w+ rate of [\w .()-]+ is known; compute in one of"
REFUSED = {  # what a reader may ask for and cannot get: a sentence that says what to write instead
    "architectures.frontier": "has memory for",
    "rooflines": rf"has no documented \w+ bandwidth|{UNIT}|tokens? are not enough",
    "gpus.fabric": "pairwise|connect at most",
    "gpus": f"[:;] set|[:;] lower|use fewer|a block has|cannot be shared|{UNIT}",
    "tpus.ladder": UNIT,
    "transformers.balance": "is not a number; paste|are not divisible by|write the load of each expert",
    "tpus.route": "there is no chip at|is not a chip; write its coordinates",
    "tpus.slices": "is not offered as|is not a slice shape",
    "sharding": ".{20}",
    "jax": ".{20}",
    "inference": f"[:;] set|write|{UNIT}",
    "inference_llama3": "[:;] set|write",
    "training": "[:;] set|[:;] lower|[:;] choose|[:;] write| needs even|are not divisible by cp",
    "training_llama3": "[:;] set|[:;] lower|[:;] choose|[:;] write| needs even|are not divisible by cp",
}
BASES = {  # where a control has nothing to say at the start
    ("sharding.reshard", "idle"): {"after": "A[I, J]"},
    ("conclusion.estimate", "show"): {"guess": "1 GB"},
}
# One of a thing in the plural, and a large number with an exponent: nobody says so.
THINGS = "elements|sequences|tokens|rows|columns|chips|layouts|FLOPs"
ILL_SAID = rf"(?<![\d.,])1 (?!(k|M|G|T|million|billion|trillion) )(\w+ )?({THINGS})\b(?!/)|\de\+?\d"
SMALL = ("intro.units", "transformers.router")  # what is far below one may be written with an exponent
SLOW = (
    "inference",
    "inference_llama3",
    "posttraining",
    "training",
    "training_llama3",
)  # the first control with every other


def offered(explorer, name):
    """The values of a control, as an address holds them."""
    control = explorer.controls[name]
    if isinstance(control, Notation):
        return [control.start, *TEXTS.get(explorer.key, ())]
    return [control.position(value) for value in values(control)]


def pairs(explorer):
    """States with two controls set: all of them, or few of those that take long."""
    stem = explorer.key.partition(".")[0]
    first, *others = explorer.controls
    slow = stem in SLOW
    named = [(first, other) for other in others] if slow else itertools.combinations(explorer.controls, 2)
    for a, b in named:
        some, more = offered(explorer, a)[: 4 if slow else 16], offered(explorer, b)[: 8 if slow else 16]
        both = [*itertools.product(some, more)]
        yield from (
            {a: one, b: other} for one, other in (random.Random(0).sample(both, 1) if stem == "jax" else both)
        )


def refused(key):
    """What an explorer's errors may say."""
    return REFUSED.get(key) or REFUSED.get(key.partition(".")[0], "nothing is refused")


@pytest.mark.sampled
@pytest.mark.parametrize("key", ALL)
def test_every_pair_of_settings_paints_or_says_what_to_write(key):
    explorer = ALL[key]
    for state in scope.sample(list(pairs(explorer))):
        painted = explorer.render(state)
        if error := painted.evaluated.error.replace("\N{NO-BREAK SPACE}", " "):
            assert re.search(refused(key), error), (state, error)
        else:
            assert painted.verdict, state
            assert "<svg" in painted.figure, state
            assert not re.search(r"\b(nan|inf)\b", painted.figure + painted.readouts + painted.verdict), state


def anything(control):
    """What an address can hold for a control, sensible or not."""
    match control:
        case Slider():
            return control.stops[:2]
        case Choice():
            return control.options
        case Switch():
            return True, False
        case Steps():
            return 0, 1, 10**6
        case Notation():
            return "", "A[", "x" * 500, "<script>"


@pytest.mark.parametrize("key", ALL)
def test_every_end_of_every_control_paints_and_a_phone_is_shown_as_many_pictures(key):
    explorer = ALL[key]
    for name, control in explorer.controls.items():
        for state in anything(control):
            wide, narrow = (explorer.render({name: state}, wide=wide) for wide in (True, False))
            assert narrow.figure or narrow.evaluated.error
            assert "nan" not in narrow.figure
            assert narrow.figure.count("<svg") == wide.figure.count("<svg"), (name, state)


@pytest.mark.parametrize("key", ALL)
def test_every_control_changes_something_and_is_told_in_good_words(key):
    explorer = ALL[key]
    for name in explorer.controls:
        base = BASES.get((key, name), {})
        start = explorer.render(base)
        others = [explorer.render(base | {name: value}) for value in offered(explorer, name)[1:]]
        changed = any((p.figure, p.readouts) != (start.figure, start.readouts) for p in others)
        assert changed or not others, name
        for view in (p.evaluated.view for p in (start, *others) if not p.evaluated.error):
            told = " | ".join([view.verdict, *map(str, view.readouts)])
            assert not re.search(ILL_SAID, told), told
            assert key in SMALL or not re.search(r"\de-?\d", told), told


def corners(explorer):
    """States with every control at an end or in the middle: all of them, or some where that takes long."""
    every = [ends(control) for control in explorer.controls.values()]
    found = [dict(zip(explorer.controls, state, strict=True)) for state in itertools.product(*every)]
    most = 30 if explorer.key.partition(".")[0] in SLOW else 700
    return found if len(found) <= most else random.Random(0).sample(found, min(most, 100))


def ends(control):
    match control:
        case Slider():
            return control.stops[:2]
        case Choice(options=options):
            return list(dict.fromkeys([options[0], options[len(options) // 2], options[-1]]))
        case Switch():
            return False, True
    return (control.position(control.start),) if isinstance(control, Notation) else (0, 1)


@pytest.mark.sampled
@pytest.mark.parametrize("key", ALL)
def test_every_corner_of_the_controls_is_seen_or_answered(key):
    for state in scope.sample(corners(ALL[key])):
        seen = ALL[key].evaluate_state(state)
        if seen.error:
            assert re.search(refused(key), seen.error), (state, seen.error)
        else:
            assert seen.view.verdict, state
            assert not any(math.isnan(r.value) for r in seen.view.readouts), state
