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


def make(source: Path, work: Path, *, strict: bool) -> int:
    """Run Sphinx and return its status, 0 for success; `strict` turns warnings into errors."""
    _leave_out()
    from jupyter_book.sphinx import build_sphinx

    told = build_sphinx(
        source,
        work / "_build" / "html",
        path_config=source / "_config.yml",
        noconfig=True,
        confoverrides={
            "external_toc_path": (source / "_toc.yml").as_posix(),
            "latex_individualpages": False,
            "nitpicky": True,
        },
        warningiserror=strict,
        keep_going=True,
        jobs=1 + (os.cpu_count() or 1),  # the first process only distributes work
    )
    return told if isinstance(told, int) else 1


if __name__ == "__main__":
    sys.exit(make(Path(sys.argv[1]), Path(sys.argv[2]), strict="--strict" in sys.argv))
