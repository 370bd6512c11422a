"""What does the page's worker load? Pyodide, and the core of the library as one wheel.

The wheel holds sources and, beside them, the bytecode that Pyodide's own Python compiles: importing it in a
browser then costs no compilation. Both are kept by content, so an unchanged library is packed once.
"""

import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

from web import vendor

LIBRARY = vendor.ROOT / "scalingbook_lib"
WINGS = ("viz", "lab", "cli", "__main__.py")  # what needs more than the standard library, or a terminal
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
_COMPILER = Path(__file__).with_name("compile.mjs")
_EPOCH = (2020, 1, 1, 0, 0, 0)  # the same library gives the same wheel


def sources() -> dict[str, bytes]:
    """The core's modules by their path in the wheel."""
    paths = sorted(p for p in LIBRARY.rglob("*.py") if p.relative_to(LIBRARY).parts[0] not in WINGS)
    return {p.relative_to(vendor.ROOT).as_posix(): p.read_bytes() for p in paths}


def wheel() -> Path:
    """The core as a wheel that Python imports without unpacking."""
    files = sources()
    digest = hashlib.sha256(vendor.lock_digest().encode() + _COMPILER.read_bytes())
    for name, text in files.items():
        digest.update(name.encode() + b"\0" + text + b"\0")
    path = vendor.STORE / "wheels" / f"{digest.hexdigest()[:20]}.whl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _pack(path, files | _bytecode(files) | _metadata())
    return path


def _pack(path: Path, files: dict[str, bytes]) -> None:
    draft = path.with_suffix(".draft")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    draft.replace(path)


def _bytecode(files: dict[str, bytes]) -> dict[str, bytes]:
    """Every module compiled by Pyodide itself, named as an import from an archive looks for it."""
    pyodide = vendor.package("pyodide") / "pyodide.mjs"
    question = json.dumps({name: text.decode() for name, text in files.items()})
    done = subprocess.run(
        [vendor.node(), str(_COMPILER), str(pyodide)],
        input=question, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"the library does not compile in Pyodide:\n{done.stderr[-2000:]}")
    return {f"{name}c": bytes.fromhex(code) for name, code in json.loads(done.stdout).items()}


def _metadata() -> dict[str, bytes]:
    version = re.search(r'__version__ = "([^"]+)"', (LIBRARY / "__init__.py").read_text(encoding="utf-8"))
    number = version[1] if version else "0"
    folder = f"scalingbook_lib-{number}.dist-info"
    about = f"Metadata-Version: 2.1\nName: scalingbook-lib\nVersion: {number}\n"
    tags = "Wheel-Version: 1.0\nGenerator: web.live\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return {f"{folder}/METADATA": about.encode(), f"{folder}/WHEEL": tags.encode(), f"{folder}/RECORD": b""}


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
    shutil.copyfile(wheel(), folder / "library.whl")
