"""Explains how a compiled training step differs from its predicted traffic, by named rules.

A rule is a function of the rows of `training.traffic` and of the program's collectives: among the missing and
the extra bytes it finds those that belong together, states their size, and removes them. Bytes that no rule
removes are reported without a name. The rules were derived from the programs in `tests/lab/train/moved.csv`.
`comparison.compare` prints them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scalingbook_lib.collectives import Collective, bytes_received
from scalingbook_lib.hlo import replica_groups
from scalingbook_lib.hlo.compiled_collectives import Collectives, CompiledCollective
from scalingbook_lib.hlo.predicted import Key, group_size, read
from scalingbook_lib.notation import join_axes
from scalingbook_lib.training.links import TrainingCollective
from scalingbook_lib.units import si

NEAR, SMALL = 0.01, 0.02  # fractions: of a kind's bytes; of all bytes that a device receives
GATHER, SCATTER = Collective.ALL_GATHER.hlo, Collective.REDUCE_SCATTER.hlo
REDUCE, EXCHANGE, PERMUTE = Collective.ALL_REDUCE.hlo, Collective.ALL_TO_ALL.hlo, Collective.PERMUTE.hlo
LOOKED_UP = ("tokens looked up", "gradients of tokens", "gradients of the lookup")  # rows of a prediction
LOOKUPS = ("gather", "scatter-add", "sharding_constraint")  # primitives of an embedding lookup

type Side = dict[Key, float]


class Explanation(NamedTuple):
    """A rule's sentence about the kinds that it removes; `rule` is "" for bytes that no rule explains."""

    rule: str
    message: str
    predicted: tuple[Key, ...]
    compiled: tuple[Key, ...]

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" if self.rule else self.message


@dataclass(slots=True)
class Ledger:
    """Bytes of arrays, by kind and axes, that are missing or extra in the program and not yet explained."""

    rows: tuple[TrainingCollective, ...]
    found: Collectives
    sizes: Mapping[str, int]
    missing: Side = field(default_factory=dict)
    extra: Side = field(default_factory=dict)

    def axis_names(self, axes: str) -> set[str]:
        """The single axes of a group."""
        return set(replica_groups.split_axes(axes, self.sizes))

    def predicted(self, *names: str) -> Side:
        """The predicted bytes of the rows whose names start with one of `names`."""
        sums = read([row for row in self.rows if row.name.startswith(names)], self.sizes)
        return {key: amount.nbytes for key, amount in sums.items()}

    def compiled(self, chosen: Callable[[CompiledCollective], bool]) -> Side:
        """The compiled bytes of the collectives for which `chosen` is true."""
        sums = read([c for c in self.found if chosen(c)], self.sizes)
        return {key: amount.nbytes for key, amount in sums.items()}

    def received(self, side: Side) -> float:
        """The bytes that one device receives for these, from `collectives.bytes_received`."""
        return sum(
            bytes_received(key.kind.removeprefix("ragged-"), nbytes, group_size(key.axes, self.sizes))
            for key, nbytes in side.items()
        )

    @property
    def unexplained_bytes(self) -> float:
        """The bytes that one device receives, missing or extra, that no rule has explained."""
        return self.received(self.missing) + self.received(self.extra)


def open_ledger(
    traffic: Iterable[TrainingCollective], found: Collectives, sizes: Mapping[str, int]
) -> Ledger:
    """The differences that are larger than 1% of their kind."""
    ledger = Ledger(tuple(traffic), found, sizes)
    predicted, compiled = ledger.predicted(""), ledger.compiled(lambda c: True)
    for key in dict.fromkeys([*predicted, *compiled]):
        expected, actual = predicted.get(key, 0.0), compiled.get(key, 0.0)
        if abs(expected - actual) > NEAR * max(expected, actual):
            (ledger.missing if expected > actual else ledger.extra)[key] = abs(expected - actual)
    return ledger


def take(side: Side, key: Key, limit: float = float("inf")) -> float:
    """Remove up to `limit` bytes of a kind from `side`; returns the bytes removed."""
    taken = min(side.get(key, 0.0), limit)
    if key in side:
        side[key] -= taken
    return taken


def explain(ledger: Ledger) -> Iterator[Explanation]:
    """The explanation of each rule, in the order of RULES, then the bytes that no rule explains."""
    for rule in RULES:
        yield from rule(ledger)
    for side, comparison in ((ledger.missing, "less"), (ledger.extra, "more")):
        for key, nbytes in side.items():
            if nbytes >= 1:  # rounding errors of floats
                keys = ((key,), ()) if comparison == "less" else ((), (key,))
                yield Explanation("", f"{_format(key, nbytes)} {comparison} than predicted", *keys)


def embedding(ledger: Ledger) -> Iterator[Explanation]:
    """GSPMD looks tokens up in one of several ways; the costs it compares are not in the program's text.

    For TPU7x it has gathered the whole table over 16 FSDP ranks, whereas other programs exchange tokens. With
    tensor parallelism but without sequence parallelism, only the table is gathered over those axes.
    """
    rule = "the embedding"
    compiled = ledger.compiled(lambda c: c.source.rpartition("/")[2] in LOOKUPS or "embed" in c.source)
    predicted = ledger.predicted(*LOOKED_UP)
    for key in [key for key in ledger.predicted("tensor") if key.kind == REDUCE]:
        compiled[Key(GATHER, key.axes)] = float("inf")
        looked_up = ledger.predicted("tokens looked up")
        predicted[key] = sum(nbytes / group_size(k.axes, ledger.sizes) for k, nbytes in looked_up.items())
    for key, nbytes in compiled.items():
        if taken := take(ledger.extra, key, max(nbytes - predicted.get(key, 0.0), 0.0)):
            message = f"{_format(key, taken)} more, of tokens, of their gradients or of the whole table"
            yield Explanation(rule, message, (), (key,))
    for key, nbytes in predicted.items():
        if taken := take(ledger.missing, key, max(nbytes - compiled.get(key, 0.0), 0.0)):
            message = f"{_format(key, taken)} missing, as tokens are looked up differently"
            yield Explanation(rule, message, (key,), ())


def collective_matmuls(ledger: Ledger) -> Iterator[Explanation]:
    """A gather or scatter of n shards as a ring of n - 1 to n + 1 hops, or the other way around."""
    for axes in sorted({key.axes for key in (*ledger.missing, *ledger.extra)}):
        for side, other, rule in (
            (ledger.extra, ledger.missing, "collective matmul"),
            (ledger.missing, ledger.extra, "no collective matmul"),
        ):
            n, ring = group_size(axes, ledger.sizes), Key(PERMUTE, axes)
            halves = [key for key in (Key(GATHER, axes), Key(SCATTER, axes)) if other.get(key)]
            if n == 1 or not side.get(ring) or not halves:  # n is 1 for axes that the mesh lacks
                continue
            both = sum(other[key] for key in halves)
            most = min(both, side[ring] * n / (n - 1))
            for key in halves:
                take(other, key, other[key] * most / both)
            taken = take(side, ring, most * (n + 1) / n)
            message = f"{si(taken, 'B')} in rings over {axes} for {si(most, 'B')} gathered or scattered"
            message += "" if side is ledger.extra else ", in the opposite direction"
            kinds = (tuple(halves), (ring,)) if side is ledger.extra else ((ring,), tuple(halves))
            yield Explanation(rule, message, *kinds)


def unscattered_reductions(ledger: Ledger) -> Iterator[Explanation]:
    """An all-reduce of which each chip keeps a slice, if shapes or replicas forbid a reduce-scatter.

    For TPU7x, replicas of FSDP groups were reduced this way in both programs that were compiled: one
    all-reduce over R and X together.
    """
    for key in [key for key in ledger.extra if key.kind == REDUCE]:
        for scatter in [scatter for scatter in ledger.missing if scatter.kind == SCATTER]:
            over, within = ledger.axis_names(key.axes), ledger.axis_names(scatter.axes)
            if not within <= over or not (taken := take(ledger.extra, key, ledger.missing[scatter])):
                continue
            take(ledger.missing, scatter, taken)
            replicas = Key(REDUCE, join_axes(sorted(over - within)))
            take(ledger.missing, replicas, taken / group_size(scatter.axes, ledger.sizes))
            message = f"{_format(key, taken)}, then a slice, for a {scatter.kind} over {scatter.axes}"
            yield Explanation("summed whole", message, (scatter,), (key,))


def regathered_weights(ledger: Ledger) -> Iterator[Explanation]:
    """Recomputation and the gradients may each gather a layer's weights once more."""
    moved = ledger.predicted("weights", "expert weights")
    for key in moved:
        if taken := take(ledger.extra, key, sum(moved.values())):
            yield Explanation("gathered again", f"{_format(key, taken)} more, of weights", (), (key,))


def attention_scores(ledger: Ledger) -> Iterator[Explanation]:
    """Attention scores in fp32 that are exchanged between heads and tokens.

    They occur if a program materializes the scores and GSPMD chooses where tokens are gathered: 4 b N T²
    bytes per layer, once or twice exactly, in all nine programs that do. No plan states whether a program
    does.
    """
    for key, nbytes in ledger.compiled(lambda c: c.kind == EXCHANGE and c.dtype == "f32").items():
        if taken := take(ledger.extra, key, nbytes):
            message = f"{_format(key, taken)} of fp32, sharded over tokens and over heads alternately"
            yield Explanation("attention scores", message, (), (key,))


def keys_and_values(ledger: Ledger) -> Iterator[Explanation]:
    """Keys and values of context parallelism, saved instead of gathered again.

    Their gradients are in fp32 or reduced.
    """
    rule, there = "keys and values", ledger.predicted("keys and values", "their gradients")
    for side, comparison in ((ledger.missing, "less"), (ledger.extra, "more")):
        for key in [key for key in side if key.axes in {known.axes for known in there}]:
            if taken := take(side, key, sum(there.values())):
                keys = ((key,), ()) if comparison == "less" else ((), (key,))
                message = f"{_format(key, taken)} {comparison}, of all tokens or their gradients"
                yield Explanation(rule, message, *keys)


def tokens_and_heads(ledger: Ledger) -> Iterator[Explanation]:
    """With sequence parallelism GSPMD chooses where tokens or weights are gathered, over all axes."""
    rule, sharded, elsewhere = "tokens and heads", set[str](), 0.0
    for key in ledger.predicted("tensor"):
        sharded |= ledger.axis_names(key.axes) if key.kind == GATHER else set()
    for key, nbytes in list(ledger.extra.items()):
        if not nbytes or not sharded & ledger.axis_names(key.axes):
            continue
        taken = take(ledger.extra, key)
        elsewhere += taken * (sharded < ledger.axis_names(key.axes))
        yield Explanation(rule, f"{_format(key, taken)} more between matmuls that shard them", (), (key,))
    for key in list(ledger.missing) if sharded else ():
        most = float("inf") if sharded & ledger.axis_names(key.axes) else elsewhere
        if taken := take(ledger.missing, key, most):
            message = f"{_format(key, taken)} missing, as the compiler shards differently"
            yield Explanation(rule, message, (key,), ())


def small_transfers(ledger: Ledger) -> Iterator[Explanation]:
    """The token ids, gradients of norms and sums of the softmax: up to 2% of all received bytes."""
    left = SMALL * ledger.found.received_bytes
    received = {key: ledger.received({key: nbytes}) for key, nbytes in ledger.extra.items() if nbytes}
    for key in sorted(received, key=lambda key: received[key]):
        left -= received[key]
        if left >= 0:
            yield Explanation("what no plan counts", _format(key, take(ledger.extra, key)), (), (key,))


def _format(key: Key, nbytes: float) -> str:
    """The kind, axes and bytes as text: 'all-gather over X: 4.19 MB'."""
    return f"{key.kind} over {key.axes}: {si(nbytes, 'B')}"


RULES = (
    embedding,
    collective_matmuls,
    unscattered_reductions,
    keys_and_values,
    regathered_weights,
    attention_scores,
    tokens_and_heads,
    small_transfers,
)
