"""Conversions between numbers in base units and the text with units that people read and write.

Everything inside the library is in base units: bytes, seconds, FLOPs, bytes/s, FLOPs/s. This module formats
numbers in base units (`si`, `binary`), reads such text back into base units (`parse`), and defines how many
bytes an element of each data type takes.
"""

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

KB, MB, GB, TB = 1e3, 1e6, 1e9, 1e12  # links and datasheets count in powers of ten
KiB, MiB, GiB, TiB = 2**10, 2**20, 2**30, 2**40  # memories are sized in powers of two

_SI = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_COMPACT = "", "K", "M", "B", "T"
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_HALF_UP = 1 + 2**-50  # halves round up, as on paper: 2.5, and 2.675, which is slightly smaller as a double
_NO_SMALL = {"B", "bytes", "FLOP", "FLOPs", "OPs"}  # counts: there is no millibyte
_WORDS = {"tokens", "requests", "sequences", "parameters", "steps"}  # units that take no prefix
_LONG = ((86_400.0, "days"), (3600.0, "h"), (60.0, "min"))  # instead of kiloseconds


@dataclass(frozen=True, slots=True)
class DType:
    """A data type: its name in the book and the bytes of one element in memory.

    `multiplied` names the type in which a matrix unit multiplies the elements if it differs from `name`:
    mxfp4 is fp4 with a scale for each block, and the scales take memory.
    """

    name: str
    bytes: float
    multiplied: str = ""

    def __str__(self) -> str:
        return self.name


FP32, BF16, FP16 = DType("fp32", 4), DType("bf16", 2), DType("fp16", 2)
FP8, INT8 = DType("fp8", 1), DType("int8", 1)
FP4, INT4 = DType("fp4", 0.5), DType("int4", 0.5)
DTYPES = {d.name: d for d in (FP32, BF16, FP16, FP8, INT8, FP4, INT4)}
"""The types that matrix units multiply, by name."""
MXFP8 = DType("mxfp8", (8 + 8 / 32) / 8, "fp8")  # a scale of 8 bits for each block of 32 elements
MXFP4 = DType("mxfp4", (4 + 8 / 32) / 8, "fp4")
NVFP4 = DType("nvfp4", (4 + 8 / 16) / 8, "fp4")  # a scale of 8 bits for each block of 16
STORED = DTYPES | {d.name: d for d in (MXFP8, MXFP4, NVFP4)}
"""The types above and the block-scaled types in which weights and KV caches are stored, by name."""

_ALSO = {
    "fp32": "float32 float f32 single",
    "bf16": "bfloat16",
    "fp16": "float16 half f16",
    "fp8": "float8 f8 e4m3 e5m2 e4m3fn e4m3fnuz e5m2fnuz",
    "int8": "i8 s8 w8a8",
    "fp4": "float4 f4 e2m1",
    "int4": "i4 s4 w4a16",
}
_MEANT = {  # names of types that are not supported here, and the nearest supported type
    "fp64|float64|f64|double": "the widest is fp32",
    "tf32|tensorfloat32": "tf32 is fp32 in memory, and no rate in tf32 is known here",
    "nf4|awq|gptq|q4.*|w4.*|.*4bit|uint4|u4": "four bits per element are int4 (scales not counted) or nvfp4",
    "q8.*|w8.*|.*8bit|uint8|u8": "eight bits per element are int8 or fp8",
    "fp6|mxfp6|float6|q6.*": "the next wider type is mxfp8",
}
_NAMED = {name: name for name in STORED} | {
    also: name for name, words in _ALSO.items() for also in words.split()
}


def dtype(name: str) -> DType:
    """The data type of that name, which may be spelled as frameworks and checkpoints spell it.

    For example 'bfloat16', 'torch.float16', 'fp8_e4m3', 'float8_e4m3fn' or 'nvfp4'. Raises a ValueError that
    names the nearest types if there is no such type.
    """
    written = "".join(c for c in name.lower().removeprefix("torch.").removeprefix("jnp.") if c.isalnum())
    # fp8_e4m3, float8_e5m2 and f8e4m3fn name fp8 and the number of its exponent bits
    rests = (written.removeprefix(prefix) for prefix in ("float8", "fp8", "f8"))
    found = _NAMED.get(written) or next(("fp8" for rest in rests if _NAMED.get(rest) == "fp8"), None)
    if found:
        return STORED[found]
    meant = next((f"; {what}" for words, what in _MEANT.items() if re.fullmatch(words, written)), "")
    raise ValueError(f"{name!r} is not a data type here{meant}; write one of {', '.join(STORED)}")


def matrix_unit_dtype(stored: DType) -> DType:
    """The type in which a matrix unit multiplies a stored type: fp4 for mxfp4 and nvfp4, else the same."""
    return DTYPES.get(stored.multiplied, stored)


def si(value: float, unit: str = "", digits: int = 3) -> str:
    """The number as text with a decimal prefix, its unit and `digits` significant figures.

    Units that are words ("tokens") take no prefix: they follow the number as `count` formats it. A time of
    1,000 seconds or more is in minutes, hours or days.

    >>> si(4.36e-5, "s"), si(1160.0, "s"), si(1421.0, "tokens/s")
    ('43.6 µs', '19.3 min', '1,420 tokens/s')
    """
    if unit.partition("/")[0] in _WORDS:
        return f"{count(rounded(value, digits), digits)} {unit}"
    if value == 0 or not math.isfinite(value):
        return f"{_plain(value, digits)} {unit}".strip()
    figures = rounded(value, digits)  # 999.6 rounds up into the next prefix
    if unit == "s" and abs(figures) >= 1000:
        size, name = next((size, name) for size, name in _LONG if abs(value) >= 2 * size)
        return f"{_plain(value / size, digits)} {name}"
    power = 3 * math.floor(math.floor(math.log10(abs(figures))) / 3)
    power = min(max(power, 0 if unit in _NO_SMALL else -12), 18)
    return f"{_plain(figures / 10.0**power, digits)} {_SI[power]}{unit}".strip()


def binary(value: float, unit: str = "B", digits: int = 4) -> str:
    """The number as text with a binary prefix, its unit and `digits` significant figures.

    >>> binary(2**34), si(2**34, "B")
    ('16 GiB', '17.2 GB')
    """
    if value == 0 or not math.isfinite(value):
        return f"{_plain(value, digits)} {unit}".strip()
    step = max(math.floor(math.log2(abs(value)) / 10), 0)
    step += abs(rounded(value / 2 ** (10 * step), digits)) >= 1024  # 1023.99 rounds into the next prefix
    step = min(step, len(_BINARY) - 1)
    return f"{_plain(value / 2 ** (10 * step), digits)} {_BINARY[step]}{unit}".strip()


def compact(value: float, digits: int = 3) -> str:
    """The number of parameters or tokens as text, with the suffix that model names use, from K to T.

    >>> compact(32.17e9), compact(1.4e12), compact(1e15)
    ('32.2B', '1.4T', '1,000T')
    """
    figures = rounded(value, digits)
    step = min(sum(abs(figures) >= 1000.0**k for k in range(1, len(_COMPACT))), len(_COMPACT) - 1)
    return f"{_plain(figures / 1000.0**step, digits)}{_COMPACT[step]}"


def count(value: float, digits: int = 3) -> str:
    """The count as text: with thousands separators below a million, with a decimal prefix above.

    >>> count(128256), count(70e9)
    ('128,256', '70 G')
    """
    if not abs(value) < 1e6:
        return si(value, "", digits)
    return f"{value:,.0f}" if float(value).is_integer() else _plain(value, max(digits, _digits(value)))


def count_in_words(value: float, digits: int = 3) -> str:
    """The count as text, with its magnitude spelled out from one million up, as prose writes it.

    >>> count_in_words(70.55e9), count_in_words(128256)
    ('70.6 billion', '128,256')
    """
    figures = rounded(value, digits)
    for size, name in ((TB, "trillion"), (GB, "billion"), (MB, "million")):
        if figures >= size:
            return f"{count(rounded(figures / size, digits), digits)} {name}"
    return count(value, digits)


def percent(share: float, digits: int = 2) -> str:
    """The share (1 is the whole) as a percentage with `digits` significant figures.

    >>> percent(0.256)
    '26%'
    """
    return f"{_plain(100 * share, digits)}%"


def price(usd: float) -> str:
    """An amount of dollars with two decimals, or with two digits below ten cents.

    >>> price(1.9), price(0.0432)
    ('1.90', '0.043')
    """
    return f"{usd:,.2f}" if usd >= 0.1 else f"{usd:.2g}"


def rounded(value: float, digits: int = 3) -> float:
    """The value rounded to `digits` significant figures, with halves rounded away from zero as on paper.

    >>> rounded(2.5, 1), rounded(2.675)
    (3.0, 2.68)
    """
    return float(f"{value * _HALF_UP:.{digits - 1}e}")


def _plain(value: float, digits: int) -> str:
    """The value with `digits` significant figures, with an exponent only if it is very small."""
    text = f"{value * _HALF_UP:,.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text else text


def _digits(value: float) -> int:
    return math.floor(math.log10(abs(value))) + 1 if abs(value) >= 1 else 1


_QUANTITY = re.compile(
    r"""(?P<sign>[-+]?)(?P<number>(?:[0-9][0-9_,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
        (?:\s*(?:\^|\*\*)\s*(?P<power>[-+]?[0-9]{1,4}))?
        \s*(?P<unit>[^0-9\s].*)?""",
    re.VERBOSE,
)
_TIMES_TEN = re.compile(r"(?<=[0-9])\s*[×x·*]\s*10\s*(?:\^|\*\*)\s*(?=[-+]?[0-9])")  # 3 × 10^6
_RAISED = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_KEYBOARD = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹μ", "--0123456789µ")  # minus, superscripts, the Greek mu
_THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.|$|[eE])|[^,]*$")
_PREFIX = {p: 10.0**e for e, p in _SI.items()} | {"u": 1e-6, "K": 1e3}
_PREFIX |= {p: float(2 ** (10 * i)) for i, p in enumerate(_BINARY)}
_PREFIX |= {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_PREFIX |= {"pico": 1e-12, "nano": 1e-9, "micro": 1e-6, "milli": 1e-3, "kilo": 1e3, "mega": 1e6, "giga": 1e9}
_PREFIX |= {"tera": 1e12, "peta": 1e15, "exa": 1e18, "kibi": 2.0**10, "mebi": 2.0**20, "gibi": 2.0**30}
_SPELLED = {  # a base unit, how many base units the unit is worth, and how people write the unit
    ("s", 1.0): "s sec second seconds",
    ("s", 60.0): "min minute minutes",
    ("s", 3600.0): "h hour hours",
    ("s", 86400.0): "day days",
    ("s", 604800.0): "week weeks",
    ("B", 1.0): "B byte bytes",
    ("B", 0.125): "b bit bits",
    ("FLOP", 1.0): "FLOP FLOPs flops OPs",
    ("tokens", 1.0): "token tokens",
    ("chips", 1.0): "chip chips",
    ("", 0.01): "%",
    ("", 1.0): "× parameters elements",
}
_UNITS = {name: unit for unit, names in _SPELLED.items() for name in names.split()}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in base units and the base unit in which it was written ('' if it had none)."""

    value: float
    unit: str


def parse(text: str) -> Quantity:
    """The quantity in a text such as '43.6 µs', '1.5 GiB', '2^20', '3 × 10⁶', '8.2e11 B/s' or '40%'.

    The value is in base units: '2 GB/ms' is 2e12 'B/s'. Raises a ValueError that quotes the text and says
    what to write instead if the text is not a number with a known unit.
    """
    plain = _RAISED.sub(lambda raised: "^" + raised[0], text).translate(_KEYBOARD)
    match = _QUANTITY.fullmatch(_TIMES_TEN.sub("e", plain).strip())
    if match is None or (match["unit"] or "").startswith("/"):
        raise ValueError(f"{text!r} is not a number; write one as in 43.6e-6, 2^20 or 43.6 µs")
    if not _THOUSANDS.match(match["number"]):
        raise ValueError(
            f"{text!r} has a comma that separates no thousands; write the decimal point as in 1.5"
        )
    scale, unit = _unit(match["unit"] or "", text)
    try:
        value = float(match["number"].replace(",", "").replace("_", "")) ** int(match["power"] or 1) * scale
    except (OverflowError, ZeroDivisionError):
        value = math.inf
    if math.isinf(value):
        raise ValueError(f"{text!r} is too large; write one such as 2^20")
    return Quantity(-value if match["sign"] == "-" else value, unit)


def _unit(written: str, text: str) -> tuple[float, str]:
    """The factor to base units and the base unit of a written unit; a rate keeps its denominator."""
    if written.endswith(("bps", "Bps")):
        written = written[:-2] + "/s"
    top, slash, bottom = (part.strip() for part in written.partition("/"))
    if not top:
        return 1.0, ""
    scale, base = _prefixed(top, text)
    try:
        per, under = _prefixed(bottom, text) if bottom else (1.0, "")
    except ValueError:
        per, under = 1.0, bottom  # "per layer" or "per chip": any other words are kept as they were written
    return scale / per, base + slash + (under or bottom)


def _prefixed(top: str, text: str) -> tuple[float, str]:
    """The factor to base units and the base unit of a unit with or without a prefix.

    Raises a ValueError if the unit is unknown.
    """
    if top in _UNITS:
        base, scale = _UNITS[top]
        return scale, base
    for prefix, factor in _PREFIX.items():
        rest = top.removeprefix(prefix).strip()
        if prefix and top.startswith(prefix) and (rest in _UNITS or not rest):
            base, scale = _UNITS.get(rest, ("", 1.0))
            return factor * scale, base
    raise ValueError(
        f"{top!r} in {text!r} is not a known unit; write s, bytes, bits or FLOPs, with or without a prefix"
    )


def require_min(least: float, **given: float | Fraction) -> None:
    """Raise a ValueError that names the argument for each given value that is below `least` or NaN."""
    for name, value in given.items():
        if not value >= least:  # the comparison is also false for NaN
            raise ValueError(f"{name}={value}: write a number of at least {least:g}")


_UNIT_OF_SUFFIX = {  # a name ends in its unit; longer suffixes come first
    "bytes_per_s": "B/s",
    "flops_per_s": "FLOPs/s",
    "bytes": "B",
    "flops": "FLOPs",
    "share": "%",
    "utilization": "%",
    "s": "s",
}


def term(name: str, value: float) -> str:
    """A named value as text, with the unit in which its name ends; a name without a unit is a count.

    >>> term("latency_s", 3e-6), term("hbm_bytes", 16e9), term("math_share", 0.256), term("hops", 4)
    ('latency 3 µs', 'HBM 16 GB', 'math 26%', 'hops 4')
    """
    suffix = next((end for end in _UNIT_OF_SUFFIX if f"_{name}".endswith(f"_{end}")), "")
    label = name.removesuffix(suffix).rstrip("_") or suffix
    unit, number = _UNIT_OF_SUFFIX.get(suffix, ""), float(value)  # exact times are fractions
    text = count(number) if not unit else percent(number) if unit == "%" else si(number, unit)
    return f"{label.replace('hbm', 'HBM').replace('_', ' ')} {text}"


class Result:
    """A result that prints as one line: its heading, then its terms with their units.

    A subclass lists in `line` the attributes that are its terms, each named with its unit (`total_s`). A
    notebook shows `str()`, a debugger `repr()`. A result that prints as a sentence defines its own `__str__`.
    """

    __slots__ = ()
    line: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Set `_repr_pretty_` on every subclass: IPython looks up a class's `__repr__` before its bases."""
        super().__init_subclass__(**kwargs)
        cls._repr_pretty_ = Result._repr_pretty_

    @property
    def heading(self) -> str:
        """The words before the terms: the result's name, or the name of its class."""
        return getattr(self, "name", "") or type(self).__name__

    def __str__(self) -> str:
        terms = ", ".join(term(name, getattr(self, name)) for name in self.line)
        return f"{self.heading}: {terms}" if terms else repr(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(type(self).__name__ if cycle else str(self))
