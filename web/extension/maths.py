"""How is a formula drawn? By KaTeX, once, when the site is built: pages carry no maths script.

A Node process of each of Sphinx's processes renders formulas; results are kept by content, so a rebuild asks
for new formulas only. A formula that KaTeX refuses is a warning at its source line, and so a failed build.
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
    """A Node process that turns LaTeX into HTML, and a folder that remembers what it said."""

    def __init__(self, kept: Path, macros: dict[str, str]) -> None:
        self.kept, self.macros = kept, json.dumps(macros, sort_keys=True)
        self.process: subprocess.Popen[str] | None = None
        self.owner = 0
        kept.mkdir(parents=True, exist_ok=True)

    def render(self, latex: str, *, display: bool) -> str:
        """The formula as HTML and MathML; ValueError with KaTeX's own words where it is refused."""
        question = json.dumps({"latex": latex, "display": display})
        name = hashlib.sha256((vendor.lock_digest() + self.macros + question).encode()).hexdigest()
        path = self.kept / f"{name}.html"
        if not path.exists():
            draft = path.with_suffix(f".{os.getpid()}")  # two processes may render one formula
            draft.write_text(self._ask(question), encoding="utf-8")
            draft.replace(path)
        return path.read_text(encoding="utf-8")

    def _ask(self, question: str) -> str:
        if self.process is None or self.owner != os.getpid():  # that of another process answers it alone
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
        """End the process; the next formula starts another."""
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
    """Write a displayed formula, with its number where it has one."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(_html(writer, node, display=True))
    if number := node.get("said"):
        writer.body.append(f'<span class="eqno">({number}){numbers.link("Formula", node["anchor"])}</span>')
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def typeset_outputs(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Draw the formulas that a cell has put into HTML: `<span class="math">$...$</span>`."""

    def drawn(found: re.Match[str]) -> str:
        return f'<span class="math">{app.katex.render(unescape(found[1]), display=False)}</span>'  # type: ignore[attr-defined]

    for node in doctree.findall(nodes.raw):
        if _IN_HTML.search(html := node.astext()):
            node[0] = nodes.Text(_IN_HTML.sub(drawn, html))


def start(app: Sphinx) -> None:
    """Give the application its renderer."""
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
