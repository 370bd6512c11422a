"""What does a check say of an answer? The assertions that the tests of all chapters' checks share."""

from dataclasses import replace
from typing import Any

from scalingbook_book.chapters import checks
from scalingbook_book.chapters.checks import Check
from scalingbook_book.reader.checks.programs import ProgramVerdict


def by_judge(check: Check, given: Any) -> Any:
    """What is given, a verdict as the judge of this exercise writes it."""
    return replace(given, key=check.key, asked=()) if isinstance(given, ProgramVerdict) else given


def right(key: str, given: object) -> None:
    """The check takes the answer."""
    outcome = checks.find(key)(given)
    assert outcome.ok, outcome


def wrong(key: str, given: object, says: str) -> None:
    """The check refuses the answer, and its message holds these words."""
    outcome = checks.find(key)(given)
    assert outcome.status == "wrong", outcome
    assert says in outcome.message, outcome.message
