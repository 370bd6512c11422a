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
from tools import pages
from tools.environment import ROOT
from web import stamp, vendor
from web.extension import course
from web.extension.exercises import LEVELS

POLICY = "default-src 'none'; style-src 'sha256-{}'"
STYLES = ("explorer.css", "slides.css")
_SHOWN = re.compile(r'^show\.figure\("([\w.]+)"\)$', re.MULTILINE)


def drawn(page: str) -> list[str]:
    """Return the keys of the figures of a page, in order."""
    return _SHOWN.findall(next(one for one in pages.every() if one.name == page).text)


def slides(week: course.Week) -> Iterator[str]:
    """Yield the HTML of each slide: a title, the figures, the exercises."""
    asked = "".join(f"<p>{escape(course.chapter(page).question)}</p>" for page in week.pages)
    edition = f"{stamp.cited()['title']}. Version {stamp.VERSION}, {stamp.day()}. Text CC BY 4.0."
    yield f"<h1>Week {week.number}: {escape(week.title)}</h1>{asked}<footer>{escape(edition)}</footer>"
    for page in week.pages:
        title = f"<h2>{escape(course.chapter(page).title)}</h2>"
        yield from (title + figures.find(key).html() for key in drawn(page))
    solved = (checks.find(key) for key in week.exercises)
    listed = "".join(f"<li>{escape(one.title)} ({LEVELS[one.difficulty]})</li>" for one in solved)
    yield f"<h2>For next week</h2><p>{escape(week.asks)}</p><ol>{listed}</ol>"


def document(week: course.Week) -> str:
    """Return the HTML file of one week."""
    style = "".join((vendor.HERE / name).read_text(encoding="utf-8") for name in STYLES)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    body = "\n".join(f'<section class="slide">{one}</section>' for one in slides(week))
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
