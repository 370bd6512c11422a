"""Bundle the page's modules into eight script files, without comments.

A module that imports ten others would cost ten sequential requests, so each entry becomes one file: the
modules that it imports, in dependency order, then itself. An entry that another imports stays a separate
file, because its state must exist once. Comments are removed: JSDoc serves the type checker and would be a
third of the bytes.
"""

import re
from pathlib import Path

from web import vendor
from web.extension import icons

PAGE = (vendor.HERE / "page").resolve()
_CLASSIC = "site.js"  # not a module, because browsers load none for a page that is opened from a file
_MODULES = (
    "guesses.mjs", "inspector.mjs", "live.mjs", "progress.mjs", "whole.mjs", "workbench.mjs", "worker.mjs",
)  # fmt: skip
ENTRIES = {"site.mjs": _CLASSIC} | {name: name for name in _MODULES}
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]+)";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.M)
_COMMENT = re.compile(r"^ *(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n", re.M | re.S)
_BESIDE = re.compile(r"(?<=[;{},)(\]]) // [^\n\"'`]*$", re.M)  # a comment after code that is not in a string
_DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+)", re.M)


def write(static: Path, prefix: str) -> None:
    """Write the files into a folder; `prefix` is put before the progress script."""
    for entry, name in ENTRIES.items():
        text = joined(PAGE / entry)
        text = f"(() => {{\n{text}}})();\n" if name == _CLASSIC else text
        text = prefix + text if name == "progress.mjs" else text
        (static / name).write_text(icons.drawn(text), encoding="utf-8")


def joined(entry: Path) -> str:
    """Return the bundle of an entry; exits if two of its modules declare the same name."""
    parts: dict[Path, str] = {}
    _collect(entry, parts)
    own = parts.pop(entry)
    text = "".join(_EXPORT.sub("", part) for part in parts.values()) + own
    declared = _DECLARED.findall(text)
    if twice := sorted({name for name in declared if declared.count(name) > 1}):
        raise SystemExit(f"{entry.name}: two of its parts declare {', '.join(twice)}")
    return text


def _collect(path: Path, parts: dict[Path, str]) -> None:
    """Add a module after everything that it imports."""

    def needed(found: re.Match[str]) -> str:
        part = (path.parent / found[2]).resolve()
        if not part.exists():  # Pyodide's, which the build adds
            return found[0]
        if part.name in ENTRIES:
            return f'import {found[1]} from "./{part.name}";\n'
        if part not in parts:
            _collect(part, parts)
        return ""

    code = _BESIDE.sub("", _COMMENT.sub("", path.read_text(encoding="utf-8")))
    parts[path] = _IMPORT.sub(needed, code)
