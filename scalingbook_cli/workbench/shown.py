"""The HTML of an answer, at build time and whenever a reader changes a field."""

import html
import re
from collections.abc import Iterable
from typing import Any

from scalingbook_lib.words import joined_units

_FITS = {True: "yes", False: "no", None: "unknown"}
_FIRST_WORD = re.compile(r"^[a-z]+(?=[ ,])")


def _text(says: str) -> str:
    """Text for HTML, in which no line ends between a number and its unit."""
    return html.escape(joined_units(says))


def column(panel: dict[str, Any]) -> str:
    """One set-up's answer in a panel: whether it fits, a picture, sentences, tables, the derivation."""
    tables = [table(**one) for one in panel["tables"]]
    searched = "".join(map(paragraph, panel.get("searched", ())))
    parts = (
        _fit(panel["fit"]) if "fit" in panel and panel["fit"]["told"] else "",
        f'<p class="workbench-refused">{_text(panel["error"])}</p>' if "error" in panel else "",
        _picture(panel["picture"]) if "picture" in panel else "",
        *map(paragraph, panel["told"]),
        *tables[:1],
        _folded("All tables", "".join(tables[1:])),
        _folded("What was searched", searched),
        _folded("Derivation", derivation(panel["lines"])),
    )
    return f'<div class="workbench-column">{"".join(parts)}</div>'


def bar(says: str, fits: bool | None, numbers: str = "") -> str:
    """One entry of the status bar: whether it fits, and the main numbers."""
    more = f'<span class="workbench-numbers">: {_text(numbers)}</span>' if numbers else ""
    return f'<p class="workbench-sum" data-fits="{_FITS[fits]}"><b>{_text(says)}</b>{more}</p>'


def _fit(fit: dict[str, Any]) -> str:
    """The first line, with a button that sets a larger machine if that would fit."""
    apply, fits = fit["apply"], _FITS[fit["fits"]]
    button = ""
    if apply:
        field, value = html.escape(apply["field"]), html.escape(apply["value"])
        button = f' <button type="button" data-apply="{field}" data-value="{value}">Use {value}</button>'
    return f'<p class="workbench-fit" data-fits="{fits}">{_text(fit["told"])}{button}</p>'


def _picture(picture: dict[str, str]) -> str:
    return (
        f'<p class="workbench-verdict">{_text(picture["told"])}</p>'
        '<div class="workbench-picture ex-figure fig">'
        f'<div class="fig-wide">{picture["wide"]}</div>'
        f'<div class="fig-narrow" hidden>{picture["narrow"]}</div></div>'
    )


def paragraph(line: str) -> str:
    """A line of terminal output as a sentence; option names keep their case."""
    text = _FIRST_WORD.sub(lambda word: word[0].capitalize(), line)
    return f"<p>{_text(text)}{'' if text.endswith('.') else '.'}</p>"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>" if content else ""


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], words: Iterable[int]) -> str:
    """A scrollable table with right-aligned numbers."""
    caption = f"<caption>{_text(title)}</caption>" if title else ""
    head = _row(columns, words, "th") if any(columns) else ""
    body = "".join(_row(row, words, "td") for row in rows)
    name = _text(title or "table")
    drawn = f"<table>{caption}{head}{body}</table>"
    return f'<div class="workbench-table" tabindex="0" role="region" aria-label="{name}">{drawn}</div>'


def _row(cells: Iterable[str], words: Iterable[int], tag: str) -> str:
    told = []
    for at, cell in enumerate(cells):
        name = tag if cell else "td"  # an empty header says nothing
        kind = "" if at in words else ' class="workbench-number"'
        told.append(f"<{name}{kind}>{_text(cell)}</{name}>")
    return f"<tr>{''.join(told)}</tr>"


def derivation(lines: Iterable[dict[str, str]]) -> str:
    """Each line of a derivation: its name, formula, numbers, and result."""
    told = []
    for line in lines:
        given = (line["formula"], line["numbers"], line["value"])
        told.append(f"<dt>{_text(line['name'])}</dt>")
        told += [f"<dd>= {_text(one)}</dd>" for one in given if one]
    return f'<dl class="workbench-lines">{"".join(told)}</dl>' if told else ""


def differences(answer: dict[str, Any]) -> str:
    """The different inputs, the reasons, and the results side by side."""
    told = answer["inputs"]
    says = (
        f"Changed: {'; '.join(told)}."
        if told
        else "Both setups are the same: change something in the second."
    )
    columns = ("", "first", "second", "second / first")
    compared = table("Results", columns, answer["rows"], (0,)) if answer["rows"] else ""
    return "".join((f"<p>{_text(says)}</p>", *map(paragraph, answer["why"]), compared))
