"""What is known of a model, a machine and a layout before any step? Everything: steps take microseconds.

`case(model, machine, layout).step_s(decodes, kv_tokens, chunk)` is what simulators and searches ask; `Step`
tells the same numbers. Chapter: Inference.
"""

from functools import lru_cache
from math import ceil
from typing import NamedTuple

from scalingbook_lib.inference.constants import constants
from scalingbook_lib.inference.efficiency import PEAK, Efficiency
from scalingbook_lib.inference.layout import Layout, LayoutError
from scalingbook_lib.inference.shape import Shape, shape
from scalingbook_lib.inference.traffic import Traffic, rows
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic.layers import pairs


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
        """All of it."""
        return (self.weights_s + self.matmul_s + self.kv_s + self.attention_s + self.activations_s
                + self.collectives_s + self.launch_s + self.head_s)  # fmt: skip


NOTHING = Pass(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False)


class Quick:
    """The step times of one model on one machine under one layout."""

    __slots__ = (
        "_constants", "_fixed", "_groups", "_host_s", "_last", "_pp", "_sequence_s", "_share", "efficiency",
        "layout", "machine", "model", "shape", "traffic",
    )  # fmt: skip

    def __init__(
        self, model: Transformer, machine: Machine, layout: Layout, efficiency: Efficiency = PEAK
    ) -> None:
        self.shape: Shape = shape(model, layout)
        if machine.chips % layout.chips:
            raise LayoutError(f"{layout.chips} chips of a copy do not divide the {machine.chips:,} of "
                              f"{machine.name}: let tp · cp · pp be a divisor")  # fmt: skip
        self.model, self.machine, self.layout, self.efficiency = model, machine, layout, efficiency
        self.traffic: tuple[Traffic, ...] = rows(self.shape, machine, efficiency)
        self._pp, self._fixed, self._sequence_s = layout.pp, efficiency.fixed_s, efficiency.sequence_s
        self._groups, self._host_s = layout.attention_dp, efficiency.host_s
        self._share, self._last = self.shape.share()
        self._constants = constants(self.shape, machine, efficiency, self.traffic)

    def passed(
        self, b: float, kv: float, T: int = 1, c: float = 0, context: float = 0, prompts: int = 1
    ) -> Pass:
        """One microbatch: b sequences of T new tokens with kv cached ones in all, and c tokens of prompts.

        Each of the `prompts` has `context` tokens in the cache already.
        """
        k = self._constants
        if not b and not c:
            return NOTHING
        S, b, mine = kv / b if b else 0.0, fullest(b, k.cp), c / k.cp
        t, own, asked = b * T + mine, fullest(b, k.groups), fullest(prompts, k.groups)
        weights_s, matmul_s = self._products_s(t, own * T + mine * asked / prompts)
        pairs = [self._decoding(own, S, T)] if b else []
        pairs += [self._prefilling(asked, c / prompts, context)] if c else []
        kv_s = sum(read for math, read in pairs if read > math)
        attention_s = sum(math for math, read in pairs if read <= math)
        rows = b * T + (prompts if c else 0)
        head_s, waits = max(((rows + k.ramp) * k.head.token_s, False), (k.head.read_s, True))
        activations_s = t * k.token_s + rows * k.row_s
        sent_s = k.hops_s + t * k.token_sent_s + rows * k.row_sent_s
        sent_s += (k.decode_hops_s + b * T * k.decode_sent_s) if b else 0.0
        sent_s += (k.prompt_hops_s + (c + prompts * context) * k.prompt_sent_s) if c else 0.0
        busy = weights_s + matmul_s + kv_s + attention_s + activations_s + head_s
        sent_s -= k.overlap * min(sent_s, busy)
        return Pass(
            weights_s, matmul_s, kv_s, attention_s, activations_s, sent_s, k.launch_s, head_s, waits
        )  # fmt: skip

    def _products_s(self, t: float, mine: float) -> tuple[float, float]:
        """What is waited for: weights, arithmetic. Of experts only those that some token visits are read."""
        k = self._constants
        found = [(mine, *k.projections), (t if k.wide else mine, *k.mlp)]
        if k.routed.token_s:
            found.append((t, k.routed.token_s, k.routed.read_s * (1 - k.untouched**t)))
        both = [((tokens + k.ramp) * token_s, read) for tokens, token_s, read in found]
        weights_s = sum(read for math, read in both if read > math)
        return weights_s, sum(math for math, read in both if read <= math)

    def _decoding(self, own: float, S: float, T: int) -> tuple[float, float]:
        """Attention of a group's sequences: seconds of arithmetic and of reading the cache, fullest chip."""
        k = self._constants
        n, (math, read) = fullest(own, k.kv_batch), k.state
        math, read = own * T * math, own * read
        for window, pair_s, token_s in k.kinds:
            kept = n * min(S, window)
            math += kept * T * pair_s
            read += kept * token_s
        return math, read

    def _prefilling(self, asked: float, each: float, context: float) -> tuple[float, float]:
        """Attention of prompts, split by heads: every token sees those before it; keys are read once.

        Latent keys and values are made anew for all positions, or absorbed where that is less.
        """
        k = self._constants
        (state, moved), n = k.state, asked
        absorbed, read = n * each * state, n * moved
        expanded = absorbed + n * context * k.up
        for window, pair_s, expanded_s, token_s in k.prompts:
            if window >= context + each:
                met, kept = n * each * (context + (each + 1) / 2), n * (context + each)
            else:
                met = n * seen(each, context, window)
                kept = n * (context if context < window else window) + n * each
            absorbed += met * pair_s
            expanded += met * expanded_s
            read += kept * token_s
        return (expanded if expanded < absorbed else absorbed), read

    def step_s(
        self, decodes: float, kv_tokens: float, chunk: float = 0, chunk_context: float = 0, prompts: int = 1
    ) -> float:
        """Seconds of a step: one token for each of `decodes` sequences, `kv_tokens` cached in all of them.

        With a `chunk` of that many tokens of prompts, each of which has `chunk_context` read before.
        """
        sequences = decodes + prompts if chunk else decodes
        own_s, host_s = self._sequence_s * sequences, self._host_s * fullest(sequences, self._groups)
        m = self._pp
        if m == 1:
            layers_s, head_s = self._layers_s(decodes, kv_tokens, chunk, chunk_context, prompts)
            total_s = layers_s + head_s + own_s + self._fixed
            return total_s if total_s > host_s else host_s
        if not chunk:
            m = max(min(m, ceil(decodes)), 1)
        each = -(-decodes // m)
        kv = kv_tokens * each / decodes if decodes else 0.0
        layers_s, head_s = self._layers_s(each, kv, chunk / m, chunk_context, prompts)
        longest = max(self._share * layers_s, self._last * layers_s + head_s)
        return max(layers_s + head_s, m * longest) + own_s + m * self._fixed + host_s

    def _layers_s(self, b: float, kv: float, c: float, context: float, prompts: int) -> tuple[float, float]:
        """`passed` in one go, for one token of each sequence: all layers, and the unembedding."""
        if not b and not c:
            return 0.0, 0.0
        (
            cp, A, Z, wide, ramp, (dense, read), (mlp, mlp_read), (routed, routed_read), untouched,
            (head, head_read), (state, moved), kinds, _, _, token_s, row_s, sent, decode_sent, row_sent,
            ring, hops, decode_hops, ring_hops, launch, overlap,
        ) = self._constants  # fmt: skip
        mine, attention_s, S, t = 0.0, 0.0, kv / b if b else 0.0, c
        if cp > 1:
            b, t = -(-b // cp), c / cp
        rows = b
        if b:
            mine = own = b if A == 1 else -(-b // A)
            n = own if Z == 1 else -(-own // Z)
            math, loaded = own * state, own * moved
            for window, pair_s, cached_s in kinds:
                kept = n * (S if window > S else window)
                math += kept * pair_s
                loaded += kept * cached_s
            attention_s = loaded if loaded > math else math
            hops += decode_hops + b * decode_sent
        if c:
            asked = prompts if A == 1 else -(-prompts // A)
            mine, rows = mine + asked * t / prompts, rows + prompts
            if cp > 1:
                hops += ring_hops + (c + prompts * context) * ring
            math, loaded = self._prefilling(asked, c / prompts, context)
            attention_s += loaded if loaded > math else math
        t += b
        busy = attention_s + t * token_s + rows * row_s
        dense *= mine + ramp
        mlp *= (t if wide else mine) + ramp
        head *= rows + ramp
        busy += (read if read > dense else dense) + (mlp_read if mlp_read > mlp else mlp)
        if routed:
            routed *= t + ramp
            routed_read *= 1 - untouched**t
            busy += routed_read if routed_read > routed else routed
        head = head_read if head_read > head else head
        sent = hops + t * sent + rows * row_sent
        if overlap:
            sent -= overlap * (sent if sent < busy + head else busy + head)
        return busy + sent + launch, head

    def staged(
        self, b: float, kv: float, T: int = 1, c: float = 0, context: float = 0, prompts: int = 1
    ) -> tuple[Pass, int, float]:
        """A pass of one microbatch, how many there are, and the time until all have passed all stages.

        As many as stages, so that all of these work; a sequence is in one of them.
        """
        m = self._pp if c else max(min(self._pp, ceil(b)), 1)
        each = fullest(b, m)
        one = self.passed(each, kv * each / b if b else 0.0, T, c / m, context, prompts)
        return one, m, max(one.total_s, m * self.longest_s(one))

    def longest_s(self, one: Pass) -> float:
        """What the longest stage does of a pass: most layers, or the last ones and the unembedding."""
        layers = one.total_s - one.head_s
        return max(self._share * layers, self._last * layers + one.head_s)


def fullest(sequences: float, ways: int) -> float:
    """What the fullest of so many ways has: whole sequences, but a mean stays one where none divide it."""
    return sequences if ways == 1 else -(-sequences // ways)


def seen(each: float, context: float, window: float) -> float:
    """Pairs of `each` new tokens with themselves and those of `context` tokens before within the window."""
    T = max(round(each), 1)
    return pairs(T, T + round(context), causal=True, window=int(window)) * each / T


@lru_cache(maxsize=512)
def case(model: Transformer, machine: Machine, layout: Layout, efficiency: Efficiency = PEAK) -> Quick:
    """The same case again for the next step."""
    return Quick(model, machine, layout, efficiency)
