"""What does one token cost, and what does a layer hold? A model's constants, counted once for all plans.

FLOPs are those of `arithmetic.flops`; what is kept and done again is in `kept`. Chapter: Training.
"""

from dataclasses import dataclass
from functools import lru_cache

from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.training import remat as kept
from scalingbook_lib.units import DType

CLASSES = ("matmul", "attention", "experts", "head")
_WHOLE = ("norms", "router", "positions")  # weights that tensor parallelism copies


@dataclass(frozen=True, slots=True)
class Work:
    """Per token where not said otherwise, all layers together, undivided by any parallelism.

    `forward` and `again` (what the backward pass does a second time) are FLOPs by class; `kept_wide` bytes
    are as wide as the residual stream, `kept_split` ones are split by tensor parallelism; `working` is what
    one layer holds while it is done again. `split`, `copied` and `expert` are the parameters of all layers
    that tensor parallelism splits, copies, and those of routed experts; `pointwise_*` are bytes read and
    written.
    """

    model: Transformer
    T: int
    forward: tuple[float, float, float, float]
    again: tuple[float, float, float, float]
    kept_wide: float
    kept_split: float
    working_wide: float
    working_split: float
    split: int
    copied: int
    expert: int
    embedding: int
    head: int
    pointwise_wide: float
    pointwise_split: float
    pairs: float  # input gathered and output scattered, by tensor parallelism: how often in all layers
    expert_pairs: float
    kv: float  # elements of keys and values
    heads: float  # elements of queries, keys, values and outputs
    host_wide: float  # kept bytes that wait in the host's memory
    host_split: float
    operands_wide: float  # elements that the layers' products read and write, forward
    operands_split: float

    @property
    def useful(self) -> float:
        """Forward and backward, nothing twice: three times the forward pass."""
        return 3 * sum(self.forward)

    @property
    def hardware(self) -> float:
        """With what is done again."""
        return self.useful + sum(self.again)


@lru_cache(maxsize=256)
def work(model: Transformer, T: int, remat: str, dtype: DType, causal: bool) -> Work:
    """The constants of a model under one policy of rematerialization, `dtype` that of the activations."""
    wide, split = (0.0, 0.0) if remat in ("none", "all") else kept.fused(model, dtype.bytes)
    return Work(
        model, T, _forward(model, T, causal), kept.again(model, T, remat, causal),
        *kept.kept(model, T, remat, dtype), wide / model.L, split / model.L, *_parameters(model),
        *_pointwise(model, dtype.bytes), *_pairs(model), _keys_and_values(model), _heads(model),
        *kept.hosted(model, remat, dtype), *_operands(model),
    )  # fmt: skip


def _forward(m: Transformer, T: int, causal: bool) -> tuple[float, float, float, float]:
    counted = arithmetic.flops(m, 1, T, causal=causal)
    experts, head, attention = counted.get("experts"), counted.get("unembedding"), counted.attention
    return (counted.total - experts - head - attention) / T, attention / T, experts / T, head / T


def _parameters(m: Transformer) -> tuple[int, int, int, int, int]:
    part = m.by_part
    outer = {"embedding", "unembedding", "experts", "positions"}
    copied = sum(n for name, n in part.items() if name in _WHOLE and name not in outer)
    split = sum(n for name, n in part.items() if name not in outer) - copied
    embedding = part.get("embedding", 0) + part.get("positions", 0)
    return split, copied, part.get("experts", 0), embedding, part.get("unembedding", 0)


def _pointwise(m: Transformer, size: float) -> tuple[float, float]:
    wide, split = arithmetic.pointwise(m)
    return size * wide, size * split


def _operands(m: Transformer) -> tuple[float, float]:
    """Every product has D elements on one side; tensor parallelism splits the other."""
    products = [w for w in m.weights() if w.matmul and w.part != "unembedding"]
    wide = sum(w.active_copies * m.D for w in products)
    return wide, sum(w.active_copies * w.size / m.D for w in products)


def _pairs(m: Transformer) -> tuple[float, float]:
    """Attention and MLP are a pair each (one together in a parallel block); experts are counted apart."""
    dense = (m.L - m.moe_layers) * (2 if m.norms > 1 else 1)
    shared = bool(m.experts and m.experts.shared_width)
    return dense + m.moe_layers * (2 if shared else 1), float(m.moe_layers)


def _keys_and_values(m: Transformer) -> float:
    """Expanded, as attention uses them."""
    return m.softmax_layers * m.K * (m.H + (m.latent.v if m.latent else m.H))


def _heads(m: Transformer) -> float:
    return _keys_and_values(m) + m.softmax_layers * m.N * (m.H + (m.latent.v if m.latent else m.H))
