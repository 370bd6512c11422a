"""Prune the theme's 400 KB of CSS to the rules that the built pages can use.

A rule is kept if every class and id of its selector occurs in a page or in a script that creates elements; a
custom property is kept if something refers to it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_FUNCTION = re.compile(r":(?:not|is|where|has|host|nth-[a-z-]+)\((?:[^()]|\([^()]*\))*\)")
_ATTRIBUTE = re.compile(r"\[[^\]]*\]")
_NAME = re.compile(r"[.#]((?:[\w-]|\\.)+)")
_HTML_NAMES = re.compile(r"""\b(?:class|id)=(?:"([^"]*)"|'([^']*)'|([\w-]+))""")
_PROPERTY = re.compile(r"(?<=[{;])\s*(--[\w-]+)\s*:(?:[^;{}\"']|\"[^\"]*\"|'[^']*')*(?:;|(?=}))")
_REFERRED = re.compile(r"var\(\s*(--[\w-]+)")
_DROPPED = ("@charset", "@import")


@dataclass(frozen=True, slots=True)
class Block:
    """One statement of a stylesheet: the text before its braces, and their content (None without braces)."""

    head: str
    body: str | None


def names_in_html(text: str) -> set[str]:
    """Return every class and id in a page."""
    return {name for found in _HTML_NAMES.findall(text) for part in found for name in part.split()}


def names_in_source(text: str) -> set[str]:
    """Return every word of a program that could be a class name."""
    return set(re.findall(r"[A-Za-z_][\w-]*", text))


def blocks(css: str) -> Iterator[Block]:
    """Yield the statements of a stylesheet; handles strings and nested braces."""
    start = at = 0
    while at < len(css):
        char = css[at]
        if char in "\"'":
            at = _skip_string(css, at)
        elif char == "{":
            end = _closing(css, at)
            yield Block(css[start:at].strip(), css[at + 1 : end])
            start = at = end
        elif char == ";":
            yield Block(css[start:at].strip(), None)
            start = at
        if at < len(css) and css[at] in "};" and start == at:
            start = at + 1
        at += 1


def _skip_string(css: str, at: int) -> int:
    quote, at = css[at], at + 1
    while at < len(css) and css[at] != quote:
        at += 2 if css[at] == "\\" else 1
    return at


def _closing(css: str, at: int) -> int:
    depth = 0
    while at < len(css):
        if css[at] in "\"'":
            at = _skip_string(css, at)
        elif css[at] == "{":
            depth += 1
        elif css[at] == "}":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return at


def bare(css: str) -> str:
    """Return the stylesheet without comments."""
    return _COMMENT.sub("", css)


def prune(css: str, used: set[str]) -> str:
    """Return the stylesheet without the rules that cannot match an element with the names in `used`."""
    return "".join(_kept(block, used) for block in blocks(bare(css)))


def referred(css: str, elsewhere: str) -> str:
    """Return the stylesheet without custom properties that nothing refers to, here or in `elsewhere`."""
    others = {*_REFERRED.findall(elsewhere)}
    while True:  # a property may be used only in the value of another
        used = others | {*_REFERRED.findall(css)}
        shorter = _PROPERTY.sub(lambda found, used=used: found[0] if found[1] in used else "", css)
        if shorter == css:
            return css
        css = shorter


def _kept(block: Block, used: set[str]) -> str:
    head, body = block.head, block.body
    if body is None:
        return "" if not head or head.startswith(_DROPPED) else f"{head};"
    if head.startswith(("@media", "@supports", "@layer", "@container")):
        inner = prune(body, used)
        return f"{head}{{{inner}}}" if inner else ""
    if head.startswith("@font-face"):
        return "" if "Font Awesome" in body or "FontAwesome" in body else f"{head}{{{body.strip()}}}"
    if head.startswith("@"):
        return f"{head}{{{body.strip()}}}"
    selectors = [s for s in _split(head) if _can_match(s, used)]
    return f"{','.join(selectors)}{{{body.strip()}}}\n" if selectors and body.strip() else ""


def _split(head: str) -> list[str]:
    """Return the selectors of a list, split at its outer commas."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(head):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(head[start:at].strip())
            start = at + 1
    return [*parts, head[start:].strip()]


def _can_match(selector: str, used: set[str]) -> bool:
    plain = _ATTRIBUTE.sub("", selector)
    while (shorter := _FUNCTION.sub("", plain)) != plain:
        plain = shorter
    return all(name.replace("\\", "") in used for name in _NAME.findall(plain))
