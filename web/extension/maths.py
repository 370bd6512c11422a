"""Render formulas with KaTeX at build time, so that pages need no math script.

Each Sphinx process has one Node process. Results are cached by content, so a rebuild renders new formulas
only. A formula that KaTeX rejects is a warning at its source line, which fails the build.
"""

import hashlib
import json
import os
import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from web import vendor
from web.extension import numbers

LOG = logging.getLogger(__name__)
_IN_HTML = re.compile(r'<span class="math">\$(.+?)\$</span>')
SERVER = Path(__file__).with_name("katex.mjs")


class Katex:
    """A Node process that renders LaTeX as HTML, with a cache folder."""

    def __init__(self, kept: Path, macros: dict[str, str]) -> None:
        self.kept, self.macros = kept, json.dumps(macros, sort_keys=True)
        self.process: subprocess.Popen[str] | None = None
        self.owner = 0
        kept.mkdir(parents=True, exist_ok=True)

    def render(self, latex: str, *, display: bool) -> str:
        """Return the formula as HTML and MathML. Raises ValueError with KaTeX's message if it is rejected."""
        question = json.dumps({"latex": latex, "display": display})
        name = hashlib.sha256((vendor.lock_digest() + self.macros + question).encode()).hexdigest()
        path = self.kept / f"{name}.html"
        if not path.exists():
            draft = path.with_suffix(f".{os.getpid()}")  # two processes may render the same formula
            draft.write_text(self._ask(question), encoding="utf-8")
            draft.replace(path)
        return path.read_text(encoding="utf-8")

    def _ask(self, question: str) -> str:
        if self.process is None or self.owner != os.getpid():  # a fork must not use its parent's Node
            self.process, self.owner = self._start(), os.getpid()
        server = self.process
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(question + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline() or '{"error": "KaTeX stopped"}')
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["html"]

    def _start(self) -> subprocess.Popen[str]:
        library = vendor.package("katex") / "dist" / "katex.mjs"
        command = [vendor.node(), str(SERVER), str(library), self.macros]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def stop(self) -> None:
        """End the process; the next formula starts a new one."""
        if self.process is not None and self.owner == os.getpid() and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait(timeout=10)
        self.process = None


def _html(writer: Any, node: nodes.Element, *, display: bool) -> str:
    latex = node.astext().strip()
    if display and r"\\" in latex and r"\begin{" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    try:
        return writer.builder.app.katex.render(latex, display=display)
    except ValueError as error:
        LOG.warning("formula %r: %s", latex, error, location=node, type="katex")
        return writer.encode(latex)


def visit_inline(writer: Any, node: nodes.Element) -> None:
    """Write an inline formula."""
    writer.body.append(f'<span class="math">{_html(writer, node, display=False)}</span>')
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Write a display formula, with its number if it has one."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(_html(writer, node, display=True))
    if number := node.get("said"):
        writer.body.append(f'<span class="eqno">({number}){numbers.link("Formula", node["anchor"])}</span>')
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def typeset_outputs(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Render formulas in the HTML output of cells: `<span class="math">$...$</span>`."""

    def drawn(found: re.Match[str]) -> str:
        return f'<span class="math">{app.katex.render(unescape(found[1]), display=False)}</span>'  # type: ignore[attr-defined]

    for node in doctree.findall(nodes.raw):
        if _IN_HTML.search(html := node.astext()):
            node[0] = nodes.Text(_IN_HTML.sub(drawn, html))


def start(app: Sphinx) -> None:
    """Create the renderer of the application."""
    app.katex = Katex(vendor.STORE / "formulas", app.config.katex_macros)  # type: ignore[attr-defined]


def finish(app: Sphinx, error: Exception | None) -> None:
    """End the Node process."""
    app.katex.stop()  # type: ignore[attr-defined]


def setup(app: Sphinx) -> None:
    """Register the renderer under the name `katex`."""
    app.add_config_value("katex_macros", {}, "html")
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_block, None))
    app.connect("builder-inited", start)
    app.connect("doctree-resolved", typeset_outputs)
    app.connect("build-finished", finish)
