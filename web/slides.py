"""Write slides for each week of the course: `python -m web.slides`.

Each file is self-contained: the figures of the week's pages with captions and alternative texts, one style
sheet, no script, and a policy that allows nothing else. Equal commits give equal bytes.
"""

import argparse
import base64
import hashlib
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from scalingbook_book.chapters import checks, figures
from scalingbook_book.reader.figures.figure import Figure
from tools import pages
from tools.environment import ROOT
from web import stamp, vendor
from web.extension import course
from web.extension.exercises import LEVELS

POLICY = "default-src 'none'; style-src 'sha256-{}'"
STYLES = ("explorer.css", "slides.css")
TALL = 0.6  # height over width of a drawing above which its caption stands beside it
_SHOWN = re.compile(r'^show\.figure\("([\w.]+)"\)$', re.MULTILINE)
_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def drawn(page: str) -> list[str]:
    """Return the keys of the figures of a page, in order."""
    return _SHOWN.findall(next(one for one in pages.every() if one.name == page).text)


def is_tall(figure: Figure) -> bool:
    """Return whether a figure is too tall for a slide with its caption below."""
    boxes = _BOX.findall(figure.picture(wide=True))
    return sum(float(height) / float(width) for width, height in boxes) > TALL


def slides(week: course.Week) -> Iterator[str]:
    """Yield each slide: a title, the figures, the exercises."""
    asked = "".join(_chapter(page) for page in week.pages)
    edition = f"{stamp.cited()['title']}. Version {stamp.version()}, {stamp.day()}. Text CC BY 4.0."
    yield _slide(f"<h1>Week {week.number}</h1><dl>{asked}</dl><footer>{escape(edition)}</footer>")
    for page in week.pages:
        title = f"<h2>{escape(course.chapter(page).title)}</h2>"
        for figure in map(figures.find, drawn(page)):
            yield _slide(title + figure.html(), "slide tall" if is_tall(figure) else "slide")
    solved = (checks.find(key) for key in week.exercises)
    listed = "".join(f"<li>{escape(one.title)} ({LEVELS[one.difficulty]})</li>" for one in solved)
    yield _slide(f"<h2>For next week</h2><p>{escape(week.asks)}</p><ol>{listed}</ol>")


def _slide(body: str, kind: str = "slide") -> str:
    return f'<section class="{kind}">{body}</section>'


def _chapter(page: str) -> str:
    """Return the title of a chapter and its question, for the first slide."""
    chapter = course.chapter(page)
    return f"<dt>{escape(chapter.title)}</dt><dd>{escape(chapter.question)}</dd>"


def document(week: course.Week) -> str:
    """Return the HTML file of one week."""
    style = "".join((vendor.HERE / name).read_text(encoding="utf-8") for name in STYLES)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    body = "\n".join(slides(week))
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(digest)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Week {week.number}: {escape(week.title)}</title><style>{style}</style></head>"
        f'<body><main tabindex="0">\n{body}\n</main></body></html>\n'
    )


def write(folder: Path) -> list[Path]:
    """Write every week's file and return their paths in order."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {folder / f"week-{week.number:02}.html": document(week) for week in course.weeks()}
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return list(made)


def main() -> None:
    """Parse the command line and write the slides."""
    parser = argparse.ArgumentParser(prog="python -m web.slides", description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "dist" / "slides")
    print(*write(parser.parse_args().to), sep="\n")


if __name__ == "__main__":
    main()
