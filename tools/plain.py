"""Convert a page's MyST to plain Markdown for Colab, Kaggle, JupyterLab and GitHub.

Admonitions become quotes, references become links, labels become anchors, and citations are named and linked.
Anything else raises an error. The site is made from the sources, so nothing is lost there. The outputs of
`show.explorer("...")` and `show.figure("...")` are pure functions of the library, so `repaint` updates them
without a kernel.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nbformat import NotebookNode

from scalingbook_book import show
from tools import exercises

# MyST: a label `(name)=` above a heading, a box `:::{admonition}`, the answer that the site hides, the
# directive of the exercises, and a role {`ref`, `cite` ...} with its text, which may contain
# `words <target>`.
_LABEL = re.compile(r"^\((?P<label>[\w-]+)\)=\n", re.MULTILINE)
_TITLED = re.compile(r"^\((?P<label>[\w-]+)\)=\n(?=(?:\([\w-]+\)=\n)*#+ +(?P<title>.+)$)", re.MULTILINE)
_BOX = re.compile(
    r"^:::\{admonition\} (?P<title>.+)\n(?::class: .+\n)?(?P<body>(?:.*\n)*?):::$", re.MULTILINE
)
_ANSWER = re.compile(r"^:::\{answer\}\n(?:^:\w+:.*\n)*\n*(?P<body>(?:.*\n)*?):::$", re.MULTILINE)
_ROLE = re.compile(r"(?<!`)\{(?P<role>[a-z:]+)\}`(?P<text>[^`]+)`")
# Anchors of the site's numbered elements, see web/extension/numbers.py.
_KINDS = {"fig": "figure", "ex": "explorer", "eq": "formula", "table": "table", "exercise": "exercise"}
_KIND = re.compile(rf"(?:^|#)(?P<kind>{'|'.join(_KINDS)})-")
_NAMED = re.compile(r"(?P<text>.*?)\s*<(?P<target>[^<>]+)>", re.DOTALL)
# Markup that is left after all substitutions, which a reader of a notebook would see.
_LEFT = re.compile(r"(?<!`)\{[a-z:]+\}`|^:::|^```\{|^\([\w-]+\)=$", re.MULTILINE)
_SHOWN = re.compile(r'show\.(explorer|figure)\("([\w.]+)"\)')
_SHOWS = {"explorer": show.explorer, "figure": show.figure}
# The subset of BibTeX in `references.bib`: one field per line, braces around each value.
_WORK = re.compile(r"^@\w+\{(?P<key>[^,]+),\n(?P<fields>.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^ *(?P<name>\w+) *= *\{(?P<value>.*)\},?$", re.MULTILINE)


@dataclass(frozen=True)
class Book:
    """The targets of references: a label's file and title; a citation's authors, year and address."""

    titles: dict[str, tuple[Path, str]]
    works: dict[str, tuple[str, str, str]]


@cache
def book(root: Path) -> Book:
    """Return the labels of all sources below a root, and the works in its bibliography."""
    titles = {}
    folders = ("*.md", "chapters/*.md", "solutions/*.md", "api/*.md")
    for path in (path for pattern in folders for path in root.glob(pattern)):
        # Pages of the root have no notebook, so a link to one leads to its Markdown.
        shown = path.with_suffix(".ipynb") if path.parent != root else path
        for found in _TITLED.finditer(path.read_text(encoding="utf-8")):
            titles[found["label"]] = (shown.relative_to(root), found["title"])
    bibliography = root / "references.bib"
    return Book(titles, works(bibliography.read_text(encoding="utf-8")) if bibliography.exists() else {})


def works(bib: str) -> dict[str, tuple[str, str, str]]:
    """Authors as in a citation, year and address of every entry."""
    return {found["key"]: _work(found["fields"]) for found in _WORK.finditer(bib)}


def titles(bib: str) -> dict[str, str]:
    """Title of every entry, without the braces that protect capital letters."""
    found = ((work["key"], _FIELD.finditer(work["fields"])) for work in _WORK.finditer(bib))
    named = ((key, {field["name"]: field["value"] for field in fields}) for key, fields in found)
    return {key: re.sub(r"[{}]", "", fields.get("title", key)) for key, fields in named}


def _work(fields: str) -> tuple[str, str, str]:
    known = {found["name"]: found["value"] for found in _FIELD.finditer(fields)}
    authors = re.split(r"\s+and\s+", known.get("author") or known.get("title", ""))
    last = [re.sub(r"[{}]|\\\w+ ?", "", author.partition(",")[0]).replace("\\", "") for author in authors]
    named = f"{last[0]} et al." if len(last) > 2 or "others" in last else " and ".join(last)
    return named, known.get("year", ""), known.get("url", "")


def text(source: str, at: Path, known: Book) -> str:
    """Return a MyST cell as plain Markdown, for a notebook at this path below the root."""
    # Boxes first: a quoted box may contain labels and roles, which are then replaced within the quote.
    source = _BOX.sub(_quoted, source)
    source = _ANSWER.sub(lambda m: m["body"].rstrip(), source)
    source = exercises.SHOWN.sub(lambda m: _exercises(m["stem"], m["names"].split(), at), source)
    source = _LABEL.sub(lambda m: f'<a id="{m["label"]}"></a>\n\n', source)
    source = _ROLE.sub(lambda m: _role(m["role"], " ".join(m["text"].split()), at, known), source)
    if left := _LEFT.search(source):
        raise ValueError(
            f"{at}: {source[left.start() :][:60]!r} has no form in plain Markdown; see tools/plain.py"
        )
    return source


def _quoted(found: re.Match[str]) -> str:
    lines = [f"**{found['title']}**", "", *found["body"].rstrip().split("\n")]
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _exercises(stem: str, names: list[str], at: Path) -> str:
    notebook = Path("exercises") / f"{stem}.ipynb"
    if len(names) == 1:
        return f"The exercise is in {_link(notebook.as_posix(), notebook, at)}: `{stem}.{names[0]}`."
    named = f": {', '.join(f'`{stem}.{name}`' for name in names)}" if names else ""
    return f"They are in {_link(notebook.as_posix(), notebook, at)}, with a check each{named}."


def _link(shown: str, to: Path, at: Path, anchor: str = "") -> str:
    if to == at:  # within a notebook Colab and JupyterLab follow a bare anchor
        return f"[{shown}](#{anchor})"
    way = to.name if to.parent == at.parent else f"../{to.as_posix()}"
    return f"[{shown}]({way}{'#' + anchor if anchor else ''})"


def _role(role: str, said: str, at: Path, known: Book) -> str:
    if role not in _ROLES:
        raise ValueError(f"{at}: the role {role!r} has no form in plain Markdown; see tools/plain.py")
    return _ROLES[role](known, said, at)


def _ref(known: Book, said: str, at: Path) -> str:
    named = _NAMED.fullmatch(said)
    label = named["target"] if named else said
    if kind := _KIND.search(label):  # only the site has numbers
        page, words = label.rpartition("#")[0], named["text"] if named else f"the {_KINDS[kind['kind']]}"
        return _link(words, Path(f"chapters/{page}.ipynb"), at) if page else words
    if label not in known.titles:
        raise ValueError(f"{at}: no heading has the label {label!r}")
    to, title = known.titles[label]
    return _link(named["text"] if named else title, to, at, label)


def _cited(known: Book, said: str, at: Path) -> str:
    told = (_work_of(known, key, at) for key in said.split(","))
    return f"({'; '.join(_address(f'{who}, {year}'.removesuffix(', '), url) for who, year, url in told)})"


def _cited_in_text(known: Book, said: str, at: Path) -> str:
    told = (_work_of(known, key, at) for key in said.split(","))
    return ", ".join(_address(f"{who} ({year})".removesuffix(" ()"), url) for who, year, url in told)


def _work_of(known: Book, key: str, at: Path) -> tuple[str, str, str]:
    if (name := key.strip()) not in known.works:
        raise ValueError(f"{at}: {name!r} is no work of references.bib")
    return known.works[name]


def _address(shown: str, url: str) -> str:
    return f"[{shown}]({url})" if url else shown


def _term(known: Book, said: str, at: Path) -> str:
    named = _NAMED.fullmatch(said)
    return named["text"] if named else said


def _download(known: Book, said: str, at: Path) -> str:
    """The file's name: a notebook reads the file from the library, and the repository has it, too."""
    return f"`{_term(known, said, at)}`"


_ROLES = {
    "ref": _ref,
    "eq": _ref,
    "cite": _cited,
    "cite:t": _cited_in_text,
    "term": _term,
    "download": _download,
}


def repaint(cell: NotebookNode) -> None:
    """Update the output of a cell whose last line shows a figure or an explorer."""
    found = _SHOWN.fullmatch(cell.source.rstrip().rpartition("\n")[2])
    if found and len(cell.outputs) == 1:
        data = _SHOWS[found[1]](found[2])._repr_mimebundle_()
        cell.outputs[0].data.update({kind: data[kind] for kind in ("text/html", "text/plain")})
