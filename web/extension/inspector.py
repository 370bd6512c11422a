"""The static content of the page on compiled programs: its form, and the report on an example.

`{program-inspector}` has the path of a program's text, whose report stands on the page before a reader opens
a program of their own.
"""

import gzip
import json
from functools import cache
from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from scalingbook_book.inspection_page import inspect_json
from tools.environment import ROOT
from web.extension.page_data import shows_the_library

BUILT = "The report below is for the example at the end of this page. It was made when the book was built."
FIELDS = (
    ("machine", "Machine", "For example, v5p:4x4x4 or h100:64. Without a machine, no times are estimated."),
    ("mesh", "Mesh axes", "For example, data=16,model=4. Without them, axes are inferred."),
)


class ProgramInspector(SphinxDirective):
    """The directive that writes the form and the example's report."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the page's content as static HTML."""
        shows_the_library(self.env)
        path = ROOT / self.arguments[0]
        self.env.note_dependency(str(path))
        fields = "".join(map(_field, FIELDS))
        html = (
            '<div class="inspector" role="group" aria-label="Inspector"><form autocomplete="off">'
            '<div class="inspector-drop"><label for="inspector-file">Drop a file here, or choose one</label>'
            '<input id="inspector-file" name="file" type="file" accept=".hlo,.txt,.gz,text/plain">'
            '<label for="inspector-text">or paste the text</label><textarea id="inspector-text" name="text" '
            'rows="5" spellcheck="false" placeholder="HloModule jit_step, ..."></textarea></div>'
            f'<div class="inspector-fields">{fields}</div><div class="inspector-buttons">'
            '<button type="submit" disabled>Inspect</button>'
            '<button type="button" data-do="save" disabled>Save report</button></div></form>'
            f'<p class="inspector-status" role="status">{BUILT}</p>'
            f'<div class="inspector-shown">{_example(str(path))}</div></div>'
        )
        return [nodes.raw("", html, format="html")]


def _field(field: tuple[str, str, str]) -> str:
    name, label, hint = field
    id_ = f"inspector-{name}"
    return (
        f'<div><label for="{id_}">{label}</label><input id="{id_}" name="{name}" type="text" maxlength="100" '
        f'spellcheck="false" autocapitalize="off" aria-describedby="{id_}-hint">'
        f'<span class="inspector-hint" id="{id_}-hint">{escape(hint)}</span></div>'
    )


@cache
def _example(path: str) -> str:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        answer = json.loads(inspect_json(json.dumps({"text": file.read()})))
    return answer["html"]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("program-inspector", ProgramInspector)
