"""What does a page weigh before anything is touched? The files that a browser asked for, each compressed."""

import gzip
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKED = {".woff2", ".png", ".jpg", ".webp", ".whl"}  # gzip makes these no smaller


def size(path: Path) -> int:
    """The bytes of a file that travel."""
    content = path.read_bytes()
    return len(content) if path.suffix in PACKED else len(gzip.compress(content, 9))


def of(site: Path, urls: Iterable[str]) -> dict[str, int]:
    """Each file behind the addresses that a page asked for, with its bytes on the wire."""
    files = {site / unquote(urlsplit(url).path).lstrip("/") for url in urls if url.startswith("http")}
    return {file.relative_to(site).as_posix(): size(file) for file in sorted(files) if file.is_file()}
