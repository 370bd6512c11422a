"""Which collectives does a step need, over which of the chips, of how many bytes, and how often?

Bytes are those of the array as `collectives` counts it, for each token of the step (`per_token`) and for
each row that needs logits (`per_row`). Letters: Y all tensor ways, C columns and X rows of two dimensions, A
groups of attention data parallelism, G the chips of one, Z experts, W the chips that split one, B sequences
and S tokens of a cache, R groups of a ring, P stages. Chapter: Inference.
"""

from collections.abc import Iterator
from typing import NamedTuple

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.inference.efficiency import Efficiency
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.shape import Shape
from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.clusters import Level
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic.layers import score_width, value_width
from scalingbook_lib.steps.placement import FREE, Networks, Rate, exchange_rate, place, rate
from scalingbook_lib.units import FP32, Told, si

GATHER, SCATTER, REDUCE = Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE
EXCHANGE, HOP = Collective.ALL_TO_ALL, Collective.PERMUTE
CANDIDATE_BYTES = 8  # each chip's best logit and its token


class Row(NamedTuple):
    """The fields of `Traffic`."""

    name: str
    what: str
    axis: str
    n: int
    per_token: float
    per_row: float
    times: float
    rate: Rate
    call_s: float = 0.0
    of: str = "all"


class Traffic(Row, Told):
    """One collective over n chips, `times` a step; `of` all tokens, those decoded, or those of prompts."""

    __slots__ = ()

    def nbytes(self, decoded: float, rows: float = 0, read: float = 0, whole: float = 0) -> float:
        """The array of one of them, for so many decoded tokens, rows of logits, and tokens of prompts.

        `read` are those that the chips of one tensor group read, `whole` all of these prompts up to there.
        """
        tokens = {"all": decoded + read, "decoded": decoded, "prompts": whole}[self.of]
        return self.per_token * tokens + self.per_row * rows

    def bandwidth_s(self, decoded: float, rows: float = 0, read: float = 0, whole: float = 0) -> float:
        """All of them in one step, the bytes alone."""
        return self.times * self.nbytes(decoded, rows, read, whole) * self.rate.s_per_byte

    @property
    def hops_s(self) -> float:
        """All of them in one step, the hops alone."""
        return self.times * (self.rate.hops_s + self.call_s)

    def received(self, decoded: float, rows: float = 0, read: float = 0, whole: float = 0) -> float:
        """Bytes that each chip takes in during one step, whatever the network."""
        array = self.nbytes(decoded, rows, read, whole)
        return self.times * collectives.bytes_received(self.what, array, self.n)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.what} over {self.axis}{self.n}, {si(self.per_token, 'B')} for each token, "
            f"{self.times:,.4g} times ({self.rate.link})"
        )


class Links:
    """What a byte costs between chips of a machine: `size` groups of `inside` neighbors."""

    def __init__(self, machine: Machine, efficiency: Efficiency, k: int = 1) -> None:
        self.machine, self.efficiency, self.k = machine, efficiency, k

    def row(self, name: str, what: str, axis: str, span: tuple[int, int], per_token: float, times: float,
            per_row: float = 0.0, of: str = "all") -> Traffic:  # fmt: skip
        """One collective over a span: how many neighbors are inside, how many groups take part."""
        on = self._networks(*span)
        if span[1] == 1:
            found = FREE
        elif axis == "Z":
            found = exchange_rate(on, self.k, self.efficiency)
        else:
            found = rate(what, on, self.efficiency)
        e = self.efficiency
        lost_s = e.collective_s + (e.network_s if _leaves(on) else 0.0)
        return Traffic(name, what, axis, span[1], per_token, per_row, times, found, lost_s, of)

    def _networks(self, inside: int, size: int) -> Networks:
        outside = self.machine.chips // (inside * size)
        return place(self.machine, (inside, size, 1, 1, 1, outside)).over("C")


def _leaves(on: Networks) -> bool:
    """Whether it passes the network between domains, or between pods."""
    return any(isinstance(part, Level) and part.port in ("network", "dcn") for part in on)


def rows(s: Shape, machine: Machine, efficiency: Efficiency) -> tuple[Traffic, ...]:
    """Every collective of a step that has anyone to talk to."""
    k = s.model.experts.k if s.model.experts else 1
    links = Links(machine, efficiency, k)
    parts = (_ends, _two_dimensions if s.layout.rows > 1 else _one_dimension, _cache, _ring, _stages)
    found = [row for part in parts for row in part(s.model, s.layout, links)]
    return tuple(row for row in found if row.n > 1 and row.times)


def _ends(m: Transformer, o: Layout, links: Links) -> Iterator[Traffic]:
    """The vocabulary is split: embedded vectors are summed, each chip's best candidates are gathered."""
    a = o.activations.bytes
    yield links.row("embedding", REDUCE, "Y", (1, o.tp), a * m.D, 1)
    yield links.row("candidates", GATHER, "Y", (1, o.tp), 0.0, 1, CANDIDATE_BYTES * o.tp)


def _one_dimension(m: Transformer, o: Layout, links: Links) -> Iterator[Traffic]:
    """Outputs are summed twice a layer (once in a parallel block): a reduce-scatter and an all-gather."""
    x = o.activations.bytes * m.D
    dense = m.L - m.moe_layers
    if o.attention_dp == 1:
        pairs = m.L if m.norms > 1 else 0
        yield links.row("attention's output", REDUCE, "Y", (1, o.tp), x, pairs)
        yield links.row("MLP's output", REDUCE, "Y", (1, o.tp), x, dense)
        yield links.row("experts' output", REDUCE, "Y", (1, o.tp), x, m.moe_layers)
        return
    own = x / o.attention_dp
    yield links.row("attention's output", REDUCE, "G", (1, o.group), own, m.L if m.norms > 1 else 0)
    if o.wide:
        yield from _spread(o, links, x, m.L)
        return
    yield links.row("MLP's output", REDUCE, "G", (1, o.group), own, m.L)  # shared experts', with experts
    yield from _experts(m, o, links)


def _spread(o: Layout, links: Links, x: float, times: float) -> Iterator[Traffic]:
    """Each group's tokens to all chips, and sums back: MLPs that all tp chips split."""
    over = (o.group, o.attention_dp)
    yield links.row("tokens of all groups", GATHER, "A", over, x, times)
    yield links.row("outputs to their groups", SCATTER, "A", over, x, times)
    yield links.row("MLP's output", REDUCE, "G", (1, o.group), x / o.attention_dp, times)


def _experts(m: Transformer, o: Layout, links: Links) -> Iterator[Traffic]:
    """A chip's own tokens to their k experts and back; where chips split an expert, gathered and summed."""
    assert m.experts
    each, ways = m.D * m.experts.k, o.tp // o.ep
    sent, back = (o.dispatch or o.activations).bytes, o.activations.bytes
    to, of = each * o.ep / o.tp, each / o.ep
    yield links.row("tokens to experts", EXCHANGE, "Z", (ways, o.ep), sent * to, m.moe_layers)
    yield links.row("tokens within experts", GATHER, "W", (1, ways), sent * of, m.moe_layers)
    yield links.row("sums within experts", SCATTER, "W", (1, ways), back * of, m.moe_layers)
    yield links.row("tokens from experts", EXCHANGE, "Z", (ways, o.ep), back * to, m.moe_layers)


def _two_dimensions(m: Transformer, o: Layout, links: Links) -> Iterator[Traffic]:
    """Inputs gathered over columns, hidden vectors summed over rows and gathered, outputs scattered.

    Source: Pope et al., arXiv 2211.05102, section 3.2.2. A gated MLP sums two hidden vectors.
    """
    a, c, X = o.activations.bytes, o.columns, o.rows
    wide, inner, outer = a * m.D / X, (1, c), (c, X)
    pairs = m.L * (2 if m.norms > 1 else 1)
    yield links.row("inputs", GATHER, "C", inner, wide, pairs)
    yield links.row("queries, keys, values", SCATTER, "X", outer, a * (m.N + 2 * m.K) * m.H / c, m.L)
    yield links.row("heads", GATHER, "X", outer, a * m.N * m.H / c, m.L)
    yield links.row("hidden", SCATTER, "X", outer, a * (2 if m.gated else 1) * m.F / c, m.L)
    yield links.row("hidden", GATHER, "X", outer, a * m.F / c, m.L)
    yield links.row("outputs", SCATTER, "C", inner, wide, pairs)


def _cache(m: Transformer, o: Layout, links: Links) -> Iterator[Traffic]:
    """Queries to where their cache is, outputs back; over tokens, partial outputs with their m and l.

    Rows of two dimensions scatter over sequences by themselves, as far as they go. A prompt's attention is
    split by heads alone; its keys and values then go to where the cache has them, or are there already where
    heads are copied.
    """
    a, h, Z, C = o.activations.bytes, o.kv_heads, o.kv_batch, o.kv_sequence
    over = Z // o.rows if Z % o.rows == 0 else Z
    heads = m.N / (h * o.attention_dp)
    query, value = heads * score_width(m, absorbed=True), heads * value_width(m, absorbed=True)
    new = 2 * m.K * m.H / (h * o.attention_dp) if h * over <= m.K and not m.latent else 0.0
    span, n = (h, over), m.softmax_layers
    own = a / (Z // over)  # where rows have scattered the sequences, each row has its own
    yield links.row("queries to sequences", EXCHANGE, "B", span, own * query / C, n, of="decoded")
    yield links.row("new keys and values", EXCHANGE, "B", span, own * new, n if new else 0)
    yield links.row("outputs to heads", EXCHANGE, "B", span, own * value / C, n, of="decoded")
    span, partial = (h * Z, C), FP32.bytes * (value + 2 * heads) / Z
    yield links.row("queries to tokens", GATHER, "S", span, a * query / Z, n, of="decoded")
    yield links.row("partial outputs", SCATTER, "S", span, partial, n, of="decoded")


def _ring(m: Transformer, o: Layout, links: Links) -> Iterator[Traffic]:
    """Keys and values of whole prompts, or latent vectors, pass every group, each chip its own heads."""
    each = m.kv_elements_per_token / m.softmax_layers / (1 if m.latent else min(o.group, m.K))
    nbytes = o.activations.bytes * each / o.attention_dp
    yield links.row("keys and values", GATHER, "R", (o.tp, o.cp), nbytes, m.softmax_layers, of="prompts")


def _stages(m: Transformer, o: Layout, links: Links) -> Iterator[Traffic]:
    """To the next stage, each tensor way its own part."""
    span, nbytes = (o.tp * o.cp, o.pp), o.activations.bytes * m.D / o.tp
    yield links.row("to the next stage", HOP, "P", span, nbytes, o.pp - 1)
