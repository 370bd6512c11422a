"""Tables of the chapters: the same cells as HTML and as text, and a row that does not fit is refused."""

import pytest

from scalingbook_book.show.tables import table

TABLE = table("chip, links", [("TPU v5e", 4), ("H100", 18)], title="Links of a chip")


def test_html_has_a_caption_and_a_row_for_the_heads_and_for_each_row():
    assert TABLE._repr_html_() == (
        '<table class="dataframe"><caption>Links of a chip</caption><tr><th>chip</th><th>links</th></tr>'
        "<tr><td>TPU v5e</td><td>4</td></tr><tr><td>H100</td><td>18</td></tr></table>"
    )


def test_text_is_aligned_below_its_title():
    assert repr(TABLE) == "Links of a chip\nchip     links\nTPU v5e  4\nH100     18"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"2 heads .* and a row of 3: a, b, c"):
        table("one, two", [("a", "b", "c")], title="Letters")


def test_a_letter_with_an_index_is_typeset_in_a_heading():
    html = table("chip, C/W_hbm, W_dom in fp8", [("A", 1, 2)], title="Ratios")._repr_html_()
    assert "<th><i>C</i>/<i>W</i><sub>hbm</sub></th><th><i>W</i><sub>dom</sub> in fp8</th>" in html
