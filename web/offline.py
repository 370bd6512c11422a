"""Make the site readable offline: a service worker at its root, and the list of all files.

Both are named by a digest of everything that the build serves, so a worker's cache holds exactly one build.
"""

import hashlib
import json
from pathlib import Path

from web import downloads
from web.extension import scripts

WORKER, LIST = "offline.js", "_static/book.json"
VOLUMES = "downloads"  # the PDF and the EPUB, which load only on request
_LIVE = "_static/live/"
_NOT_READ = (
    WORKER,
    LIST,
    f"{downloads.FOLDER}/",
    f"{VOLUMES}/",
    "_sources/",
    ".",
    "objects.inv",
    "robots.txt",
    "sitemap.xml",
)
_FIRST = ("offline.html", "index.html", LIST)


def files(made: Path) -> dict[str, int]:
    """Return the bytes of every file that readers may load, by path."""
    names = sorted(path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file())
    return {name: (made / name).stat().st_size for name in names if not name.startswith(_NOT_READ)}


def write(made: Path) -> None:
    """Write the service worker and the file list into a finished site."""
    every = files(made)
    digest = hashlib.sha256((scripts.PAGE / "offline.mjs").read_bytes())
    for name in every:
        digest.update(name.encode() + b"\0" + (made / name).read_bytes())
    told = {
        "build": digest.hexdigest()[:16],
        "first": [*_FIRST, *(name for name in every if name.startswith("_static/") and name.count("/") == 1)],
        "live": [name for name in every if name.startswith(_LIVE)],
    }
    worker = scripts.joined(scripts.PAGE / "offline.mjs")
    (made / WORKER).write_text(f"globalThis.buildFiles = {json.dumps(told)};\n{worker}", encoding="utf-8")
    (made / LIST).write_text(json.dumps({"build": told["build"], "files": every}), encoding="utf-8")
