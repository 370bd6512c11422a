"""The Content-Security-Policy of a page: only scripts and styles from the book's own files.

Pages that Sphinx has written are adapted: a style attribute (KaTeX writes 400 different ones) becomes a class
whose name encodes the style, and inline scripts are removed.
"""

import re

POLICY = "; ".join((
    "default-src 'self'", "script-src 'self' 'wasm-unsafe-eval'", "style-src 'self'",
    "object-src 'none'", "base-uri 'self'",
))  # fmt: skip
_INLINE = re.compile(r"<script(?![^>]*\ssrc=)[^>]*>.*?</script>\s*", re.S)
_STYLED = re.compile(r'<\w[^<>]*?\sstyle="[^"]*"[^<>]*>')
_STYLE = re.compile(r'\sstyle="([^"]*)"')
_CLASS = re.compile(r'\sclass="([^"]*)"')


def fitted(html: str) -> str:
    """Return a page without inline scripts and styles."""
    return _STYLED.sub(lambda tag: _classed(tag[0]), _INLINE.sub("", html))


def _classed(tag: str) -> str:
    style = _STYLE.search(tag)
    assert style
    name, bare = _name(style[1]), _STYLE.sub("", tag, count=1)
    if _CLASS.search(bare):
        return _CLASS.sub(lambda found: f' class="{found[1]} {name}"', bare, count=1)
    return re.sub(r"^<\w+", lambda found: f'{found[0]} class="{name}"', bare)


def _name(style: str) -> str:
    """Return a class name that encodes a style: `st-height_3A0.69em` for `height:0.69em`."""
    said = re.sub(r"\s*([:;])\s*", r"\1", style).strip("; ")
    return "st-" + re.sub(r"[^A-Za-z0-9.%-]", lambda found: f"_{ord(found[0]):02X}", said)


def rules(classes: set[str]) -> str:
    """CSS rules for every such class, with the precedence of a style attribute."""
    names = sorted(name for name in classes if name.startswith("st-"))
    return "".join(f":root:root:root .{re.sub('[.%]', _escaped, name)}{{{_style(name)}}}\n" for name in names)


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def _style(name: str) -> str:
    return re.sub(r"_([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), name.removeprefix("st-"))
