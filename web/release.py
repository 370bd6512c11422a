"""Build a release: `python -m web.release` fills `dist/` with wheel, site, notebooks, PDF and EPUB.

`web.stamp` says which version this is, and of which date; every file states them in its name or on its
first page. No file contains a time or a random name, so equal commits give equal bytes.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

from tools import wheel
from tools.environment import ROOT
from web import bound, downloads, epub, pdf, serve, site, stamp, volumes
from web.browser import chromium

DIST = ROOT / "dist"
SUMS = "SHA256SUMS"
EDITION = "EDITION.txt"
ANSWERS = "solutions"


def edition() -> str:
    """Return the edition notice that every archive contains."""
    said = f"{stamp.cited()['title']}\nVersion {stamp.version()}, {stamp.day()}\n{stamp.authors()}\n"
    return said + "Text CC BY 4.0, code MIT. Licenses of other works are in _static/licenses.\n"


def library(folder: Path) -> None:
    """Build the library as a wheel into a folder."""
    uv = shutil.which("uv", path=str(ROOT / ".venv" / "bin")) or "uv"
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder)], cwd=ROOT, check=True)
    (folder / ".gitignore").unlink(missing_ok=True)  # uv's; the repository ignores the folder already


def archive(source: Path, target: Path, without: str = "-") -> None:
    """Write a folder as a ZIP archive with the edition notice; equal folders give equal bytes."""
    paths = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    kept = [path for path in paths if path.parts[0] != without]
    files = {f"{target.stem}/{path.as_posix()}": (source / path).read_bytes() for path in kept}
    target.write_bytes(wheel.packed(files | {f"{target.stem}/{EDITION}": edition().encode()}))


def bind(made: Path, folder: Path) -> None:
    """Write the whole book as PDF and EPUB, and link them from the site's cover."""
    with serve.running(made) as address, chromium() as browser:
        for kind in (epub, pdf):
            volumes.offer(made, kind.bind(bound.script_free_page(browser), address, bound.volume(), folder))


def digests(folder: Path) -> str:
    """SHA-256 digests of all files, in the format of `sha256sum --check`."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def main() -> None:
    """Build everything from scratch."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    made = site.build(pictures=True, api=True)
    library(DIST)
    bind(made, DIST)
    archive(made, DIST / f"book-{stamp.VERSION}-site.zip")
    notebooks = made / downloads.FOLDER
    archive(notebooks, DIST / f"book-{stamp.VERSION}-notebooks.zip", without=ANSWERS)
    archive(notebooks / ANSWERS, DIST / f"book-{stamp.VERSION}-answers.zip")
    (DIST / SUMS).write_text(digests(DIST), encoding="utf-8")
    print(f"dist/ has version {stamp.version()} of {stamp.day()}:\n{digests(DIST)}", end="")


if __name__ == "__main__":
    main()
