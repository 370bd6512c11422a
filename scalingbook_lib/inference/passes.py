"""The time of one microbatch by term; all times of serving come from this formula.

    T = Σ max(2 B P / C, w P / W_hbm)              products, class by class: arithmetic or weights
      + Σ max(attention's FLOPs / C, B M_kv / W_hbm)  of decoding and of prompts: arithmetic or cache
      + activations + T_network + launches

with P, the cache and the rates those of one chip (`constants`). Source: the scaling book, "All About
Transformer Inference", with activations, collectives, hops and launches added. Chapter: Inference.
"""

from dataclasses import dataclass, field, replace
from math import sqrt

from scalingbook_lib.inference.constants import Constants
from scalingbook_lib.models.arithmetic.layers import pairs

# A simulator computes a pass at every event. Mutable records with slots take half the time of frozen ones or
# of named tuples. No code changes a pass after `passed` has returned it.


@dataclass(slots=True)
class Load:
    """The tokens of a step: `batch` sequences get T tokens each, and `chunk` prompt tokens are prefilled."""

    batch: float = 0.0
    kv_tokens: float = 0.0  # cached tokens of all sequences
    chunk: float = 0.0  # of all prompts
    context: float = 0.0  # tokens of each prompt that are in the cache already
    prompts: float = 1  # whole prompts, or the mean over many steps
    T: int = field(default=1, kw_only=True)

    @property
    def sequences(self) -> float:
        """The number of sequences that decode or are prefilled."""
        return self.batch + self.prompts if self.chunk else self.batch

    def microbatch(self, m: int) -> "Load":
        """Return the largest of m microbatches; sequences are not divided, and a chunk is divided evenly."""
        B = fullest(self.batch, m)
        kv_tokens = self.kv_tokens * B / self.batch if self.batch else 0.0
        return replace(self, batch=B, kv_tokens=kv_tokens, chunk=self.chunk / m)


@dataclass(slots=True)
class Pass:
    """The seconds of one microbatch through all stages, by term.

    Of compute and memory reads, only the longer counts in each class of operation. `matmul_s` or `weights_s`
    is the longer one for matmuls, `attention_s` or `kv_s` for attention. `head_s` is the unembedding.
    """

    weights_s: float = 0.0
    matmul_s: float = 0.0
    kv_s: float = 0.0
    attention_s: float = 0.0
    activations_s: float = 0.0
    collectives_s: float = 0.0
    launch_s: float = 0.0
    head_s: float = 0.0
    head_waits: bool = False  # whether the head is memory-bound

    def attends(self, math_s: float, read_s: float) -> None:
        """Add attention: the longer of compute and reading the cache."""
        if read_s > math_s:
            self.kv_s += read_s
        else:
            self.attention_s += math_s

    @property
    def own_s(self) -> float:
        """The seconds of compute and memory, without collectives and launches."""
        return (
            self.weights_s + self.matmul_s + self.kv_s + self.attention_s + self.activations_s + self.head_s
        )

    @property
    def total_s(self) -> float:
        """The sum of all terms in seconds."""
        return (
            self.weights_s
            + self.matmul_s
            + self.kv_s
            + self.attention_s
            + self.activations_s
            + self.collectives_s
            + self.launch_s
            + self.head_s
        )


def passed(k: Constants, load: Load) -> Pass:
    """Return the seconds of one microbatch through all stages, for the chip with the most work."""
    one, o, T = Pass(), k.layout, load.T
    if not load.batch and not load.chunk:
        return one
    B = fullest(load.batch, o.cp)  # sequences per TP group
    own = fullest(B, o.attention_dp)  # sequences per group that shares a cache
    rows = tokens = B * T  # rows of logits, and tokens in the MLPs of a TP group
    own_tokens = own * T  # tokens in the attention of a group
    decoded_s = prompts_s = 0.0  # collectives for decoded tokens only, and for prompts only
    if load.batch:
        _decode(one, k, own, load.kv_tokens / load.batch, T)
        decoded_s = k.decoded_sent.seconds(tokens)
    if load.chunk:
        read = load.chunk / o.cp  # prompt tokens per TP group
        asked = fullest(load.prompts, o.attention_dp)  # prompts per group that shares a cache
        tokens += read
        own_tokens += read * asked / load.prompts
        rows += load.prompts  # only the last token of a prompt needs logits
        _read(one, k, asked, load.chunk / load.prompts, load.context)
        prompts_s = k.prompt_sent.seconds(load.chunk + load.prompts * load.context)
    _multiply(one, k, tokens, own_tokens)
    one.activations_s = tokens * k.token_s + rows * k.row_s
    one.launch_s = k.launch_s
    one.head_waits, one.head_s = k.head.waits(rows)
    one.collectives_s = k.sent.seconds(tokens) + rows * k.row_sent_s + decoded_s + prompts_s
    if k.overlap:  # collectives overlap with the layers, not with the unembedding after them
        one.collectives_s -= k.overlap * min(one.collectives_s, one.own_s - one.head_s)
    return one


def _multiply(one: Pass, k: Constants, tokens: float, own_tokens: float) -> None:
    """Add the weight matmuls; only activated experts are read, E (1 - (1 - k/E)^B) of them.

    All chips wait for the one whose experts have the most tokens.
    """
    times = [k.projections.waits(own_tokens), k.mlp.waits(tokens if k.wide else own_tokens)]
    if k.routed.token_s:
        most = k.busiest * tokens
        if k.varied:  # a chip has at most all tokens
            most = min(most * (1 + sqrt(k.varied / tokens)), k.layout.ep * tokens)
        times.append(k.routed.waits(most, 1 - k.untouched**tokens))
    one.weights_s = sum(s for waits, s in times if waits)
    one.matmul_s = sum(s for waits, s in times if not waits)


def _decode(one: Pass, k: Constants, own: float, S: float, T: int) -> None:
    """Add decode attention: T queries per sequence on S cached tokens, for the chip with most cache."""
    sequences = fullest(own, k.layout.kv_batch)
    math_s, read_s = own * T * k.state_token_s, own * k.state_read_s
    for kind in k.kinds:
        cached = sequences * (S if kind.window > S else kind.window)  # `min` would take five times as long
        math_s += cached * T * kind.pair_s
        read_s += cached * kind.token_s
    one.attends(math_s, read_s)


def _read(one: Pass, k: Constants, prompts: float, T: float, context: float) -> None:
    """Add the causal attention of prompts, sharded by heads; keys and values are read once.

    Latent keys and values are expanded for all positions, or absorbed if that takes less time.
    """
    absorbed_s, read_s = prompts * T * k.state_token_s, prompts * k.state_read_s
    expanded_s = absorbed_s + prompts * context * k.up_s
    for kind in k.kinds:
        if kind.window >= context + T:
            met = prompts * T * (context + (T + 1) / 2)
            cached = prompts * (context + T)
        else:
            met = prompts * _seen(T, context, kind.window)
            cached = prompts * min(context, kind.window) + prompts * T
        absorbed_s += met * kind.prompt_pair_s
        expanded_s += met * kind.prompt_expanded_s
        read_s += cached * kind.prompt_token_s
    one.attends(absorbed_s if absorbed_s < expanded_s else expanded_s, read_s)


def _seen(T: float, context: float, window: float) -> float:
    """Return the pairs of T new tokens with each other and with the context, within the window."""
    whole = max(round(T), 1)
    return pairs(whole, whole + round(context), causal=True, window=int(window)) * T / whole


def fullest(sequences: float, ways: int) -> float:
    """Return the sequences of the fullest of `ways` parts, rounded up; a single part keeps a fraction."""
    return sequences if ways == 1 else -(-sequences // ways)
