"""Read the fields of a `config.json`, with errors for missing and contradictory ones."""

from collections.abc import Mapping
from typing import Any

from scalingbook_lib.models.parts import MOST, ModelError, printable, whole

SLIDING = {
    "sliding_attention": True,
    "chunked_attention": True,
    "full_attention": False,
    "indexed_attention": False,  # full attention to positions that an indexer selects
}


class Fields:
    """The fields of one configuration, each under the several names in use.

    `asked` records the names that a reader looked at: any other field is not counted.
    """

    def __init__(self, config: Mapping[str, Any], asked: set[str] | None = None) -> None:
        self.config, self.asked = config, set() if asked is None else asked

    def overridden(self, **given: Any) -> "Fields":
        """The same fields with these values in place of the file's."""
        return Fields({**self.config, **given}, self.asked)

    def value(self, *names: str) -> Any:
        """The value under the first of these names that has one; None where none has.

        ModelError where two names have different values.
        """
        self.asked.update(names)
        given = {name: self.config[name] for name in names if self.config.get(name) is not None}
        first, value = next(iter(given.items()), ("", None))
        for name, other in given.items():
            if type(other) is not type(value) or other != value:  # to Python, True is 1, and so is 1.0
                broke = f"{printable(other)} contradicts {first}, which is {printable(value)}"
                raise ModelError(name, broke, "keep one of them")
        return value

    def number(self, *names: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """A whole number from `least` to `most`; ModelError where it is missing and has no default."""
        value = self.value(*names)
        if value is None and default is None:
            also = f" (or {', '.join(names[1:])})" if names[1:] else ""
            raise ModelError(names[0], "it is missing", f"add {names[0]}{also}, a whole number")
        found = next((n for n in names if self.config.get(n) is not None), names[0])
        return whole(found, default if value is None else value, least=least, most=most)

    def optional(self, *names: str, least: int = 1) -> int | None:
        """A whole number of at least `least`, or None where the configuration has none."""
        return None if self.value(*names) is None else self.number(*names, least=least)

    def present(self, *names: str) -> None:
        """ModelError unless these fields are there; 0 and null are allowed."""
        self.asked.update(names)
        for name in names:
            if name not in self.config:
                raise ModelError(name, "it is missing", f"add {name}, or null where the model has none")

    def flag(self, name: str, default: bool) -> bool:
        """A truth value, `default` where the field is missing; ModelError where it is none."""
        return self._a(bool, name, default, "neither true nor false", "write true or false")

    def _a(self, kind: type, name: str, default: Any, broke: str, write: str) -> Any:
        """A value of that type, `default` where the field is missing.

        ModelError where it is of another type.
        """
        value = self.value(name)
        if value is not None and not isinstance(value, kind):
            raise ModelError(name, f"{printable(value)} is {broke}", write)
        return default if value is None else value

    def require(self, **allowed: Any) -> None:
        """ModelError where a field names a variant that this family does not cover.

        A missing field passes.
        """
        for name, one in allowed.items():
            value = self.value(name)
            if value is not None and (type(value) is not type(one) or value != one):
                raise ModelError(
                    name,
                    f"{printable(value)} is a variant that is not counted here",
                    f"give a model with {printable(one)}, or write its shapes as a Transformer",
                )

    def listed(self, name: str, length: int | None = None) -> list[Any] | None:
        """A list, of `length` if given, or None where the configuration has none."""
        value = self._a(list, name, None, "no list", "write it in [ ]")
        if value is not None and length not in (None, len(value)):
            broke = f"its {len(value)} entries contradict num_hidden_layers, {length}"
            raise ModelError(name, broke, "write one for each layer")
        return value

    def listed_of(self, name: str, kind: type, length: int | None = None) -> list[Any] | None:
        """A list whose entries are all of that type; ModelError where one is not."""
        value = self.listed(name, length)
        if value is not None and not all(type(one) is kind for one in value):
            raise ModelError(name, f"an entry is no {kind.__name__}", "write a list of one type")
        return value

    def inner(self, name: str) -> "Fields":
        """The fields of a nested object; empty where there is none."""
        return Fields(self._a(dict, name, {}, "no object", "write it in { }"))

    def heads(self, N: int, K: int, name: str = "num_key_value_heads") -> int:
        """K, the key-value heads, checked to divide the N query heads."""
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
        """The width of a head: its own field, or the model's width over its heads."""
        H = self.optional("head_dim", "attention_head_dim")
        if H is None and D % N:  # a width that is rounded down would be another model
            raise ModelError(
                "num_attention_heads",
                f"{N} heads do not divide hidden_size, {D}",
                "change one, or add head_dim",
            )
        return H or D // N

    def windows(self, L: int, otherwise: tuple[bool, ...]) -> tuple[int | None, ...]:
        """The window of each layer, as the shortest cycle:
        `layer_types` says which slide, or else `otherwise`.
        """
        types = self.listed("layer_types", L)
        self.asked.update(("sliding_window", "attention_chunk_size"))  # moot where no layer slides
        slides = otherwise if types is None else cycle_of(tuple(map(_slides, types)))
        return tuple(self.number("sliding_window", "attention_chunk_size") if s else None for s in slides)


def _slides(kind: object) -> bool:
    if not isinstance(kind, str) or kind not in SLIDING:
        raise ModelError("layer_types", f"{printable(kind)} is unknown", f"write one of {', '.join(SLIDING)}")
    return SLIDING[kind]


def cycle_of(entries: tuple[bool, ...]) -> tuple[bool, ...]:
    """The shortest prefix of these entries that repeats into all of them."""
    # the shortest, so that two files of one model give equal Transformers
    count = len(entries)
    fits = (p for p in range(1, count) if entries[p:] == entries[: count - p])
    return entries[: next(fits, count)]
