"""Is a text as wide as it is measured? Held against two fonts of readers, DejaVu Sans and Helvetica."""

import string

import pytest
from fontTools.ttLib import TTFont

from scalingbook_book.reader.draw import svg
from web import vendor

TEXTS = ("43.6 µs", "tokens per chip", "131,072 of 917,504 FLOPs/s", "A[I, J] · B[J, K] → C[I, K]", "prefill")
SEEN = string.printable[:95] + "µ·×−→←✓✗²₀"
HELVETICA = {  # thousandths of the type size, from Adobe's metrics of the font
    sign: width
    for width, signs in (
        (222, "ijl"),
        (278, "ftI"),
        (333, "r"),
        (500, "cksvxyzJ"),
        (556, "abdeghnopquL0123456789"),
        (611, "FTZ"),
        (667, "ABEKPSVXY"),
        (722, "wCDHNRU"),
        (778, "GOQ"),
        (833, "mM"),
        (944, "W"),
    )
    for sign in signs
}


def dejavu(text, weight=400):
    """How wide the font sets a text in type of size 1."""
    vendor.install()
    files = vendor.package("@fontsource/dejavu-sans") / "files"
    font = TTFont(files / f"dejavu-sans-latin-{weight}-normal.woff")
    signs, widths = font.getBestCmap(), font["hmtx"]
    return sum(widths[signs[ord(c)]][0] for c in text) / font["head"].unitsPerEm


def test_no_character_is_wider_than_measured():
    wider = {c for c in SEEN if dejavu(c) > svg.measure(c, 1) + 0.005}
    wider |= {c for c, width in HELVETICA.items() if width / 1000 > svg.measure(c, 1) + 0.005}
    assert wider == set()


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_measured_hardly_wider_than_the_widest_font_sets_it(text):
    assert 0.9 < dejavu(text) / svg.measure(text, 1) <= 1
    assert 0.9 < dejavu(text, 700) / (svg.BOLD * svg.measure(text, 1)) <= 1.01
