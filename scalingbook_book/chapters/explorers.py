"""Find an explorer, and answer the calls of the page for it; an explorer is controls and a pure view.

Every chapter's package `explorers` has a tuple `EXPLORERS` of explorers such as this one:

    from scalingbook_lib.machines import chips
    from scalingbook_lib import roofline
    from scalingbook_book.reader.explorers.parts import (Chart, Choice, Curve, Explorer, Readout, RefLine,
        Scale, Slider, View)

    def _waiting(*, batch: int, chip: str) -> View:
        on = chips.find(chip)
        batches = [2**e for e in range(13)]
        times = [roofline.matmul(b, 8192, 8192, on) for b in batches]
        now = roofline.matmul(batch, 8192, 8192, on)
        chart = Chart(
            x=Scale("batch", "tokens", "pow2"),
            y=Scale("time", "s", "log"),
            marks=(
                Curve("math", batches, [t.math_s for t in times]),
                Curve("memory", batches, [t.memory_s for t in times]),
                RefLine("you are here", batch, axis="x"),
            ),
        )
        said = f"At {batch} tokens this matmul is {now.bound}."
        return View(said, (chart,), (Readout("time", now.lower_s, "s"),))

    WAITING = Explorer(
        key="rooflines.waiting",
        title="Math or memory",
        question="At which batch does the chip stop waiting for its memory?",
        controls=dict(
            batch=Slider("tokens B", 1, 4096, 64, scale="pow2", unit="tokens"),   # integers give integers
            chip=Choice("chip", ("TPU v5e", "TPU v5p"), "TPU v5e"),
        ),
        view=_waiting,
    )
    EXPLORERS = (WAITING,)

`parts` has View, Scale, Chart (of Curve, Points, Band, RefLine, Regions), Bars, Grid, Timeline, Network and
Readout, and the controls Slider, Choice, Switch, Notation and Steps; `layouts` places the nodes of a Network.
It also re-exports the chips, machines and models that controls offer (`TORI`, `machine`, `spread`, ...) and
the helpers for the wording of a verdict (`pluralize`, `join_and`, ...).

A view raises ValueError (NotationError, SliceError ...) for input that it cannot read, and the explorer shows
the sentence. `explorer.evaluate(batch=128)` is the view for a test.

The page's worker calls `paint_json` for every event, `place_json` for the values in an address and
`table_json` for a file of the numbers. The page finds `<div class="explorer" data-explorer=KEY>`, whose
inputs carry the parameters' names; `outputs` belong to `output[for=ID]` and to a range's `aria-valuetext`,
`figure` into `.ex-wide` or `.ex-narrow`, `readouts` into `.ex-readouts`, `verdict` as text into
`.ex-verdict`, `error` as text into `.ex-error`; the range of a Steps control has `data-steps`, its `max` is
`frames - 1`.

>>> find("rooflines.roofline").title
'Roofline plot of one matmul on two chips'
"""

import csv
import io
import json
from functools import cache
from importlib import import_module

from scalingbook_book.chapters import stems
from scalingbook_book.reader.explorers import numbers
from scalingbook_book.reader.explorers.controls import Slider
from scalingbook_book.reader.explorers.explorer import Explorer


@cache
def find(key: str) -> Explorer:
    """The explorer of that key, such as `rooflines.roofline`; a LookupError that names the known ones."""
    stem = key.partition(".")[0]
    for explorer in chapter(stem):
        if explorer.key == key:
            return explorer
    known = ", ".join(e.key for e in chapter(stem)) or ", ".join(catalog())
    raise LookupError(f"there is no explorer {key!r}; there are {known}")


def chapter(stem: str) -> tuple[Explorer, ...]:
    """The explorers of one chapter, in its order; none where the chapter has none."""
    if stem not in stems():
        return ()
    return tuple(import_module(f"scalingbook_book.chapters.{stem}.explorers").EXPLORERS)


def catalog() -> dict[str, Explorer]:
    """Every explorer by its key."""
    return {e.key: e for stem in stems() for e in chapter(stem)}


def paint_json(key: str, state_json: str, wide: bool) -> str:
    """What the page's worker calls for every event: a state in, painted HTML out, as JSON; never raises."""
    try:
        painted = find(key).render(json.loads(state_json), wide=wide)
    except Exception as problem:
        return json.dumps({"error": f"This explorer stopped: {type(problem).__name__}: {problem}"})
    seen = painted.evaluated
    told = {"outputs": seen.outputs, "state": seen.state, "notes": seen.notes, "error": seen.error or None}
    # what an address keeps: a slider's position may come to mean something else, its value cannot
    sliders = (name for name, control in find(key).controls.items() if isinstance(control, Slider))
    told["values"] = {name: seen.values[name] for name in sliders}
    if seen.view:
        told |= {"figure": painted.figure, "readouts": painted.readouts, "verdict": painted.verdict}
        told["frames"] = painted.frames
    return json.dumps(told)


def place_json(key: str, values_json: str) -> str:
    """Where sliders stand that have these values, as JSON by name: the nearest positions there are."""
    controls = find(key).controls
    asked = json.loads(values_json)
    return json.dumps({name: controls[name].position(value) for name, value in asked.items()})


def table_json(key: str, state_json: str) -> str:
    """The numbers of a state as a spreadsheet reads them: `{"csv": ...}`, or `{"error": ...}`."""
    explorer = find(key)
    seen = explorer.evaluate_state(json.loads(state_json))
    if seen.view is None:
        return json.dumps({"error": seen.error})
    controls = [
        ("control", c.label, "", "", seen.values[n], getattr(c, "unit", ""))
        for n, c in explorer.controls.items()
    ]
    file = io.StringIO()
    csv.writer(file).writerows([numbers.COLUMNS, *controls, *numbers.rows(seen.view)])
    return json.dumps({"csv": file.getvalue()})
