"""What may stand in a layer in place of plain attention and a plain MLP?

Experts (MoE), latent attention (MLA) and linear attention. Chapter: Transformers.
"""

from dataclasses import dataclass

from scalingbook_lib.models.error import MOST, MOST_LAYERS, ModelError, whole, wholes


@dataclass(frozen=True, kw_only=True)
class Experts:
    """E routed experts of width F, k of them for each token, and `shared` ones for every token.

    The first `first_dense` layers keep a dense MLP; of the layers, every `every`-th has experts, the last
    of each group. `shared_F` is the width of one shared expert (F where it is None); `shared_gate` is a
    product of width 1 that scales them (Qwen).
    """

    E: int
    k: int
    F: int
    shared: int = 0
    shared_F: int | None = None
    shared_gate: bool = False
    first_dense: int = 0
    every: int = 1

    def __post_init__(self) -> None:
        layers = {"first_dense": (0, MOST_LAYERS), "every": (1, MOST_LAYERS)}
        wholes(self, dict.fromkeys("EkF", (1, MOST)) | {"shared": (0, 10_000)} | layers, "experts.")
        if self.shared_F is not None:
            whole("experts.shared_F", self.shared_F)
        if self.k > self.E:
            raise ModelError("experts.k", f"a token cannot choose {self.k} of {self.E} experts", "lower k")

    @property
    def shared_width(self) -> int:
        """The width of all shared experts together."""
        return self.shared * (self.F if self.shared_F is None else self.shared_F)

    def layers(self, L: int) -> int:
        """How many of L layers have experts."""
        return sum(map(self.has, range(L)))

    def has(self, layer: int) -> bool:
        """Whether that layer, from 0 on, has experts."""
        return layer >= self.first_dense and (layer + 1) % self.every == 0


@dataclass(frozen=True, kw_only=True)
class Latent:
    """Multi-head latent attention: queries through rank `q_rank`, keys and values through rank `kv_rank`.

    Where `q_rank` is None, queries are projected directly. A head's query and key have `nope` elements
    without and `rope` elements with a rotary position; the rotary part of the key is shared by all heads.
    A head's value has `v` elements. The cache keeps kv_rank + rope.
    """

    q_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    v: int

    def __post_init__(self) -> None:
        wholes(self, dict.fromkeys(("kv_rank", "nope", "rope", "v"), (1, MOST)), "latent.")
        if self.q_rank is not None:
            whole("latent.q_rank", self.q_rank)

    @property
    def qk(self) -> int:
        """The elements of one head's query."""
        return self.nope + self.rope

    @property
    def cached(self) -> int:
        """The elements that one layer keeps of one token."""
        return self.kv_rank + self.rope


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Linear attention (gated DeltaNet) in all layers but every `every`-th, which keeps softmax attention.

    A state of `v_heads` matrices [key, value] replaces the cache; `conv` is the length of the short
    convolution.
    """

    k_heads: int
    v_heads: int
    key: int
    value: int
    conv: int
    every: int

    def __post_init__(self) -> None:
        sizes = dict.fromkeys(("k_heads", "v_heads", "key", "value", "conv"), (1, MOST))
        wholes(self, sizes | {"every": (1, MOST_LAYERS)}, "linear.")
        if self.v_heads % self.k_heads:
            raise ModelError(
                "linear.v_heads", f"{self.v_heads} is no multiple of {self.k_heads} key heads", "make it one"
            )

    def softmax_layers(self, L: int) -> int:
        """How many of L layers keep softmax attention."""
        return L // self.every
