"""The sheet cannot drift: each formula is worked out by hand, and what its sentences claim is asked again."""

import re
from base64 import b64decode

import pytest

from scalingbook_book.chapters.conclusion import sheet
from scalingbook_lib import models
from scalingbook_lib.evidence import inference as served
from scalingbook_lib.evidence import measured
from scalingbook_lib.evidence import training as trained
from scalingbook_lib.machines import chips

M = models.find("Llama 3 70B")


@pytest.mark.parametrize("formula", sheet.FORMULAS, ids=lambda formula: formula.question)
def test_the_formula_by_hand_is_what_the_library_says(formula):
    assert formula.by_hand() == pytest.approx(formula.value(), rel=1e-12)
    assert formula.formula
    assert formula.holds
    assert formula.case


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("C of TPU v5p", "459 TFLOPs/s"),
        ("W_hbm of TPU v5p", "2.77 TB/s"),
        ("C of H100", "989 TFLOPs/s"),
        ("W_hbm of H100", "3.35 TB/s"),
        ("ridge point C / W_hbm", "153 FLOPs/B to 560 FLOPs/B"),
        ("W_1, one link of a torus", "50 GB/s to 100 GB/s"),
        ("W, all links under a switch", "300 GB/s to 900 GB/s"),
        ("weights of Llama 3 70B", "141 GB"),
        ("training Llama 3 70B on 15 trillion tokens", "6.35 × 10²⁴ FLOPs"),
        ("KV cache of Llama 3 70B, one token", "328 kB"),
    ],
)
def test_numbers_to_know(name, said):
    assert next(number for number in sheet.NUMBERS if number.name == name).said() == said


def test_what_the_sheet_says_beside_its_numbers():
    assert len(sheet.NUMBERS) == 14
    assert chips.H100.links * chips.H100.link_bytes_per_s == 9 * 5e10 == 9 * (chips.H100.dcn_bytes_per_s or 0)
    assert {chip.links for chip in (chips.V5E, chips.V5P, chips.V6E, chips.TPU7X)} == {4, 6}
    assert round(1e9 / (4 * M.L * M.K * M.H)) == 3052
    assert round(6 * M.params * 15e12 / chips.V5P.bf16_flops_per_s / (365.25 * 86400)) == 438
    ridge = {chip.name: chip.bf16_flops_per_s / chip.hbm_bytes_per_s for chip in (chips.A100, chips.V6E)}
    assert [round(found) for found in ridge.values()] == [153, 560]
    waits = [
        point.model.alpha_s
        for point in measured.COLLECTIVES.points
        if point.chip.name in ("A100", "H100", "B200")
    ]
    assert 1e-5 < sorted(waits)[len(waits) // 2] < 3e-5


def test_the_narrowest_band_is_dense_training_and_the_widest_is_serving():
    said = next(number for number in sheet.NUMBERS if number.name == "error band of a prediction").values()
    assert said[0] == trained.prediction_interval(experts=False) < served.prediction_interval(experts=False)
    assert said[1] == served.prediction_interval(experts=False) == served.prediction_interval(experts=True)
    assert trained.prediction_interval(experts=True) < said[1]
    note = next(number for number in sheet.NUMBERS if number.name == "error band of a prediction").use
    assert note.endswith(f"{said[0]:.2f} for dense training, {said[1]:.2f} for serving")


def test_the_page_has_every_line_in_both_forms():
    page = sheet.page()
    for line in (*sheet.FORMULAS, *sheet.NUMBERS):
        assert line.said() in str(page)
    assert page.html().count("<tr>") == 3 + 15 + len(sheet.FORMULAS) + len(sheet.NUMBERS)
    assert "<table" in page._repr_html_()
    assert "&" not in page.html().replace("&#x27;", "")
    assert page.html().count('<span class="math">$') == len(sheet.FORMULAS)


@pytest.mark.parametrize("formula", sheet.FORMULAS, ids=lambda formula: formula.question)
def test_the_typeset_formula_has_the_letters_and_numbers_of_the_plain_one(formula):
    words = re.sub(r"\\(?:d?frac|sqrt|text|max|left|right|cdot)\b", " ", formula.tex)
    plain = formula.formula.replace("²", "2").replace("max", "")
    assert sorted(re.findall(r"\w", words.replace("_", " "))) == sorted(re.findall(r"[^\W_]", plain))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("goodput left by restarts", "72"),
        ("experts hide their AllToAlls above a width of", "2,778 columns"),
        ("tensor parallelism is hidden up to a degree of", "12"),
        ("best FSDP degree with TP", "1,095"),  # sqrt(2^22 · 4,096 · 2 / 28,672) = 1,094.7
    ],
)
def test_shares_columns_and_degrees_are_written_as_people_say_them(question, said):
    told = next(formula for formula in sheet.FORMULAS if formula.question == question).said()
    assert told.rpartition(": ")[2].rstrip(" %") == said


def test_the_document_stands_alone_and_the_notebook_offers_it():
    page = sheet.page()
    document = page.document()
    assert document.startswith("<!doctype html>")
    assert (document.count("<table"), page.html().count("<table")) == (2, 3)  # symbols are a line on paper
    assert "W<sub>hbm</sub>" in document.replace("<i>", "").replace("</i>", "")
    assert not {"src=", "href=", "url("} & set(re.findall(r"src=|href=|url\(", document))
    offered = re.search(r'href="data:text/html;base64,([^"]+)"', page._repr_html_())
    assert offered is not None
    assert b64decode(offered[1]).decode() == document


def test_the_document_names_every_letter_of_its_formulas():
    letters = {letter for f in sheet.FORMULAS for letter in re.findall(r"\b[A-Za-z](?:_\w+)?\b", f.formula)}
    explained = re.sub(r"</?i>|</sub>", "", sheet.page().document().rpartition("<p>")[2]).replace(
        "<sub>", "_"
    )
    told = set(re.findall(r"\b[A-Za-z](?:_\w+)?\b", explained))
    assert letters <= told
