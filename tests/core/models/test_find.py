"""A model is found under every spelling of its name, and no altered name finds another model."""

import re

import pytest

from scalingbook_lib import models
from scalingbook_lib.models import CATALOGUE
from scalingbook_lib.models.catalogue import ALIASES

SPELLED = [*(m.name for m in CATALOGUE), *ALIASES]


def altered(name):
    """Names that are not this one by a digit, a point, a letter or a word."""
    for i in range(len(name) + 1):
        yield from (name[:i] + new + name[i:] for new in ("1", "0", ".", "x"))
        if (i < len(name) and name[i].isalnum()) or name[i : i + 1] == ".":
            yield name[:i] + name[i + 1 :]
    yield from (f"{name} instruct", f"meta/{name}", f"{name}{' ' * 90}2", f"not {name}")


def says(text):
    """What a name says: its letters and its digits, with the points that stand in it."""
    letters = "".join(c for c in text.lower() if c.isalpha())
    return letters, re.findall(r"\d+", text)


@pytest.mark.parametrize("name", SPELLED)
def test_no_altered_name_finds_another_model(name):
    for typed in (name.upper(), name.lower().replace(" ", "-"), name.replace("-", "_"), f" {name} "):
        assert models.find(typed) is models.find(name)
    for typed in altered(name):
        try:
            found = models.find(typed)
        except models.ModelError:
            continue
        known = [found.name, *(alias for alias, of in ALIASES.items() if of == found.name)]
        same = [own for own in known if says(own) == says(typed)]
        assert same, typed
        assert any(set(re.findall(r"\d+\.\d+", typed)) <= set(re.findall(r"\d+\.\d+", s)) for s in same), (
            typed
        )


@pytest.mark.parametrize(
    ("typed", "near"), [("OPT-13B", "OPT 1.3B"), ("gemma-12b", "Gemma-3 12B"), ("LLaMA-3 7B", "LLaMA-3 70B")]
)
def test_a_point_that_is_left_out_is_another_size_and_refused(typed, near):
    with pytest.raises(models.ModelError, match="is not in the catalogue") as refused:
        models.find(typed)
    assert near in str(refused.value)
    assert models.find(near).name == near
