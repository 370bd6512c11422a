"""What does a check say of an answer? The assertions that the tests of all chapters' checks share."""

from scalingbook_lib.chapters import checks


def right(key: str, given: object) -> None:
    """The check takes the answer."""
    outcome = checks.find(key)(given)
    assert outcome.ok, outcome


def wrong(key: str, given: object, says: str) -> None:
    """The check refuses the answer, and its message holds these words."""
    outcome = checks.find(key)(given)
    assert outcome.status == "wrong", outcome
    assert says in outcome.message, outcome.message
