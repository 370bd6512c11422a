"""Tests of the typesetting of outputs and of no-break spaces."""

import pytest

from web.extension import breakable_names, math_punctuation, no_break_spaces, outputs, page

NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("341,764 cycles, or 228 µs", "sentence"),
        ("memory-bound: math 43.6 µs, memory 166 µs, at most 26% of the peak", "sentence"),
        ("v = 1: 40 GPUs\nv = 8: 2 GPUs", "sentence"),
        ("collective  axes\nall-gather  X", "aligned"),
        ("def f(x):\n    return x", "aligned"),
        ("A[I_X, J] → A[I, J]: gather A over X", ""),
        ("%all-reduce = bf16 add, to apply", ""),
        ("3 1 4", ""),
    ],
)
def test_a_sentence_wraps_and_aligned_lines_scroll(text, kind):
    assert outputs.kind(text) == kind


def test_a_sentence_below_a_table_wraps_and_the_table_scrolls():
    table, said = "  tp    step\n   1  1.35 s", "A step takes 1.35 s."
    assert outputs.parts(f"{table}\n\n{said}\n") == [table.strip("\n"), said]
    alone = "def f():\n    return 1\n\ndef g():\n    return 2"
    assert outputs.parts(alone) == [alone]


def test_powers_of_ten_are_typeset_in_sentences_and_cells():
    line = "6.35e+24 FLOPs, off by 3e-06 (0x1e5, v1e3)"
    said = "".join(
        f"^{node.astext()}" if node.tagname == "superscript" else node.astext()
        for node in outputs.powers(line)
    )
    assert said == f"6.35{NBSP}×{NBSP}10^24 FLOPs, off by 3{NBSP}×{NBSP}10^−6 (0x1e5, v1e3)"
    html = "<td>5.9e+17</td><td>float 1e3 of x</td>"
    assert outputs.powers_of_cells(html) == f"<td>5.9{NBSP}×{NBSP}10<sup>17</sup></td><td>float 1e3 of x</td>"


@pytest.mark.parametrize(
    ("html", "joined"),
    [
        ("<p>takes 3.7 ns and 40 %</p>", f"<p>takes 3.7{NBSP}ns and 40{NBSP}%</p>"),
        ("<p>989 TFLOPs/s, 16 GiB, 24 h</p>", f"<p>989{NBSP}TFLOPs/s, 16{NBSP}GiB, 24{NBSP}h</p>"),
        ("<p>chapter 3 says, 2 beside 5</p>", "<p>chapter 3 says, 2 beside 5</p>"),
        ("<p><code>7 % 2 s</code> 1 s</p>", f"<p><code>7 % 2 s</code> 1{NBSP}s</p>"),
        (
            '<div class="answer-box"><div>1 s</div>2 s</div>3 s',
            f'<div class="answer-box"><div>1 s</div>2 s</div>3{NBSP}s',
        ),
        (
            '<div class="explorer"><select><option>1 s</option></select><svg>2 s</svg><p>3 s</p></div>',
            f'<div class="explorer"><select><option>1 s</option></select><svg>2 s</svg><p>3{NBSP}s</p></div>',
        ),
        (
            '<img alt="4 s">5 s<svg><text>6 s</text></svg>',
            f'<img alt="4 s">5{NBSP}s<svg><text>6 s</text></svg>',
        ),
    ],
)
def test_numbers_are_joined_with_units_in_text_only(html, joined):
    assert no_break_spaces.join(html) == joined


MATH = '<span class="math"><span class="katex"><span class="base">x</span></span></span>'
LONG = MATH.replace("</span></span></span>", '</span><span class="base">= 1</span></span></span>')
BREAKABLE = LONG.replace('<span class="base">=', '<wbr><span class="base">=')


@pytest.mark.parametrize(
    ("html", "joined"),
    [
        (f"<p>for {MATH} chips</p>", f"<p>for {MATH} chips</p>"),
        (f"<p>for {MATH}, say</p>", f'<p>for <span class="unbroken">{MATH},</span> say</p>'),
        (f"<p>all (or {MATH}).</p>", f'<p>all (or <span class="unbroken">{MATH}).</span></p>'),
        (f"<p>all ({MATH} chips)</p>", f'<p>all <span class="unbroken">({MATH}</span> chips)</p>'),
        (f"<p>({LONG}), {MATH}</p>", f'<p><span class="unbroken">({BREAKABLE}),</span> {MATH}</p>'),
    ],
)
def test_a_formula_stays_on_one_line_with_its_punctuation(html, joined):
    assert math_punctuation.join(html) == joined


HEAD = '<th class="head"><p>{}</p></th>'
FORMULA = (
    '<span class="math"><span class="katex"><semantics><mi>n</mi><annotation>n</annotation></semantics>'
    "</span></span>"
)


def test_a_column_heading_keeps_the_words_beside_its_formula():
    both = HEAD.format(f"{FORMULA} and {FORMULA}")
    words = HEAD.format(f"{FORMULA} TPUs on a ring")
    assert page.plain_heads(both + words) == both + words
    assert page.plain_heads(words + HEAD.format(FORMULA)) == words + HEAD.format("<i>n</i>")


def test_a_long_name_breaks_at_its_dots_in_a_table_only():
    long, short = "jax.typeof(x).manual_axis_type", "jax.typeof(x)"
    code = '<span class="pre">{}</span>'
    told = f"<p>{code.format(long)}</p><td>{code.format(short)} {{}}</td>"
    wanted = told.format(code.format("jax.<wbr>typeof(<wbr>x).<wbr>manual_axis_type"))
    assert breakable_names.breakable(told.format(code.format(long))) == wanted
