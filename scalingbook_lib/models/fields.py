"""How is one field of a `config.json` read, and what is said where it is missing or makes no sense?"""

from collections.abc import Mapping
from typing import Any

from scalingbook_lib.models.parts import MOST, ModelError, shown, whole

SLIDING = {"sliding_attention": True, "chunked_attention": True, "full_attention": False}


class Fields:
    """The fields of one configuration, under the several names that they have been given.

    `asked` are the names of all that a reader looked at: what it did not ask for is not counted.
    """

    def __init__(self, config: Mapping[str, Any], asked: set[str] | None = None) -> None:
        self.config, self.asked = config, set() if asked is None else asked

    def but(self, **given: Any) -> "Fields":
        """The same with these values for those of the file."""
        return Fields({**self.config, **given}, self.asked)

    def value(self, *names: str) -> Any:
        """The value under the first of these names that has one; None where no name has.

        Two names with different values contradict each other.
        """
        self.asked.update(names)
        given = {name: self.config[name] for name in names if self.config.get(name) is not None}
        first, value = next(iter(given.items()), ("", None))
        for name, other in given.items():
            if type(other) is not type(value) or other != value:  # to Python, True is 1, and so is 1.0
                broke = f"{shown(other)} contradicts {first}, which is {shown(value)}"
                raise ModelError(name, broke, "keep one of them")
        return value

    def number(self, *names: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """A whole number that the configuration must have, unless there is a default."""
        value = self.value(*names)
        if value is None and default is None:
            also = f" (or {', '.join(names[1:])})" if names[1:] else ""
            raise ModelError(names[0], "it is missing", f"add {names[0]}{also}, a whole number")
        found = next((n for n in names if self.config.get(n) is not None), names[0])
        return whole(found, default if value is None else value, least=least, most=most)

    def maybe(self, *names: str, least: int = 1) -> int | None:
        """A whole number, or None where the configuration has none."""
        return None if self.value(*names) is None else self.number(*names, least=least)

    def present(self, *names: str) -> None:
        """Refuse to guess: these fields may be 0 or null, but they must be there."""
        self.asked.update(names)
        for name in names:
            if name not in self.config:
                raise ModelError(name, "it is missing", f"add {name}, or null where the model has none")

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        return self._a(bool, name, default, "neither true nor false", "write true or false")

    def _a(self, kind: type, name: str, default: Any, broke: str, write: str) -> Any:
        """A value of that kind; the default where there is none."""
        value = self.value(name)
        if value is not None and not isinstance(value, kind):
            raise ModelError(name, f"{shown(value)} is {broke}", write)
        return default if value is None else value

    def must(self, **allowed: Any) -> None:
        """Refuse a variant that this family does not cover; who does not say has the one that it does."""
        for name, one in allowed.items():
            value = self.value(name)
            if value is not None and (type(value) is not type(one) or value != one):
                raise ModelError(
                    name,
                    f"{shown(value)} is a variant that is not counted here",
                    f"give a model with {shown(one)}, or write its shapes as a Transformer",
                )

    def listed(self, name: str, length: int | None = None) -> list[Any] | None:
        """A list, or None where the configuration has none; of that length, if one is given."""
        value = self._a(list, name, None, "no list", "write it in [ ]")
        if value is not None and length not in (None, len(value)):
            broke = f"its {len(value)} entries contradict num_hidden_layers, {length}"
            raise ModelError(name, broke, "write one for each layer")
        return value

    def inner(self, name: str) -> "Fields":
        """The fields of an object inside this one; empty where there is none."""
        return Fields(self._a(dict, name, {}, "no object", "write it in { }"))

    def heads(self, N: int, K: int, name: str = "num_key_value_heads") -> int:
        """K, once it is known that N query heads can share so many key-value heads."""
        if N % K:  # also where K is larger
            raise ModelError(
                name, f"{K} contradicts num_attention_heads, {N}", "let it divide the number of heads"
            )
        return K

    def heads_of(self, name: str, of: str) -> int:
        """A number of heads that is a multiple of another one."""
        many, few = self.number(name), self.number(of)
        if many % few:
            raise ModelError(name, f"{many} contradicts {of}, {few}", "let it be a multiple")
        return many

    def head_width(self, D: int, N: int) -> int:
        """The width of a head: its own field, or the width of the model over its heads."""
        H = self.maybe("head_dim")
        if H is None and D % N:  # a width that is rounded down would be another model
            raise ModelError(
                "num_attention_heads",
                f"{N} heads do not divide hidden_size, {D}",
                "change one, or add head_dim",
            )
        return H or D // N

    def windows(self, L: int, otherwise: tuple[bool, ...]) -> tuple[int | None, ...]:
        """The window of each layer, as a cycle: `layer_types` says which slide, or else `otherwise`."""
        types = self.listed("layer_types", L)
        slides = otherwise if types is None else _cycle(tuple(map(_slides, types)))
        return tuple(self.number("sliding_window", "attention_chunk_size") if s else None for s in slides)


def _slides(kind: object) -> bool:
    if not isinstance(kind, str) or kind not in SLIDING:
        raise ModelError("layer_types", f"{shown(kind)} is unknown", f"write one of {', '.join(SLIDING)}")
    return SLIDING[kind]


def _cycle(entries: tuple[bool, ...]) -> tuple[bool, ...]:
    """The shortest start of these entries that repeats into all of them."""
    # the shortest, so that two files of one model give equal Transformers
    count = len(entries)
    fits = (p for p in range(1, count) if entries[p:] == entries[: count - p])
    return entries[: next(fits, count)]
