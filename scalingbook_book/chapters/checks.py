"""Find the check of an exercise, which judges a reader's answer and says what went wrong.

Each exercise has one check, which the page, the notebook and the tests share. Every chapter's package has a
module `checks` with a tuple `CHECKS`; it is imported on first use.

A key, `<chapter>.<name>`, is permanent, because readers' progress and links refer to it.

>>> print(find("intro.compute-time")("3 s"))
✗ It is too large by more than a factor of ten. Check the units of every term.
"""

import difflib
import importlib
import json

from scalingbook_book.chapters import stems
from scalingbook_book.reader.checks import guess
from scalingbook_book.reader.checks.check import ACCEPTED, Check, Mistake, Outcome
from scalingbook_book.reader.checks.programs import SOLVED

__all__ = [
    "Check",
    "Mistake",
    "Outcome",
    "catalog",
    "find",
    "guess_json",
    "hint_json",
    "judge_json",
    "stems",
]


def catalog(stem: str | None = None) -> dict[str, Check]:
    """The checks of a chapter by key; every chapter's where none is named."""
    wanted = stems() if stem is None else (stem,)
    return {check.key: check for name in wanted for check in _chapter(name)}


def find(key: str) -> Check:
    """Return the check of one exercise, as in `find("rooflines.int8-weights")`.

    Raises ValueError, which names the nearest key, where there is no such exercise.
    """
    found = catalog(key.partition(".")[0])
    if key in found:
        return found[key]
    near = difflib.get_close_matches(key, found, n=1)
    raise ValueError(
        f"{key!r} is no exercise; the nearest is {near[0] if near else next(iter(found), 'none')}"
    )


def judge_json(key: str, text: str) -> str:
    """The judgement on what was typed into an answer box, as JSON: ok, status, message, hints."""
    try:
        check = find(key)
    except ValueError as error:
        return json.dumps({"ok": False, "status": "unread", "message": str(error), "hints": 0})
    outcome = ACCEPTED if check.kind == "program" and text == SOLVED else check(text)
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
    return importlib.import_module(f"scalingbook_book.chapters.{stem}.checks").CHECKS
