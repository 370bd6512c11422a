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
import zipfile
from pathlib import Path

from tools import wheel
from web import vendor

PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")
STANDARD = "python_stdlib.zip"
_COMPILER, _IMPORTER = (Path(__file__).with_name(name) for name in ("compile.mjs", "imported.mjs"))


def _compiled(files: dict[str, bytes]) -> dict[str, bytes]:
    """Every module compiled by Pyodide itself, named as imports from an archive want it; data as it is."""
    pyodide = vendor.package("pyodide") / "pyodide.mjs"
    told = vendor.answered(
        _COMPILER, pyodide, json.dumps(_sources(files)), "the library does not compile in Pyodide"
    )
    data = {name: content for name, content in files.items() if not name.endswith(".py")}
    return data | {f"{name}c": bytes.fromhex(code) for name, code in json.loads(told).items()}


def standard(files: dict[str, bytes]) -> dict[str, bytes]:
    """The sources of the standard library that these files may import, and Pyodide itself."""
    pyodide, question = vendor.package("pyodide"), json.dumps(_sources(files))
    told = vendor.answered(
        _IMPORTER, pyodide / "pyodide.mjs", question, "imports of the library cannot be read"
    )
    with zipfile.ZipFile(pyodide / STANDARD) as archive:
        return {path: archive.read(path) for path in json.loads(told)}


def _sources(files: dict[str, bytes]) -> dict[str, str]:
    return {name: text.decode() for name, text in files.items() if name.endswith(".py")}


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
    library, workbench = wheel.core(), wheel.workbench()
    for name, files in (
        ("library.whl", library),
        ("workbench.whl", workbench),
        (STANDARD, standard(library | workbench)),
    ):
        (folder / name).write_bytes(wheel.packed(_compiled(files)))
