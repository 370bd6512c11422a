"""Rewrite pages of worked solutions: titled by chapter, numbered like the exercises, linked to them.

The sources in `solutions/` also produce the exercise notebooks, so they count from 1 and say where an answer
is written. The site shows no blanks, so those sentences are dropped.
"""

import re
from html import escape
from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx

from scalingbook_lib.words import join_and
from tools import exercises, pages
from tools.environment import ROOT
from web.extension import numbers
from web.extension.exercises import name, places, raw

FOLDER = "solutions/"
_BEFORE_TITLES_ARE_NOTED = 400
_NUMBER = re.compile(r"(?P<own>\d+)\. ")
_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_OF_A_NOTEBOOK = re.compile(r"three dots are|\AA check says whether|gives a hint\.")
_INLINE = re.compile("\0(\\d+)\0")
_OWN_TITLE = re.compile(r"^# (?P<title>.+): exercises$", re.MULTILINE)


def write(app: Sphinx, doctree: nodes.document) -> None:
    """Rewrite a page of solutions."""
    page = app.env.docname
    if not page.startswith(FOLDER):
        return
    stem = PurePosixPath(page).name
    for path in (ROOT / "_toc.yml", *exercises.asking(stem)):
        app.env.note_dependency(str(path))
    where, read = places(stem), exercises.read(stem)
    for paragraph in list(doctree.findall(nodes.paragraph)):
        _drop_instructions(paragraph)
    for section in doctree.findall(nodes.section):
        title = next(iter(section.findall(nodes.title)))
        if section.parent is doctree:
            title.clear()
            title += nodes.Text(f"Solutions: {_chapter(stem)}")
            section.insert(1, raw(_back(stem, where)))
        elif found := _NUMBER.match(title.astext()):
            key = read[int(found["own"]) - 1].key
            _renumber(title, found[0], numbers.of_exercise(where[key], stem, int(found["own"])))
            section.insert(1, raw(_asked(key, int(found["own"]), where[key], stem)))


def _renumber(title: nodes.title, old: str, number: str) -> None:
    first = next(iter(title.findall(nodes.Text)))
    title.replace(first, nodes.Text(f"{number}. {first.astext().removeprefix(old)}"))


def _chapter(stem: str) -> str:
    """Return the title of the chapter, or what the two halves of a split chapter share."""
    halves = [page for page in pages.of(stem) if not page.deeper]
    if len(halves) == 1:
        return numbers.title(str(halves[0]))
    found = _OWN_TITLE.search(Path(ROOT, FOLDER, f"{stem}.md").read_text(encoding="utf-8"))
    return found["title"] if found else stem


def _link(page: str, anchor: str, said: str) -> str:
    return f'<a class="reference internal" href="../chapters/{page}.html#{anchor}">{escape(said)}</a>'


def _back(stem: str, where: dict[str, str]) -> str:
    """Links to the chapter's pages with these exercises."""
    main = {page.name for page in pages.of(stem) if not page.deeper}
    asking = [page for page in dict.fromkeys(where.values()) if page in main]  # in the order of the exercises
    links = join_and(_link(page, _first(where, page), numbers.named(page)) for page in asking)
    return f"<p>These are the worked solutions of the exercises in {links}. Each links to its exercise.</p>"


def _first(where: dict[str, str], page: str) -> str:
    return next(name(key) for key, there in where.items() if there == page)


def _asked(key: str, own: int, page: str, stem: str) -> str:
    """Return the link to the exercise, which names the page if it is a deeper one."""
    link = _link(page, name(key), f"Exercise {numbers.of_exercise(page, stem, own)}")
    elsewhere = "" if page == stem else f", in {escape(numbers.named(page))}"
    return f'<p class="solution-from">{link}{elsewhere}</p>'


def _drop_instructions(paragraph: nodes.paragraph) -> None:
    """Remove the sentences that say how to fill in a notebook."""
    inline = list(paragraph.children)
    told = "".join(
        child.astext() if isinstance(child, nodes.Text) else f"\0{at}\0" for at, child in enumerate(inline)
    )
    sentences = _SENTENCE.split(told)
    kept = [sentence for sentence in sentences if not _OF_A_NOTEBOOK.search(sentence)]
    if len(kept) == len(sentences):
        return
    parts = _INLINE.split(" ".join(kept))  # text and inline code, alternating
    paragraph.clear()
    paragraph += [inline[int(part)] if at % 2 else nodes.Text(part) for at, part in enumerate(parts) if part]
    if not kept and paragraph.parent is not None:
        paragraph.parent.remove(paragraph)


def setup(app: Sphinx) -> None:
    """Run after a page was read, before Sphinx records its titles."""
    app.connect("doctree-read", write, priority=_BEFORE_TITLES_ARE_NOTED)
