"""Why is the compiled program not what was predicted? Its differences, in words.

`why.compare(strategy, program)`: on one side a way of `sharded_matmul`, the rows of `training.traffic`,
a dict of bytes (`{"all-gather X": 16777216}`) or another program; on the other what the compiler wrote. A
training step is compared as a whole, by `rules`; `predicted.on` puts its rows on the axes of a mesh.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scalingbook_lib.collectives import Collective, bytes_received
from scalingbook_lib.lab.compiler import hlo, rules
from scalingbook_lib.lab.compiler.hlo import Collectives, CompiledCollective
from scalingbook_lib.lab.compiler.predicted import Amount, Key, Sums, ordered, read, ways
from scalingbook_lib.lab.compiler.replica_groups import named
from scalingbook_lib.sharded_matmul import Solution, Strategy
from scalingbook_lib.training.links import TrainingCollective
from scalingbook_lib.units import Result, si

NEAR = 0.01  # bytes that differ by less are the same: a ring's pieces may be padded


@dataclass(frozen=True, slots=True)
class Finding(Result):
    """One thing that was predicted, compiled, or both, and what is to be said of it."""

    words: str
    agrees: bool
    predicted: tuple[Key, ...] = ()
    compiled: tuple[Key, ...] = ()
    rule: str = ""  # the name of what the compiler is known to do, in a whole step

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class ProgramComparison(Result):
    """What agrees and what differs; bytes are those that one device receives in all.

    Of a whole step, `unexplained_bytes` are those of the differences that no rule of `rules` has a name for.
    """

    lines: tuple[Finding, ...]
    predicted_bytes: float
    compiled_bytes: float
    unexplained_bytes: float = 0.0

    @property
    def differences(self) -> tuple[Finding, ...]:
        """The lines that do not agree."""
        return tuple(line for line in self.lines if not line.agrees)

    @property
    def agrees(self) -> bool:
        """Did the compiler do what was predicted?"""
        return not self.differences

    def __str__(self) -> str:
        received = f"a device receives {si(self.compiled_bytes, 'B')}"
        if self.agrees:
            return f"as predicted: {received}\n" + "\n".join(f"  {line}" for line in self.lines)
        n = len(self.differences)
        head = f"{n} difference{'s' * (n > 1)}; {received}, predicted {si(self.predicted_bytes, 'B')}"
        if self.predicted_bytes and not _near(self.predicted_bytes, self.compiled_bytes):
            head += f", {self.compiled_bytes / self.predicted_bytes:.3g} times as many"
        marked = (f"{'  ' if line.agrees else '≠ '}{line}" for line in self.lines)
        return "\n".join([head, *marked])


def compare(predicted: Any, compiled: Any, mesh: Any = None) -> ProgramComparison:
    """A prediction beside a program of `compiler.aot`, a compiled one of JAX, or its text with its mesh."""
    sizes = hlo.sizes_of(mesh if mesh is not None else hlo.mesh_of(compiled))
    rows = compiled if isinstance(compiled, Collectives) else hlo.collectives(compiled, sizes)
    wanted, found = read(predicted, sizes), read(rows, sizes)
    step = _of_step(predicted)
    ledger = rules.opened(step, rows, sizes)
    lines = tuple(_step(wanted, found, ledger) if step else _lines(wanted, found, rows, sizes))
    done = predicted.best if isinstance(predicted, Solution) else predicted
    if isinstance(predicted, Solution) and not all(line.agrees for line in lines):
        if (other := _chosen(predicted, found)) is not None:
            chose = f"the compiler chose '{other.name}', not '{done.name}'"
            told = f"{chose}: by the formulas {predicted.why(other)}"
            lines, done = (Finding(told, False, (*wanted,), (*found,)),), other
        lines += tuple(_idle(predicted, found, sizes))
    lines += tuple(_flops(done, compiled))
    lines += tuple(Finding(words, False) for words in rows.not_counted)
    left = ledger.unexplained_bytes if step else 0.0
    return ProgramComparison(lines, _received(wanted, sizes), rows.received_bytes, left)


def _of_step(predicted: Any) -> list[TrainingCollective]:
    """The rows of `training.traffic`, where that is what was predicted."""
    rows = list(predicted) if isinstance(predicted, list | tuple) else []
    return rows if all(isinstance(row, TrainingCollective) for row in rows) else []


def _step(wanted: Sums, found: Sums, ledger: rules.Ledger) -> Iterator[Finding]:
    """What agrees, then what rules have a name for, then what is left."""
    differs = {*ledger.less, *ledger.more}
    for key in [key for key in wanted if key in found and key not in differs]:
        yield Finding(
            f"{_said(key, found[key])}, as predicted{_hidden(key, ledger.found)}", True, (key,), (key,)
        )
    for one in rules.told(ledger):
        words = str(one) + "".join(_from(key, ledger.found) for key in one.compiled if not one.rule)
        yield Finding(words, False, one.predicted, one.compiled, one.rule)


def _lines(wanted: Sums, found: Sums, rows: Collectives, sizes: Mapping[str, int]) -> Iterator[Finding]:
    """What stands on both sides, then what took another's place, then what stands on one side alone."""
    # each amount is told once: what is explained on one side is taken away on the other
    left, over = dict(wanted), dict(found)
    for key in [key for key in wanted if key in found]:
        yield _both(key, left.pop(key), over.pop(key), rows)
    for key in list(left):
        if (line := _instead(key, left[key], over, rows, sizes)) is not None:
            del left[key]
            for taken in line.compiled:
                over.pop(taken)
            yield line
    for key, amount in left.items():
        yield Finding(f"{_said(key, amount)} was predicted, and is not there", False, (key,))
    for key, amount in over.items():
        yield Finding(f"{_said(key, amount)} was not predicted{_from(key, rows)}", False, (), (key,))


def _both(key: Key, wanted: Amount, found: Amount, rows: Collectives) -> Finding:
    """The same kind over the same axes on both sides."""
    often = key.kind == "all-reduce" or wanted.times in (None, found.times)  # the compiler merges all-reduces
    if _near(wanted.nbytes, found.nbytes) and often:
        return Finding(f"{_said(key, found)}, as predicted{_hidden(key, rows)}", True, (key,), (key,))
    if _near(wanted.nbytes, found.nbytes):
        words = f"{_said(key, found)}, in {wanted.times:,.4g} pieces predicted"
        return Finding(words, False, (key,), (key,))
    ratio = found.nbytes / wanted.nbytes if wanted.nbytes else float("inf")
    words = f"{_said(key, found)}, {ratio:.3g} times the {si(wanted.nbytes, 'B')} predicted"
    return Finding(words + _reason(key, wanted, found, ratio, rows), False, (key,), (key,))


def _reason(key: Key, wanted: Amount, found: Amount, ratio: float, rows: Collectives) -> str:
    """Why there may be more or less of it."""
    here = _rows(key, rows)
    if wanted.times and found.times and _near(found.times / wanted.times, ratio):
        loop = ", in a loop" if any("while" in c.source for c in here) else ""
        return f": it runs {found.times:,.4g} times, not {wanted.times:,.4g}{loop}"
    if _near(ratio, 2) and all(c.dtype == "f32" for c in here):
        return ": it moves fp32, which is twice bf16"
    if _near(ratio, 0.5) and all(c.dtype in ("bf16", "f16") for c in here):
        return f": it moves {here[0].dtype}, which is half of fp32"
    return _from(key, rows)


def _instead(
    key: Key, wanted: Amount, over: Sums, rows: Collectives, sizes: Mapping[str, int]
) -> Finding | None:
    """Other collectives over the same axes that do the same, those that the compiler is known to write."""
    kind, axes = key
    permute, gather = Key(Collective.PERMUTE.hlo, axes), Key(Collective.ALL_GATHER.hlo, axes)
    scatter, reduce = Key(Collective.REDUCE_SCATTER.hlo, axes), Key(Collective.ALL_REDUCE.hlo, axes)
    if kind in ("all-gather", "reduce-scatter") and permute in over:
        return _ring(key, wanted, over[permute], ways(axes, sizes))
    if kind == "reduce-scatter" and reduce in over and _same(wanted, over[reduce], _rows(reduce, rows)):
        wide = " of fp32" if all(c.dtype == "f32" for c in _rows(reduce, rows)) else ""
        words = f"{_said(reduce, over[reduce])}{wide}, then a slice"
        return Finding(
            f"{words}, instead of the {kind}: twice the bytes on the links", False, (key,), (reduce,)
        )
    both = [over[k] for k in (scatter, gather) if k in over]
    if kind == "all-reduce" and len(both) == 2 and all(_near(b.nbytes, wanted.nbytes) for b in both):
        words = f"reduce-scatter and all-gather over {axes}: {si(wanted.nbytes, 'B')} each"
        return Finding(f"{words}, instead of the all-reduce: as many bytes", False, (key,), (scatter, gather))
    return None


def _ring(key: Key, wanted: Amount, found: Amount, n: int) -> Finding | None:
    """A collective matmul: pieces go around a ring, and the product of one hides the way of the next."""
    # n - 1 of n pieces have to travel; the compiler's rings have been seen to move up to twice that
    ratio = found.nbytes / (wanted.nbytes * (n - 1) / n)
    if not 1 - NEAR <= ratio <= 2:
        return None
    permute = Key(Collective.PERMUTE.hlo, key.axes)
    more = "" if _near(ratio, 1) else f" of {ratio:.3g} times the bytes"
    words = (
        f"{_said(permute, found)}, instead of the {key.kind}: a ring{more} behind the pieces of the product"
    )
    return Finding(f"{words}, a collective matmul", False, (key,), (permute,))


def _same(wanted: Amount, found: Amount, here: list[CompiledCollective]) -> bool:
    """The same numbers, perhaps in fp32 where bf16 was predicted."""
    wide = all(c.dtype == "f32" for c in here)
    return _near(wanted.nbytes, found.nbytes) or (wide and _near(2 * wanted.nbytes, found.nbytes))


def _chosen(predicted: Solution, found: Sums) -> Strategy | None:
    """The strategy of the same product that the compiler took instead of the best, where it is one."""
    for strategy in predicted.strategies[1:]:
        others = read(strategy)
        if others.keys() == found.keys() and all(_near(others[k].nbytes, found[k].nbytes) for k in others):
            return strategy
    return None


def _idle(predicted: Solution, found: Sums, sizes: Mapping[str, int]) -> Iterator[Finding]:
    """Mesh axes that the product does not name, which the compiler uses all the same."""
    used = dict.fromkeys(axis for key in found for axis in named(key.axes, sizes))
    if idle := [axis for axis in used if axis in sizes and axis not in predicted.product.axes]:
        over = " and ".join(idle)
        yield Finding(f"it splits the work over {over} too, as solve(…, idle_axes=True) may", False)


def _flops(predicted: Any, compiled: Any) -> Iterator[Finding]:
    wanted, found = getattr(predicted, "flops", None), getattr(compiled, "flops", None)
    if wanted and found and not _near(wanted, found):
        more = f"{found / wanted:.3g} times the {si(wanted, 'FLOPs')} predicted"
        yield Finding(f"{si(found, 'FLOPs')} of matmuls on each device, {more}", False)


def _said(key: Key, amount: Amount) -> str:
    times = f" in {amount.times:,.4g}" if amount.times and amount.times != 1 else ""
    return f"{key.kind} over {key.axes}: {si(amount.nbytes, 'B')}{times}"


def _hidden(key: Key, rows: Collectives) -> str:
    here = _rows(key, rows)
    return ", beside other work" if here and all(c.overlapped for c in here) else ""


def _from(key: Key, rows: Collectives) -> str:
    """The paths of scopes that wrote a collective."""
    sources = dict.fromkeys(c.source for c in _rows(key, rows) if c.source)
    return f"; it comes from {', '.join(sources)}" if sources else ""


def _rows(key: Key, rows: Collectives) -> list[CompiledCollective]:
    return [c for c in rows if (c.kind, ordered(c.axes)) == key]


def _received(wanted: Sums, sizes: Mapping[str, int]) -> float:
    found = ((kind, ways(axes, sizes), amount.nbytes) for (kind, axes), amount in wanted.items())
    return sum(bytes_received(kind.removeprefix("ragged-"), nbytes, n) for kind, n, nbytes in found)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= NEAR * max(abs(a), abs(b))
