"""Costs of token mixers: FLOPs per prompt token, bytes that a decode step reads, bytes cached.

Attention caches entries, one for each token or for every few, and may attend to all, to the last ones or to
some that an indexer selects. A recurrence keeps a state. A layer is a sum of such parts; `MixedLayers` are
those of a model. All figures are of one sequence. Chapter: Linear attention, sparse attention and diffusion.
"""

from dataclasses import dataclass
from math import ceil

from scalingbook_lib.models import Transformer
from scalingbook_lib.units import BF16, FP32, DType, Result, require_min, si

type Product = tuple[int, int, int]  # rows, contracted, columns


@dataclass(frozen=True, kw_only=True, slots=True)
class Entries(Result):
    """Attention over cached entries of `nbytes`, one for `every` tokens; a pair costs `pair_flops`.

    `window`: only entries of the last tokens are kept. `chosen`: an indexer selects so many entries to attend
    to; it scores every entry for `index_flops` each and caches `index_bytes` more of each.
    """

    pair_flops: float
    nbytes: float
    every: int = 1
    window: int | None = None
    chosen: int | None = None
    index_flops: float = 0.0
    index_bytes: float = 0.0

    def entries(self, S: float) -> float:
        """The number of entries kept of S tokens."""
        return min(S, self.window or S) / self.every

    def attended(self, S: float) -> float:
        """The number of entries that one query attends to."""
        return min(self.entries(S), self.chosen or S)

    def flops(self, S: float) -> float:
        """FLOPs of a token at position S: the indexer's scores, then QKᵀ and PV."""
        return self.entries(S) * self.index_flops + self.attended(S) * self.pair_flops

    def read_bytes(self, S: float) -> float:
        """The bytes that a decode step reads: the index, and the entries attended to."""
        return self.entries(S) * self.index_bytes + self.attended(S) * self.nbytes

    def cached_bytes(self, S: float) -> float:
        """The bytes cached for a sequence of S tokens."""
        return self.entries(S) * (self.nbytes + self.index_bytes)

    def __str__(self) -> str:
        window = f" of the last {self.window:,} tokens" if self.window else ""
        chosen = f", {self.chosen:,} chosen" if self.chosen else ""
        each = "a token" if self.every == 1 else f"for {self.every} tokens"
        return f"entries of {si(self.nbytes + self.index_bytes, 'B')} {each}{window}{chosen}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentState(Result):
    """A recurrence with a matrix [key, value] per head as its state, whatever the length of the sequence.

    With `erases`, the value found by the key is subtracted before the new one is written (delta rule). Decays
    are not matmuls and cost nothing here; the cache of a short convolution is left out.
    """

    heads: int
    key: int
    value: int
    erases: bool = False
    dtype: DType = FP32

    def products(self, chunk: int) -> tuple[Product, ...]:
        """One head's matmuls (rows, contracted, columns) in a chunk of tokens; triangles are not halved."""
        require_min(1, chunk=chunk)
        c, k, v = chunk, self.key, self.value
        plain = ((c, k, c), (c, c, v), (c, k, v), (k, c, v))  # scores, values; read the state, write it
        return (*plain, (c, k, c), (c, c, v), (c, k, v)) if self.erases else plain

    def chunk_flops(self, chunk: int, side: int = 1) -> float:
        """FLOPs per token of a prompt processed in chunks of c tokens,
        with matrices padded to the unit's `side`.

        4kv + 2c(k + v), or 6kv + 4c(k + v) where it erases. Inverting a triangle, c²/3, is left out.
        """
        units = sum(2 * m * ceil(k / side) * ceil(n / side) for m, k, n in self.products(chunk))
        return self.heads * units * side**2 / chunk

    @property
    def nbytes(self) -> float:
        """The bytes of the state."""
        return self.heads * self.key * self.value * self.dtype.bytes

    def flops(self, S: float = 1) -> float:
        """FLOPs of one token alone: read with the query, write, and read with the key where it erases."""
        return (6 if self.erases else 4) * self.heads * self.key * self.value

    def read_bytes(self, S: float = 1) -> float:
        """The bytes that a decode step moves: the state, read and written."""
        return 2 * self.nbytes

    def cached_bytes(self, S: float = 1) -> float:
        """The bytes cached for a sequence of any length: the state."""
        return self.nbytes

    @property
    def intensity(self) -> float:
        """FLOPs per byte of one decode step at any batch, as every sequence has a state of its own."""
        return self.flops() / self.read_bytes()

    def handoff_bytes(self, dtype: DType = BF16) -> float:
        """The bytes that a chip passes on for its part of a sequence: a
        state, and how earlier states pass through it.

        A decay is one number (left out); a part that erases adds a matrix [key, key] per head.
        """
        return self.heads * self.key * (self.value + self.key * self.erases) * dtype.bytes

    def __str__(self) -> str:
        return f"a state of {self.heads} × {self.key} × {self.value}, {si(self.nbytes, 'B')}"


Part = Entries | RecurrentState
Mixer = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class MixedLayers(Result):
    """The token-mixing layers of a model: how many of each kind."""

    name: str
    layers: tuple[tuple[int, Mixer], ...]

    @property
    def L(self) -> int:
        """The number of layers."""
        return sum(n for n, _ in self.layers)

    def flops(self, S: float) -> float:
        """FLOPs of a token at position S in all layers, without the weight matmuls."""
        return self._sum("flops", S)

    def read_bytes(self, S: float) -> float:
        """The bytes that one sequence adds to a decode step: caches read, states read and written."""
        return self._sum("read_bytes", S)

    def cached_bytes(self, S: float) -> float:
        """The bytes cached for a sequence of S tokens."""
        return self._sum("cached_bytes", S)

    def _sum(self, what: str, S: float) -> float:
        return sum(n * getattr(part, what)(S) for n, mixer in self.layers for part in mixer)

    def __str__(self) -> str:
        kinds = (f"{n} × {' + '.join(map(str, mixer))}" for n, mixer in self.layers)
        return f"{self.name}: {', '.join(kinds)}"


def stack(model: Transformer, dtype: DType = BF16, *, chosen: int | None = None) -> MixedLayers:
    """The token-mixing layers of a model, in MLA's absorbed form, with recurrent states in fp32.

    `chosen`: how many positions the indexer selects, in a model that has one (`Latent.index_heads`).
    """
    layers: list[tuple[int, Mixer]] = [
        (kind.layers, (Entries(
            pair_flops=kind.pair_flops(absorbed=True),
            nbytes=(kind.kv_elements_per_token - kind.index) * dtype.bytes,
            every=kind.every,
            window=kind.window,
            chosen=(chosen or kind.chosen) if kind.index else None,
            index_flops=kind.index_flops,
            index_bytes=kind.index * dtype.bytes,
        ),))
        for kind in model.layer_kinds
    ]  # fmt: skip
    if state := model.linear:
        kept = RecurrentState(heads=state.v_heads, key=state.key, value=state.value, erases=True)
        layers.append((model.L - model.softmax_layers, (kept,)))
    layers += [
        (b.layers, (RecurrentState(heads=1, key=1, value=b.state, erases=b.state_flops > 4 * b.state),))
        for b in model.blocks
        if b.state
    ]
    return MixedLayers(model.name, tuple(layers))


def bidirectional_flops(params: float, tokens: float, D: int, L: int) -> tuple[float, float]:
    """FLOPs of a forward pass with full attention: weights 2P·tokens, attention 4·tokens²·D·L.

    For encoders, embedding models, and diffusion of images and video.
    """
    require_min(0, params=params, tokens=tokens)
    return 2 * params * tokens, 4 * tokens**2 * D * L


def video_tokens(frames: int, high: int, wide: int, *, spatial: int = 16, temporal: int = 4) -> int:
    """Tokens of a video: a first frame, then one step per `temporal`
    frames, in patches of `spatial` pixels.
    """
    return (1 + (frames - 1) // temporal) * (high // spatial) * (wide // spatial)
