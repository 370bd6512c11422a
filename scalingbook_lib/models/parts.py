"""The weights of a layer, and what may replace its plain attention and MLP.

A `Weight` has a part, a shape and a number of copies; experts (MoE), latent attention (MLA) and linear
attention are parts of their own, and `ModelError` reports what cannot be. Chapter: Transformers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from scalingbook_lib.units import Result

PARTS = (
    "embedding",
    "positions",
    "attention",
    "linear attention",
    "mlp",
    "experts",
    "shared experts",
    "router",
    "norms",
    "biases",
    "unembedding",
)


@dataclass(frozen=True, slots=True)
class Weight(Result):
    """All weights of one name and shape: `copies` are stored, of which a token uses `active_copies`.

    `matmul`: a token's vector is multiplied by it. An embedding is looked up, and a norm or a bias is added
    or scales.
    `tied`: it is the embedding matrix reused, so it stores nothing but is multiplied by.
    """

    part: str
    name: str
    shape: tuple[int, ...]
    copies: int
    active_copies: int
    matmul: bool = False
    tied: bool = False

    @property
    def size(self) -> int:
        """The number of elements of one copy."""
        return prod(self.shape)

    @property
    def params(self) -> int:
        """The parameters stored: the elements of all copies, 0 if tied."""
        return self.size * self.copies  # what a file stores

    @property
    def active_params(self) -> int:
        """The parameters that a token uses."""
        return self.size * self.active_copies

    @property
    def matmuls(self) -> int:
        """The number of copies that one token is multiplied by in a forward pass."""
        # a tied matrix is stored as the embedding and multiplied by as the unembedding
        return (1 if self.tied else self.active_copies) if self.matmul else 0

    @property
    def flops_per_token(self) -> int:
        """Forward FLOPs per token: a multiply and an add for each element of its matmuls."""
        return 2 * self.size * self.matmuls  # of one token, forward

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        stored = "the embedding again" if self.tied else f"{self.params:,} parameters"
        return f"{self.name}[{shape}] × {self.copies:,} ({self.part}): {stored}"


@dataclass(frozen=True, kw_only=True)
class Experts:
    """E routed experts of width F, of which each token activates k, and `shared` ones active for every token.

    The first `first_dense` layers keep a dense MLP; of the layers, every `every`-th has experts, the last of
    each group. `shared_F` is the width of one shared expert (F where it is None); `shared_gate` is a matmul
    of width 1 that scales them (Qwen).
    """

    E: int  # routed
    k: int
    F: int  # of one of them
    shared: int = 0
    shared_F: int | None = None
    shared_gate: bool = False
    first_dense: int = 0
    every: int = 1

    def __post_init__(self) -> None:
        layers = {"first_dense": (0, MOST_LAYERS), "every": (1, MOST_LAYERS)}
        wholes(self, dict.fromkeys("EkF", (1, MOST)) | {"shared": (0, MOST)} | layers, "experts.")
        if self.shared_F is not None:
            whole("experts.shared_F", self.shared_F)
        if self.k > self.E:
            raise ModelError("experts.k", f"a token cannot choose {self.k} of {self.E} experts", "lower k")

    @property
    def shared_width(self) -> int:
        """The width of all shared experts together."""
        # as one MLP of that width: their outputs are added
        return self.shared * (self.F if self.shared_F is None else self.shared_F)

    def layers(self, L: int) -> int:
        """The number of layers, of L, that have experts."""
        return sum(map(self.has, range(L)))

    def has(self, layer: int) -> bool:
        """Whether the layer of this index, from 0, has experts."""
        return layer >= self.first_dense and (layer + 1) % self.every == 0  # the last of each group


@dataclass(frozen=True, kw_only=True)
class Latent:
    """Multi-head latent attention (MLA): queries through rank
    `q_rank`, keys and values through rank `kv_rank`.

    Where `q_rank` is None, queries are projected directly. A head's query and key have `nope` elements
    without and `rope` elements with a rotary position; the rotary part of the key is shared by all heads. A
    head's value has `v` elements. The cache keeps kv_rank + rope per token.

    A lightning indexer of `index_heads` heads of `index_width`, with one key for all heads, selects the
    positions to which a token attends (DeepSeek-V3.2); the cache keeps that key too. Source: that model's
    published inference code.
    """

    q_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    v: int
    index_heads: int = 0
    index_width: int = 0
    index_topk: int = 0  # the number of positions that it selects; 0 where that is not known

    def __post_init__(self) -> None:
        wholes(self, dict.fromkeys(("kv_rank", "nope", "v"), (1, MOST)), "latent.")
        wholes(
            self, dict.fromkeys(("rope", "index_heads", "index_width", "index_topk"), (0, MOST)), "latent."
        )
        if self.q_rank is not None:
            whole("latent.q_rank", self.q_rank)
        if bool(self.index_heads) != bool(self.index_width):
            raise ModelError("latent.index_heads", "an index has heads and their width", "write both")

    @property
    def qk(self) -> int:
        """The number of elements of one head's query."""
        return self.nope + self.rope  # only `rope` of them turn with the position

    @property
    def cached(self) -> int:
        """The elements per token that one layer caches."""
        # the vector that keys and values are made of, and the key's rotary part, once for all heads
        # (deepseek2024v2)
        return self.kv_rank + self.rope


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Linear attention (gated DeltaNet) in all layers but every `every`-th, which keeps softmax attention.

    A state of `v_heads` matrices [key, value] replaces the KV cache; `conv` is the length of the short
    convolution.
    """

    k_heads: int
    v_heads: int
    key: int
    value: int
    conv: int  # tokens
    every: int  # one softmax layer in so many

    def __post_init__(self) -> None:
        sizes = dict.fromkeys(("k_heads", "v_heads", "key", "value", "conv"), (1, MOST))
        wholes(self, sizes | {"every": (1, MOST_LAYERS)}, "linear.")
        if self.v_heads % self.k_heads:
            raise ModelError(
                "linear.v_heads",
                f"{self.v_heads} is not a multiple of {self.k_heads} key heads",
                "make it one",
            )

    def has_softmax(self, layer: int) -> bool:
        """Whether the layer of this index, from 0, keeps softmax attention."""
        return (layer + 1) % self.every == 0  # the last layer of each group


MOST = 10**9  # no dimension of a model is larger
MOST_LAYERS = 1000


type Limits = Mapping[str, tuple[int, int]]  # the least and the most, by field


class ModelError(ValueError):
    """A model that cannot exist; `field` names the field that is missing or contradicts another one."""

    def __init__(self, field: str, broke: str, write: str) -> None:
        super().__init__(field, broke, write)
        self.field, self.broke, self.write = field, broke, write

    def __str__(self) -> str:
        return f"{self.field}: {self.broke}; {self.write}"


def printable(value: object) -> str:
    """The value on one line, printable and shortened, for use in a message."""
    if isinstance(value, int) and abs(value) > 10**30:
        return "a number of more than 30 digits"
    if isinstance(value, dict | list | tuple | set):
        return f"a {type(value).__name__}"
    text = ascii(value)
    return text if len(text) <= 60 else text[:59] + "…"


def whole(field: str, value: object, *, least: int = 1, most: int = MOST) -> int:
    """The value as an int from `least` to `most`; ModelError where it is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ModelError(
            field, f"{printable(value)} is not a whole number", "write one without quotes, as in 4096"
        )
    if not least <= value <= most:
        raise ModelError(
            field,
            f"{printable(value)} is not between {least} and {most:,}",
            "write a size that a model can have",
        )
    return value


def wholes(of: object, limits: Limits, part: str = "") -> None:
    """Check that each field of an object is a whole number within its limits; ModelError where one is not."""
    for name, (least, most) in limits.items():
        whole(f"{part}{name}", getattr(of, name), least=least, most=most)
