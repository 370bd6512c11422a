"""What is wrong with this notation, where, and what should be written instead?"""

LONGEST_SHOWN = 120


class NotationError(ValueError):
    """One illegal use of the notation.

    `rule` is a short code, one for each rule of the notation; `read` is the text that was read; `span` is the
    part of it that breaks the rule, so that a page can underline it (None where the error is in no text).
    `part` names that part in the array or product (`dim.1`, `b.axis.0`) for whoever knows where it stands.
    """

    def __init__(
        self,
        rule: str,
        read: str,
        broke: str,
        write: str,
        span: tuple[int, int] | None = None,
        part: str = "",
    ) -> None:
        super().__init__(rule, read, broke, write, span, part)
        self.rule, self.read, self.broke, self.write = rule, read, broke, write
        self.span, self.part = span, part

    def __str__(self) -> str:
        return f"{shown(self.read)}: {self.broke}; {self.write}"

    @property
    def position(self) -> int | None:
        """Where in `read` the trouble starts; None where the error is in no text."""
        return self.span[0] if self.span else None

    def at(self, read: str, span: tuple[int, int] | None) -> "NotationError":
        """The same error, placed in the text that was read."""
        return NotationError(self.rule, read, self.broke, self.write, span, self.part)

    def underlined(self) -> str:
        """The text with carets below what breaks the rule, for a terminal."""
        line = "".join(c if c.isprintable() else "?" for c in self.read)
        start, end = self.span or (0, len(line))
        return f"{line}\n{' ' * start}{'^' * max(1, end - start)}"


def shown(text: str) -> str:
    """The text as a message can carry it: in one line, printable, not too long."""
    text = text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
    return text if text and text.isprintable() else ascii(text)
