"""Inline Font Awesome icons where the text names them.

An inline icon needs no request, takes the text's color, and also shows in a page opened from a file.
"""

import re
from functools import cache

from web import vendor

_NAMED = re.compile(
    r'<i class="(?P<classes>[^"]*\bfa-(?P<style>solid|regular|brands) fa-(?P<name>[a-z0-9-]+)[^"]*)"'
    r"(?P<rest>[^>]*)></i>"
)
_COMMENT = re.compile(r"<!--.*?-->", re.S)


def drawn(text: str) -> str:
    """Return a page, or a script that writes parts of one, with every named icon as inline SVG."""
    return _NAMED.sub(_drawing, text)


def _drawing(found: re.Match[str]) -> str:
    bare = _shape(found["style"], found["name"])
    return (
        f'<svg class="icon {found["classes"]}"{found["rest"]} aria-hidden="true" {bare}' if bare else found[0]
    )


@cache
def _shape(style: str, name: str) -> str:
    """Return the part of an icon's file after `<svg `, or "" if Font Awesome has no such icon."""
    path = vendor.package("@fortawesome/fontawesome-free") / "svgs" / style / f"{name}.svg"
    if not path.exists():
        return ""
    text = _COMMENT.sub("", path.read_text(encoding="utf-8")).strip()
    return re.sub(r'^<svg xmlns="[^"]*" ', "", text)
