"""Where do the icons come from? From Font Awesome's drawings, each put where the text names it.

An icon in the page needs no request, takes the text's colour, and shows in a page opened from a file.
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
    """A page, or a script that writes parts of one, with a drawing for every icon that it names."""
    return _NAMED.sub(_drawing, text)


def _drawing(found: re.Match[str]) -> str:
    bare = _shape(found["style"], found["name"])
    return (
        f'<svg class="icon {found["classes"]}"{found["rest"]} aria-hidden="true" {bare}' if bare else found[0]
    )


@cache
def _shape(style: str, name: str) -> str:
    """What stands behind `<svg ` in an icon's file; "" where Font Awesome has no such icon."""
    path = vendor.package("@fortawesome/fontawesome-free") / "svgs" / style / f"{name}.svg"
    if not path.exists():
        return ""
    text = _COMMENT.sub("", path.read_text(encoding="utf-8")).strip()
    return re.sub(r'^<svg xmlns="[^"]*" ', "", text)
