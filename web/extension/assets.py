"""Write one stylesheet and one script per page, plus what its formulas and explorers need.

After Sphinx has finished, the theme's stylesheets are pruned and joined, icons are inlined, and files of
`_static` that no page loads are removed.
"""

import json
import re
import shutil
from datetime import date
from pathlib import Path

from sphinx.application import Sphinx

from web import policy, vendor
from web.extension import exercises, head, icons, labels, licenses, scripts, search, stylesheet

SHEETS = (
    "basic.css", "pygments.css", "styles/theme.css", "styles/pydata-sphinx-theme.css",
    "styles/sphinx-book-theme.css", "mystnb.*.css", "sphinx-design.min.css",
)  # fmt: skip
# the theme's sidebar is not a landmark, so content in it beside the table of contents would be in none
LANDMARK = (
    '<div id="pst-primary-sidebar" class',
    '<div id="pst-primary-sidebar" role="complementary" aria-label="The book" class',
)
# The text font has no italic file: the browser slants the few italic words, which saves 16 kB per page.
TEXT_FONT, TEXT_WEIGHTS = "source-sans-3-latin-wght-normal.woff2", "200 900"
TEXT_FONT_PACKAGE = "@fontsource-variable/source-sans-3"


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write the stylesheet and the scripts, and remove what no page loads."""
    if error or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    paths = {path.relative_to(app.outdir).as_posix(): path for path in Path(app.outdir).rglob("*.html")}
    texts = {name: _fitted(path, head.day(app)) for name, path in paths.items()}
    pages = list(texts.values())
    whole = Path(app.doctreedir) / "theme.css"
    if any(static.glob("styles/pydata*")):  # otherwise Sphinx had nothing to do and copied nothing
        _join_sheets(static, whole)
    named = set().union(*map(stylesheet.names_in_html, pages))
    used = named | _used_by_programs()
    css = _theme_rules(whole, used, pages) + stylesheet.prune(katex_rules(), used) + text_font_rules()
    css += own_rules() + policy.rules(named)
    (static / "site.css").write_text(css, encoding="utf-8")
    shutil.copytree(scripts.PAGE / "static", static, dirs_exist_ok=True)
    scripts.write(static, _exercises(app))
    search.write(app, static)
    _copy_fonts(static / "fonts", "".join(pages))
    head.write_card(app, static)
    licenses.write(static)
    _drop_unused(static)


def _fitted(path: Path, day: date) -> str:
    """Rewrite a page with icons, slider labels and the date, without inline code; return its text."""
    written = path.read_text(encoding="utf-8")
    drawn = labels.added(icons.drawn(policy.fitted(written)))
    text = head.dated(drawn.replace(*LANDMARK), day)
    if text != written:
        path.write_text(text, encoding="utf-8")
    return text


def _exercises(app: Sphinx) -> str:
    """Return a script with the exercises of each page, for the counts in the table of contents."""
    pages = {f"{page}.html": keys for page, keys in sorted(exercises.shown(app.env).items())}
    return f"globalThis.bookExercises = {json.dumps(pages, separators=(',', ':'))};\n"


def _join_sheets(static: Path, whole: Path) -> None:
    """Save the theme's rules outside the site, so that a later build without copying can prune them again."""
    paths = [path for pattern in SHEETS for path in sorted(static.glob(pattern))]
    whole.write_text("\n".join(path.read_text(encoding="utf-8") for path in paths), encoding="utf-8")


def _used_by_programs() -> set[str]:
    """Return every class and id that scripts and the library's drawings may give to an element."""
    used: set[str] = set()
    library = vendor.ROOT / "scalingbook_book"
    drawn = [path.read_text("utf-8") for path in library.glob("reader/**/*.py")]
    for text in drawn:
        used |= stylesheet.names_in_html(text)
    for entry in scripts.ENTRIES:
        used |= stylesheet.names_in_source(scripts.joined(scripts.PAGE / entry))
    return used


def _theme_rules(whole: Path, used: set[str], pages: list[str]) -> str:
    css = re.sub(r"@font-face\s*{[^}]*}", "", whole.read_text(encoding="utf-8"))
    met = stylesheet.referred(stylesheet.prune(css, used), own_rules() + "".join(pages))
    return stylesheet.prune(met, used)  # a rule that only set properties may be empty now


def katex_rules() -> str:
    """KaTeX's stylesheet with a single font format."""
    css = (vendor.package("katex") / "dist" / "katex-swap.min.css").read_text(encoding="utf-8")
    return re.sub(r",url\([^)]*\.(?:woff|ttf)\) format\(\"(?:woff|truetype)\"\)", "", css)


def own_rules() -> str:
    """Return the book's own styles: the pages', the explorers', then those for print."""
    paths = [*sorted(scripts.PAGE.glob("*.css")), vendor.HERE / "explorer.css", vendor.HERE / "print.css"]
    return stylesheet.bare("\n".join(path.read_text(encoding="utf-8") for path in paths if path.exists()))


def text_font_rules() -> str:
    """Return the rule for the text font: one variable-weight file with Latin letters."""
    return (
        '@font-face{font-family:"Source Sans 3 Variable";font-display:swap;'
        f'font-weight:{TEXT_WEIGHTS};src:url(fonts/{TEXT_FONT}) format("woff2")}}\n'
    )


def _copy_fonts(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    shutil.copyfile(vendor.package(TEXT_FONT_PACKAGE) / "files" / TEXT_FONT, folder / TEXT_FONT)
    if 'class="katex"' in text:
        for font in (vendor.package("katex") / "dist" / "fonts").glob("*.woff2"):
            shutil.copyfile(font, folder / font.name)


def _drop_unused(static: Path) -> None:
    beside = {path.name for path in (scripts.PAGE / "static").iterdir()}
    written = {*search.FILES, *scripts.ENTRIES.values()}
    kept = {"site.css", "fonts", "live", head.CARD, licenses.FOLDER} | beside | written
    for path in static.iterdir():
        if path.name in kept:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def setup(app: Sphinx) -> None:
    """Run after everything else that writes into `_static`."""
    app.connect("build-finished", finish, priority=900)
