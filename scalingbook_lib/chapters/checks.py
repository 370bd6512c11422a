"""Is the reader's answer right, and if not, what went wrong?

One check an exercise, used by the page, the notebook and the tests. Every chapter's room has a module
`checks` with a tuple `CHECKS`; it is imported when somebody asks for it.

A key is permanent: `<chapter>.<name>`. Exercises were counted once, and `ordinals.csv` has the name for each
number of then, for good: what a reader wrote down or kept under a number still finds its exercise.

>>> print(find("intro.compute-time")("3 s"))
✗ It is too large by more than a factor of ten: check the units of every term.
"""

import difflib
import functools
import importlib
import json
import pkgutil

from scalingbook_lib.chapters import stems
from scalingbook_lib.reader.checks import guess
from scalingbook_lib.reader.checks.check import NOTED, Check, Mistake, Outcome
from scalingbook_lib.reader.checks.programs import SOLVED

__all__ = [
    "Check",
    "Mistake",
    "Outcome",
    "catalogue",
    "find",
    "guess_json",
    "hint_json",
    "judge_json",
    "ordinals",
    "stems",
]


def catalogue(stem: str | None = None) -> dict[str, Check]:
    """The checks of a chapter by key; every chapter's where none is named."""
    wanted = stems() if stem is None else (stem,)
    return {check.key: check for name in wanted for check in _chapter(name)}


def find(key: str) -> Check:
    """The check of one exercise: `find("rooflines.int8-weights")`, which `rooflines.3` was once."""
    name = ordinals().get(key, key)
    found = catalogue(name.partition(".")[0])
    if name in found:
        return found[name]
    near = difflib.get_close_matches(key, found, n=1)
    raise ValueError(
        f"{key!r} is no exercise; the nearest is {near[0] if near else next(iter(found), 'none')}"
    )


@functools.cache
def ordinals() -> dict[str, str]:
    """The key of each exercise that once had a number: `rooflines.3` is `rooflines.int8-weights`."""
    table = pkgutil.get_data("scalingbook_lib.chapters", "ordinals.csv") or b""  # also from a page's archive
    rows = (line.partition(",") for line in table.decode().splitlines()[1:])
    return {ordinal: key for ordinal, _, key in rows}


def judge_json(key: str, text: str) -> str:
    """The judgement on what was typed into an answer box, as JSON: ok, status, message, hints."""
    try:
        check = find(key)
    except ValueError as error:
        return json.dumps({"ok": False, "status": "unread", "message": str(error), "hints": 0})
    outcome = NOTED if check.kind == "program" and text == SOLVED else check(text)
    reply = {
        "ok": outcome.ok,
        "status": outcome.status,
        "message": outcome.message,
        "hints": len(check.hints),
    }
    return json.dumps(reply, ensure_ascii=False)


def guess_json(text: str, answer: str, unit: str) -> str:
    """The judgement on a guess in a Predict box, as JSON: ok, status, message."""
    outcome = guess.judge(text, answer, unit)
    return json.dumps({"ok": outcome.ok, "status": outcome.status, "message": outcome.message})


def hint_json(key: str, n: int) -> str:
    """The n-th hint (from 1) as JSON: n, of, text."""
    try:
        hint = find(key).hint(n)
    except ValueError as error:
        return json.dumps({"n": 0, "of": 0, "text": str(error)})
    return json.dumps({"n": hint.n, "of": hint.of, "text": hint.text}, ensure_ascii=False)


def _chapter(stem: str) -> tuple[Check, ...]:
    if stem not in stems():
        raise ValueError(
            f"{stem!r} is no chapter with exercises; write one of {', '.join(stems()) or '(none yet)'}"
        )
    return importlib.import_module(f"scalingbook_lib.chapters.{stem}.checks").CHECKS
