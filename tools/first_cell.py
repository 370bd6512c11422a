"""The first cell of every notebook, which finds or unpacks the library.

In a committed notebook it looks for the library: installed, in the surrounding copy of the book, in a wheel
next to it, or in the release of the configured repository. A notebook from the site carries the library in
this cell. No package index is queried. `tools.notebooks` and the site add the cell; the sources do not have
it.
"""

import base64
import hashlib
from pathlib import Path

import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from scalingbook_lib import __version__
from tools.environment import ROOT

TAG = "set-up"
# Editors slow down on a line of a megabyte. A file cannot make VS Code fold a cell, so the text has few
# lines; base64 ignores the breaks.
LINE = 100_000
TAG_OF_RELEASE = f"v{__version__}"
# The cells run before anything of the book is installed, so they use the standard library alone. PYTHONPATH
# lets processes that a notebook starts, such as hosts, find the same library.
_LOOKING = """\
# @title Set-up: finds the book's library
import importlib.util
import os
import sys
import tempfile
import zipfile
from pathlib import Path

missing = importlib.util.find_spec("scalingbook_lib") is None
if missing:
    around = [Path.cwd(), *Path.cwd().parents]
    copies = [folder for folder in around if (folder / "scalingbook_lib" / "__init__.py").exists()]
    wheels = sorted(Path.cwd().glob("scalingbook_lib-*.whl"))
    home = str(copies[0]) if copies else tempfile.mkdtemp(prefix="scalingbook-")
    if wheels and not copies:
        zipfile.ZipFile(wheels[-1]).extractall(home)
    elif not copies:
        ELSEWHERE
    sys.path.insert(0, home)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))

from scalingbook_lab.devices import runtime

runtime.begin(installed=missing)"""
NOWHERE = (
    "the book's library is neither installed nor next to this notebook: run the notebook in a copy of "
    "the book, or download it from the book's site, where it includes the library"
)
_NOWHERE = f'raise RuntimeError("{NOWHERE}")'
# `--no-deps`: Colab and Kaggle have a JAX and a NumPy that fit their device, and a notebook must not change
# them.
_RELEASED = """\
import subprocess

        release = "scalingbook-lib @ git+RELEASE"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", home, release]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"NOWHERE ({done.stderr.strip()})")"""
# A zip of uncompressed files, compressed by LZMA as a whole: three fifths of the size of a usual wheel.
_CARRYING = """\
# @title Set-up: unpacks the book's library, which is included in this notebook
import base64
import hashlib
import io
import lzma
import os
import sys
import tempfile
import zipfile

carried = base64.b64decode(\"\"\"
CARRIED\"\"\")
if hashlib.sha256(carried).hexdigest() != "DIGEST":
    raise RuntimeError("the library in this notebook is damaged: download the notebook again")
home = tempfile.mkdtemp(prefix="scalingbook-")
zipfile.ZipFile(io.BytesIO(lzma.decompress(carried))).extractall(home)
sys.path.insert(0, home)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))

from scalingbook_lab.devices import runtime

runtime.begin(installed=True)"""


def repository(root: Path = ROOT) -> str:
    """Return the repository address in `_config.yml`, or ""."""
    config = root / "_config.yml"
    told = yaml.safe_load(config.read_text(encoding="utf-8")) if config.exists() else {}
    return ((told.get("repository") or {}).get("url") or "").removesuffix("/")


def source(root: Path = ROOT) -> str:
    """Return the text of the cell that looks for the library."""
    url = repository(root)
    released = _RELEASED.replace("RELEASE", f"{url}@{TAG_OF_RELEASE}").replace("NOWHERE", NOWHERE)
    return _LOOKING.replace("ELSEWHERE", released if url else _NOWHERE)


def carrying(library: str) -> str:
    """Return the text of the cell that carries the library, given as `tools.wheel.carried()`."""
    digest = hashlib.sha256(base64.b64decode(library)).hexdigest()
    lines = "".join(f"{library[at : at + LINE]}\n" for at in range(0, len(library), LINE))
    return _CARRYING.replace("DIGEST", digest).replace("CARRIED", lines)


def put(notebook: NotebookNode, text: str) -> NotebookNode:
    """Return the notebook with this cell first, and no other such cell."""
    hidden = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["remove-cell", TAG]}
    cell = new_code_cell(text, metadata=hidden, id=TAG)  # a random id would make every copy differ
    return NotebookNode(notebook | {"cells": [cell, *(c for c in notebook.cells if not is_it(c))]})


def is_it(cell: NotebookNode) -> bool:
    """Return whether a cell is such a cell, of any version."""
    return TAG in cell.metadata.get("tags", ())
