"""Reads YAML, TOML and JSON files into settings with dotted names and line numbers.

JSON and TOML are read by the standard library, YAML by PyYAML, which the command line installs.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

from scalingbook_lib.launch.settings import MOST_CHARACTERS, LaunchError, Setting

KINDS = {".yml": "yaml", ".yaml": "yaml", ".toml": "toml", ".json": "json"}
_MOST_SETTINGS = 20_000
_FIRST_LINES = {
    "json": re.compile(r"\{\s*[\"}]"),
    "toml": re.compile(r"(?m)\[[\w.\"-]+\] *(#|$)|[\w.-]+ += +\S"),
    "yaml": re.compile(r"(?m)--- *$|[\w.\"'-]+:(\s|$)"),
}  # a shell assigns without spaces, and its commands do not end in a colon


def kind_of(text: str) -> str | None:
    """The kind of config that a text is, by its first line that is not a comment; None for a script.

    >>> kind_of("# a run\\ntensor_parallel_size: 8"), kind_of("vllm serve a -tp 8")
    ('yaml', None)
    """
    begins = first_statement(text)
    return next((kind for kind, form in _FIRST_LINES.items() if form.match(begins)), None)


def first_statement(text: str) -> str:
    """A text without the comments and the empty lines before its first statement."""
    return re.sub(r"\A(\s*(#.*)?\n)*\s*", "", text[:MOST_CHARACTERS])


def settings(text: str, kind: str, file: str = "", first_line: int = 1) -> list[Setting]:
    """The settings of a file of that kind, in its order; `first_line` is where the text begins in it.

    >>> [(one.name, one.value, one.line) for one in settings('[training]\\nseq_len = 8192', "toml")]
    [('training.seq_len', 8192, 2)]
    """
    if len(text) > MOST_CHARACTERS:
        raise LaunchError(
            f"{file or 'the text'} has more than {MOST_CHARACTERS:,} characters; give a shorter one"
        )
    try:
        found = {"yaml": _yaml, "toml": _toml, "json": _json}[kind](text)
    except RecursionError as error:
        raise LaunchError(f"{file or 'the text'} is nested too deeply; give a flatter file") from error
    if len(found) > _MOST_SETTINGS:
        raise LaunchError(
            f"{file or 'the text'} has more than {_MOST_SETTINGS:,} settings; give a shorter one"
        )
    shift = first_line - 1
    return [Setting(name, value, line + shift if line else 0, file) for name, value, line in found]


type _Found = list[tuple[str, object, int]]


def _json(text: str) -> _Found:
    try:
        read = json.loads(text)
    except json.JSONDecodeError as error:
        raise LaunchError(f"line {error.lineno}: it is not valid JSON: {error.msg}; correct it") from error
    return _flat(_top(read, "JSON"), _Cursor(text, lambda key: rf"{re.escape(json.dumps(key))}\s*:").line)


def _toml(text: str) -> _Found:
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LaunchError(f"it is not valid TOML: {error}; correct it") from error
    cursor = _Cursor(text, lambda key: rf"(?m)^\s*(?:\[[^\]\n]*?)?[\"']?{re.escape(key)}[\"']?\s*(?:=|\]|\.)")
    return _flat(read, cursor.line)


class _Cursor:
    """Finds the lines of keys, which are asked for in the order of the text."""

    def __init__(self, text: str, pattern: Callable[[str], str]) -> None:
        self.text, self.pattern, self.at = text, pattern, 0

    def line(self, key: str) -> int:
        """The line of the next place with that key; 0 if there is none."""
        found = re.compile(self.pattern(key)).search(self.text, self.at)
        if found is None:
            return 0
        self.at = found.end() - 1
        begins = found.start() + len(found[0]) - len(found[0].lstrip())
        return self.text.count("\n", 0, begins) + 1


def _flat(read: dict[str, Any], line_of: Callable[[str], int], above: str = "") -> _Found:
    found: _Found = []
    for key, value in read.items():
        line = line_of(str(key))
        name = f"{above}{key}"
        if isinstance(value, dict) and value:
            found += _flat(value, line_of, f"{name}.")
        else:
            found.append((name, value, line))
    return found


def _top(read: object, kind: str) -> dict[str, Any]:
    if not isinstance(read, dict):
        raise LaunchError(f"the {kind} holds no names with values; give a file of settings")
    return read


def _yaml(text: str) -> _Found:
    try:
        import yaml  # the core needs only the standard library
    except ModuleNotFoundError as error:
        raise LaunchError(
            "reading YAML needs PyYAML, which is not installed; run pip install pyyaml"
        ) from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            return []
        loader = yaml.SafeLoader("")
        return list(_nodes(yaml, loader, root, ""))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise LaunchError(f"{where}it is not valid YAML: {problem}; correct it") from error


def _nodes(yaml: Any, loader: Any, node: Any, above: str) -> Iterator[tuple[str, object, int]]:
    """The leaves of a mapping, by dotted name. Aliases are followed only to leaves."""
    if not isinstance(node, yaml.MappingNode):
        raise LaunchError("the YAML holds no names with values; give a file of settings")
    for key, value in node.value:
        name = f"{above}{key.value if isinstance(key, yaml.ScalarNode) else '?'}"
        line = key.start_mark.line + 1
        if isinstance(value, yaml.MappingNode) and value.value and name.count(".") < 8:
            yield from _nodes(yaml, loader, value, f"{name}.")
        elif isinstance(value, yaml.SequenceNode):
            plain = [one.value for one in value.value if isinstance(one, yaml.ScalarNode)]
            yield name, plain, line
        elif isinstance(value, yaml.ScalarNode):
            yield name, loader.construct_object(value), line
        else:  # an empty mapping, or one that is too deep
            yield name, None if value.value else {}, line
