"""Rewords errors of the command line for the page, whose readers fill in fields and type no options."""

import re

_LISTED = re.compile(r"; write one of (?:[^,;]+, ){8,}.*$")  # all names, which the field suggests
_EXAMPLE = re.compile(r"; write (?:one as in|s, bytes, bits or FLOPs, with) .*$")
_REWORDED = (
    (re.compile(r"^(?:Invalid value for [^:]*: )?(?:name: )?"), ""),  # the field says it by its place
    (_LISTED, "; choose one from the list"),
    (re.compile(r"; `scalingbook chips` lists .*$"), "; the page 'Chips side by side' lists all chips"),
    (re.compile(r", or give the model's config\.json$"), ", or paste the model's config.json"),
    (re.compile(r"; write peak, calibrated, or a record .*$"), "; write calibrated or peak"),
    (
        re.compile(r"; compute in one of (?P<kinds>.+) and give the stored type separately$"),
        r"; write one of \g<kinds> as Compute dtype, and the stored types as Weight dtype and KV-cache dtype",
    ),
)


def for_page(says: str, *, example: str = "") -> str:
    """The error in terms of the page's fields; `example` is what to write in a field that has a number."""
    for pattern, words in _REWORDED:
        says = pattern.sub(words, says)
    return _EXAMPLE.sub(f"; write one as in {example}", says) if example else says
