"""Compute the wrong answers that common mistakes in the exercises lead to.

Every worked solution is a short calculation. It is changed as readers would change it: a term or factor is
left out, a link is counted in one direction, hops are forgotten, a dtype has a different size. The results,
as multiples of the correct answer, are written to `scalingbook_book/chapters/slips.csv` together with the
facts that the question names, so that the diagnosis of a wrong answer considers only mistakes that the
exercise allows.

`PYTHONPATH=. python -m tools.slips` writes the file; a test recomputes a sample of it.
"""

import ast
import contextlib
import copy
import csv
import io
import math
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from scalingbook_book.chapters import checks
from scalingbook_book.reader.checks.check import Check
from tools import exercises
from tools.environment import ROOT

FILE = ROOT / "scalingbook_book" / "chapters" / "slips.csv"
SLOW_S = 0.15  # a slower calculation is not changed a hundred times
MOST = 40  # slips per exercise
_CHIPS = ("V4", "V5E", "V5P", "V6E", "TPU7X", "H100", "B200", "GB200")
_DTYPES = ("FP32", "BF16", "INT8", "FP4")
_WORDS = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "eight": 8,
    "nine": 9,
    "twelve": 12,
    "sixteen": 16,
}
_NOUNS = (
    r"chips?|GPUs?|devices?|cores?|layers?|experts?|heads?|nodes?|pods?|hosts?|slices?|servers?|racks?|cards?|"
    r"NICs?|stages?|sequences?|users?|requests?|groups?|ranks?|matrices?|iterations?|axes|microbatches|tokens|SMs|runs|"
    r"sites|steps"
)
_MODELS = r"(?:TPU )?v\d\w+|TPU7x|H[12]00|G?B[123]00|A100|Rubin|Trainium\d|MI\d+\w*"
_COUNTED = re.compile(
    rf"(?P<count>\d[\d,{{}}]*|{'|'.join(_WORDS)})\s+(?:[\w-]+\s+){{0,2}}?(?P<noun>{_NOUNS}|(?:{_MODELS})s?)\b",
    re.I,
)
_GRID = re.compile(r"(\d+) ?× ?(\d+)(?: ?× ?(\d+))?")
_FACTS = {  # what a question (or the worked solution's code) has to name for a slip to be possible
    "bf16": r"\bbf16\b|BF16",
    "fp32": r"\bfp32\b|FP32",
    "int8": r"\bint8\b|INT8",
    "fp8": r"\bfp8\b|FP8",
    "flops": r"FLOP|OPs\b|flops|compute-bound|arithmetic|[Mm]ultipl",
    "bytes": r"\bbytes?\b|\b[KMGT]i?B\b|GB/s|TB/s|nbytes|_bytes",
    "binary": r"\b[KMGT]iB\b",
    "link": r"\blinks?\b|direction|\bring|torus|link_bytes|NVLink|AllReduce|AllGather|ReduceScatter",
    "hops": r"\bhops?\b|latency",
    "twopass": r"AllReduce|all-reduce",
    "cache": r"\bcaches?\b|key-value|\bKV\b|keys and values",
    "share": r"\bshare\b|[Ww]hat fraction|utilization",
    "days": r"\bdays?\b|\bhours?\b|\bweeks?\b",
}


def facts(exercise: exercises.Exercise) -> list[str]:
    """What the question names: dtypes, links, hops, and counts of things."""
    text = exercise.question_md + " " + exercise.stub
    named = [fact for fact, pattern in _FACTS.items() if re.search(pattern, text)]
    return named + sorted({f"{n}:{noun}" for n, noun in _counts(text)})


def _counts(text: str) -> Iterator[tuple[int, str]]:
    for found in _COUNTED.finditer(text):
        written = re.sub("[,{}]", "", found["count"].lower())
        noun = (
            found["noun"].lower().removesuffix("s")
            if found["noun"] in text and found["noun"].islower()
            else "chip"
        )
        if (n := _WORDS.get(written) or int(written)) > 1:
            yield n, {"axe": "axi", "matrice": "matrix"}.get(noun, noun).replace("axi", "axis")
    for found in _GRID.finditer(text):
        yield math.prod(int(side) for side in found.groups() if side), "chip"


class _Chain:
    """The factors of a product or quotient, split into numerator and denominator."""

    def __init__(self, node: ast.expr) -> None:
        self.top: list[ast.expr] = []
        self.bottom: list[ast.expr] = []
        self._gather(node, up=True)

    def _gather(self, node: ast.expr, *, up: bool) -> None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            self._gather(node.left, up=up)
            self._gather(node.right, up=up == isinstance(node.op, ast.Mult))
        else:
            (self.top if up else self.bottom).append(node)

    def built(self, top: list[ast.expr], bottom: list[ast.expr]) -> ast.expr:
        upper = _product(top) or ast.Constant(1)
        return ast.BinOp(upper, ast.Div(), lower) if (lower := _product(bottom)) else upper


def _product(factors: list[ast.expr]) -> ast.expr | None:
    found: ast.expr | None = None
    for factor in factors:
        found = factor if found is None else ast.BinOp(found, ast.Mult(), factor)
    return found


type Change = tuple[str, ast.expr]  # the slip's name, and the replacement of an expression


class _Changes:
    """The mistakes that an expression allows."""

    def __init__(self, facts: list[str], values: dict[str, Any]) -> None:
        self.facts, self.values = set(facts), values

    def of(self, node: ast.expr, parent: ast.AST) -> Iterator[Change]:
        """Yield every change of this expression, with the mistake's name."""
        match node:
            case ast.BinOp(op=ast.Mult() | ast.Div()) if not _is_product(parent):
                yield from self._of_chain(_Chain(node))
            case ast.BinOp(op=ast.Add() | ast.Sub()) if not _is_sum(parent):
                yield from self._of_sum(node)
            case ast.BinOp(left, ast.FloorDiv(), right):
                yield "rounding", ast.BinOp(left, ast.Div(), right)
            case ast.BinOp(left, ast.Pow(), ast.Constant(int(power))) if power in (2, 3):
                yield "power", left
                yield "power", ast.BinOp(left, ast.Pow(), ast.Constant(power + 1))
            case ast.Call():
                yield from self._of_call(node)
            case ast.Attribute():
                yield from self._of_attribute(node)
            case ast.Name(id=name) if name in _DTYPES or name == "FP8":
                yield from (("wrong-dtype-size", ast.Name(other)) for other in _DTYPES if other != name)
            case ast.Constant(value) if type(value) is int and self._is_counted(value, node, parent):
                yield from (("off-by-one", ast.Constant(n)) for n in (value - 1, value + 1))

    def _is_counted(self, value: int, node: ast.expr, parent: ast.AST) -> bool:
        """Return whether a constant may be a count with two ends: no exponent, and not the 6 of 6 P N_tok."""
        exponent = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow) and parent.right is node
        return 3 <= value <= 1000 and not exponent and not (value == 6 and "flops" in self.facts)

    def _of_chain(self, chain: _Chain) -> Iterator[Change]:
        text = ast.unparse(chain.built(chain.top, chain.bottom))
        for up, factors in ((True, chain.top), (False, chain.bottom)):
            for n, factor in enumerate(factors):
                rest = factors[:n] + factors[n + 1 :]
                top, bottom = (rest, chain.bottom) if up else (chain.top, rest)
                for slip in self._dropped(factor, text, up=up):
                    yield slip, chain.built(top, bottom)
                if not _is_whole(factor):
                    sides = (top, [*bottom, factor]) if up else ([*top, factor], bottom)
                    yield "inverted-ratio", chain.built(*sides)
                if _is_two(factor):
                    yield from self._retyped(chain, factors, n, up)
                if "link_bytes" in ast.unparse(factor) or "dcn_bytes" in ast.unparse(factor):
                    doubled = [*factors, ast.Constant(2)]
                    yield (
                        "both-directions",
                        chain.built(*((doubled, chain.bottom) if up else (chain.top, doubled))),
                    )

    def _retyped(self, chain: _Chain, factors: list[ast.expr], n: int, up: bool) -> Iterator[Change]:
        """Two bytes per element, mistaken for four."""
        if self.facts & {"bf16", "bytes", "fp32"}:
            four = [*factors[:n], ast.Constant(4), *factors[n + 1 :]]
            yield "wrong-dtype-size", chain.built(*((four, chain.bottom) if up else (chain.top, four)))

    def _dropped(self, factor: ast.expr, text: str, *, up: bool) -> Iterator[str]:
        """Yield the name of the mistake of leaving out this factor."""
        written = ast.unparse(factor)
        if isinstance(factor, ast.BinOp) and re.fullmatch(r"1 - 1 / .*|\(?\w+ - 1\)? / .*", written):
            yield "fraction-left-out"
        elif _is_two(factor):
            yield from self._half(text, up=up)
        elif written.endswith(".bytes"):
            yield "bytes-for-count"
        elif _is_whole(factor) or type(self.values.get(written)) is int:
            yield "one-for-total" if up else "total-for-one"
            yield "factor-left-out"
        else:
            yield "factor-left-out"

    def _half(self, text: str, *, up: bool) -> Iterator[str]:
        """Yield the possible meanings of a factor of two."""
        if re.search(r"link|W1|\b\d+e9\b", text) and not up:
            yield "one-direction"
        if "twopass" in self.facts:
            yield "one-pass"
        if "flops" in self.facts:
            yield "factor-two-flops"
        if "bf16" in self.facts or "bytes" in self.facts:
            yield "wrong-dtype-size"
        if "cache" in self.facts:
            yield "value-left-out"
        yield "factor-two"

    def _of_sum(self, node: ast.BinOp) -> Iterator[Change]:
        terms = list(_terms(node, sign=1))
        if len(terms) == 2 and ast.unparse(terms[0][1]) == "1" and terms[1][0] < 0:
            slip = "fraction-left-out" if "/" in ast.unparse(terms[1][1]) else "complement"
            yield slip, terms[0][1]
            yield "complement", terms[1][1]
            return
        for n, (_, term) in enumerate(terms):
            yield self._missing(term), _summed(terms[:n] + terms[n + 1 :])
            if len(terms) > 2:
                yield "term-left-out", term
        if len(terms) == 2 and terms[1][0] > 0:
            yield "max-for-sum", ast.Call(ast.Name("max"), [term for _, term in terms], [])

    def _missing(self, term: ast.expr) -> str:
        return "hops-left-out" if "hop" in ast.unparse(term) else "term-left-out"

    def _of_call(self, node: ast.Call) -> Iterator[Change]:
        match node:
            case ast.Call(ast.Name("max" | "min" as name), args) if len(args) >= 2 and not node.keywords:
                yield "sum-for-max", _summed([(1, arg) for arg in args])
                yield "wrong-stage", ast.Call(ast.Name("min" if name == "max" else "max"), args, [])
                yield from (("wrong-stage", arg) for arg in args)
            case ast.Call(ast.Name("ceil" | "floor" as name), [inner]):
                yield "rounding", inner
                yield "rounding", ast.Call(ast.Name("floor" if name == "ceil" else "ceil"), [inner], [])
            case ast.Call(ast.Name("sqrt"), [inner]):
                yield "power", inner

    def _of_attribute(self, node: ast.Attribute) -> Iterator[Change]:
        match node:
            case ast.Attribute(ast.Name("chips"), name) if name in _CHIPS:
                for other in _CHIPS:
                    if other != name:
                        yield "wrong-chip", ast.Attribute(ast.Name("chips"), other)
            case ast.Attribute(chip, "bf16_flops_per_s"):
                yield "wrong-rate", ast.Attribute(chip, "int8_ops_per_s")
            case ast.Attribute(chip, "int8_ops_per_s"):
                yield "wrong-rate", ast.Attribute(chip, "bf16_flops_per_s")
            case ast.Attribute(chip, "link_bytes_per_s"):
                yield "wrong-rate", ast.Attribute(chip, "hbm_bytes_per_s")


def _is_product(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div)


def _is_sum(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)


def _is_two(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 2


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _terms(node: ast.expr, *, sign: int) -> Iterator[tuple[int, ast.expr]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _terms(node.left, sign=sign)
        yield from _terms(node.right, sign=sign if isinstance(node.op, ast.Add) else -sign)
    else:
        yield sign, node


def _summed(terms: list[tuple[int, ast.expr]]) -> ast.expr:
    total: ast.expr = ast.Constant(0)
    for sign, term in terms:
        total = ast.BinOp(total, ast.Add() if sign > 0 else ast.Sub(), term)
    return total


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    """Yield every expression with its position: its parent, the field, and the index in a list."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            for n, child in enumerate(value) if isinstance(value, list) else ((None, value),):
                if isinstance(child, ast.expr):
                    yield parent, field, n, child


def changed(source: str, allowed: _Changes) -> Iterator[tuple[str, str]]:
    """Yield the calculation with one mistake each: the mistake's name, and the changed source."""
    tree = ast.parse(source)
    for at, (parent, _, _, child) in enumerate(list(_places(tree))):
        for slip, put in allowed.of(child, parent):
            other = copy.deepcopy(tree)
            there, field, n, _ = list(_places(other))[at]
            if n is None:
                setattr(there, field, copy.deepcopy(put))
            else:
                getattr(there, field)[n] = copy.deepcopy(put)
            yield slip, ast.unparse(ast.fix_missing_locations(other))


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None


class _Slow(BaseException):
    """Raised in a changed calculation that runs too long; a BaseException, so that nothing catches it."""


def _ran(source: str, space: dict[str, Any], name: str) -> float | None:
    inner = dict(space)
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, 4 * SLOW_S)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, "<slip>", "exec"), inner)
    except (Exception, _Slow):  # a changed calculation may divide by zero, or never end
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return _number(inner.get(name))


def _stop(*_: Any) -> None:
    raise _Slow


def slips(
    check: Check, exercise: exercises.Exercise, source: str, name: str, space: dict
) -> dict[str, list[float]]:
    """For every mistake, the multiples of the correct answer that it leads to.

    `space` has the names that the source needs.
    """
    answer, before = float(check.answer()), time.perf_counter()
    inner = dict(space)
    exec(compile(source, "<answer>", "exec"), inner)
    if time.perf_counter() - before > SLOW_S or not answer or not math.isfinite(answer):
        return {}
    found: dict[str, list[float]] = {}

    def keep(slip: str, value: float | None) -> None:
        if value is not None and value != 0:
            ratio, near = float(f"{value / answer:.4g}"), max(check.rel_tol, 1e-3)
            if (
                1e-6 < abs(ratio) < 1e6
                and not math.isclose(ratio, 1, rel_tol=near)
                and ratio not in found.get(slip, ())
            ):
                found.setdefault(slip, []).append(ratio)

    for slip, other in changed(source, _Changes(facts(exercise), inner)):
        keep(slip, _ran(other, space, name))
    tree = ast.parse(source)
    assigned = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for other in sorted(assigned - {name}):
        keep("intermediate", _number(inner.get(other)))
    return found


def chapter(stem: str) -> Iterator[tuple[str, str, str]]:
    """Yield a chapter's rows: the exercise, its facts, and its mistakes."""
    catalog, space, key = checks.catalog(stem), {"__name__": "__main__"}, ""
    known = {exercise.key: exercise for exercise in exercises.read(stem)}
    for cell in exercises.source(stem).cells:
        key = cell.metadata.get("exercise", key)
        hidden = "remove-cell" in cell.metadata.get("tags", ())
        if cell.cell_type != "code" or hidden or ("stub" not in cell.metadata and _is_elsewhere(cell.source)):
            continue
        if "stub" in cell.metadata:
            check, name, rows = catalog[key], known[key].stub.partition(" =")[0], {}
            if check.kind == "number":
                rows = _slips(check, known[key], cell.source, name, space)
            yield key, " ".join(facts(known[key])), " ".join(_written(rows))
        _try(cell.source, space)


def _is_elsewhere(source: str) -> bool:
    """Return whether a cell needs a compiler, or checks a given answer."""
    return bool(re.search(r"\baot\.|\brun\(|checks\.find|\bassert\b|profile\(|races\.", source))


def _slips(check: Check, exercise: exercises.Exercise, source: str, name: str, space: dict) -> dict:
    try:
        return slips(check, exercise, source, name, space)
    except Exception as error:  # an answer that needs another machine
        print(f"{check.key}: {type(error).__name__}: {error}", file=sys.stderr)
        return {}


def _try(source: str, space: dict[str, Any]) -> None:
    try:
        exec(compile(source, "<solution>", "exec"), space)
    except Exception as error:
        print(f"{type(error).__name__}: {error} in {source[:60]!r}", file=sys.stderr)


def _written(rows: dict[str, list[float]]) -> list[str]:
    every = [f"{slip}:{','.join(f'{ratio:g}' for ratio in ratios[:8])}" for slip, ratios in rows.items()]
    return every[:MOST]


def main() -> None:
    """Rewrite the file for the named chapters, or for all."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    wanted = sys.argv[1:] or list(checks.stems())
    with FILE.open(encoding="utf-8", newline="") as file:
        kept = {row[0]: tuple(row) for row in list(csv.reader(file))[1:]}
    for stem in wanted:
        print(stem, file=sys.stderr)
        kept = {key: row for key, row in kept.items() if not key.startswith(f"{stem}.")}
        kept |= {row[0]: row for row in chapter(stem)}
        _write(kept)


def _write(kept: dict[str, tuple[str, ...]]) -> None:
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("exercise", "facts", "slips"))
        writer.writerows(kept[key] for key in sorted(kept))


if __name__ == "__main__":
    main()
