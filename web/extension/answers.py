"""The `:::{answer}` directive, which hides the answer of the Predict box before it until the reader guesses.

The block becomes a form for the guess, followed by the answer, which the page's script hides before the first
paint. `:value:` is the number by which a guess is judged, in `:unit:`; with `:choices:` (separated by |) it
is the correct one. `:output:` includes the output of the next cell in the answer.
"""

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_LISTS = (nodes.bullet_list, nodes.enumerated_list)
_NUMBERS = ("no", "one", "two", "three", "four", "five")


class Answer(SphinxDirective):
    """The answer to the Predict box above it."""

    has_content = True
    option_spec = {  # noqa: RUF012
        "value": directives.unchanged_required,
        "unit": directives.unchanged_required,
        "choices": directives.unchanged_required,
        "output": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Return the form, then the answer."""
        answer = nodes.container(classes=["answer"])
        self.state.nested_parse(self.content, self.content_offset, answer)
        if "output" in self.options:
            answer["with_output"] = True
        hidden = _extent(answer, "output" in self.options)
        return [nodes.raw("", _form(self.options, hidden), format="html"), answer]


def _extent(answer: nodes.Element, output: bool) -> str:
    """Return a phrase that says what is hidden."""
    lists = sum(isinstance(child, _LISTS) for child in answer)
    counts = {"paragraph": len(answer) - lists, "list": lists, "output": int(output)}
    return " and ".join(_several(count, kind) for kind, count in counts.items() if count)


def _several(count: int, kind: str) -> str:
    said = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return f"{said} {kind}{'' if count == 1 else 's'}"


def _form(options: dict[str, str], extent: str) -> str:
    """Return the form for the guess, which says that an answer is hidden."""
    value, unit = options.get("value", ""), options.get("unit", "")
    judged = f' data-value="{escape(value)}"' if value else ""
    judged += f' data-unit="{escape(unit)}"' if unit else ""
    if choices := [one.strip() for one in options.get("choices", "").split("|") if one.strip()]:
        asked = "".join(f'<button type="button" value="{escape(c)}">{escape(c)}</button>' for c in choices)
        asked = f'<span class="guess-choices" role="group" aria-label="Your guess">{asked}</span>'
    else:
        asked = f'<label>Your guess{f" ({escape(unit)})" if unit else ""} <input type="text" maxlength="80" '
        asked += 'autocomplete="off"></label><button type="submit">Check</button>'
    return (
        f'<form class="guess js-only"{judged} hidden><p class="guess-hidden">Answer hidden: {extent}. '
        f'Guess, or <button type="button" class="guess-show">show it</button></p>{asked}</form>'
    )


def mark_outputs(app: Sphinx, doctree: nodes.document) -> None:
    """Mark the output of the next cell as part of an answer with `:output:`."""
    for answer in list(doctree.findall(nodes.container)):
        if "with_output" not in answer:
            continue
        del answer["with_output"]
        cell = answer.next_node(nodes.container, descend=False, siblings=True)
        for output in cell.findall(nodes.container) if cell else ():
            if "cell_output" in output["classes"]:
                output["classes"].append("answer-output")


def announce(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add a line below the title that says how many answers are hidden, with a button to show all."""
    body = context.get("body") or ""
    if count := len(re.findall(r'<form class="guess\b', body)):
        context["body"] = body.replace("</h1>", f"</h1>\n{_line(count)}", 1)


def _line(count: int) -> str:
    some, held = ("One answer", "is") if count == 1 else (f"{count} answers", "are")
    return (
        '<p class="answers-line js-only">'
        f'<span class="answers-hidden">{some} {held} hidden until you guess. '
        '<button type="button" data-answers="page">Show all answers on this page</button> '
        '<button type="button" data-answers="show">Never hide answers</button></span>'
        f'<span class="answers-shown">The answer to each Predict box is shown below its question. '
        '<button type="button" data-answers="hide">Hide answers until I guess</button></span></p>'
    )


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("answer", Answer)
    app.connect("doctree-read", mark_outputs)
    app.connect("html-page-context", announce, priority=860)
