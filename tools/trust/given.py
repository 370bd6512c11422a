"""Random input for the library in an attack: configurations and notations, most of them invalid.

Each function draws one, tries it and returns the outcome; a failure raises.
"""

import json
from random import Random

from scalingbook_lib import models, notation
from scalingbook_lib.models import ModelError
from scalingbook_lib.notation import NotationError
from tools.environment import ROOT
from tools.trust.lines import NO_NUMBER

CONFIGS = json.loads((ROOT / "data" / "hf_configs.json").read_text(encoding="utf-8"))
RETYPED = (
    *(None, True, False, 0, 1, -1, 3, 0.5, 10**9, 10**400, 1e308, float("nan")),
    *("", "8", "llama", [], [1], {}, {"a": 1}),
)


def configurations(pick: Random) -> str:
    """Count a published configuration with fields dropped, retyped or scaled, or expect a clear error."""
    name = pick.choice(sorted(CONFIGS))
    config = json.loads(json.dumps(CONFIGS[name]))
    inner = config.get("text_config") or config
    for _ in range(pick.randint(1, 3)):
        at = pick.choice(sorted(inner) or ["model_type"])
        value = inner.get(at)
        scaled = [value * k for k in (2, 3, 10**6, -1)] if isinstance(value, int) else []
        do = pick.choice(("drop", "retype", "scale"))
        inner |= {} if do == "drop" else {at: pick.choice(scaled if do == "scale" and scaled else RETYPED)}
        if do == "drop":
            inner.pop(at, None)
    try:
        m = models.from_hf(config)
    except ModelError as error:
        return sentence(error, f"{name} {inner}")
    assert m.params == sum(m.by_part.values()) >= m.active_params > 0, f"{name} {inner}"
    assert all(weight.size > 0 for weight in m.weights()), f"{name} {inner}"
    assert not NO_NUMBER.search(str(m)), f"{name} {inner}: {m}"
    return "counted"


def array(pick: Random, name: str, dims: list[str]) -> str:
    """Return a valid array: each axis shards one dimension, is in the partial sum, or is unused."""
    places: list[list[str]] = [[] for _ in range(len(dims) + 2)]
    for axis in pick.sample("XYZ", 3):
        pick.choice(places).append(axis)
    sides = [dim + (f"_{{{''.join(axes)}}}" if axes else "") for dim, axes in zip(dims, places, strict=False)]
    return f"{name}[{', '.join(sides)}]" + (f"{{U_{''.join(places[-1])}}}" if places[-1] else "")


def product(pick: Random) -> str:
    """Return a valid matmul: each dimension is in one operand and kept, or in both and kept or contracted."""
    roles = {dim: pick.choice(("a", "b", "ab", "abc")) for dim in pick.sample("IJKLMN", pick.randint(1, 4))}
    a, b = ([dim for dim, role in roles.items() if side in role] or ["T"] for side in "ab")
    c = [dim for dim in roles if roles[dim] != "ab"] + ["T"] * ("T" in a + b)
    a, b, c = (pick.sample(dims, len(dims)) for dims in (a, b, c or ["T"]))
    if "T" in c:
        a, b = ([*dims, "T"] if "T" not in dims and roles else dims for dims in (a, b))
    signs = pick.choice("·*@×"), pick.choice(("->", "→", r"\to"))
    return f"{array(pick, 'A', a)} {signs[0]} {array(pick, 'B', b)} {signs[1]} {array(pick, 'C', c)}"


def notations(pick: Random) -> str:
    """Check that a valid matmul is printed as it was read; after a changed character, an error is allowed
    too.
    """
    text = product(pick)
    broken = pick.random() < 0.3
    if broken:
        at = pick.randrange(len(text))
        text = text[:at] + pick.choice(["", "]", "{", "_", "X", "é", "\n"]) + text[at + 1 :]
    try:
        found = notation.parse_product(text)
    except NotationError as error:
        if broken:
            return sentence(error, text)
        raise
    assert str(found) == text.strip(), f"{text!r} is printed as {found}"
    assert notation.parse_product(found.canonical()) == found, f"{text!r} is not {found.canonical()}"
    return "valid, read back"


def sentence(error: Exception, given: str) -> str:
    """Check that an error is a sentence that can be printed."""
    told = str(error)
    assert told.isprintable(), f"{given}: {told!r}"
    assert len(told) < 1000, f"{given}: {told}"
    return "refused"
