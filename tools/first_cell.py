"""How does a notebook that was copied alone get the library? By its first cell, the same in every notebook.

`tools.notebooks` puts it in; the sources do without. Where the library is there already, it says nothing.
"""

from pathlib import Path

import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from scalingbook_lib import __version__
from tools.environment import ROOT

TAG = "set-up"
TAG_OF_RELEASE = f"v{__version__}"
_SOURCE = """\
# @title Set-up: brings the book's library where it is missing (Colab, Kaggle)
import importlib.util
import subprocess
import sys

needs = {"scalingbook_lib": ["--no-deps", "REQUIREMENT"], "rich": ["rich"]}
missing = [name for name in needs if importlib.util.find_spec(name) is None]
for name in missing:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *needs[name]]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"pip could not bring {name}; is Internet switched on here? {done.stderr}")
importlib.invalidate_caches()

from scalingbook_lib.lab import runtime

runtime.begin(installed=bool(missing))"""


def requirement(root: Path = ROOT) -> str:
    """What pip is asked for: the released tag of the configured repository, or the package where none is."""
    url = repository(root)
    return f"scalingbook-lib @ git+{url}@{TAG_OF_RELEASE}" if url else f"scalingbook-lib=={__version__}"


def repository(root: Path = ROOT) -> str:
    """The address that `_config.yml` gives; '' where it gives none."""
    config = root / "_config.yml"
    told = yaml.safe_load(config.read_text(encoding="utf-8")) if config.exists() else {}
    return ((told.get("repository") or {}).get("url") or "").removesuffix("/")


def source(root: Path = ROOT) -> str:
    """The text of the cell."""
    return _SOURCE.replace("REQUIREMENT", requirement(root))


def put(notebook: NotebookNode, root: Path = ROOT) -> NotebookNode:
    """The notebook with the cell of today before all others, and no other such cell."""
    hidden = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["remove-cell", TAG]}
    cell = new_code_cell(source(root), metadata=hidden)
    return NotebookNode(notebook | {"cells": [cell, *(c for c in notebook.cells if not is_it(c))]})


def is_it(cell: NotebookNode) -> bool:
    """Is this such a cell, of this version or another?"""
    return TAG in cell.metadata.get("tags", ())
