"""What does the page's worker load? Pyodide, the library's core as one wheel, the workbench as another.

An archive holds, in place of sources, the bytecode that Pyodide's own Python compiles: importing it in a
browser costs no compilation. So does the standard library, which has what the two wheels can reach, no more:
compiling its sources was half of a start.

A snapshot of Python's memory (`_makeSnapshot` of Pyodide 314, which promises nothing of it) was tried: bare
Python starts from it in a tenth of the processor's time, 0.4 s for 4.9 in Node. But it is 31 MB, of which 6.3
travel beside the 9.6 of Python and the library: a first visit at 20 Mbit/s would wait 2.5 s longer.
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
    """Every module compiled by Pyodide itself, named as imports from an archive want it, beside the data.

    To these archives it adds `standard`: of the standard library what these and Pyodide may import.
    """
    sources = {
        archive: {name: text.decode() for name, text in files.items() if name.endswith(".py")}
        for archive, files in archives.items()
    }
    told = vendor.answered(
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
    """Put everything the worker loads into a folder; what stands there unchanged is left."""
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
