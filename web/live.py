"""Write what the page's worker loads: Pyodide, the library's core as one wheel, the workbench as another.

The archives contain bytecode, compiled by Pyodide's own Python, instead of sources, so that a browser does
not compile anything on import. The same holds for the standard library, reduced to what the two wheels can
import; compiling its sources took half of the start-up time.

A snapshot of Python's memory (the experimental `_makeSnapshot` of Pyodide 314) was tried. Bare Python then
starts in a tenth of the CPU time, 0.4 s instead of 4.9 s in Node. But the snapshot is 31 MB, 6.3 MB
compressed, in addition to 9.6 MB for Python and the library, so a first visit at 20 Mbit/s would take 2.5 s
longer.
"""

import json
import shutil
from pathlib import Path

from tools import wheel
from web import vendor

PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")
STANDARD = "python_stdlib.zip"
ARCHIVES = {"library": "library.whl", "workbench": "workbench.whl", "standard": STANDARD}
_COMPILER = Path(__file__).with_name("compile.mjs")


def _compiled(archives: dict[str, dict[str, bytes]]) -> dict[str, dict[str, bytes]]:
    """Return every module compiled by Pyodide, by its name in the archive, together with the data files.

    Adds the archive `standard`: the part of the standard library that these archives and Pyodide may import.
    """
    sources = {
        archive: {name: text.decode() for name, text in files.items() if name.endswith(".py")}
        for archive, files in archives.items()
    }
    told = vendor.cached_answer(
        _COMPILER, vendor.package("pyodide") / "pyodide.mjs", json.dumps(sources),
        "the library does not compile in Pyodide",
    )  # fmt: skip
    data = {
        archive: {name: content for name, content in files.items() if not name.endswith(".py")}
        for archive, files in archives.items()
    }
    return {
        archive: data.get(archive, {}) | {f"{name}c": bytes.fromhex(code) for name, code in modules.items()}
        for archive, modules in json.loads(told).items()
    }


def write(folder: Path) -> None:
    """Write everything that the worker loads into a folder; unchanged files are left as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    pyodide = vendor.package("pyodide")
    for name in PYODIDE:
        target, source = folder / name, pyodide / name
        if not target.exists() or target.stat().st_size != source.stat().st_size:
            shutil.copyfile(source, target)
    lock = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    (folder / "pyodide-lock.json").write_text(json.dumps(lock | {"packages": {}}), encoding="utf-8")
    for archive, files in _compiled({"library": wheel.core(), "workbench": wheel.workbench()}).items():
        (folder / ARCHIVES[archive]).write_bytes(wheel.packed(files))
