"""The frame around the text: the book's own templates, and no unused scripts."""

import re
import subprocess
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from tools import first_cell
from web import policy, vendor

MENDED = {  # output of other extensions that confuses screen readers
    '<div role="list" class="citation-list">': '<div class="citation-list">',  # entries are not list items
    '<summary aria-label="Toggle hidden content">': "<summary>",  # the label would hide the visible words
    ' role="doc-biblioentry"': "",  # deprecated in ARIA
    '<th class="head"><p></p></th>': "<td></td>",  # the corner of a table is not a heading
}
SAFE = {"sphinx_jupyterbook_latex", "sphinx_multitoc_numbering"}  # parallel-safe, but undeclared
TEMPLATES = vendor.HERE / "templates"
_VIEWPORT = re.compile(r'<meta name="viewport"[^>]*>')  # the theme writes one too
_ONE_FORMULA = r'(?:(?!</th>|<span class="math">).)*?'
_HEAD_OF_MATH = re.compile(
    rf'<th class="head"><p><span class="math">{_ONE_FORMULA}<semantics>(?P<math>{_ONE_FORMULA})<annotation'
    rf"{_ONE_FORMULA}</span></p></th>",
    re.DOTALL,
)
_GITHUB = re.compile(r"(?:https://|git@)github\.com[/:](?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?")


def add_templates(app: Sphinx, config: Config) -> None:
    """Put the book's templates before the theme's, and turn off Sphinx's own figure numbers."""
    config.templates_path.insert(0, str(TEMPLATES))
    config.numfig = False  # a LaTeX extension turns it on, and then Sphinx would traverse every page


def repository(app: Sphinx) -> str:
    """Return the address of the source repository, configured or from the git remote, or ""."""
    options: dict[str, Any] = app.config.html_theme_options
    known = options.get("repository_url") or _remote(Path(app.srcdir))
    return known.removesuffix("/").removesuffix(".git")


def _remote(folder: Path) -> str:
    command = ["git", "-C", str(folder), "remote", "get-url", "origin"]
    try:
        url = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
    return f"https://github.com/{name}" if (name := github(url)) else ""


def github(url: str) -> str:
    """Return the owner and name of a GitHub repository, or "" for other addresses."""
    found = _GITHUB.fullmatch(url)
    return found["name"] if found else ""


def colab(repository: str, notebook: str) -> str:
    """Return the address that opens a released notebook in Colab, or "" if it is not on GitHub."""
    name = github(repository)
    path = f"blob/{first_cell.TAG_OF_RELEASE}/{notebook}"
    return f"https://colab.research.google.com/github/{name}/{path}" if name else ""


def places(repository: str, notebook: str) -> dict[str, tuple[str, str]]:
    """Where a page's released notebook can be opened: icon and address, by label."""
    if not (repository and notebook):
        return {}
    path = f"blob/{first_cell.TAG_OF_RELEASE}/{notebook}"
    shown = {"The source of this page": ("fa-solid fa-code", f"{repository}/{path}")}
    if not (name := github(repository)):
        return shown
    kaggle = f"https://kaggle.com/kernels/welcome?src=https://github.com/{name}/{path}"
    return {
        "Open this notebook in Colab": ("fa-solid fa-rocket", colab(repository, notebook)),
        "Open this notebook in Kaggle": ("fa-brands fa-kaggle", kaggle),
    } | shown


def trim(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Remove the theme's scripts and styles from a page and add the book's own context."""
    context["script_files"] = context["css_files"] = []
    for wrong, right in MENDED.items():
        context["body"] = (context.get("body") or "").replace(wrong, right)
    context["body"] = plain_heads(context["body"])
    context["metatags"] = _VIEWPORT.sub("", context.get("metatags") or "")
    context["book_policy"] = policy.POLICY
    context["book_twins"] = app.env.found_docs  # pages with a Markdown twin: all but those without a source
    context["book_source"] = notebook = _source(app, page)
    context["book_places"] = places(app.book_repository, notebook)  # type: ignore[attr-defined]


def plain_heads(html: str) -> str:
    """Return a page whose column headings that consist of one formula are text."""
    return _HEAD_OF_MATH.sub(_plain_head, html)


def _plain_head(found: re.Match[str]) -> str:
    """Return a column heading as text: screen readers skip rendered formulas."""
    return f'<th class="head"><p>{_text_of(ElementTree.fromstring(found["math"]))}</p></th>'


def _text_of(math: ElementTree.Element) -> str:
    """Simple MathML as HTML."""
    inside = [_text_of(child) for child in math]
    if math.tag in ("msub", "msup"):
        base, script = inside
        return f"{base}<{math.tag[1:]}>{script}</{math.tag[1:]}>"
    text = escape(math.text or "") + "".join(inside)
    return f"<i>{text}</i>" if math.tag == "mi" and len(text) == 1 else text


def _source(app: Sphinx, page: str) -> str:
    """Return the notebook of a page, below the root, or ""."""
    path = app.env.doc2path(page, base=False) if page in app.env.found_docs else ""
    return str(path) if str(path).endswith(".ipynb") else ""


def start(app: Sphinx) -> None:
    """Set up what is the same for all pages, disable Sphinx's search, and enable parallel reading."""
    app.builder.search = False  # type: ignore[attr-defined]
    for name in SAFE & app.extensions.keys():
        app.extensions[name].parallel_read_safe = True
    app.book_repository = repository(app)  # type: ignore[attr-defined]


def setup(app: Sphinx) -> None:
    """Run after the theme."""
    app.connect("config-inited", add_templates, priority=900)
    app.connect("builder-inited", start)
    app.connect("html-page-context", trim, priority=900)
