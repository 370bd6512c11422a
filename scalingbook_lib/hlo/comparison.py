"""Compares the collectives of a compiled program with a prediction, and explains the differences.

`compare(prediction, program)`: the prediction is a strategy of `sharded_matmul`, the rows of
`training.traffic`, a dict of bytes (`{"all-gather X": 16777216}`) or another program. A whole training step
is explained by `known_differences`; `predicted.on_axes` puts its rows on the axes of a mesh.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scalingbook_lib.collectives import Collective, bytes_received
from scalingbook_lib.hlo import known_differences
from scalingbook_lib.hlo.compiled_collectives import Collectives, CompiledCollective, collectives
from scalingbook_lib.hlo.mesh import mesh_of, sizes_of
from scalingbook_lib.hlo.predicted import Amount, Key, Sums, group_size, ordered, read
from scalingbook_lib.hlo.replica_groups import split_axes
from scalingbook_lib.sharded_matmul import Solution, Strategy
from scalingbook_lib.training.links import TrainingCollective
from scalingbook_lib.units import Result, si
from scalingbook_lib.words import pluralize

NEAR = 0.01  # smaller relative differences in bytes are ignored: a ring's chunks may be padded


@dataclass(frozen=True, slots=True)
class ComparisonLine(Result):
    """One kind of collective that was predicted, compiled or both, and a sentence about it.

    `rule` is the name of the known difference that explains it in a whole training step.
    """

    message: str
    agrees: bool
    predicted: tuple[Key, ...] = ()
    compiled: tuple[Key, ...] = ()
    rule: str = ""

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class ProgramComparison(Result):
    """The agreements and differences; bytes are those that one device receives in total.

    For a whole step, `unexplained_bytes` are the differences that no rule of `known_differences` explains.
    """

    lines: tuple[ComparisonLine, ...]
    predicted_bytes: float
    compiled_bytes: float
    unexplained_bytes: float = 0.0

    @property
    def differences(self) -> tuple[ComparisonLine, ...]:
        """The lines that do not agree."""
        return tuple(line for line in self.lines if not line.agrees)

    @property
    def agrees(self) -> bool:
        """Whether the program communicates as predicted."""
        return not self.differences

    def __str__(self) -> str:
        received = f"a device receives {si(self.compiled_bytes, 'B')}"
        if self.agrees:
            return f"as predicted: {received}\n" + "\n".join(f"  {line}" for line in self.lines)
        n = len(self.differences)
        head = f"{pluralize(n, 'difference')}; {received}, predicted {si(self.predicted_bytes, 'B')}"
        if self.predicted_bytes and not _near(self.predicted_bytes, self.compiled_bytes):
            head += f", {self.compiled_bytes / self.predicted_bytes:.3g} times as many"
        marked = (f"{'  ' if line.agrees else '≠ '}{line}" for line in self.lines)
        return "\n".join([head, *marked])


def compare(predicted: Any, compiled: Any, mesh: Any = None) -> ProgramComparison:
    """A prediction compared with a program of `compiler.aot`, one compiled by JAX, or its text with a mesh.

    Raises a TypeError or ValueError if `predicted` is not a prediction, and an HloError if the mesh is
    unknown.
    """
    sizes = sizes_of(mesh if mesh is not None else mesh_of(compiled))
    rows = compiled if isinstance(compiled, Collectives) else collectives(compiled, sizes)
    expected, actual = read(predicted, sizes), read(rows, sizes)
    step = _traffic_of_step(predicted)
    ledger = known_differences.open_ledger(step, rows, sizes)
    lines = tuple(_lines_of_step(expected, actual, ledger) if step else _lines(expected, actual, rows, sizes))
    strategy = predicted.best if isinstance(predicted, Solution) else predicted
    if isinstance(predicted, Solution) and not all(line.agrees for line in lines):
        if (chosen := _chosen_strategy(predicted, actual)) is not None:
            chose = f"the compiler chose '{chosen.name}', not '{strategy.name}'"
            message = f"{chose}: by the formulas {predicted.why(chosen)}"
            lines, strategy = (ComparisonLine(message, False, (*expected,), (*actual,)),), chosen
        lines += tuple(_idle_axes(predicted, actual, sizes))
    lines += tuple(_flops(strategy, compiled))
    lines += tuple(ComparisonLine(message, False) for message in rows.not_counted)
    unexplained = ledger.unexplained_bytes if step else 0.0
    return ProgramComparison(lines, _received(expected, sizes), rows.received_bytes, unexplained)


def _traffic_of_step(predicted: Any) -> list[TrainingCollective]:
    """The rows of `training.traffic` if they are the prediction; otherwise none."""
    rows = list(predicted) if isinstance(predicted, list | tuple) else []
    return rows if all(isinstance(row, TrainingCollective) for row in rows) else []


def _lines_of_step(
    expected: Sums, actual: Sums, ledger: known_differences.Ledger
) -> Iterator[ComparisonLine]:
    """The agreements, then the differences that a rule explains, then the rest."""
    differs = {*ledger.missing, *ledger.extra}
    for key in [key for key in expected if key in actual and key not in differs]:
        yield ComparisonLine(
            f"{_format(key, actual[key])}, as predicted{_overlap(key, ledger.found)}", True, (key,), (key,)
        )
    for one in known_differences.explain(ledger):
        message = str(one) + "".join(_origin(key, ledger.found) for key in one.compiled if not one.rule)
        yield ComparisonLine(message, False, one.predicted, one.compiled, one.rule)


def _lines(
    expected: Sums, actual: Sums, rows: Collectives, sizes: Mapping[str, int]
) -> Iterator[ComparisonLine]:
    """Kinds on both sides, then kinds that replace another one, then kinds on one side only."""
    # each amount is reported once: an explained amount is removed from the other side
    predicted_left, compiled_left = dict(expected), dict(actual)
    for key in [key for key in expected if key in actual]:
        yield _on_both_sides(key, predicted_left.pop(key), compiled_left.pop(key), rows)
    for key in list(predicted_left):
        if (line := _replacement(key, predicted_left[key], compiled_left, rows, sizes)) is not None:
            del predicted_left[key]
            for taken in line.compiled:
                compiled_left.pop(taken)
            yield line
    for key, amount in predicted_left.items():
        yield ComparisonLine(f"{_format(key, amount)} was predicted but is not in the program", False, (key,))
    for key, amount in compiled_left.items():
        yield ComparisonLine(
            f"{_format(key, amount)} was not predicted{_origin(key, rows)}", False, (), (key,)
        )


def _on_both_sides(key: Key, expected: Amount, actual: Amount, rows: Collectives) -> ComparisonLine:
    """The line about a kind of collective that is both predicted and compiled over the same axes."""
    # the compiler merges all-reduces, so their counts are not compared
    same_count = key.kind == "all-reduce" or expected.times in (None, actual.times)
    if _near(expected.nbytes, actual.nbytes) and same_count:
        return ComparisonLine(
            f"{_format(key, actual)}, as predicted{_overlap(key, rows)}", True, (key,), (key,)
        )
    if _near(expected.nbytes, actual.nbytes):
        message = f"{_format(key, actual)}, in {expected.times:,.4g} pieces predicted"
        return ComparisonLine(message, False, (key,), (key,))
    ratio = actual.nbytes / expected.nbytes if expected.nbytes else float("inf")
    message = f"{_format(key, actual)}, {ratio:.3g} times the {si(expected.nbytes, 'B')} predicted"
    return ComparisonLine(message + _reason(key, expected, actual, ratio, rows), False, (key,), (key,))


def _reason(key: Key, expected: Amount, actual: Amount, ratio: float, rows: Collectives) -> str:
    """The reason for more or fewer bytes than predicted, as the end of a sentence; "" if it is unknown."""
    matching = _rows(key, rows)
    if expected.times and actual.times and _near(actual.times / expected.times, ratio):
        loop = ", in a loop" if any("while" in c.source for c in matching) else ""
        return f": it runs {actual.times:,.4g} times, not {expected.times:,.4g}{loop}"
    if _near(ratio, 2) and all(c.dtype == "f32" for c in matching):
        return ": it moves fp32, which is twice bf16"
    if _near(ratio, 0.5) and all(c.dtype in ("bf16", "f16") for c in matching):
        return f": it moves {matching[0].dtype}, which is half of fp32"
    return _origin(key, rows)


def _replacement(
    key: Key, expected: Amount, compiled_left: Sums, rows: Collectives, sizes: Mapping[str, int]
) -> ComparisonLine | None:
    """Other collectives over the same axes with the same result, which compilers are known to write."""
    kind, axes = key
    permute, gather = Key(Collective.PERMUTE.hlo, axes), Key(Collective.ALL_GATHER.hlo, axes)
    scatter, reduce = Key(Collective.REDUCE_SCATTER.hlo, axes), Key(Collective.ALL_REDUCE.hlo, axes)
    if kind in ("all-gather", "reduce-scatter") and permute in compiled_left:
        return _ring(key, expected, compiled_left[permute], group_size(axes, sizes))
    whole = compiled_left.get(reduce)
    if kind == "reduce-scatter" and whole and _same_array(expected, whole, _rows(reduce, rows)):
        dtype = " of fp32" if all(c.dtype == "f32" for c in _rows(reduce, rows)) else ""
        message = f"{_format(reduce, whole)}{dtype}, then a slice, instead of the {kind}"
        return ComparisonLine(f"{message}: twice the bytes on the links", False, (key,), (reduce,))
    halves = [compiled_left[k] for k in (scatter, gather) if k in compiled_left]
    if kind == "all-reduce" and len(halves) == 2 and all(_near(b.nbytes, expected.nbytes) for b in halves):
        message = f"reduce-scatter and all-gather over {axes}: {si(expected.nbytes, 'B')} each"
        message += ", instead of the all-reduce: the same bytes"
        return ComparisonLine(message, False, (key,), (scatter, gather))
    return None


def _ring(key: Key, expected: Amount, actual: Amount, n: int) -> ComparisonLine | None:
    """A collective matmul, in which shards travel around a ring during a matmul; None if it is not one."""
    # n - 1 of n chunks have to travel; compiled rings move up to twice as many
    ratio = actual.nbytes / (expected.nbytes * (n - 1) / n)
    if not 1 - NEAR <= ratio <= 2:
        return None
    permute = Key(Collective.PERMUTE.hlo, key.axes)
    more = "" if _near(ratio, 1) else f" of {ratio:.3g} times the bytes"
    message = f"{_format(permute, actual)}, instead of the {key.kind}: a ring{more}"
    message += " hidden behind the chunks of the matmul, a collective matmul"
    return ComparisonLine(message, False, (key,), (permute,))


def _same_array(expected: Amount, actual: Amount, matching: list[CompiledCollective]) -> bool:
    """Whether both move the same array, possibly in fp32 if bf16 was predicted."""
    wide = all(c.dtype == "f32" for c in matching)
    return _near(expected.nbytes, actual.nbytes) or (wide and _near(2 * expected.nbytes, actual.nbytes))


def _chosen_strategy(predicted: Solution, actual: Sums) -> Strategy | None:
    """The strategy that the compiler chose for this matmul instead of the best one, if any."""
    for strategy in predicted.strategies[1:]:
        others = read(strategy)
        if others.keys() == actual.keys() and all(_near(others[k].nbytes, actual[k].nbytes) for k in others):
            return strategy
    return None


def _idle_axes(predicted: Solution, actual: Sums, sizes: Mapping[str, int]) -> Iterator[ComparisonLine]:
    """Mesh axes that the matmul does not name but that the compiler uses."""
    used = dict.fromkeys(axis for key in actual for axis in split_axes(key.axes, sizes))
    if idle := [axis for axis in used if axis in sizes and axis not in predicted.product.axes]:
        over = " and ".join(idle)
        yield ComparisonLine(f"it also shards the work over {over}, as solve(…, idle_axes=True) may", False)


def _flops(predicted: Any, compiled: Any) -> Iterator[ComparisonLine]:
    """The line about a different number of FLOPs."""
    expected, actual = getattr(predicted, "flops", None), getattr(compiled, "flops", None)
    if expected and actual and not _near(expected, actual):
        more = f"{actual / expected:.3g} times the {si(expected, 'FLOPs')} predicted"
        yield ComparisonLine(f"{si(actual, 'FLOPs')} of matmuls on each device, {more}", False)


def _format(key: Key, amount: Amount) -> str:
    """The kind, axes and bytes as text: 'all-gather over X: 4.19 MB in 3'."""
    times = f" in {amount.times:,.4g}" if amount.times and amount.times != 1 else ""
    return f"{key.kind} over {key.axes}: {si(amount.nbytes, 'B')}{times}"


def _overlap(key: Key, rows: Collectives) -> str:
    """', overlapped with other work' if all of these collectives are asynchronous; otherwise ""."""
    matching = _rows(key, rows)
    return ", overlapped with other work" if matching and all(c.overlapped for c in matching) else ""


def _origin(key: Key, rows: Collectives) -> str:
    """The named scopes that a collective comes from, as the end of a sentence."""
    sources = dict.fromkeys(c.source for c in _rows(key, rows) if c.source)
    return f"; it comes from {', '.join(sources)}" if sources else ""


def _rows(key: Key, rows: Collectives) -> list[CompiledCollective]:
    return [c for c in rows if (c.kind, ordered(c.axes)) == key]


def _received(expected: Sums, sizes: Mapping[str, int]) -> float:
    actual = ((kind, group_size(axes, sizes), amount.nbytes) for (kind, axes), amount in expected.items())
    return sum(bytes_received(kind.removeprefix("ragged-"), nbytes, n) for kind, n, nbytes in actual)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= NEAR * max(abs(a), abs(b))
