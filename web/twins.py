"""Write the machine-readable edition: a Markdown twin of every page, `llms.txt` and `llms-full.txt`.

The twin of a chapter contains the outputs that its notebook stores, so every computed number is filled in,
and the descriptions of its figures and explorers. `llms.txt` lists the pages as llmstxt.org proposes.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

from tools import first_cell, plain
from web import stamp, twin_parts

READ = (
    "*.md",
    "references.bib",
    "data/*.csv",
    "data/predictions/*",
    "data/programs/*",
    "jobs/*",
    "tests/cli/screens/*",
)
"""The files that the pages without a notebook include or link, and that the lists are made from."""
LISTED, WHOLE = "llms.txt", "llms-full.txt"
_TO_NOTEBOOK = re.compile(r"(?<=\]\()(?!\S*exercises/)([^)\s#]*)\.ipynb(?=[#)])")
_TO_EXERCISES = re.compile(r"(?<=\]\()((?:\.\./)?)(?=exercises/)")  # they have no page, only a download
_COMMENT = re.compile(r"^%.*\n|^\+\+\+.*\n", re.MULTILINE)
# A directive of a page without a notebook: its name, argument, options and body.
_DIRECTIVE = re.compile(
    r"^(?P<fence>:{3,}|`{3,})\{(?P<name>[\w-]+)\} ?(?P<argument>.*)\n"
    r"(?P<options>(?::[\w-]+:.*\n)*)(?P<body>(?:.*\n)*?)(?P=fence)$",
    re.MULTILINE,
)
_ALT = re.compile(r"^:alt: (.*)$", re.MULTILINE)
_KEPT = {"container", "glossary"}  # their bodies are text
_INTERACTIVE = "*This part is interactive; see [the page]({page}.html).*"
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".txt": "text"}
_LATER = {"answer", "exercises"}  # what `plain.text` converts


@dataclass(frozen=True, slots=True)
class Twin:
    """A page in Markdown: its name without suffix, its title, its first sentences, and its text."""

    page: str
    title: str
    summary: str
    text: str


def write(made: Path, source: Path) -> None:
    """Write the twins of all pages below `source` into the site, next to the pages, and both lists."""
    told = {twin.page: twin for twin in every(source)}
    for page, twin in told.items():
        path = made / f"{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(twin.text, encoding="utf-8")
        linked = (name for name in twin_parts.linked_files(twin.text) if (source / name).is_file())
        for name in linked:
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, made / name)
    (made / LISTED).write_text(listed(source, told), encoding="utf-8")
    (made / WHOLE).write_text("\n\n".join(twin.text for twin in told.values()), encoding="utf-8")


def every(source: Path) -> Iterator[Twin]:
    """Yield the twins of all pages of the table of contents, in its order."""
    for page in names(source):
        yield twin(page, source)


def names(source: Path) -> list[str]:
    """Return the pages of `_toc.yml` in reading order."""
    contents = yaml.safe_load((source / "_toc.yml").read_text(encoding="utf-8"))
    return [contents["root"], *_files(contents.get("parts", contents.get("chapters", [])))]


def _files(entry: Any) -> Iterator[str]:
    if isinstance(entry, list):
        for one in entry:
            yield from _files(one)
    elif isinstance(entry, dict):
        if "file" in entry:
            yield entry["file"]
        yield from _files(entry.get("chapters", []))
        yield from _files(entry.get("sections", []))


def twin(page: str, source: Path) -> Twin:
    """Return one page in Markdown."""
    notebook = source / f"{page}.ipynb"
    if notebook.exists():
        text = "\n\n".join(_cells(nbformat.read(notebook, as_version=4).cells))
    else:
        text = _without_notebook(page, source)
    text = _TO_EXERCISES.sub(r"\1notebooks/", _TO_NOTEBOOK.sub(r"\1.md", text)).strip() + "\n"
    prose = [
        block for block in re.split(r"\n{2,}", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)) if block
    ]
    title = next((block.lstrip("# ") for block in prose if block.startswith("# ")), page)
    summary = next((block for block in prose if block[0].isalnum()), "")
    return Twin(page, title, _bare(summary), text)


def _bare(paragraph: str) -> str:
    """Return the first sentence of a paragraph without its links and emphasis."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)|\*+", r"\1", " ".join(paragraph.split()))
    return re.split(r"(?<=[.?!]) (?=[A-Z])", words)[0]


def _cells(cells: list[NotebookNode]) -> Iterator[str]:
    for cell in cells:
        tags = cell.metadata.get("tags", ())
        if first_cell.is_it(cell) or "remove-cell" in tags:
            continue
        if cell.cell_type == "markdown":
            yield cell.source
            continue
        if "remove-input" not in tags:
            yield f"```python\n{cell.source}\n```"
        yield from filter(None, map(_output, cell.get("outputs", ())))


def _output(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return f"```text\n{output.text.rstrip()}\n```"
    data = output.get("data", {})
    text = str(data.get("text/plain", "")).rstrip()
    if "text/html" in data:  # a figure or an explorer, told by its description
        return twin_parts.quoted(text) if text else ""
    return f"```text\n{text}\n```" if text else ""


def _without_notebook(page: str, source: Path) -> str:
    path = source / f"{page}.md"
    text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    while (changed := _DIRECTIVE.sub(lambda found: _told(found, page, source), text)) != text:
        text = changed
    for name, value in stamp.substitutions().items():
        text = text.replace(f"{{{{ {name} }}}}", value)
    # `plain.text` links from a folder of notebooks to the root.
    return plain.text(text, path.relative_to(source), plain.book(source)).replace("](../", "](")


def _told(found: re.Match[str], page: str, source: Path) -> str:
    name, body = found["name"], found["body"].rstrip()
    if name in _LATER:
        return found[0]
    if name in _KEPT:
        return body
    if name == "admonition":
        return twin_parts.quoted(f"**{found['argument']}**\n\n{body}")
    if name == "literalinclude":
        path = source / found["argument"]
        language = _LANGUAGES.get(path.suffix, "sh")
        return f"```{language}\n{path.read_text(encoding='utf-8').rstrip()}\n```"
    if part := twin_parts.PARTS.get(name):
        return part(found["argument"], body)
    if name == "raw":
        return ""
    if alt := _ALT.search(found["options"]):
        return f"> {alt[1]}"
    return _INTERACTIVE.format(page=page.rpartition("/")[2])


def listed(source: Path, twins: dict[str, Twin]) -> str:
    """Return `llms.txt`: what the book is, and its pages under the captions of the table of contents."""
    contents = yaml.safe_load((source / "_toc.yml").read_text(encoding="utf-8"))
    lines = [
        f"# {stamp.cited()['title']}", "",
        "> An executable textbook on how fast large models can run on TPUs and GPUs, what limits them, how",
        "> to shard them over chips, and what training and serving cost. Its numbers are computed",
        f"> by the Python library scalingbook_lib, version {stamp.version()}.", "",
        f"[{WHOLE}]({WHOLE}) contains all pages. Attempt an exercise before you read its solution.",
    ]  # fmt: skip
    parts = contents.get("parts", [{"caption": "Pages", "chapters": contents.get("chapters", [])}])
    for part in parts:
        lines += ["", f"## {part['caption']}", ""]
        lines += [_line(twins[page]) for page in _files(part["chapters"])]
    return "\n".join(lines) + "\n"


def _line(twin: Twin) -> str:
    return f"- [{twin.title}]({twin.page}.md): {twin.summary}".removesuffix(": ")
