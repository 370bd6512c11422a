"""Compute the weight of a page before any interaction: the compressed sizes of the files it requested."""

import gzip
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKED = {".woff2", ".png", ".jpg", ".webp", ".whl"}  # gzip does not make these smaller


def size(path: Path) -> int:
    """Return the bytes of a file on the wire."""
    content = path.read_bytes()
    return len(content) if path.suffix in PACKED else len(gzip.compress(content, 9))


def of(site: Path, urls: Iterable[str]) -> dict[str, int]:
    """Return each file behind the URLs that a page requested, with its bytes on the wire."""
    files = {site / unquote(urlsplit(url).path).lstrip("/") for url in urls if url.startswith("http")}
    return {file.relative_to(site).as_posix(): size(file) for file in sorted(files) if file.is_file()}
