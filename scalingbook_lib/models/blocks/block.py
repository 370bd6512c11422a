"""A kind of sublayer: its weights, the entries that it caches and the state that it keeps."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scalingbook_lib.models.parts import Weight

type Shape = tuple[int, ...]
type Shapes = Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class LayerKind:
    """Layers with the same attention: their number, window (None: full) and cached elements per entry.

    An entry is cached for `every` tokens. Each of `heads` query heads meets an entry with `query` elements
    and weights `value` elements of it; `absorbed` has both widths in the form in which MLA decodes. An
    indexer that scores every entry for `index_flops` selects `chosen` of them; `index` of the cached elements
    are its keys.
    """

    layers: int
    window: int | None
    kv_elements_per_token: int
    every: int = 1
    heads: int = 0
    kv_heads: int = 1
    query: int = 0
    value: int = 0
    absorbed: tuple[int, int] | None = None
    chosen: int | None = None
    index: int = 0
    index_flops: int = 0

    @property
    def reach(self) -> int | None:
        """The number of tokens back to which a query attends: its window, or those of the chosen entries."""
        tokens = [self.window, self.chosen and self.chosen * self.every]
        return min((n for n in tokens if n), default=None)

    def widths(self, absorbed: bool) -> tuple[int, int]:
        """The elements of a query and of a value that one pair multiplies, for each head."""
        return (self.absorbed if absorbed else None) or (self.query, self.value)

    def pair_flops(self, *, absorbed: bool = False) -> int:
        """FLOPs of one pair of a query and an entry in one layer, all heads: QKᵀ and PV."""
        return 2 * self.heads * sum(self.widths(absorbed))

    def entries(self, S: int) -> int:
        """The number of entries kept of S tokens."""
        return min(S, self.window or S) // self.every

    def __str__(self) -> str:
        each = "a token" if self.every == 1 else f"for {self.every} tokens"
        window = "" if self.window is None else f" in a window of {self.window:,}"
        return f"{self.layers} layers, {self.kv_elements_per_token:,} elements {each}{window}"


@dataclass(frozen=True, slots=True)
class Block:
    """A kind of sublayer, and how many layers have it.

    `weights` are those of one layer. `state` and `convolution` count the elements that a sequence keeps in
    one layer whatever its length; `state_flops` is the work of the recurrence for a token. A `parallel` MLP
    reads the same input as the token mixer of its layer.
    """

    name: str
    weights: tuple[Weight, ...]
    at: tuple[int, ...] = (0,)  # the layers that have it
    kinds: tuple[LayerKind, ...] = ()  # of one layer
    state: int = 0
    convolution: int = 0
    state_flops: int = 0
    parallel: bool = False

    @property
    def layers(self) -> int:
        """The number of layers that have it."""
        return len(self.at)


def gathered(blocks: Iterable[tuple[int, Block]]) -> tuple[Block, ...]:
    """Equal blocks as one, with the layers that have it."""
    at = defaultdict[Block, list[int]](list)
    for layer, block in blocks:
        at[replace(block, at=())].append(layer)
    return tuple(replace(block, at=tuple(layers)) for block, layers in at.items())


def weights_of_blocks(blocks: Iterable[Block]) -> tuple[Weight, ...]:
    """The weights of all layers; those of one name and shape are one entry."""
    copies, active = Counter[Weight](), Counter[Weight]()
    for block in blocks:
        for w in block.weights:
            one = replace(w, copies=1, active_copies=1)
            copies[one] += w.copies * block.layers
            active[one] += w.active_copies * block.layers
    return tuple(replace(w, copies=n, active_copies=active[w]) for w, n in copies.items())


def products(part: str, shapes: Shapes, copies: int = 1, active: int | None = None) -> list[Weight]:
    """Matrices of one layer that a token is multiplied by; it uses all copies, or `active` of them."""
    used = copies if active is None else active
    return [Weight(part, name, shape, copies, used, matmul=True) for name, shape in shapes.items()]


def vectors(part: str, shapes: Shapes) -> list[Weight]:
    """Weights of one layer that are no matmul: norms, biases, decay rates."""
    return [Weight(part, name, shape, 1, 1) for name, shape in shapes.items()]
