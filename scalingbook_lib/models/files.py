"""Read a `config.json`: its text, its file or its folder, with errors for what is none."""

import json
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from scalingbook_lib import git_lfs
from scalingbook_lib.models.parts import ModelError, printable

MOST_CHARACTERS = 8_000_000
MOST_FILE = 4 * MOST_CHARACTERS  # bytes: no character of UTF-8 has more than four
PIPES = "/dev/fd/", "/dev/stdin"  # what a shell hands over for <(command): somebody writes to it
MOST_LEVELS = 50  # a published file has four; a browser's Python dies of a few thousand


def read(config: object) -> dict[str, Any]:
    """The fields of a configuration: a mapping, JSON text, or the path of a file or its folder."""
    if isinstance(config, str) and "{" in config:
        config = _parsed(config)
    elif isinstance(config, str | PathLike):
        config = _parsed(_file(Path(config)))
    if not isinstance(config, Mapping):
        raise ModelError(
            "config", f"{printable(config)} is not an object", "give the whole config.json, in { }"
        )
    if not all(isinstance(key, str) for key in config):
        raise ModelError(
            "config", "the name of a field is not a string", "give the config.json as it was published"
        )
    return dict(config)


def _file(path: Path) -> str:
    try:
        path = path / "config.json" if path.is_dir() else path
        plain = path.is_file() and path.stat().st_size <= MOST_FILE
        if path.exists() and not plain and not str(path).startswith(PIPES):
            broke = f"{printable(str(path))} is no plain file of at most {MOST_FILE:,} bytes"
            raise ModelError("config", broke, "give the path of a config.json")
        with path.open(encoding="utf-8") as file:
            return file.read(MOST_CHARACTERS + 1)
    except (OSError, ValueError) as error:  # also: no UTF-8, a null byte in the path
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            "config", f"{printable(str(path))} cannot be read", "give the path of a config.json"
        ) from error


def _parsed(text: str) -> object:
    if git_lfs.is_pointer(text):
        raise ModelError("config", *git_lfs.refusal("it").split("; "))
    if len(text) > MOST_CHARACTERS:
        raise ModelError("config", f"it has more than {MOST_CHARACTERS:,} characters", "give a config.json")
    if _levels(text) > MOST_LEVELS:  # before json.loads, whose recursion ends a browser's Python
        raise ModelError("config", "it is nested too deeply", "give a config.json")
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ModelError(
            "config", f"it is no JSON from {where} on", "paste the whole file, { to }"
        ) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            "config", "it has a number too long or is nested too deeply", "give a config.json"
        ) from error


def _levels(text: str) -> int:
    """How deeply the brackets of the text nest, those in strings left out."""
    level = deepest = 0
    for bracket in re.findall(r"[][{}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json.loads keeps the last of two values for one name: not the one that a reader saw first
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read and repr(read[key]) != repr(value):
            raise ModelError(
                printable(key).strip("'"), "it stands twice, with two values", "keep one of them"
            )
        read[key] = value
    return read
