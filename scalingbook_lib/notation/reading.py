"""A parser for arrays, `A[I_XY, J]{U_Z}`, and matmuls, `A[I, J] · B[J, K] -> C[I, K]`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from scalingbook_lib.notation.array import Array, Dim
from scalingbook_lib.notation.error import NotationError, broken
from scalingbook_lib.notation.mesh import Mesh, is_axis
from scalingbook_lib.notation.product import Product
from scalingbook_lib.notation.tokens import Token, tokens


def parse(text: str, mesh: Mesh | None = None) -> Array:
    """The array of a text such as `A[I_XY, J]{U_Z}`.

    `A[I_{XY},J] {U:Z}` means the same and prints as it was written; `canonical()` is the book's spelling.
    Raises a NotationError if the text breaks a rule, or uses an axis that is not in `mesh`, if given.
    """
    reader = _TokenReader(text)
    array = reader.array("", mesh)
    reader.need("end", "one-array")
    return array


def parse_product(text: str, mesh: Mesh | None = None) -> Product:
    """The matmul of a text such as `A[I, J_X] · B[J_X, K] -> C[I, K]`.

    `·` may also be written `*`, `@` or left out, and `->` may be `→`. Raises a NotationError if the text
    breaks a rule, or uses an axis that is not in `mesh`, if given.
    """
    return _TokenReader(text).product(mesh)


class _TokenReader:
    """A recursive-descent parser that records the position of every part of the text."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.text = text
        self.index = 0
        # the position in the text of each part, by the name it has in errors: `dim.1`, `b.axis.0`
        self.spans: dict[str, tuple[int, int]] = {}

    @property
    def next(self) -> Token:
        return self.tokens[self.index]

    def take(self, *kinds: str) -> Token | None:
        """The next token, consumed, if it is of one of these kinds; otherwise None."""
        token = self.next
        if token.kind not in kinds:
            return None
        self.index += token.kind != "end"  # the end token is never consumed
        return token

    def need(self, kind: str, rule: str, **words: object) -> Token:
        """The next token, consumed. Raises a NotationError if it is of another kind."""
        return self.take(kind) or self.fail(rule, **{"found": self.next, **words})

    def refuse(self, kind: str, rule: str, **words: object) -> None:
        """Raise a NotationError if the next token is of that kind."""
        if self.next.kind == kind:
            self.fail(rule, None, **words)

    def fail(self, rule: str, token: Token | None = None, **words: object) -> NoReturn:
        raise broken(rule, self.text, (token or self.next).span, **words)

    @contextmanager
    def placing(self, prefix: str, start: Token) -> Iterator[None]:
        """Locate an error raised inside at the part that it names.

        An error that names no part is located between `start` and the last token read.
        """
        try:
            yield
        except NotationError as error:
            span = self.spans.get(prefix + error.part, self.since(start))
            raise error.at(self.text, span) from None

    def since(self, start: Token) -> tuple[int, int]:
        return start.span[0], self.tokens[self.index - 1].span[1]

    # a matmul: array · array -> array

    def product(self, mesh: Mesh | None) -> Product:
        # checked first: "C[I, K] follows two operands" would not help if an arrow is missing
        self._check_arrow()
        start = self.next
        a = self.array("a.", mesh)
        self.take("times")
        self.refuse("arrow", "one-operand", name=a.name)
        b = self.array("b.", mesh)
        self.need("arrow", "three-operands")
        c = self.array("c.", mesh)
        self.need("end", "one-result")
        with self.placing("", start):
            return self._kept_text(Product(a, b, c), start)

    def _check_arrow(self) -> None:
        arrows, equals = ([token for token in self.tokens if token.kind == kind] for kind in ("arrow", "="))
        lacking = [] if arrows else self.tokens[-1:]
        for rule, wrong in (("two-arrows", arrows[1:]), ("equals", equals), ("no-arrow", lacking)):
            if wrong:
                self.fail(rule, wrong[0])

    # an array: name [ dimensions ] and optionally { U_axes }

    def array(self, prefix: str, mesh: Mesh | None) -> Array:
        """One array; the positions of its parts are recorded under `prefix`."""
        self.refuse("end", "missing-array")
        name = self.need("name", "missing-name")
        self.need("[", "no-brackets", name=name)
        self.refuse("]", "empty-dims", name=name)
        dims, axes = self._dims(prefix)
        partial = self._partial()
        self.spans[f"{prefix}name"] = name.span
        self.spans |= {f"{prefix}axis.{k}": axis.span for k, axis in enumerate(axes + partial)}
        with self.placing(prefix, name):
            array = self._kept_text(Array(name.text, dims, tuple(axis.text for axis in partial)), name)
            if mesh:
                array.check(mesh)
        return array

    def _kept_text[T: Array | Product](self, made: T, start: Token) -> T:
        # kept so that the array prints as it was written; not part of comparisons
        object.__setattr__(made, "text", self.text[slice(*self.since(start))])
        return made

    def _dims(self, prefix: str) -> tuple[tuple[Dim, ...], list[Token]]:
        """The dimensions up to the closing bracket, and the tokens of their axes."""
        dims: list[Dim] = []
        axes: list[Token] = []
        while True:
            self.refuse("number", "dim-is-size", found=self.next)
            name, subscript = self._subscripted(self.need("name", "missing-dim"), "_")
            self.spans[f"{prefix}dim.{len(dims)}"] = name.span
            with self.placing("", name):
                dims.append(Dim(name.text, tuple(axis.text for axis in subscript)))
            axes += subscript
            if self.take("]"):
                return tuple(dims), axes
            self.refuse("{", "no-underscore", name=name)
            self.need(",", "no-comma", name=name)

    def _subscripted(self, word: Token, *marks: str) -> tuple[Token, list[Token]]:
        """A name and the tokens of its axes, whether one word (`I_XY`, `I_data`) or several (`I_{X, Y}`)."""
        name, mark, _ = word.text.partition("_")
        if mark:
            return word.cut(0, len(name)), self._axes(word.cut(len(name) + 1))
        return word, self._subscript() if self.take(*marks) else []

    def _subscript(self) -> list[Token]:
        """The tokens after an underscore: XY, {XY} or {X, Y}."""
        if not self.take("{"):
            return self._axes(self.need("name", "empty-subscript"))
        self.refuse("}", "empty-subscript")
        axes: list[Token] = []
        while not self.take("}"):
            axes += self._axes(self.need("name", "axis-name"))
            self.take(",")
        return axes

    def _axes(self, word: Token) -> list[Token]:
        """The axes of a subscript, one token each."""
        axes = [word] if is_axis(word.text) else [word.cut(k, k + 1) for k in range(len(word.text))]
        for axis in axes:
            if not is_axis(axis.text):
                self.fail("axis-name", axis, found=axis)
        return axes

    def _partial(self) -> list[Token]:
        """The axes of {U_X} or {U_X, U_Y}; empty if there is no marker."""
        if self.next.kind == "_" and self.tokens[self.index + 1].kind == "{":
            self.take("_")  # C[I, K]_{U_X}
        if not self.take("{"):
            return []
        axes = self._unreduced()
        while not self.take("}"):
            self.need(",", "partial-marker")
            axes += self._unreduced()
        return axes

    def _unreduced(self) -> list[Token]:
        """The axes of a single U_X."""
        word = self.next
        self.refuse("}", "empty-partial")
        if not self.take("name") or word.text.partition("_")[0] != "U":
            self.fail("partial-marker", word, found=word)
        _, axes = self._subscripted(word, "_", ":")
        if not axes:
            self.fail("empty-partial", word)
        return axes
