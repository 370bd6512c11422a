"""One setting of a launch command: its name, its value, and the line where it stands."""

from dataclasses import dataclass

MOST_CHARACTERS = 1_000_000  # of a file or a command, and of what its variables expand to


class LaunchError(ValueError):
    """A launch command that cannot be read; the message says what was read and what to write instead."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A name and a value as written; `line` is 0 where it is unknown, `file` is "" for the command itself.

    The value is a text on a command line. In a YAML, TOML or JSON file it may be a number, a truth value, a
    list or None. A flag without a value has True.
    """

    name: str
    value: object
    line: int = 0
    file: str = ""

    @property
    def where(self) -> str:
        """'line 12', or 'line 12 of extra.yml'."""
        file = f" of {self.file}" if self.file else ""
        return f"line {self.line}{file}" if self.line else self.file or "the command"

    @property
    def text(self) -> str:
        """The value as one would type it."""
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, list):
            return ",".join(map(str, self.value))
        return "none" if self.value is None else str(self.value)

    def refuse(self, rule: str, instead: str) -> LaunchError:
        """The error for this setting."""
        shown = self.text if len(self.text) <= 60 else f"{self.text[:57]}..."
        return LaunchError(f"{self.where}: {self.name} {shown!r} {rule}; {instead}")
