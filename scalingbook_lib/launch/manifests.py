"""Reads the commands of the containers in a Kubernetes manifest or a Compose file, as a shell would run them.

A container without a command runs that of its image, which is put before its arguments: the images of vLLM
start a server. How many replicas there are, and where they run, is not read.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Any

from scalingbook_lib.launch.settings import MOST_CHARACTERS, LaunchError

_MANIFEST = re.compile(r"(?m)^apiVersion:.*$")
_KIND = re.compile(r"(?m)^kind:[ \t]*\S")
_COMPOSE = re.compile(r"(?m)^services:[ \t]*(#.*)?$")
_MOST_NODES = 100_000


def is_manifest(text: str) -> bool:
    """Whether a text starts containers."""
    begins = text[:MOST_CHARACTERS]
    return bool((_MANIFEST.search(begins) and _KIND.search(begins)) or _COMPOSE.search(begins))


def script(text: str, name: str) -> str:
    """The commands of all containers, a line each; a LaunchError where there are none."""
    lines = [line for document in _documents(text, name) for line in _commands(document, set())]
    if not lines:
        kind = "Compose file" if _COMPOSE.search(text) else "Kubernetes manifest"
        raise LaunchError(
            f"{name} is a {kind} whose containers have neither a command nor arguments; give the command "
            "that its container runs, as in 'vllm serve meta-llama/Llama-3.1-8B -tp 2'"
        )
    return "\n".join(lines)


def _documents(text: str, name: str) -> list[Any]:
    try:
        import yaml  # the core needs only the standard library
    except ModuleNotFoundError as error:
        raise LaunchError(
            "reading YAML needs PyYAML, which is not installed; run pip install pyyaml"
        ) from error
    if len(text) > MOST_CHARACTERS:
        raise LaunchError(f"{name} is too long to be read; give the command that its container runs")
    try:
        return list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise LaunchError(f"{name} is not valid YAML; correct it, or give the command itself") from error


def _commands(document: Any, seen: set[int]) -> Iterator[str]:
    """The commands of the containers at any depth of a document; what an alias repeats counts once."""
    if id(document) in seen or len(seen) > _MOST_NODES:
        return
    seen.add(id(document))
    if isinstance(document, dict):
        runs = {key: document[key] for key in ("command", "args") if document.get(key)}
        if runs and ("image" in document or "args" in runs):
            yield _line(runs, str(document.get("image") or ""))
            return
        for value in document.values():
            yield from _commands(value, seen)
    elif isinstance(document, list):
        for value in document:
            yield from _commands(value, seen)


def _line(runs: dict[str, Any], image: str) -> str:
    """One container's command line, with the image where its entry point runs."""
    own, arguments = (_words(runs.get(key)) for key in ("command", "args"))
    starts = bool(own) and not own[0].startswith("-")
    words = [*([] if starts or not image else [image]), *own, *arguments]
    return shlex.join(words)  # $(NAME) of a manifest stays as it is written


def _words(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        try:
            return shlex.split(value, comments=False)
        except ValueError:
            return value.split()
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
