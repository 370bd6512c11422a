"""How long does one microbatch take, term by term? Every time of serving comes from this formula.

    T = Σ max(2 B P / C, w P / W_hbm)              products, class by class: arithmetic or weights
      + Σ max(attention's FLOPs / C, B M_kv / W_hbm)  of decoding and of prompts: arithmetic or cache
      + activations + T_network + launches

with P, the cache and the rates those of one chip (`constants`). Source: the scaling book, "All About
Transformer Inference", with activations, collectives, hops and launches added. Chapter: Inference.
"""

from typing import NamedTuple

from scalingbook_lib.inference.constants import Constants
from scalingbook_lib.models.arithmetic.layers import pairs


class Load(NamedTuple):
    """What passes the model at once: B sequences get T tokens each, `chunk` tokens of prompts are read."""

    B: float = 0.0
    kv_tokens: float = 0.0  # in the cache, of all sequences together
    T: int = 1
    chunk: float = 0.0  # of all prompts together
    context: float = 0.0  # of each prompt, the tokens that are in the cache already
    prompts: int = 1

    @property
    def sequences(self) -> float:
        """Those that decode and those that are read."""
        return self.B + self.prompts if self.chunk else self.B

    def microbatch(self, m: int) -> "Load":
        """The fullest of m: a sequence is in one of them, a chunk is spread over all."""
        if m == 1:
            return self
        B = fullest(self.B, m)
        kv_tokens = self.kv_tokens * B / self.B if self.B else 0.0
        return self._replace(B=B, kv_tokens=kv_tokens, chunk=self.chunk / m)


class Pass(NamedTuple):
    """One microbatch through all stages, in seconds.

    Of products and weights, and of attention and cache, the longer is waited for, class by class: `matmul_s`
    and `weights_s`, `attention_s` and `kv_s` are what was; `head_s` is the unembedding's.
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

    @property
    def own_s(self) -> float:
        """What the chip does by itself, without launches."""
        products_s = self.weights_s + self.matmul_s
        return products_s + self.kv_s + self.attention_s + self.activations_s + self.head_s

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


class _Roof(NamedTuple):
    """Arithmetic and reading that overlap: the longer of both is waited for."""

    math_s: float
    read_s: float


def passed(k: Constants, load: Load) -> Pass:
    """One microbatch through all stages, on the chip that has most to do."""
    if not load.B and not load.chunk:
        return Pass()
    o, S = k.layout, load.kv_tokens / load.B if load.B else 0.0
    B = fullest(load.B, o.cp)  # sequences of one tensor group
    own = fullest(B, o.attention_dp)  # and of one group that shares a cache
    asked = fullest(load.prompts, o.attention_dp)  # prompts of such a group
    read = load.chunk / o.cp  # tokens of prompts that a tensor group reads
    tokens = B * load.T + read  # that pass the MLPs of a tensor group
    own_tokens = own * load.T + read * asked / load.prompts  # that pass the attention of a group
    rows = B * load.T + (load.prompts if load.chunk else 0)  # of logits: of a prompt, its last token's

    products = _products(k, tokens, own_tokens)
    attention = [_decoding(k, own, S, load.T)] if load.B else []
    if load.chunk:
        attention.append(_reading(k, asked, load.chunk / load.prompts, load.context))
    head = _Roof((rows + k.ramp) * k.head.token_s, k.head.read_s)

    sent_s = k.sent.seconds(tokens) + rows * k.row_sent_s
    if load.B:
        sent_s += k.decoded_sent.seconds(B * load.T)
    if load.chunk:
        sent_s += k.prompt_sent.seconds(load.chunk + load.prompts * load.context)
    one = Pass(
        weights_s=_read_s(products),
        matmul_s=_math_s(products),
        kv_s=_read_s(attention),
        attention_s=_math_s(attention),
        activations_s=tokens * k.token_s + rows * k.row_s,
        collectives_s=sent_s,
        launch_s=k.launch_s,
        head_s=max(head),
        head_waits=head.read_s >= head.math_s,
    )
    return one._replace(collectives_s=sent_s - k.overlap * min(sent_s, one.own_s)) if k.overlap else one


def _read_s(roofs: list[_Roof]) -> float:
    return sum([roof.read_s for roof in roofs if roof.read_s > roof.math_s])


def _math_s(roofs: list[_Roof]) -> float:
    return sum([roof.math_s for roof in roofs if roof.read_s <= roof.math_s])


def _products(k: Constants, tokens: float, own_tokens: float) -> list[_Roof]:
    """Products with weights: of experts only those that some token visits are read, E (1 - (1 - k/E)^B)."""
    mlp_tokens = tokens if k.layout.wide else own_tokens
    found = [
        _Roof((own_tokens + k.ramp) * k.projections.token_s, k.projections.read_s),
        _Roof((mlp_tokens + k.ramp) * k.mlp.token_s, k.mlp.read_s),
    ]
    if k.routed.token_s:
        visited = 1 - k.untouched**tokens
        found.append(_Roof((tokens + k.ramp) * k.routed.token_s, k.routed.read_s * visited))
    return found


def _decoding(k: Constants, own: float, S: float, T: int) -> _Roof:
    """T queries of each of a group's sequences on S cached tokens, on the chip with most of their cache."""
    sequences = fullest(own, k.layout.kv_batch)
    math_s, read_s = own * T * k.state_token_s, own * k.state_read_s
    for kind in k.kinds:
        cached = sequences * min(S, kind.window)
        math_s += cached * T * kind.pair_s
        read_s += cached * kind.token_s
    return _Roof(math_s, read_s)


def _reading(k: Constants, prompts: float, T: float, context: float) -> _Roof:
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
    return _Roof(min(absorbed_s, expanded_s), read_s)


def _seen(T: float, context: float, window: float) -> float:
    """Pairs of T new tokens with themselves and those of `context` tokens before within the window."""
    whole = max(round(T), 1)
    return pairs(whole, whole + round(context), causal=True, window=int(window)) * T / whole


def fullest(sequences: float, ways: int) -> float:
    """What the fullest of so many ways has: whole sequences, but a mean stays one where none divide it."""
    return sequences if ways == 1 else -(-sequences // ways)
