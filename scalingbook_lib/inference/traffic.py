"""The collectives of a step: over which chips, how many bytes, and how often.

Bytes are those of the array as `collectives` counts it, per token of the step (`per_token`) and per row
of logits (`per_row`). Mesh axes have letters: Y the TP degree, C columns and X rows of 2-D sharding, A the
groups of attention data parallelism, G the chips of a group, Z experts, W the chips that shard an expert, B
sequences and S tokens of a cache, R groups of a ring, P stages. Chapter: Inference.
"""

from dataclasses import dataclass
from functools import partial

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.inference.efficiency import ServingEfficiency
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.shape import ServingShape
from scalingbook_lib.machines import Level, Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import sublayers
from scalingbook_lib.models.arithmetic.layers import score_width, value_width
from scalingbook_lib.steps.placement import FREE, Rate, exchange_rate, groups, rate
from scalingbook_lib.units import FP32, Result, si

GATHER, SCATTER, REDUCE = Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE
EXCHANGE, HOP = Collective.ALL_TO_ALL, Collective.PERMUTE
type Rows = tuple[ServingCollective, ...]

CANDIDATE_BYTES = 8  # each chip's best logit and its token


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingCollective(Result):
    """One collective over n chips, `times` per step; `of` says for which tokens (all, decoded or prompts)."""

    name: str
    what: Collective
    axis: str
    n: int
    per_token: float
    per_row: float
    times: float
    rate: Rate
    call_s: float  # lost per collective, in addition to its hops
    of: str

    def nbytes(self, decoded: float, rows: float = 0, read: float = 0, whole: float = 0) -> float:
        """Return the bytes of the array, for `decoded` tokens, `rows` of logits, and prompt tokens.

        `read` counts the prompt tokens of one TP group in this step, and `whole` all tokens of these prompts
        so far.
        """
        tokens = {"all": decoded + read, "decoded": decoded, "prompts": whole}[self.of]
        return self.per_token * tokens + self.per_row * rows

    def bandwidth_s(self, decoded: float, rows: float = 0, read: float = 0, whole: float = 0) -> float:
        """Return the seconds of all of them in one step, for their bytes only."""
        return self.times * self.nbytes(decoded, rows, read, whole) * self.rate.s_per_byte

    @property
    def token_s(self) -> float:
        """The seconds that each additional token adds to `bandwidth_s`."""
        return self.times * self.per_token * self.rate.s_per_byte

    @property
    def hops_s(self) -> float:
        """The seconds of all of them in one step, for hops and calls only."""
        return self.times * (self.rate.hops_s + self.call_s)

    def received(self, decoded: float, rows: float = 0, read: float = 0, whole: float = 0) -> float:
        """Return the bytes that each chip receives in one step, whatever the network."""
        array = self.nbytes(decoded, rows, read, whole)
        return self.times * collectives.bytes_received(self.what, array, self.n)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.what} over {self.axis}{self.n}, {si(self.per_token, 'B')} for each token, "
            f"{self.times:,.4g} times ({self.rate.link})"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutLinks:
    """The links of a machine under a layout; each token is routed to k experts."""

    machine: Machine
    efficiency: ServingEfficiency
    k: int
    vector: float  # bytes of one token's residual stream
    busiest: float  # routed tokens of the busiest chip over the mean

    def row(
        self,
        name: str,
        what: Collective,
        axis: str,
        *,
        inside: int = 1,
        n: int,
        per_token: float,
        per_row: float = 0.0,
        times: float,
        of: str = "all",
    ) -> ServingCollective:
        """Return a collective among corresponding chips of n groups of `inside` neighbors."""
        e, on = self.efficiency, groups(self.machine, inside, n)
        leaves = any(isinstance(part, Level) and part.port in ("network", "dcn") for part in on)
        if n == 1:
            found = FREE
        elif axis == "Z":  # a token crosses a link once for all of its experts behind that link
            found = exchange_rate(on, self.k, e, busiest=self.busiest)
        else:
            found = rate(what, on, e)
        return ServingCollective(
            name=name,
            what=what,
            axis=axis,
            n=n,
            per_token=per_token,
            per_row=per_row,
            times=times,
            rate=found,
            call_s=e.collective_s + (e.network_s if leaves else 0.0),
            of=of,
        )


def rows(s: ServingShape, machine: Machine, efficiency: ServingEfficiency) -> Rows:
    """Return every collective of a step that involves more than one chip."""
    m, o = s.model, s.layout
    k, vector = m.experts.k if m.experts else 1, o.activations.bytes * m.D
    links = LayoutLinks(
        machine=machine, efficiency=efficiency, k=k, vector=vector, busiest=s.busiest(efficiency.expert_skew)
    )
    parts = (_ends, _two_dimensions if o.rows > 1 else _one_dimension, _cache, _ring, _stages)
    return tuple(row for part in parts for row in part(m, o, links) if row.n > 1 and row.times)


def _ends(m: Transformer, o: Layout, links: LayoutLinks) -> Rows:
    """The vocabulary is split: embedded vectors are summed, each chip's best candidates are gathered."""
    best = CANDIDATE_BYTES * o.tp
    return (
        links.row("embedding", REDUCE, "Y", n=o.tp, per_token=links.vector, times=1),
        links.row("candidates", GATHER, "Y", n=o.tp, per_token=0.0, per_row=best, times=1),
    )


def _one_dimension(m: Transformer, o: Layout, links: LayoutLinks) -> Rows:
    """Outputs are summed twice a layer (once in a parallel block): a reduce-scatter and an all-gather."""
    # Source: Megatron-LM, arXiv 1909.08053, section 3: one sum after attention, one after the MLP.
    mixers = sublayers.mixer_sums(m)
    if o.attention_dp == 1:
        summed = partial(links.row, what=REDUCE, axis="Y", n=o.tp, per_token=links.vector)
        return (
            summed("attention output", times=mixers),
            summed("MLP output", times=sublayers.mlp_sums(m)),
            summed("expert output", times=m.moe_layers),
        )
    own = links.vector / o.attention_dp  # a group has the tokens of its own sequences
    summed = partial(links.row, what=REDUCE, axis="G", n=o.group, per_token=own)
    return (
        summed("attention output", times=mixers),
        *(_all_groups(m, o, links) if o.wide else ()),
        summed("MLP output", times=sublayers.layers_with_mlp(m)),  # or shared experts'
        *(() if o.wide else _experts(m, o, links)),
    )


def _all_groups(m: Transformer, o: Layout, links: LayoutLinks) -> Rows:
    """Each group's tokens to all chips, and sums back: MLPs that all tp chips split."""
    layers = sublayers.layers_with_mlp(m)
    row = partial(links.row, axis="A", inside=o.group, n=o.attention_dp, per_token=links.vector, times=layers)
    return row("tokens to all groups", GATHER), row("outputs back to groups", SCATTER)


def _experts(m: Transformer, o: Layout, links: LayoutLinks) -> Rows:
    """A chip's own tokens to their k experts and back; where chips split an expert, gathered and summed."""
    assert m.experts
    # Dispatch may be narrower than what is computed with (DeepSeek-V3: fp8 there, bf16 back).
    copies, ways = m.D * m.experts.k, o.tp // o.ep  # elements of a token's k copies; chips of one expert
    dispatch, combine = (o.dispatch or o.activations).bytes, o.activations.bytes
    between = partial(links.row, axis="Z", inside=ways, n=o.ep, times=m.moe_layers)
    within = partial(links.row, axis="W", n=ways, times=m.moe_layers)
    own, met = copies * o.ep / o.tp, copies / o.ep
    return (
        between("tokens to experts", EXCHANGE, per_token=dispatch * own),
        within("tokens within experts", GATHER, per_token=dispatch * met),
        within("sums within experts", SCATTER, per_token=combine * met),
        between("tokens from experts", EXCHANGE, per_token=combine * own),
    )


def _two_dimensions(m: Transformer, o: Layout, links: LayoutLinks) -> Rows:
    """Inputs gathered over columns, hidden vectors summed over rows and gathered, outputs scattered.

    Source: Pope et al., arXiv 2211.05102, section 3.2.2. A gated MLP sums two hidden vectors.
    """
    a, c = o.activations.bytes, o.columns
    blocks = sublayers.inputs(m)  # a parallel block gathers and scatters once
    columns = partial(links.row, axis="C", n=c, per_token=a * m.D / o.rows, times=blocks)
    rows = partial(links.row, axis="X", inside=c, n=o.rows, times=m.L)
    qkv, hidden = (m.N + 2 * m.K) * m.H, (2 if m.gated else 1) * m.F
    return (
        columns("inputs", GATHER),
        rows("queries, keys, values", SCATTER, per_token=a * qkv / c),
        rows("heads", GATHER, per_token=a * m.N * m.H / c),
        rows("hidden", SCATTER, per_token=a * hidden / c),
        rows("hidden", GATHER, per_token=a * m.F / c),
        columns("outputs", SCATTER),
    )


def _cache(m: Transformer, o: Layout, links: LayoutLinks) -> Rows:
    """Queries to where their cache is, outputs back; over tokens, partial outputs with their m and l.

    Rows of two dimensions scatter over sequences by themselves, as far as they go. A prompt's attention is
    split by heads alone; its keys and values then go to where the cache has them, or are there already where
    heads are copied.
    """
    # Source of the split over sequences: Pope et al., section 3.3; over tokens, partial softmaxes are merged
    # by their largest score m and sum l, as flash decoding does.
    a, h, Z, C = o.activations.bytes, o.kv_heads, o.kv_batch, o.kv_sequence
    ways = Z // o.rows if Z % o.rows == 0 else Z  # over sequences, beyond those that rows scatter
    own = a / (Z // ways)  # where rows have scattered the sequences, each row has its own
    heads = m.N / (h * o.attention_dp)  # query heads of a chip
    query, value = heads * score_width(m, absorbed=True), heads * value_width(m, absorbed=True)
    moved = h * ways <= m.K and not m.latent
    new = 2 * m.K * m.H / (h * o.attention_dp) if moved else 0.0
    partials = FP32.bytes * (value + 2 * heads) / Z  # o, and for each head its m and l
    layers = m.softmax_layers
    sequences = partial(links.row, axis="B", inside=h, n=ways)
    tokens = partial(links.row, axis="S", inside=h * Z, n=C, times=layers, of="decoded")
    return (
        sequences("queries to sequences", EXCHANGE, per_token=own * query / C, times=layers, of="decoded"),
        sequences("new keys and values", EXCHANGE, per_token=own * new, times=layers * moved),
        sequences("outputs to heads", EXCHANGE, per_token=own * value / C, times=layers, of="decoded"),
        tokens("queries to tokens", GATHER, per_token=a * query / Z),
        tokens("partial outputs", SCATTER, per_token=partials),
    )


def _ring(m: Transformer, o: Layout, links: LayoutLinks) -> Rows:
    """Keys and values of whole prompts, or latent vectors, pass every group, each chip its own heads."""
    if not m.softmax_layers:
        return ()
    each = m.kv_elements_per_token / m.softmax_layers / (1 if m.latent else min(o.group, m.K))
    ring = partial(links.row, axis="R", inside=o.tp, n=o.cp, times=m.softmax_layers, of="prompts")
    return (ring("keys and values", GATHER, per_token=o.activations.bytes * each / o.attention_dp),)


def _stages(m: Transformer, o: Layout, links: LayoutLinks) -> Rows:
    """To the next stage, each tensor way its own part."""
    row = partial(links.row, axis="P", inside=o.tp * o.cp, n=o.pp, times=o.pp - 1)
    return (row("to the next stage", HOP, per_token=links.vector / o.tp),)
