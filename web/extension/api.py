"""Build the API reference from docstrings, and link it with the chapters in both directions.

The pages in `api/` contain `automodule` directives of `sphinx.ext.autodoc`. Docstrings are plain text with
code between single backticks and formulas in indented blocks, which this module turns into reStructuredText.
"""

import importlib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from tools import pages

PACKAGE = "scalingbook_lib."
HEADING, ANCHOR = "Functions of the library", "library-functions"
ROLE = "literal"  # of text between single backticks
_TOLD = re.compile(r"Chapters?:\s+([^.]+)\.")
_SPECIAL = re.compile(r"([*_|\\])")
_SHORT = {
    "JAX": "Programming in JAX",
    "Transformers": "Transformer arithmetic",
    "The conclusions": "Conclusions",
}
"""What docstrings call chapters whose title begins otherwise."""
_INDENTED = re.compile(r"^(?:\s{2,}|\t)\S")


def configure(app: Sphinx, config: Config) -> None:
    """Set how docstrings are read and signatures shown."""
    config.default_role = ROLE
    config.autodoc_member_order = "bysource"
    config.autodoc_typehints = "signature"
    config.autodoc_typehints_format = "short"
    config.python_use_unqualified_type_names = True
    config.add_module_names = False
    config.autodoc_preserve_defaults = True
    config.toc_object_entries_show_parents = "hide"
    config.maximum_signature_line_length = 88
    config.html_domain_indices = False
    # types of arguments that are not public have no page
    config.nitpick_ignore_regex = [*config.nitpick_ignore_regex, (r"py:.*", r".*")]


def read_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText, and name the chapter that derives a function or class."""
    if lines and lines[0].startswith("Alias for field number"):  # Python's own words on a NamedTuple
        lines[:] = []
    text = "\n".join(_lines(lines))
    text = _TOLD.sub(lambda told: f"{_chapters(told[1])}.", text)
    if what in ("function", "class", "exception") and "/chapters/" not in text:
        derived = _chapters(_chapter_names(getattr(obj, "__module__", "")))
        text += f"\n\n{derived}.\n" if derived else ""
    lines[:] = text.split("\n")


def _lines(lines: list[str]) -> Iterator[str]:
    """Yield the lines with escaped special characters, literal code, and indented blocks as they are."""
    inside = doctest = False
    for number, line in enumerate(lines):
        before = lines[number - 1] if number else ""
        doctest = line.startswith(">>>") or (doctest and bool(line.strip()))
        if doctest:
            yield line
            continue
        starts = bool(_INDENTED.match(line)) and not before.strip() and not _in_list(lines, number)
        if starts and not inside:
            yield from ("::", "")
        inside = starts or (inside and (not line.strip() or bool(_INDENTED.match(line))))
        if line.startswith("- ") and before.strip() and not before.startswith(("- ", "  ")):
            yield ""
        yield line if inside else _inline(line)


def _in_list(lines: list[str], number: int) -> bool:
    """Return whether an indented line continues a list item."""
    outer = next((line for line in reversed(lines[:number]) if line and not line[0].isspace()), "")
    return outer.startswith("- ")


def _inline(line: str) -> str:
    """Return a line with special characters escaped outside backticks."""
    parts = line.split("`")
    if len(parts) % 2 == 0:  # code that goes on in the next line
        return _SPECIAL.sub(r"\\\1", line)
    return "`".join(part if n % 2 else _SPECIAL.sub(r"\\\1", part) for n, part in enumerate(parts))


def _chapter_names(module: str) -> str:
    """Return the chapters that the docstring of a module names, or of the nearest package above it."""
    while module.startswith(PACKAGE):
        told = _TOLD.search(importlib.import_module(module).__doc__ or "")
        if told:
            return told[1]
        module = module.rpartition(".")[0]
    return ""


def _chapters(names: str) -> str:
    """Return links to these chapters: 'Chapter: Rooflines'."""
    known, found = titles(), _split(names)
    links = [f":doc:`{name} </{known[name]}>`" if name in known else name for name in found]
    return f"{'Chapters' if len(links) > 1 else 'Chapter'}: {'; '.join(links)}" if links else ""


def _split(names: str) -> list[str]:
    """Return the chapters that a docstring names: 'Training; JAX'."""
    return [" ".join(name.split()) for name in names.split(";") if name.strip()]


@cache
def titles() -> dict[str, str]:
    """Return every page by its title, and by the part of its title before a colon or a parenthesis."""
    found: dict[str, str] = {}
    for page in sorted(pages.every(), key=lambda page: page.deeper):
        if heading := re.search(r"^# (.+)$", page.text, re.MULTILINE):
            title = heading[1].strip()
            found.setdefault(title, str(page))
            found.setdefault(re.split(r"[:(]", title)[0].strip(), str(page))
    return found | {short: found[title] for short, title in _SHORT.items() if title in found}


def link_names(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Link the first mention of each public function in a chapter to its entry in the reference.

    The first page of the reference links its modules. Nothing is linked in a site without these pages.
    """
    if not page.startswith("chapters/") and page != "api":
        return
    linked = set()
    for literal in list(tree.findall(nodes.literal)):
        name = literal.astext().partition("(")[0]
        address = _address(app, page, name)
        if address is None or name in linked or _is_linked(literal):
            continue
        linked.add(name)
        reference = nodes.reference("", "", internal=True, refuri=address)
        literal.replace_self(reference)
        reference += literal


@cache
def derived(app: Sphinx) -> dict[str, dict[str, list[str]]]:
    """Return the functions that each chapter derives, by module, as their docstrings or modules name it."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, entry in sorted(app.env.domaindata["py"]["objects"].items()):
        if entry.objtype != "function" or entry.aliased:
            continue
        module, _, function = name.rpartition(".")
        code = getattr(importlib.import_module(module), function)
        told = _TOLD.search(code.__doc__ or "")
        for chapter in _split(told[1] if told else _chapter_names(code.__module__)):
            page = found.setdefault(titles().get(chapter, ""), {})
            page.setdefault(module.removeprefix(PACKAGE), []).append(function)
    return found


def list_functions(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Add a section to a chapter with links to the functions it derives, if the site has the reference."""
    modules = derived(app).get(page) if page.startswith("chapters/") else None
    if not modules:
        return
    section = nodes.section("", nodes.title("", HEADING), ids=[ANCHOR])
    section += nodes.paragraph("", "These functions of the library compute what the chapter derives:")
    listed = nodes.bullet_list()
    for module, functions in modules.items():
        line = nodes.paragraph()
        for number, function in enumerate(functions):
            name = f"{module}.{function}"
            address = _address(app, page, name)
            line += nodes.Text(", " if number else "")
            line += nodes.reference("", "", nodes.literal("", name), internal=True, refuri=address)
        listed += nodes.list_item("", line)
    section += listed
    next(tree.findall(nodes.section)).append(section)


def _address(app: Sphinx, page: str, name: str) -> str | None:
    """Return where the reference describes a name such as 'roofline.matmul', or None."""
    python = app.env.domaindata["py"]
    if page == "api":
        module = python["modules"].get(name)
        return module and app.builder.get_relative_uri(page, module.docname)
    entry = python["objects"].get(PACKAGE + name) if "." in name else None
    return entry and f"{app.builder.get_relative_uri(page, entry.docname)}#{entry.node_id}"


def _is_linked(node: nodes.Node) -> bool:
    """Return whether a node is part of a link, a heading or a caption."""
    within = (nodes.reference, nodes.title, nodes.caption, nodes.term)
    parent = node.parent
    while parent is not None:
        if isinstance(parent, within):
            return True
        parent = parent.parent
    return False


def setup(app: Sphinx) -> None:
    """Load autodoc, and connect the handlers."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("config-inited", configure)
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("doctree-resolved", link_names)
    app.connect("doctree-resolved", list_functions)
