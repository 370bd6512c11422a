"""What does the compiler do otherwise in a whole training step? Rules with names, which `why` prints.

Each is a function of the rows of `training.traffic` and of the program: of what is less and what is more than
predicted it finds what belongs together, says its size, and takes it away. What no rule takes is told as a
difference without a name. Read from the programs of `tests/lab/train/moved.csv`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scalingbook_lib.collectives import Collective, bytes_received
from scalingbook_lib.lab.compiler import replica_groups
from scalingbook_lib.lab.compiler.hlo import Collectives, CompiledCollective
from scalingbook_lib.lab.compiler.predicted import Key, read, ways
from scalingbook_lib.notation import join_axes
from scalingbook_lib.training.links import TrainingCollective
from scalingbook_lib.units import si

NEAR, SMALL = 0.01, 0.02  # of a kind's bytes; of all that a chip receives
GATHER, SCATTER = Collective.ALL_GATHER.hlo, Collective.REDUCE_SCATTER.hlo
REDUCE, EXCHANGE, PERMUTE = Collective.ALL_REDUCE.hlo, Collective.ALL_TO_ALL.hlo, Collective.PERMUTE.hlo
LOOKED_UP = ("tokens looked up", "gradients of tokens", "gradients of the lookup")  # rows of a prediction
LOOKUPS = ("gather", "scatter-add", "sharding_constraint")  # the last names of what an embedding writes

type Side = dict[Key, float]


class Named(NamedTuple):
    """What a rule says of the kinds that it takes away; without a name, what is left."""

    rule: str
    words: str
    predicted: tuple[Key, ...]
    compiled: tuple[Key, ...]

    def __str__(self) -> str:
        return f"{self.rule}: {self.words}" if self.rule else self.words


@dataclass(slots=True)
class Ledger:
    """What is to be explained: bytes of arrays, by kind and axes, that are less or more than predicted."""

    rows: tuple[TrainingCollective, ...]
    found: Collectives
    sizes: Mapping[str, int]
    less: Side = field(default_factory=dict)
    more: Side = field(default_factory=dict)

    def names(self, axes: str) -> set[str]:
        """The axes of a group, each by itself."""
        return set(replica_groups.named(axes, self.sizes))

    def predicted(self, *names: str) -> Side:
        """Bytes of the rows whose names start so."""
        sums = read([row for row in self.rows if row.name.startswith(names)], self.sizes)
        return {key: amount.nbytes for key, amount in sums.items()}

    def compiled(self, chosen: Callable[[CompiledCollective], bool]) -> Side:
        """Bytes of the compiled collectives that are chosen."""
        sums = read([c for c in self.found if chosen(c)], self.sizes)
        return {key: amount.nbytes for key, amount in sums.items()}

    def received(self, side: Side) -> float:
        """What one device takes in for these."""
        return sum(
            bytes_received(key.kind.removeprefix("ragged-"), nbytes, ways(key.axes, self.sizes))
            for key, nbytes in side.items()
        )

    @property
    def unexplained_bytes(self) -> float:
        """What one device takes in more, or less, than predicted, and no rule has taken."""
        return self.received(self.less) + self.received(self.more)


def opened(traffic: Iterable[TrainingCollective], found: Collectives, sizes: Mapping[str, int]) -> Ledger:
    """All that differs by more than a hundredth of its kind."""
    ledger = Ledger(tuple(traffic), found, sizes)
    wanted, there = ledger.predicted(""), ledger.compiled(lambda c: True)
    for key in dict.fromkeys([*wanted, *there]):
        w, f = wanted.get(key, 0.0), there.get(key, 0.0)
        if abs(w - f) > NEAR * max(w, f):
            (ledger.less if w > f else ledger.more)[key] = abs(w - f)
    return ledger


def take(side: Side, key: Key, most: float = float("inf")) -> float:
    """Take away what there is of a kind, at most so much."""
    taken = min(side.get(key, 0.0), most)
    if key in side:
        side[key] -= taken
    return taken


def told(ledger: Ledger) -> Iterator[Named]:
    """Every rule in its turn, then what none of them has taken."""
    for rule in RULES:
        yield from rule(ledger)
    for side, than in ((ledger.less, "less"), (ledger.more, "more")):
        for key, nbytes in side.items():
            if nbytes >= 1:  # not what is left of a byte
                kinds = ((key,), ()) if than == "less" else ((), (key,))
                yield Named("", f"{_said(key, nbytes)} {than} than predicted", *kinds)


def embedding(ledger: Ledger) -> Iterator[Named]:
    """GSPMD looks tokens up in one of several ways, by costs that it does not tell.

    For TPU7x it has gathered the whole table over 16 ways of FSDP, where others exchange tokens.

    Beside tensor ways that split no tokens, nothing else is gathered over these than the table.
    """
    rule = "the embedding"
    written = ledger.compiled(lambda c: c.source.rpartition("/")[2] in LOOKUPS or "embed" in c.source)
    expected = ledger.predicted(*LOOKED_UP)
    for key in [key for key in ledger.predicted("tensor") if key.kind == REDUCE]:
        written[Key(GATHER, key.axes)] = float("inf")
        there = ledger.predicted("tokens looked up")
        expected[key] = sum(nbytes / ways(k.axes, ledger.sizes) for k, nbytes in there.items())
    for key, nbytes in written.items():
        if taken := take(ledger.more, key, max(nbytes - expected.get(key, 0.0), 0.0)):
            words = f"{_said(key, taken)} more, of tokens, of their gradients or of the whole table"
            yield Named(rule, words, (), (key,))
    for key, nbytes in expected.items():
        if taken := take(ledger.less, key, max(nbytes - written.get(key, 0.0), 0.0)):
            yield Named(rule, f"{_said(key, taken)} less, as tokens are looked up otherwise", (key,), ())


def rings(ledger: Ledger) -> Iterator[Named]:
    """A gather or a scatter of n pieces as a ring of n - 1 to n + 1 hops, or none where one is predicted."""
    for axes in sorted({key.axes for key in (*ledger.less, *ledger.more)}):
        for side, other, rule in (
            (ledger.more, ledger.less, "collective matmul"),
            (ledger.less, ledger.more, "no collective matmul"),
        ):
            n, ring = ways(axes, ledger.sizes), Key(PERMUTE, axes)
            halves = [key for key in (Key(GATHER, axes), Key(SCATTER, axes)) if other.get(key)]
            if n == 1 or not side.get(ring) or not halves:  # one: of axes that are none of the mesh's
                continue
            both = sum(other[key] for key in halves)
            most = min(both, side[ring] * n / (n - 1))
            for key in halves:
                take(other, key, other[key] * most / both)
            taken = take(side, ring, most * (n + 1) / n)
            words = f"{si(taken, 'B')} in rings over {axes} for {si(most, 'B')} gathered or scattered"
            words += "" if side is ledger.more else ", the other way round"
            kinds = (tuple(halves), (ring,)) if side is ledger.more else ((ring,), tuple(halves))
            yield Named(rule, words, *kinds)


def whole(ledger: Ledger) -> Iterator[Named]:
    """An all-reduce, of which each chip keeps a slice, where shapes or copies forbid a reduce-scatter.

    For TPU7x, copies of FSDP were so in both programs that were drawn: one sum over R and X together.
    """
    for key in [key for key in ledger.more if key.kind == REDUCE]:
        for short in [short for short in ledger.less if short.kind == SCATTER]:
            over, within = ledger.names(key.axes), ledger.names(short.axes)
            if not within <= over or not (taken := take(ledger.more, key, ledger.less[short])):
                continue
            take(ledger.less, short, taken)
            copies = Key(REDUCE, join_axes(sorted(over - within)))
            take(ledger.less, copies, taken / ways(short.axes, ledger.sizes))
            words = f"{_said(key, taken)}, then a slice, for a {short.kind} over {short.axes}"
            yield Named("summed whole", words, (short,), (key,))


def again(ledger: Ledger) -> Iterator[Named]:
    """What the backward pass does again and what its gradients need may each gather a layer's weights."""
    moved = ledger.predicted("weights", "expert weights")
    for key in moved:
        if taken := take(ledger.more, key, sum(moved.values())):
            yield Named("gathered again", f"{_said(key, taken)} more, of weights", (), (key,))


def scores(ledger: Ledger) -> Iterator[Named]:
    """Attention's scores, of fp32, go from heads to tokens and back.

    Where a program writes them out and leaves it to GSPMD where tokens are gathered: 4 b N T² bytes a layer,
    once or twice exactly, in all nine programs that do. No plan says whether one does.
    """
    for key, nbytes in ledger.compiled(lambda c: c.kind == EXCHANGE and c.dtype == "f32").items():
        if taken := take(ledger.more, key, nbytes):
            words = f"{_said(key, taken)} of fp32, split over tokens and over heads in turn"
            yield Named("attention's scores", words, (), (key,))


def keys_and_values(ledger: Ledger) -> Iterator[Named]:
    """Those of context ways: kept, not gathered again; their gradients of fp32, as scores are, or summed."""
    rule, there = "keys and values", ledger.predicted("keys and values", "their gradients")
    for side, than in ((ledger.less, "less"), (ledger.more, "more")):
        for key in [key for key in side if key.axes in {known.axes for known in there}]:
            if taken := take(side, key, sum(there.values())):
                kinds = ((key,), ()) if than == "less" else ((), (key,))
                yield Named(rule, f"{_said(key, taken)} {than}, of all tokens' or their gradients", *kinds)


def tokens(ledger: Ledger) -> Iterator[Named]:
    """With sequence parallelism GSPMD itself finds where tokens are gathered, or weights, over all axes."""
    rule, split, elsewhere = "tokens and heads", set[str](), 0.0
    for key in ledger.predicted("tensor"):
        split |= ledger.names(key.axes) if key.kind == GATHER else set()
    for key in [key for key, nbytes in ledger.more.items() if nbytes and split & ledger.names(key.axes)]:
        taken = take(ledger.more, key)
        elsewhere += taken * (split < ledger.names(key.axes))
        yield Named(rule, f"{_said(key, taken)} more between products that split them", (), (key,))
    for key in list(ledger.less) if split else ():
        most = float("inf") if split & ledger.names(key.axes) else elsewhere
        if taken := take(ledger.less, key, most):
            yield Named(rule, f"{_said(key, taken)} less, as the compiler splits otherwise", (key,), ())


def small(ledger: Ledger) -> Iterator[Named]:
    """The words themselves, gradients of norms, sums of the softmax: a hundredth or two in all."""
    most = SMALL * ledger.found.received_bytes
    received = {key: ledger.received({key: nbytes}) for key, nbytes in ledger.more.items() if nbytes}
    for key in sorted(received, key=lambda key: received[key]):
        most -= received[key]
        if most >= 0:
            yield Named("what no plan counts", _said(key, take(ledger.more, key)), (), (key,))


def _said(key: Key, nbytes: float) -> str:
    return f"{key.kind} over {key.axes}: {si(nbytes, 'B')}"


RULES = (embedding, rings, whole, keys_and_values, again, scores, tokens, small)
