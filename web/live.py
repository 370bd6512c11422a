"""What does the page's worker load? Pyodide, the library's core as one wheel, the workbench as another.

A wheel holds sources and, beside them, the bytecode that Pyodide's own Python compiles: importing it in a
browser then costs no compilation. Both are kept by content, so an unchanged library is packed once.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path

from tools import wheel
from web import vendor

PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
_COMPILER = Path(__file__).with_name("compile.mjs")


def packed(files: dict[str, bytes]) -> Path:
    """Files as a wheel that Python imports without unpacking."""
    digest = hashlib.sha256(vendor.lock_digest().encode() + _COMPILER.read_bytes())
    for name, text in files.items():
        digest.update(name.encode() + b"\0" + text + b"\0")
    path = vendor.STORE / "wheels" / f"{digest.hexdigest()[:20]}.whl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")  # two builds may pack at once
        draft.write_bytes(wheel.packed(files | _bytecode(files) | wheel.metadata()))
        draft.replace(path)
    return path


def _bytecode(files: dict[str, bytes]) -> dict[str, bytes]:
    """Every module compiled by Pyodide itself, named as an import from an archive looks for it."""
    pyodide = vendor.package("pyodide") / "pyodide.mjs"
    question = json.dumps({name: text.decode() for name, text in files.items() if name.endswith(".py")})
    told = vendor.answered(_COMPILER, pyodide, question, "the library does not compile in Pyodide")
    return {f"{name}c": bytes.fromhex(code) for name, code in json.loads(told).items()}


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
    for name, files in (("library.whl", wheel.core()), ("workbench.whl", wheel.workbench())):
        shutil.copyfile(packed(files), folder / name)
