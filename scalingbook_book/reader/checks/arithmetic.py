"""Evaluate short calculations such as `15/4` or `2^20 / (2765e9 * 2)`.

Readers may type the last line of their calculation instead of its value. The parser accepts only numbers, the
four operations, powers and parentheses; nothing is evaluated as Python.
"""

import math
import re

LONGEST = 200  # characters
_TOKEN = re.compile(
    r"\s*(?P<number>(?:[0-9][0-9_,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)|\s*(?P<sign>\*\*|[-+*/^()])"
)
_WRITTEN = str.maketrans({"×": "*", "·": "*", "−": "-", "÷": "/"})
_DEEPEST = 30  # nesting depth of parentheses and signs


def split(text: str) -> tuple[str, str]:
    """Return the calculation at the beginning of a text, and the rest, which is its unit."""
    text, at = text.translate(_WRITTEN), 0
    while token := _TOKEN.match(text, at):
        at = token.end()
    done = text[:at].rstrip()
    whole = done.rstrip("/*+- ")  # a trailing operator belongs to the unit, as in `12 /s`
    return whole, done[len(whole) :].strip() + text[at:].strip()


def value(text: str) -> float:
    """Return the value of a calculation. Raises ValueError, with the reason, if it has none."""
    if len(text) > LONGEST:
        raise ValueError("the calculation is too long")
    tokens = _tokens(text.translate(_WRITTEN))
    found, rest = _sum(tokens, 0)
    if rest or not math.isfinite(found):
        raise ValueError(f"{text!r} is not a calculation; write one as in 2^20 / 2765e9")
    return found


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text.rstrip()):
        if not (token := _TOKEN.match(text, at)):
            raise ValueError(f"{text!r} is not a calculation; write one as in 2^20 / 2765e9")
        tokens.append((token["number"] or token["sign"]).replace("**", "^"))
        at = token.end()
    return tokens


def _sum(tokens: list[str], depth: int) -> tuple[float, list[str]]:
    total, tokens = _product(tokens, depth)
    while tokens and tokens[0] in "+-":
        sign, (term, tokens) = tokens[0], _product(tokens[1:], depth)
        total = total + term if sign == "+" else total - term
    return total, tokens


def _product(tokens: list[str], depth: int) -> tuple[float, list[str]]:
    total, tokens = _power(tokens, depth)
    while tokens and tokens[0] in "*/":
        sign, (factor, tokens) = tokens[0], _power(tokens[1:], depth)
        if sign == "/" and factor == 0:
            raise ValueError("the calculation divides by zero")
        total = total * factor if sign == "*" else total / factor
    return total, tokens


def _power(tokens: list[str], depth: int) -> tuple[float, list[str]]:
    """Return the value of a signed number or parenthesized sum with its power, and the remaining tokens."""
    if not tokens or depth > _DEEPEST:
        raise ValueError("the calculation is not complete")
    first, tokens = tokens[0], tokens[1:]
    if first in "+-":
        found, tokens = _power(tokens, depth + 1)
        return (-found if first == "-" else found), tokens
    if first == "(":
        base, tokens = _sum(tokens, depth + 1)
        if not tokens or tokens[0] != ")":
            raise ValueError("a parenthesis is not closed")
        tokens = tokens[1:]
    else:
        base = _number(first)
    if tokens and tokens[0] == "^":
        exponent, tokens = _power(tokens[1:], depth + 1)
        base = _raised(base, exponent)
    return base, tokens


def _number(token: str) -> float:
    if token in "^*/)":
        raise ValueError(f"a number is missing before {token!r}")
    return float(token.replace(",", "").replace("_", ""))


def _raised(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError, ZeroDivisionError):
        raise ValueError("the power in the calculation is too large, or has no real value") from None
