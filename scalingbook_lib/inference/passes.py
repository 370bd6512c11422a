"""How long does one microbatch take, term by term? Every time of serving comes from this formula.

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

# A simulator asks for a pass at every event. Records with slots that may be written are made and read in half
# the time of frozen ones or of tuples with names: nothing changes one once `passed` has returned it.


@dataclass(slots=True)
class Load:
    """What passes the model at once: `batch` sequences get T tokens each, `chunk` prompt tokens are read."""

    batch: float = 0.0
    kv_tokens: float = 0.0  # in the cache, of all sequences together
    chunk: float = 0.0  # of all prompts together
    context: float = 0.0  # of each prompt, the tokens that are in the cache already
    prompts: float = 1  # whole ones, or a mean of many steps
    T: int = field(default=1, kw_only=True)

    @property
    def sequences(self) -> float:
        """Those that decode and those that are read."""
        return self.batch + self.prompts if self.chunk else self.batch

    def microbatch(self, m: int) -> "Load":
        """The fullest of m: a sequence is in one of them, a chunk is spread over all."""
        B = fullest(self.batch, m)
        kv_tokens = self.kv_tokens * B / self.batch if self.batch else 0.0
        return replace(self, batch=B, kv_tokens=kv_tokens, chunk=self.chunk / m)


@dataclass(slots=True)
class Pass:
    """One microbatch through all stages, in seconds.

    Of matmuls and weight reads, and of attention and cache reads, only the longer counts, class by class:
    `matmul_s`, `weights_s`, `attention_s` and `kv_s` are the parts that count; `head_s` is the unembedding's.
    """

    weights_s: float = 0.0
    matmul_s: float = 0.0
    kv_s: float = 0.0
    attention_s: float = 0.0
    activations_s: float = 0.0
    collectives_s: float = 0.0
    launch_s: float = 0.0
    head_s: float = 0.0
    head_waits: bool = False  # for its weights

    def attends(self, math_s: float, read_s: float) -> None:
        """Attention of decoded tokens, or of prompts: arithmetic, and reading the cache."""
        if read_s > math_s:
            self.kv_s += read_s
        else:
            self.attention_s += math_s

    @property
    def own_s(self) -> float:
        """What the chip does by itself, without launches."""
        return (
            self.weights_s + self.matmul_s + self.kv_s + self.attention_s + self.activations_s + self.head_s
        )

    @property
    def total_s(self) -> float:
        """All of it."""
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
    """One microbatch through all stages, on the chip that has most to do."""
    one, o, T = Pass(), k.layout, load.T
    if not load.batch and not load.chunk:
        return one
    B = fullest(load.batch, o.cp)  # sequences of one tensor group
    own = fullest(B, o.attention_dp)  # and of one group that shares a cache
    rows = tokens = B * T  # of logits; that pass the MLPs of a tensor group
    own_tokens = own * T  # that pass the attention of a group
    decoded_s = prompts_s = 0.0  # collectives of one kind of tokens alone
    if load.batch:
        _decode(one, k, own, load.kv_tokens / load.batch, T)
        decoded_s = k.decoded_sent.seconds(tokens)
    if load.chunk:
        read = load.chunk / o.cp  # tokens of prompts that a tensor group reads
        asked = fullest(load.prompts, o.attention_dp)  # prompts of a group that shares a cache
        tokens += read
        own_tokens += read * asked / load.prompts
        rows += load.prompts  # of a prompt, its last token's
        _read(one, k, asked, load.chunk / load.prompts, load.context)
        prompts_s = k.prompt_sent.seconds(load.chunk + load.prompts * load.context)
    _multiply(one, k, tokens, own_tokens)
    one.activations_s = tokens * k.token_s + rows * k.row_s
    one.launch_s = k.launch_s
    one.head_waits, one.head_s = k.head.waits(rows)
    one.collectives_s = k.sent.seconds(tokens) + rows * k.row_sent_s + decoded_s + prompts_s
    if k.overlap:  # the layers' own work hides them, not the unembedding behind all layers
        one.collectives_s -= k.overlap * min(one.collectives_s, one.own_s - one.head_s)
    return one


def _multiply(one: Pass, k: Constants, tokens: float, own_tokens: float) -> None:
    """Products with weights: of experts only those that some token visits are read, E (1 - (1 - k/E)^B).

    All chips wait for the one whose experts get most tokens.
    """
    times = [k.projections.waits(own_tokens), k.mlp.waits(tokens if k.wide else own_tokens)]
    if k.routed.token_s:
        most = k.busiest * tokens
        if k.varied:  # no chip gets more than all tokens
            most = min(most * (1 + sqrt(k.varied / tokens)), k.layout.ep * tokens)
        times.append(k.routed.waits(most, 1 - k.untouched**tokens))
    one.weights_s = sum(s for waits, s in times if waits)
    one.matmul_s = sum(s for waits, s in times if not waits)


def _decode(one: Pass, k: Constants, own: float, S: float, T: int) -> None:
    """T queries of each of a group's sequences on S cached tokens, on the chip with most of their cache."""
    sequences = fullest(own, k.layout.kv_batch)
    math_s, read_s = own * T * k.state_token_s, own * k.state_read_s
    for kind in k.kinds:
        cached = sequences * (S if kind.window > S else kind.window)  # `min` takes five times as long
        math_s += cached * T * kind.pair_s
        read_s += cached * kind.token_s
    one.attends(math_s, read_s)


def _read(one: Pass, k: Constants, prompts: float, T: float, context: float) -> None:
    """Attention of prompts, split by heads: every token sees those before it; keys are read once.

    Latent keys and values are made anew for all positions, or absorbed where that is less.
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
    """Pairs of T new tokens with themselves and those of `context` tokens before within the window."""
    whole = max(round(T), 1)
    return pairs(whole, whole + round(context), causal=True, window=int(window)) * T / whole


def fullest(sequences: float, ways: int) -> float:
    """What the fullest of so many ways has: whole sequences, but a mean stays one where none divide it."""
    return sequences if ways == 1 else -(-sequences // ways)
