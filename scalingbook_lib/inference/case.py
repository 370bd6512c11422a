"""What is known of a model, a machine and a layout before any step? Everything: steps take microseconds.

`case(model, machine, layout).step_s(decodes, kv_tokens, chunk)` is what simulators and searches ask; `Step`
tells the same numbers. Chapter: Inference.
"""

from functools import lru_cache
from math import ceil
from typing import NamedTuple

from scalingbook_lib.arithmetic.layers import pairs
from scalingbook_lib.inference.efficiency import PEAK, Efficiency
from scalingbook_lib.inference.layout import Layout, LayoutError
from scalingbook_lib.inference.shape import STATE_BYTES, Part, Shape, shape
from scalingbook_lib.inference.traffic import Traffic, rows
from scalingbook_lib.limits import Machine
from scalingbook_lib.models import Transformer


class Cost(NamedTuple):
    """One class of products on one chip: seconds for a token, and for reading all its weights."""

    token_s: float
    read_s: float


class Pass(NamedTuple):
    """One microbatch through all stages, in seconds.

    Of products and weights, and of attention and cache, the longer is waited for, class by class: `matmul_s`
    and `weights_s`, `attention_s` and `kv_s` are what was; `head_s` is the unembedding's.
    """

    weights_s: float
    matmul_s: float
    kv_s: float
    attention_s: float
    activations_s: float
    collectives_s: float
    launch_s: float
    head_s: float
    head_waits: bool  # for its weights

    @property
    def total_s(self) -> float:
        """All of it but the head's side, which `head_s` has."""
        return (self.weights_s + self.matmul_s + self.kv_s + self.attention_s + self.activations_s
                + self.collectives_s + self.launch_s + self.head_s)  # fmt: skip


NOTHING = Pass(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False)


class Quick:
    """The step times of one model on one machine under one layout."""

    __slots__ = (
        "_absorbs", "_activations", "_bytes_s", "_fixed", "_groups", "_head", "_hops", "_kinds", "_kv_batch",
        "_last", "_launch", "_linear", "_overlap", "_pp", "_ramp", "_routed", "_rows_s", "_sequence_s",
        "_share", "_state", "_untouched", "_up", "_wide",
        "efficiency", "layout", "machine", "model", "shape", "traffic",
    )  # fmt: skip

    def __init__(
        self, model: Transformer, machine: Machine, layout: Layout, efficiency: Efficiency = PEAK
    ) -> None:
        if machine.chips % layout.chips:
            raise LayoutError(f"{layout.chips} chips of a copy do not divide the {machine.chips:,} of "
                              f"{machine.name}: let tp · pp be a divisor")  # fmt: skip
        self.model, self.machine, self.layout, self.efficiency = model, machine, layout, efficiency
        self.shape: Shape = shape(model, layout)
        self.traffic: tuple[Traffic, ...] = rows(self.shape, machine, efficiency)
        self._ways()
        self._products()
        self._attention()
        self._rest()

    def _ways(self) -> None:
        o = self.layout
        self._pp, self._groups, self._kv_batch = o.pp, o.attention_dp, o.kv_batch
        self._share, self._last = self.shape.share()
        self._wide = o.wide

    def _products(self) -> None:
        """Seconds for a token and for reading the weights, class by class."""
        s, e, o = self.shape, self.efficiency, self.layout
        self._ramp = e.of("ramp", o.compute)
        dense = "matmul", "weights"
        self._linear = self._cost(s.projections, "mlp", *dense), self._cost(s.mlp, "mlp", *dense)
        self._routed = self._cost(s.experts, "experts", "experts", "expert_weights")
        self._head = self._cost(s.head, "unembedding", "head", "head_weights")
        x = self.model.experts
        self._untouched = 1 - x.k / x.E if x else 0.0

    def _cost(self, part: Part, name: str, math: str, read: str) -> Cost:
        chip, e, o = self.machine.chip, self.efficiency, self.layout
        stored, computed = o.stored(name), o.computed(name)
        token_s = 2 * part.met / (chip.flops_per_s(computed) * e.of(math, computed))
        read_s = part.stored * stored.bytes / (chip.hbm_bytes_per_s * e.of(read, stored))
        if stored.bytes < computed.bytes:
            read_s += part.stored * e.of("dequantize_s", stored)
        return Cost(token_s, read_s)

    def _attention(self) -> None:
        """Of each kind of layers its window, and seconds for a pair, one expanded, a token's cache."""
        s, e, o, chip = self.shape, self.efficiency, self.layout, self.machine.chip
        pair_s = 1 / (chip.flops_per_s(o.activations) * e.of("attention", o.activations))
        byte_s = 1 / (chip.hbm_bytes_per_s * e.of("kv", o.kv))
        ways = o.kv_sequence
        self._state = s.state_flops * pair_s, 2 * s.state * STATE_BYTES * byte_s  # read and written
        self._kinds = tuple(
            (
                k.window,
                k.flops * pair_s / ways,
                k.expanded * pair_s / ways,
                k.elements * o.kv.bytes * byte_s / ways,
            )
            for k in s.kinds
        )
        self._absorbs = self.model.latent is not None
        self._up = 2 * s.up / ways / (chip.flops_per_s(o.compute) * e.of("matmul", o.compute))

    def _rest(self) -> None:
        s, e, o, m = self.shape, self.efficiency, self.layout, self.model
        byte_s = 1 / (self.machine.chip.hbm_bytes_per_s * e.of("memory", o.activations))
        logits = 2 * 4 * m.V / o.tp * byte_s  # written and read, in fp32
        self._activations = s.pointwise * o.activations.bytes * byte_s, logits
        self._hops = sum(row.hops_s for row in self.traffic)
        self._bytes_s = sum(row.bandwidth_s(1, 0) for row in self.traffic)
        self._rows_s = sum(row.bandwidth_s(0, 1) for row in self.traffic)
        self._overlap = e.overlap
        self._launch = m.L * e.of("layer_s", o.weights) + m.moe_layers * e.of(
            "expert_layer_s", o.stored("experts")
        )
        self._fixed, self._sequence_s = e.fixed_s, e.sequence_s

    def passed(
        self, b: float, kv: float, T: int = 1, c: float = 0, context: float = 0, prompts: int = 1
    ) -> Pass:
        """One microbatch: b sequences of T new tokens with kv cached ones in all, and c tokens of prompts.

        Each of the `prompts` has `context` tokens in the cache already.
        """
        t = b * T + c
        if not t:
            return NOTHING
        A = self._groups
        own, asked = (b, prompts) if A == 1 else (-(-b // A), -(-prompts // A))
        mine = own * T + (c * asked / prompts if c else 0)  # tokens of the fullest group
        weights_s, matmul_s = self._products_s(t, mine)
        kv_s = attention_s = 0.0
        if b:
            math, read = self._decoding(own, kv / b, T)
            kv_s, attention_s = (read, 0.0) if read > math else (0.0, math)
        if c:
            math, read = self._prefilling(asked, c / prompts, context)
            kv_s, attention_s = (kv_s + read, attention_s) if read > math else (kv_s, attention_s + math)
        rows = b * T + (prompts if c else 0)
        wide, logits = self._activations
        activations_s = t * wide + rows * logits
        per_row, read = self._head
        head_s = (rows + self._ramp) * per_row
        waits = read > head_s
        head_s = read if waits else head_s
        collectives_s = self._hops + t * self._bytes_s + rows * self._rows_s
        if self._overlap:
            busy = weights_s + matmul_s + kv_s + attention_s + activations_s + head_s
            hidden = min(collectives_s, busy) * self._overlap
            collectives_s -= hidden
        return Pass(
            weights_s, matmul_s, kv_s, attention_s, activations_s, collectives_s, self._launch, head_s, waits
        )

    def _products_s(self, t: float, mine: float) -> tuple[float, float]:
        """What is waited for: weights, arithmetic. Of experts only those that some token visits are read."""
        weights_s = matmul_s = 0.0
        (token_s, read), mlp = self._linear
        math = (mine + self._ramp) * token_s
        if read > math:
            weights_s += read
        else:
            matmul_s += math
        token_s, read = mlp
        math = ((t if self._wide else mine) + self._ramp) * token_s
        if read > math:
            weights_s += read
        else:
            matmul_s += math
        if self._untouched:
            token_s, read = self._routed
            math, read = (t + self._ramp) * token_s, read * (1 - self._untouched**t)
            if read > math:
                weights_s += read
            else:
                matmul_s += math
        return weights_s, matmul_s

    def _decoding(self, own: float, S: float, T: int) -> tuple[float, float]:
        """Attention of a group's sequences: seconds of arithmetic and of reading the cache, fullest chip."""
        Z = self._kv_batch
        n = own if Z == 1 else -(-own // Z)
        math, read = self._state
        math, read = own * T * math, own * read
        for window, pair_s, _, token_s in self._kinds:
            kept = n * (S if window > S else window)
            math += kept * T * pair_s
            read += kept * token_s
        return math, read

    def _prefilling(self, asked: int, each: float, context: float) -> tuple[float, float]:
        """Attention of prompts: every token sees those before it; the cache is read once.

        Latent keys and values are made anew for all positions, or absorbed where that is less.
        """
        n = -(-asked // self._kv_batch)
        state, moved = self._state
        math, read, anew = asked * each * state, asked * moved, n * context * self._up
        more = math
        T, S = max(round(each), 1), max(round(each), 1) + round(context)
        for window, pair_s, expanded_s, token_s in self._kinds:
            w = None if window > S else int(window)
            met = n * pairs(T, S, causal=True, window=w) * each / T
            math += met * pair_s
            anew += met * expanded_s
            read += n * min(S, window + T) * token_s
        return (min(math, anew + more), read) if self._absorbs else (math, read)

    def step_s(
        self, decodes: float, kv_tokens: float, chunk: float = 0, chunk_context: float = 0, prompts: int = 1
    ) -> float:
        """Seconds of a step: one token for each of `decodes` sequences, `kv_tokens` cached in all of them,
        and a chunk of prompts' tokens, each prompt with `chunk_context` tokens before it."""
        if self._pp == 1:
            total_s = self.passed(decodes, kv_tokens, 1, chunk, chunk_context, prompts).total_s
        else:
            total_s = self.staged(decodes, kv_tokens, 1, chunk, chunk_context, prompts)[2]
        return total_s + self._fixed + self._sequence_s * decodes

    def staged(
        self, b: float, kv: float, T: int = 1, c: float = 0, context: float = 0, prompts: int = 1
    ) -> tuple[Pass, int, float]:
        """A pass of one microbatch, how many there are, and the time until all have passed all stages.

        As many as stages, so that all of these work; a sequence is in one of them.
        """
        m = self._pp if c else max(min(self._pp, ceil(b)), 1)
        each = -(-b // m)
        one = self.passed(each, kv * each / b if b else 0.0, T, c / m, context, prompts)
        return one, m, max(one.total_s, m * self.longest_s(one))

    def longest_s(self, one: Pass) -> float:
        """What the longest stage does of a pass: most layers, or the last ones and the unembedding."""
        layers = one.total_s - one.head_s
        return max(self._share * layers, self._last * layers + one.head_s)


@lru_cache(maxsize=512)
def case(model: Transformer, machine: Machine, layout: Layout, efficiency: Efficiency = PEAK) -> Quick:
    """The same case again for the next step."""
    return Quick(model, machine, layout, efficiency)
