"""A tokenizer that splits a text in the notation into words and signs with their positions."""

import re
from dataclasses import dataclass

from scalingbook_lib.notation.array import NAME
from scalingbook_lib.notation.error import broken, printable
from scalingbook_lib.notation.sizes import checked

OPENS = {"[": "]", "(": ")", "{": "}"}
CLOSES = {closing: opening for opening, closing in OPENS.items()}

_TOKEN = re.compile(
    rf"""(?P<arrow>->|→|⟶|\\to\b|\\rightarrow\b)
       | (?P<times>[·⋅∙×*@]|\\cdot\b|\\times\b)
       | (?P<name>{NAME}(?:_[A-Za-z0-9']+)*)
       | (?P<number>[0-9]+)
       | (?P<sign>[][(){{}},_:=])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a sign; `kind` is `arrow`, `times`, `name`, `number`, `end`, or the sign itself."""

    kind: str
    text: str
    span: tuple[int, int]

    def cut(self, start: int, end: int | None = None) -> "Token":
        """The part of this token from `start` to `end`, counted in the token's own characters."""
        piece = self.text[start:end]
        return Token(self.kind, piece, (self.span[0] + start, self.span[0] + start + len(piece)))

    def __str__(self) -> str:
        if self.kind in ("name", "number"):
            return printable(self.text)
        return repr(self.text) if self.text else "the end"


def tokens(text: str) -> list[Token]:
    """The words and signs of the text, and an end token. Raises a NotationError if brackets do not match."""
    found, at = [], 0
    while at < len(checked(text)):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise broken("unknown-character", text, (at, at + 1), found=_character(text[at]))
        kind = match.lastgroup or ""
        found.append(Token(match[0] if kind == "sign" else kind, match[0], match.span()))
        at = match.end()
    _check_brackets(text, found)
    return [*found, Token("end", "", (len(text), len(text)))]


def _character(c: str) -> str:
    """A character as a message can show it; look-alikes from other alphabets get their code point."""
    return printable(c) if c.isascii() or not c.isprintable() else f"{c} (U+{ord(c):04X})"


def _check_brackets(text: str, found: list[Token]) -> None:
    opened: list[Token] = []
    for token in found:
        sign = token.kind
        if sign in OPENS:
            opened.append(token)
        elif sign in CLOSES and not opened:
            raise broken("unopened", text, token.span, sign=sign, other=CLOSES[sign])
        elif sign in CLOSES and (last := opened.pop().kind) != CLOSES[sign]:
            raise broken("mismatched", text, token.span, opened=last, sign=sign, other=OPENS[last])
    if opened:
        raise broken("unclosed", text, opened[-1].span, sign=opened[-1].kind, other=OPENS[opened[-1].kind])
