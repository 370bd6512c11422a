"""Is a text as wide as it is measured? Held against two fonts of readers, DejaVu Sans and Helvetica."""

import string
from pathlib import Path

import matplotlib
import pytest
from matplotlib import ft2font
from matplotlib._afm import AFM

from scalingbook_lib.reader.draw import svg

FONTS = Path(matplotlib.get_data_path()) / "fonts"
TEXTS = ("43.6 µs", "tokens per chip", "131,072 of 917,504 FLOPs/s", "A[I, J] · B[J, K] → C[I, K]", "prefill")
SEEN = string.printable[:95] + "µ·×−→←✓✗²₀"


def dejavu(name):
    """Its measure of a text in type of size 1."""
    font = ft2font.FT2Font(FONTS / "ttf" / f"{name}.ttf")
    font.set_size(100, 72)
    return lambda text: sum(font.load_char(ord(c)).linearHoriAdvance for c in text) / 2**16 / 100


def helvetica(text):
    """The same."""
    with (FONTS / "pdfcorefonts" / "Helvetica.afm").open("rb") as file:
        font = AFM(file)
    return sum(font.get_width_char(ord(c)) for c in text) / 1000


PLAIN, BOLD = dejavu("DejaVuSans"), dejavu("DejaVuSans-Bold")


@pytest.mark.parametrize(("font", "signs"), [(PLAIN, SEEN), (helvetica, string.ascii_letters + "0123456789")])
def test_no_character_is_wider_than_measured(font, signs):
    assert {c: font(c) for c in signs if font(c) > svg.measure(c, 1) + 0.005} == {}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_measured_hardly_wider_than_the_widest_font_sets_it(text):
    assert 0.9 < PLAIN(text) / svg.measure(text, 1) <= 1
    assert 0.9 < BOLD(text) / (svg.BOLD * svg.measure(text, 1)) <= 1.01
