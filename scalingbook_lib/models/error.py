"""What is wrong with this model, and what should be written instead?"""

from collections.abc import Mapping

MOST = 10**9  # no dimension of a model is larger
MOST_LAYERS = 1000


type Limits = Mapping[str, tuple[int, int]]  # the least and the most, by field


class ModelError(ValueError):
    """A model that cannot be: `field` names the field that is missing or contradicts another one."""

    def __init__(self, field: str, broke: str, write: str) -> None:
        super().__init__(field, broke, write)
        self.field, self.broke, self.write = field, broke, write

    def __str__(self) -> str:
        return f"{self.field}: {self.broke}; {self.write}"


def shown(value: object) -> str:
    """The value as a message can carry it: in one line, printable, not too long."""
    if isinstance(value, int) and abs(value) > 10**30:
        return "a number of more than 30 digits"
    if isinstance(value, dict | list | tuple | set):
        return f"a {type(value).__name__}"
    text = ascii(value)
    return text if len(text) <= 60 else text[:59] + "…"


def whole(field: str, value: object, *, least: int = 1, most: int = MOST) -> int:
    """The value, once it is known to be a whole number in its bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ModelError(field, f"{shown(value)} is no whole number", "write one without quotes, as in 4096")
    if not least <= value <= most:
        raise ModelError(
            field, f"{shown(value)} is not between {least} and {most:,}", "write a size that a model can have"
        )
    return value


def wholes(of: object, limits: Limits, part: str = "") -> None:
    """The fields of an object, once they are known to be whole numbers within their limits."""
    for name, (least, most) in limits.items():
        whole(f"{part}{name}", getattr(of, name), least=least, most=most)
