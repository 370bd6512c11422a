"""Offer the PDF and the EPUB on a built site; the cover links the volumes in `downloads/`.

They are made from the built site, so they are added afterwards, and the next build starts without them.
"""

import re
import shutil
from pathlib import Path

from scalingbook_lib.units import si
from web import offline

FOLDER = offline.VOLUMES
_PLACE = re.compile(r'(<p class="volumes">).*?(</p>)', re.DOTALL)


def offer(site: Path, volume: Path) -> None:
    """Copy a volume into a built site and link all volumes there from the cover."""
    folder, cover = site / FOLDER, site / "index.html"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(volume, folder / volume.name)
    links = " and ".join(_link(path) for path in sorted(folder.iterdir(), reverse=True))
    said = f"To read it as a book, download {links}."
    text, found = _PLACE.subn(lambda place: f"{place[1]}{said}{place[2]}", cover.read_text(encoding="utf-8"))
    if not found:
        raise SystemExit(f'{cover} has no <p class="volumes">, where the links to volumes stand')
    cover.write_text(text, encoding="utf-8")
    offline.write(site)  # the cover has changed, and browsers cache a site by a digest of its files


def _link(path: Path) -> str:
    kind = path.suffix.removeprefix(".").upper()
    return f'<a href="{FOLDER}/{path.name}">the {kind}</a> ({si(path.stat().st_size, "B")})'
