"""Pack the library of this tree for readers: as a wheel, with the same bytes each time.

The site's pages load the core only; a downloaded notebook carries everything, compressed.
"""

import base64
import importlib.util
import io
import lzma
import re
import tomllib
import zipfile
from pathlib import Path

from tools.environment import PACKAGES, ROOT

LIBRARY = ROOT / "scalingbook_lib"
# What the site's pages need: only the standard library is available there.
BOOK = (
    "scalingbook_book/__init__.py",
    "scalingbook_book/inspection_page.py",
    "scalingbook_book/profile_timeline.py",
)
CORE = ("scalingbook_lib", "scalingbook_book/chapters", "scalingbook_book/reader")
EPOCH = (2020, 1, 1, 0, 0, 0)


def core() -> dict[str, bytes]:
    """Return the files of the library that need only the standard library, by path in a wheel."""
    files = {name: content for folder in CORE for name, content in _below(ROOT / folder, folder).items()}
    return files | {name: (ROOT / name).read_bytes() for name in BOOK}


def workbench() -> dict[str, bytes]:
    """Return the additional files of the Workbench page: the command line, and Click."""
    spec = importlib.util.find_spec("click")
    assert spec
    assert spec.origin
    click = {n: told for n, told in _below(Path(spec.origin).parent, "click").items() if n.endswith(".py")}
    return click | _below(ROOT / "scalingbook_cli", "scalingbook_cli")


def whole() -> dict[str, bytes]:
    """Return all files of the library, and the files and folders that `pyproject.toml` adds to its wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    added = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    beside = [_below(ROOT / folder, name) for folder, name in added.items()]
    packages = [_below(ROOT / package, package) for package in PACKAGES]
    return {name: content for files in (*packages, *beside) for name, content in files.items()}


def _below(folder: Path, name: str) -> dict[str, bytes]:
    if folder.is_file():
        return {name: folder.read_bytes()}
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {f"{name}/{p.relative_to(folder).as_posix()}": p.read_bytes() for p in paths}


def metadata() -> dict[str, bytes]:
    """Return the metadata files of a wheel: name, version, kind."""
    version = re.search(r'__version__ = "([^"]+)"', (LIBRARY / "__init__.py").read_text(encoding="utf-8"))
    number = version[1] if version else "0"
    folder = f"scalingbook_lib-{number}.dist-info"
    about = f"Metadata-Version: 2.1\nName: scalingbook-lib\nVersion: {number}\n"
    tags = "Wheel-Version: 1.0\nGenerator: tools.wheel\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    # RECORD may be empty, because nobody installs this wheel: the first cell unpacks it, and the page imports
    # from it.
    return {f"{folder}/METADATA": about.encode(), f"{folder}/WHEEL": tags.encode(), f"{folder}/RECORD": b""}


def packed(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a wheel of these files; equal files give equal bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, method)
    return made.getvalue()


def carried() -> str:
    """Return the whole library as text for a notebook cell: a wheel, LZMA-compressed, in base64."""
    small = lzma.compress(packed(whole() | metadata(), zipfile.ZIP_STORED), preset=9 | lzma.PRESET_EXTREME)
    return base64.b64encode(small).decode()
