"""Run Sphinx as `jb build` does, on all cores: `python -m web.pages SOURCE WORK`.

Modules that Jupyter Book imports only to execute notebooks are stubbed out, because importing them takes
longer than building a changed page.
"""

import os
import sys
from pathlib import Path
from types import ModuleType

_EXECUTING = {  # needed only to execute notebooks; a page shows the outputs that its notebook stores
    "cache": "NotebookClientCache",
    "direct": "NotebookClientDirect",
    "inline": "NotebookClientInline",
}
_API = "      - file: api\n        title: API reference"
_NOT_NEEDED = (
    "rfc3987_syntax",  # jsonschema uses it to compile a grammar of addresses, and works without it
    "jupyter_server",  # jupytext registers itself with it
)


def _leave_out() -> None:
    for name, client in _EXECUTING.items():
        module = ModuleType(f"myst_nb.core.execute.{name}")
        setattr(module, client, None)
        sys.modules[module.__name__] = module
    for name in _NOT_NEEDED:
        sys.modules[name] = None  # type: ignore[assignment]


def _contents(source: Path, work: Path, *, api: bool) -> Path:
    """Return the table of contents, with the pages of the API reference below its first page if asked."""
    own = source / "_toc.yml"
    if not api:
        return own
    below = sorted(path.relative_to(source).with_suffix("").as_posix() for path in source.glob("api/*.md"))
    sections = "".join(f"\n          - file: {page}" for page in below)
    first, found, rest = own.read_text(encoding="utf-8").partition(_API)
    if not found:
        raise SystemExit(f"{own} has no page {_API.strip()!r}, below which the API reference stands")
    path = work / "toc-with-api.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}{found}\n        sections:{sections}{rest}", encoding="utf-8")
    return path


def make(source: Path, work: Path, *, strict: bool, api: bool = False, builder: str = "html") -> int:
    """Run Sphinx and return its status, 0 for success.

    `strict` turns warnings into errors; `api` adds the pages of the API reference.
    """
    _leave_out()
    from jupyter_book.sphinx import build_sphinx

    told = build_sphinx(
        source,
        work / "_build" / builder,
        builder=builder,
        path_config=source / "_config.yml",
        noconfig=True,
        confoverrides={
            "external_toc_path": _contents(source, work, api=api).as_posix(),
            "latex_individualpages": False,
            "gettext_compact": False,  # a catalog for each page
            "nitpicky": True,
        },
        warningiserror=strict,
        keep_going=True,
        jobs=1 + (os.cpu_count() or 1),  # the first process only distributes work
    )
    return told if isinstance(told, int) else 1


if __name__ == "__main__":
    folders, flags = (Path(sys.argv[1]), Path(sys.argv[2])), sys.argv[3:]
    builder = "gettext" if "--gettext" in flags else "html"
    sys.exit(make(*folders, strict="--strict" in flags, api="--api" in flags, builder=builder))
