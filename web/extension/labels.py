"""Embed the label of every slider position, so that labels are correct before Python has started.

A slider of more than `MOST` positions has no table: its label is the number at its position, as a test
asserts.
"""

import re
from functools import cache
from html import escape

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.slider import Slider
from scalingbook_lib.words import joined_units

MOST = 400
BETWEEN = "|"
_EXPLORER = re.compile(r'<div class="explorer" data-explorer="(?P<key>[\w.]+)".*?</form>', re.DOTALL)
_SLIDER = re.compile(r'(<input type="range" id="[^"]*" name="(?P<name>\w+)")(?: data-texts="[^"]*")?')


def added(html: str) -> str:
    """Return a page whose sliders have up-to-date label tables."""
    return _EXPLORER.sub(lambda found: _SLIDER.sub(lambda one: _told(found["key"], one), found[0]), html)


def _told(key: str, found: re.Match[str]) -> str:
    control = explorers.find(key).controls[found["name"]]
    texts = table(control) if isinstance(control, Slider) else ()
    return found[1] + (f' data-texts="{escape(BETWEEN.join(texts))}"' if texts else "")


@cache
def table(slider: Slider) -> tuple[str, ...]:
    """Return the label at every position, or () if there are too many."""
    first, last, step = slider.stops
    count = round((last - first) / step) + 1
    if count > MOST:
        return ()
    return tuple(joined_units(slider.text(slider.value(first + step * at))) for at in range(count))
