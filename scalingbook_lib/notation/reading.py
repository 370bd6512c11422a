"""What does this text say? From `A[I_XY, J]{U_Z}` to an array, from `A[I, J] · B[J, K] -> C[I, K]` to a product."""

import re
from dataclasses import dataclass

from .array import Array, Dim
from .error import NotationError, shown
from .mesh import check_text, is_axis
from .product import Product

_TOKEN = re.compile(
    r"""(?P<arrow>->|→|⟶|⇒|\\to|\\rightarrow)
      | (?P<times>[·⋅∙•×*@]|\\cdot|\\times)
      | (?P<name>[A-Za-z][A-Za-z0-9']*(?:_[A-Za-z0-9']+)*)
      | (?P<number>[0-9]+)
      | (?P<sign>[][(){},_:=])""",
    re.VERBOSE,
)
_CLOSES = {"[": "]", "(": ")", "{": "}"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # arrow, times, name, number, end, or the sign itself
    text: str
    span: tuple[int, int]


def parse(text: str) -> Array:
    """Read one array: `A[I_XY, J]{U_Z}`; `A[I_{XY},J]` and `A[I_{X,Y}, J] {U:Z}` say the same."""
    reader = _Reader(text)
    array = reader.array("")
    if reader.next.kind != "end":
        reader.fail(
            "one-array", f"{shown(reader.next.text)} follows the array", "write one array, as in A[I_X, J]"
        )
    return array


def parse_product(text: str) -> Product:
    """Read a product: `A[I, J_X] · B[J_X, K] -> C[I, K]`; `*` and `@` or nothing say `·`, `→` says `->`."""
    return _Reader(text).product()


class _Reader:
    """Reads tokens one after the other and knows where every part of what it read stands."""

    def __init__(self, text: str) -> None:
        self.text = check_text(text)
        self.tokens = _tokens(text)
        self.index = 0
        self.spans: dict[str, tuple[int, int]] = {}
        self._balance()

    @property
    def next(self) -> _Token:
        return self.tokens[self.index]

    def take(self, *kinds: str) -> _Token | None:
        """The next token, if it is of such a kind; the reader moves on."""
        token = self.next
        if token.kind not in kinds:
            return None
        self.index += token.kind != "end"
        return token

    def fail(self, rule: str, broke: str, write: str, token: _Token | None = None) -> None:
        raise NotationError(rule, self.text, broke, write, (token or self.next).span)

    def _balance(self) -> None:
        """Every bracket is closed by its own kind."""
        opened: list[_Token] = []
        for token in self.tokens:
            if token.kind in _CLOSES:
                opened.append(token)
            elif token.kind in _CLOSES.values() and (not opened or _CLOSES[opened.pop().kind] != token.kind):
                self.fail(
                    "unbalanced",
                    f"nothing opened that this {token.kind} closes",
                    "write brackets in pairs, as in A[I, J]",
                    token,
                )
        if opened:
            last = opened[-1]
            self.fail("unbalanced", f"the {last.kind} is never closed", f"add its {_CLOSES[last.kind]}", last)

    def product(self) -> Product:
        arrows = [t for t in self.tokens if t.kind == "arrow"]
        if len(arrows) != 1:
            self._no_arrow(arrows)
        a = self.array("a.")
        self.take("times")
        if self.next.kind == "arrow":
            self.fail(
                "operands",
                f"there is nothing to multiply {a.name} with",
                "write two arrays, as in A[I, J] · B[J, K]",
            )
        b = self.array("b.")
        if self.next.kind != "arrow":
            self.fail(
                "operands",
                f"a product has two operands, and {shown(self.next.text)} follows them",
                "write A[I, J] · B[J, K] -> C[I, K]",
            )
        self.take("arrow")
        c = self.array("c.")
        if self.next.kind != "end":
            self.fail(
                "one-result",
                f"{shown(self.next.text)} follows the result {c.name}",
                "end with one array, as in -> C[I, K]",
            )
        return self._placed(lambda: Product(a, b, c), "", (0, len(self.text)))

    def _no_arrow(self, arrows: list[_Token]) -> None:
        if arrows:
            self.fail(
                "two-arrows", "a product has one arrow", "write A[I, J] · B[J, K] -> C[I, K]", arrows[1]
            )
        for token in self.tokens:
            if token.kind == "=":
                self.fail("equals", "= says nothing about a product", "write -> before the result", token)
        self.fail(
            "no-arrow", "there is no result", "write it after an arrow, as in -> C[I, K]", self.tokens[-1]
        )

    def array(self, prefix: str) -> Array:
        """One array; the spans of its parts are kept under `prefix`."""
        name, start = self._name(), self.tokens[max(self.index - 1, 0)].span[0]
        self.spans[f"{prefix}name"] = name.span
        dims, axes = self._dims(prefix)
        partial = self._partial()
        for k, axis in enumerate([*axes, *partial]):
            self.spans[f"{prefix}axis.{k}"] = axis.span
        build = lambda: Array(name.text, dims, tuple(a.text for a in partial))  # noqa: E731
        return self._placed(build, prefix, (start, self.tokens[self.index - 1].span[1]))

    def _name(self) -> _Token:
        name = self.take("name")
        if name is None:
            if self.next.kind == "end":
                self.fail("missing-array", "an array is missing", "write one, as in A[I_X, J]")
            if self.next.kind == "[":
                self.fail("missing-name", "the array has no name", "write one before the [, as in A[I, J]")
            self.fail(
                "missing-name",
                f"{shown(self.next.text)} cannot begin an array",
                "write a name first, as in A[I, J]",
            )
        assert name is not None
        if self.next.kind != "[":
            self.fail(
                "no-brackets",
                f"{name.text} has no dimensions in square brackets",
                f"write them as in {name.text}[I_X, J]",
            )
        return name

    def _dims(self, prefix: str) -> tuple[tuple[Dim, ...], list[_Token]]:
        self.take("[")
        if self.next.kind == "]":
            self.fail("empty-dims", "an array needs a dimension", "write one as in A[I]")
        dims: list[Dim] = []
        axes: list[_Token] = []
        while True:
            name, subscript = self._dim()
            self.spans[f"{prefix}dim.{len(dims)}"] = name.span
            dims.append(Dim(name.text, tuple(a.text for a in subscript)))
            axes += subscript
            if self.take("]"):
                return tuple(dims), axes
            if not self.take(","):
                self.fail(
                    "no-comma",
                    f"{shown(self.next.text)} follows dimension {name.text}",
                    "separate dimensions with commas, as in A[I_X, J]",
                )

    def _dim(self) -> tuple[_Token, list[_Token]]:
        token = self.take("name")
        if token is None:
            if self.next.kind == "number":
                self.fail(
                    "dim-name",
                    f"{self.next.text} is a size, not a dimension",
                    "name the dimension with a letter, and give its size apart",
                )
            self.fail(
                "missing-dim",
                f"a dimension is missing before {shown(self.next.text)}",
                "write a letter, as in A[I, J]",
            )
        assert token is not None
        name, mark, axes = token.text.partition("_")
        start, end = token.span
        dim = _Token("name", name, (start, start + len(name)))
        if mark:
            return dim, self._axes(_Token("name", axes, (end - len(axes), end)))
        return dim, self._subscript() if self.take("_") else []

    def _subscript(self) -> list[_Token]:
        """What stands after a free underscore: {XY}, {X, Y} or XY."""
        if not self.take("{"):
            word = self.take("name")
            if word is None:
                self.fail(
                    "empty-subscript",
                    "an underscore without a mesh axis",
                    "write the axis, as in I_X, or leave out the _",
                )
            assert word is not None
            return self._axes(word)
        axes: list[_Token] = []
        while not (closing := self.take("}")):
            word = self.take("name")
            if word is None:
                self.fail(
                    "axis-name",
                    f"{shown(self.next.text)} cannot name a mesh axis",
                    "write capital letters, as in I_{XY}",
                )
            assert word is not None
            axes += self._axes(word)
            self.take(",")
        if not axes:
            self.fail(
                "empty-subscript",
                "a subscript without a mesh axis",
                "write the axis, as in I_X, or leave out the _",
                closing,
            )
        return axes

    def _axes(self, word: _Token) -> list[_Token]:
        """The axes of a subscript, one token each."""
        axes = [_Token("axis", c, (word.span[0] + k, word.span[0] + k + 1)) for k, c in enumerate(word.text)]
        for axis in axes:
            if not is_axis(axis.text):
                self.fail(
                    "axis-name",
                    f"{axis.text!r} cannot name a mesh axis",
                    "write one capital letter for each axis, as in I_XY",
                    axis,
                )
        return axes

    def _partial(self) -> list[_Token]:
        """The axes of {U_X}; none where there is no marker."""
        if self.next.kind == "_" and self.tokens[self.index + 1].kind == "{":
            self.take("_")
        if not self.take("{"):
            return []
        axes: list[_Token] = []
        while True:
            axes += self._unreduced()
            if self.take("}"):
                return axes
            if not self.take(","):
                self.fail(
                    "partial-marker",
                    f"{shown(self.next.text)} has no meaning in a partial sum",
                    "write it as in {U_X}",
                )

    def _unreduced(self) -> list[_Token]:
        token = self.take("name")
        name, mark, axes = token.text.partition("_") if token else ("", "", "")
        if token is None or name != "U":
            self.fail(
                "partial-marker",
                "braces after an array hold the axes of its partial sum",
                "write U first, as in {U_X}",
                token,
            )
        assert token is not None
        if mark:
            return self._axes(_Token("name", axes, (token.span[1] - len(axes), token.span[1])))
        if self.take("_", ":"):
            return self._subscript()
        self.fail("partial-marker", "U names no mesh axis", "write the axis, as in {U_X}", token)
        return []

    def _placed[T: (Array, Product)](self, build, prefix: str, span: tuple[int, int]) -> T:  # pyright: ignore
        """What `build` makes, with its text; an error in it is placed in the text."""
        try:
            made = build()
        except NotationError as error:
            raise error.at(self.text, self.spans.get(prefix + error.part, span)) from None
        object.__setattr__(made, "text", self.text[slice(*span)])
        return made


def _tokens(text: str) -> list[_Token]:
    """The words and signs of the text, and an end."""
    tokens, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            broke = f"{shown(text[at])} has no meaning here"
            raise NotationError(
                "unknown-character", text, broke, "write letters, brackets, commas, _, · and ->", (at, at + 1)
            )
        kind = match.lastgroup or ""
        tokens.append(_Token(match[0] if kind == "sign" else kind, match[0], match.span()))
        at = match.end()
    return [*tokens, _Token("end", "", (len(text), len(text)))]
