"""The shapes of a Transformer and its parameter counts.

All counts come from the list of its weights (`weights()`), part by part and exact. Chapter: Transformers.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from scalingbook_lib.models import kept
from scalingbook_lib.models.blocks.block import Block, LayerKind
from scalingbook_lib.models.counting import weights_of
from scalingbook_lib.models.parts import (
    MOST,
    MOST_LAYERS,
    Experts,
    Latent,
    Linear,
    ModelError,
    Weight,
    printable,
    whole,
    wholes,
)
from scalingbook_lib.models.quantization import Scheme
from scalingbook_lib.models.uniform import uniform_blocks
from scalingbook_lib.units import BF16, DTYPES, DType, Result

BIASES = ("q", "k", "v", "o", "mlp", "router", "experts", "unembedding")
LIMITS = dict.fromkeys("DVNKHF", (1, MOST)) | {"L": (1, MOST_LAYERS), "next_tokens": (0, MOST_LAYERS)}
LIMITS |= {"norms": (0, 8), "positions": (0, MOST)}
QK_NORMS = (None, "head", "all")


@dataclass(frozen=True, kw_only=True)
class Transformer(Result):
    """The shapes of a decoder-only Transformer, in the book's letters.

    D width, L layers, V vocabulary, N query heads, K key-value heads, H head width, F width of the dense MLP.
    With `latent`, every head has its own keys and values: K is N, and H is the width of a head's query.
    `windows` is repeated over the layers: None is full attention. `norms` counts the norms of a layer
    (without query and key norms), `norm_bias` says that each has a bias besides its scale. `biases` lists the
    matmuls that add a bias. `positions` is the number of learned positions, `sinks` gives each head a learned
    logit, `attention_gate` a gate as wide as its output. `next_tokens` layers predict one more token each
    (multi-token prediction), with an embedding and unembedding of their own if `next_vocabulary`; their
    parameters are `next_params`, which `params` leaves out. `vision_params` belong to a vision encoder and
    are left out too; `uncounted` lists what else a configuration has that is not counted, `assumed` what
    it does not say. Where layers differ
    by more than a window, `blocks` has every kind of sublayer and replaces the fields of a uniform layer, and
    `extra` has weights outside of the layers; the letters then describe the layers with full attention.
    ModelError where fields contradict each other.
    """

    name: str
    D: int
    L: int
    V: int
    N: int
    K: int
    H: int
    F: int
    gated: bool = True  # W_in has a second matrix beside it
    tied: bool = False  # unembedding = embedding, transposed
    experts: Experts | None = None
    latent: Latent | None = None
    linear: Linear | None = None
    windows: tuple[int | None, ...] = (None,)
    norms: int = 2  # of a layer; 1 where attention and MLP are parallel
    norm_bias: bool = False
    embedding_norm: bool = False
    final_norm: bool = True
    qk_norm: str | None = None
    biases: tuple[str, ...] = ()
    positions: int = 0  # learned ones; rotary positions have no weights
    sinks: bool = False
    attention_gate: bool = False
    blocks: tuple[Block, ...] = field(default=(), repr=False)
    extra: tuple[Weight, ...] = field(default=(), repr=False)
    state_dtype: str = "fp32"  # of recurrent states
    base_dtype: str = field(default="bf16", compare=False)  # of the weights that are not quantized
    quantization: Scheme | None = field(default=None, repr=False, compare=False)
    next_tokens: int = field(default=0, compare=False)
    next_vocabulary: bool = field(default=False, compare=False)
    next_blocks: tuple[Block, ...] = field(default=(), repr=False, compare=False)
    vision_params: int = field(default=0, compare=False)
    uncounted: tuple[str, ...] = field(default=(), repr=False, compare=False)
    assumed: tuple[str, ...] = field(default=(), repr=False, compare=False)
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ModelError("name", f"{printable(self.name)} is not a name", "write a text")
        wholes(self, LIMITS)
        qk = self.latent.qk if self.latent else self.H
        for broken, field_, what, instead in (  # in this order: the first that is broken is told
            (
                self.N % self.K,  # also where K is larger
                "K",
                f"{self.N} query heads cannot share {self.K} key-value heads evenly",
                "let K divide N",
            ),
            (
                self.latent and (self.N, qk) != (self.K, self.H),
                "latent",
                f"K = {self.K} and H = {self.H} contradict it",
                f"write K = {self.N} and H = {qk}",
            ),
            (
                not isinstance(self.windows, tuple) or not self.windows,
                "windows",
                "it is not a tuple with an entry",
                "write (None,) or (4096, None)",
            ),
            (
                self.qk_norm not in QK_NORMS,
                "qk_norm",
                f"{printable(self.qk_norm)} is unknown",
                "write 'head', 'all' or None",
            ),
        ):
            if broken:
                raise ModelError(field_, what, instead)
        for window in self.windows:
            if window is not None:
                whole("windows", window)
        for bias in self.biases:
            if bias not in BIASES:
                raise ModelError(
                    "biases", f"{printable(bias)} is unknown", f"choose from {', '.join(BIASES)}"
                )

    def weights(self) -> tuple[Weight, ...]:
        """Every weight of the model, part by part."""
        return self._weights

    def __hash__(self) -> int:
        """The hash of its name, as equal models have one; a search looks things up by model all the time."""
        return hash(self.name)

    @cached_property
    def sublayers(self) -> tuple[Block, ...]:
        """Every kind of sublayer, with the layers that have it, whether the layers are alike or differ."""
        return self.blocks or uniform_blocks(self)

    @cached_property
    def _weights(self) -> tuple[Weight, ...]:
        return weights_of(self)

    @cached_property
    def params(self) -> int:
        """The number of parameters, each counted once."""
        return sum(w.params for w in self.weights())  # a tied unembedding stores nothing

    @property
    def next_params(self) -> int:
        """The parameters of multi-token prediction: for each extra token a
        layer, a projection of two inputs, three norms.

        Source: DeepSeek-V3's report (arXiv 2412.19437), 2.2; published files of GLM-4.5 and Qwen3-Next.
        """
        if (self.blocks or self.assumed) and not self.next_blocks:
            return 0  # named among `uncounted`
        experts = self.experts and replace(self.experts, first_dense=0, every=1)
        one = replace(self, L=1, linear=None, experts=experts, tied=False, blocks=self.next_blocks, extra=())
        ends = 2 * self.D * self.V
        # without the ends and the final norm
        layer = one.params - one.by_part.get("positions", 0) - ends - self.D
        join = 2 * self.D * self.D + 3 * self.D  # [2D, D], and the norms of both inputs and of the output
        return self.next_tokens * (layer + join + ends * self.next_vocabulary)

    @property
    def active_params(self) -> int:
        """The parameters that a token uses: all but those of experts it is not routed to."""
        return sum(w.active_params for w in self.weights())  # k of E experts, and all else

    @property
    def by_part(self) -> dict[str, int]:
        """The parameters of every part that has any."""
        return _summed((w.part, w.params) for w in self.weights())

    @property
    def active_by_part(self) -> dict[str, int]:
        """The parameters of every part that a token uses."""
        return _summed((w.part, w.active_params) for w in self.weights())

    @property
    def G(self) -> int:
        """The number of query heads that share one key-value head."""
        return self.N // self.K

    @property
    def sparsity(self) -> float:
        """E/k: the experts of a layer over those that a token activates; 1 for a dense model."""
        return self.experts.E / self.experts.k if self.experts else 1.0

    @cached_property
    def moe_layers(self) -> int:
        """The number of layers with experts."""
        return sum(b.layers for b in self.sublayers if b.name == "experts")

    def expert_axis_error(self, **ways: object) -> str:
        """Why these degrees of expert parallelism shard nothing, where the model has no experts.

        '' otherwise.
        """
        asked = [
            f"{name}={ways[name]}"
            for name in ("ep", "expert_tp", "expert_domains")
            if ways.get(name) not in (None, 1)
        ]
        return (
            "" if self.experts or not asked else f"{self.name} has no experts for {', '.join(asked)}: write 1"
        )

    @cached_property
    def softmax_layers(self) -> int:
        """The number of layers with softmax attention: all, unless some are linear."""
        return sum(b.layers for b in self.sublayers if b.kinds)

    @property
    def cache_dtype(self) -> DType:
        """The type of the KV cache that the file names, or bf16."""
        named = self.quantization and self.quantization.kv
        return DTYPES[named] if named else BF16

    @property
    def layer_kinds(self) -> tuple[LayerKind, ...]:
        """The softmax layers, grouped by their window and by what they cache."""
        return kept.layer_kinds(self)

    @property
    def state_elements(self) -> int:
        """The elements of the recurrent states of one sequence, without those of short convolutions."""
        return kept.state_elements(self)

    @property
    def convolution_elements(self) -> int:
        """The elements that short convolutions keep of one sequence: all but one token of their length."""
        return kept.convolution_elements(self)

    @property
    def state_flops(self) -> int:
        """FLOPs of all recurrences for one token."""
        return kept.state_flops(self)

    @property
    def kv_elements_per_token(self) -> int:
        """The elements per token that all layers together cache (within every window)."""
        # 2 K H of each layer, or a latent vector; whole, as an entry may serve several tokens
        return sum(kind.layers * kind.kv_elements_per_token // kind.every for kind in self.layer_kinds)

    @property
    def not_counted(self) -> tuple[str, ...]:
        """What `params` leaves out: the parts in `uncounted`, and parameters of which the number is known."""
        extras = {"that predict a token more": self.next_params, "that see pictures": self.vision_params}
        return (*self.uncounted, *(f"{params:,} {what}" for what, params in extras.items() if params))

    def __str__(self) -> str:
        left = self.not_counted
        active = f", {self.active_params:,} active for one token" if self.experts else ""
        return (
            f"{self.name}: {self.params:,} parameters{active}; D={self.D} L={self.L} F={self.F} "
            f"N={self.N} K={self.K} H={self.H} V={self.V}"
            f"{'; not counted: ' * bool(left)}{', '.join(left)}"
            f"{'; assumed: ' * bool(self.assumed)}{'; '.join(self.assumed)}"
        )


def _summed(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part, params in pairs:
        total[part] += params
    return {part: params for part, params in total.items() if params}
