"""What does a layer cost that mixes tokens? FLOPs of a prompt token, bytes that a step reads, bytes kept.

Attention keeps entries, one for each token or for every few, and may attend to all, to the last ones or to
some that an index chooses. A recurrence keeps a state. A layer is a sum of such parts, `MixedLayers` are a
model's. All figures are of one sequence. Chapter: Other architectures.
"""

from dataclasses import dataclass
from functools import partial
from math import ceil

from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic.layers import pair_flops
from scalingbook_lib.units import BF16, FP32, DType, Result, require_min, si

type Product = tuple[int, int, int]  # rows, contracted, columns


@dataclass(frozen=True, kw_only=True, slots=True)
class Entries(Result):
    """Attention over entries: each is `nbytes` long and stands for `every` tokens; a pair costs `pair_flops`.

    `window`: only entries of the last tokens are kept. `chosen`: so many entries are attended to, which an
    index finds; it scores every entry for `index_flops` each, and keeps `index_bytes` more of each.
    """

    pair_flops: float
    nbytes: float
    every: int = 1
    window: int | None = None
    chosen: int | None = None
    index_flops: float = 0.0
    index_bytes: float = 0.0

    def entries(self, S: float) -> float:
        """Those kept of S tokens."""
        return min(S, self.window or S) / self.every

    def attended(self, S: float) -> float:
        """Those that one query attends to."""
        return min(self.entries(S), self.chosen or S)

    def flops(self, S: float) -> float:
        """Of a token at position S: the index's scores, then scores and weighted values."""
        return self.entries(S) * self.index_flops + self.attended(S) * self.pair_flops

    def read_bytes(self, S: float) -> float:
        """What a step of decoding reads: the index, and the entries attended to."""
        return self.entries(S) * self.index_bytes + self.attended(S) * self.nbytes

    def kept_bytes(self, S: float) -> float:
        """What a sequence of S tokens keeps."""
        return self.entries(S) * (self.nbytes + self.index_bytes)

    def __str__(self) -> str:
        window = f" of the last {self.window:,} tokens" if self.window else ""
        chosen = f", {self.chosen:,} chosen" if self.chosen else ""
        each = "a token" if self.every == 1 else f"for {self.every} tokens"
        return f"entries of {si(self.nbytes + self.index_bytes, 'B')} {each}{window}{chosen}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentState(Result):
    """A recurrence that keeps a matrix [key, value] for each of so many heads, whatever came before.

    With `erases`, what the key finds is taken out before the value is written (delta rule). Decays cost no
    product; the last tokens of a short convolution are left out.
    """

    heads: int
    key: int
    value: int
    erases: bool = False
    dtype: DType = FP32

    def products(self, chunk: int) -> tuple[Product, ...]:
        """One head's products in a chunk of so many tokens, in full: triangles are not halved."""
        require_min(1, chunk=chunk)
        c, k, v = chunk, self.key, self.value
        plain = ((c, k, c), (c, c, v), (c, k, v), (k, c, v))  # scores, values; read the state, write it
        return (*plain, (c, k, c), (c, c, v), (c, k, v)) if self.erases else plain

    def chunk_flops(self, chunk: int, side: int = 1) -> float:
        """Of one token of a prompt that is read in chunks of c; matrices padded to a unit's `side`.

        4kv + 2c(k + v), or 6kv + 4c(k + v) where it erases. Inverting a triangle, c²/3, is left out.
        """
        units = sum(2 * m * ceil(k / side) * ceil(n / side) for m, k, n in self.products(chunk))
        return self.heads * units * side**2 / chunk

    @property
    def nbytes(self) -> float:
        """All that is kept."""
        return self.heads * self.key * self.value * self.dtype.bytes

    def flops(self, S: float = 1) -> float:
        """Of a token that comes alone: read with the query, write; and read with the key where it erases."""
        return (6 if self.erases else 4) * self.heads * self.key * self.value

    def read_bytes(self, S: float = 1) -> float:
        """What a step moves: the state, in and out."""
        return 2 * self.nbytes

    def kept_bytes(self, S: float = 1) -> float:
        """What a sequence keeps, however long."""
        return self.nbytes

    @property
    def intensity(self) -> float:
        """FLOPs a byte of one step: of any batch, as every sequence has a state of its own."""
        return self.flops() / self.read_bytes()

    def handed_bytes(self, dtype: DType = BF16) -> float:
        """What a chip tells the others of its part of a sequence: a state, and how earlier ones pass it.

        A decay is one number (left out); a part that erases is a matrix [key, key] a head.
        """
        return self.heads * self.key * (self.value + self.key * self.erases) * dtype.bytes

    def __str__(self) -> str:
        return f"a state of {self.heads} × {self.key} × {self.value}, {si(self.nbytes, 'B')}"


Part = Entries | RecurrentState
Mixer = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class MixedLayers(Result):
    """Layers that mix tokens: how many of each kind."""

    name: str
    layers: tuple[tuple[int, Mixer], ...]

    @property
    def L(self) -> int:
        """All layers."""
        return sum(n for n, _ in self.layers)

    def flops(self, S: float) -> float:
        """Of a token at position S, in all layers: what its products with weights leave out."""
        return self._sum("flops", S)

    def read_bytes(self, S: float) -> float:
        """What one sequence adds to a step of decoding: caches read, states read and written."""
        return self._sum("read_bytes", S)

    def kept_bytes(self, S: float) -> float:
        """What a sequence of S tokens keeps."""
        return self._sum("kept_bytes", S)

    def _sum(self, what: str, S: float) -> float:
        return sum(n * getattr(part, what)(S) for n, mixer in self.layers for part in mixer)

    def __str__(self) -> str:
        kinds = (f"{n} × {' + '.join(map(str, mixer))}" for n, mixer in self.layers)
        return f"{self.name}: {', '.join(kinds)}"


def stack(model: Transformer, dtype: DType = BF16, *, chosen: int | None = None) -> MixedLayers:
    """The layers of a model, queries meeting latent vectors themselves; its state in fp32.

    `chosen`: how many positions an index finds, in a model that has one (`Latent.index_heads`).
    """
    a, state = model.latent, model.linear
    key = a.index_width if a else 0
    one = partial(Entries, pair_flops=pair_flops(model, absorbed=True), index_bytes=key * dtype.bytes)
    layers: list[tuple[int, Mixer]] = [
        (kind.layers, (one(
            nbytes=(kind.kv_elements_per_token - key) * dtype.bytes,
            window=kind.window,
            chosen=chosen if key else None,
            index_flops=2 * a.index_heads * key if a else 0,
        ),))
        for kind in model.layer_kinds
    ]  # fmt: skip
    if state:
        kept = RecurrentState(heads=state.v_heads, key=state.key, value=state.value, erases=True)
        layers.append((model.L - model.softmax_layers, (kept,)))
    return MixedLayers(model.name, tuple(layers))


def bidirectional_flops(params: float, tokens: float, D: int, L: int) -> tuple[float, float]:
    """A forward pass over tokens that all see one another: weights 2P·tokens, attention 4·tokens²·D·L.

    Encoders, embedding models, diffusion of images and video.
    """
    require_min(0, params=params, tokens=tokens)
    return 2 * params * tokens, 4 * tokens**2 * D * L


def video_tokens(frames: int, high: int, wide: int, *, spatial: int = 16, temporal: int = 4) -> int:
    """Tokens of a video: a first frame, then one step for `temporal` frames, patches of `spatial` pixels."""
    return (1 + (frames - 1) // temporal) * (high // spatial) * (wide // spatial)
