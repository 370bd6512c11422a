"""How is one copy of a model spread over chips to serve it?

Chapter: Inference.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from scalingbook_lib.models import Transformer
from scalingbook_lib.units import BF16, DType, Result

WAYS = {  # the degrees of parallelism by field, as they are printed
    "tp": "TP",
    "rows": "rows",
    "cp": "CP",
    "pp": "PP",
    "ep": "EP",
    "attention_dp": "attention DP",
    "kv_batch": "KV batch",
    "kv_sequence": "KV sequence",
}


class LayoutError(ValueError):
    """An impossible layout; the message says which rule it breaks and what to write instead."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout(Result):
    """The degrees of parallelism and the data types with which a model is served.

    One replica of the model takes tp · cp · pp chips, and a machine holds machine.chips // chips replicas.

    - `tp`: tensor parallelism. The tp chips of a stage shard every matrix, and the weights stay in place. The
      width F is sharded into tp / rows columns, and D into `rows` rows: rows=1 is 1-D, and more is 2-D
      weight-stationary sharding.
    - `pp`: pipeline stages, which divide the layers.
    - `ep`: expert parallelism. The experts are distributed over ep of the tp ways, and tp / ep chips share
      each expert. In each layer, these chips also hold `redundant_experts` copies of the busiest experts
      (EPLB), which balances their load.
    - `attention_dp`: data-parallel attention. The tp chips form so many groups. Each group holds all weights
      of the attention and serves batch / attention_dp sequences. With ep > 1, each group also holds the dense
      MLPs and the shared experts.
    - `kv_batch`, `kv_sequence`: the ways in which a group shards its cache over sequences and over tokens.
      The remaining ways are over heads. If these are more than the KV heads, heads are replicated.
    - `cp`: context parallelism, for prompts that take too long on one group of tp chips. Each of cp groups
      holds all weights of a stage. The groups divide the tokens of a prompt, whose keys and values pass
      around a ring, and the sequences of a decode step.

    The data types are those of the stored `weights`, of the `kv` cache, of matmuls with weights (`compute`),
    and of activations (`activations`), which includes attention and everything that is sent. `experts` and
    `outer` (embedding and unembedding) are types of their own for these weights; whatever is not quantized
    then computes in the type of the activations.
    """

    tp: int = 1  # Y
    rows: int = 1  # X of two dimensions
    cp: int = 1
    pp: int = 1
    ep: int = 1
    redundant_experts: int = 0
    attention_dp: int = 1
    kv_batch: int = 1
    kv_sequence: int = 1
    weights: DType = BF16
    kv: DType = BF16  # an element of the cache
    compute: DType = BF16
    activations: DType = BF16
    experts: DType | None = None  # None: as weights
    experts_compute: DType | None = None  # None: as compute
    outer: DType | None = None  # None: as weights
    dispatch: DType | None = None  # tokens on their way to experts; None: as activations

    def __post_init__(self) -> None:
        for name in WAYS:
            if getattr(self, name) < 1:
                raise LayoutError(f"{name}={getattr(self, name)}: write a whole number of at least 1")
        for name in ("rows", "ep", "attention_dp"):
            if self.tp % getattr(self, name):
                raise LayoutError(
                    f"{name}={getattr(self, name)} does not divide tp={self.tp}: write a divisor"
                )
        if self.group % (self.kv_batch * self.kv_sequence):
            raise LayoutError(
                f"kv_batch · kv_sequence = {self.kv_batch * self.kv_sequence} does not divide the "
                f"{self.group} chips that share a cache: write a divisor"
            )
        if self.rows > 1 and (self.attention_dp > 1 or self.ep > 1):
            raise LayoutError(
                f"rows={self.rows} with attention_dp={self.attention_dp} and ep={self.ep}: "
                "two-dimensional sharding needs one group and no expert parallelism; write rows=1"
            )

    @property
    def chips(self) -> int:
        """The chips of one replica."""
        return self.tp * self.cp * self.pp  # ep and attention_dp share out these chips once more

    @property
    def group(self) -> int:
        """The number of chips that shard the attention's weights and one KV cache."""
        return self.tp // self.attention_dp

    @property
    def columns(self) -> int:
        """The number of ways in which the attention's weights are sharded over heads."""
        return self.group // self.rows

    @property
    def kv_heads(self) -> int:
        """The number of ways in which a group's KV cache is sharded over heads."""
        return self.group // (self.kv_batch * self.kv_sequence)

    @property
    def wide(self) -> bool:
        """Whether dense MLPs are sharded over all tp chips instead of over the chips of a group."""
        # With expert parallelism, each group has its own dense MLP: its tokens leave it only for experts.
        return self.attention_dp == 1 or self.ep == 1

    def check(self, model: Transformer) -> None:
        """Raise a LayoutError if the sizes of the model do not allow this layout."""
        for why in self._refusals(model):  # a search asks this of very many: no text before it is needed
            raise LayoutError(why)

    def _refusals(self, model: Transformer) -> Iterator[str]:
        if self.ep > 1 and (lacks := model.expert_axis_error(ep=self.ep)):
            yield lacks
        if self.pp > model.L:
            yield f"{model.L} layers are fewer than pp={self.pp} stages: lower pp"
        more = self.redundant_experts
        if model.experts and ((E := model.experts.E) + more) % self.ep:
            held = f"{E} + {more}" if more else f"{E}"
            yield f"{held} experts do not divide over ep={self.ep}: write a divisor of their number"
        if more < 0 or (more and self.ep == 1):
            yield (
                f"redundant_experts={more} with ep={self.ep}: copies of experts balance the chips of an "
                "expert-parallel group; write 0, or ep above 1"
            )
        if self.rows > 1 and (model.experts or model.latent or model.linear or model.blocks):
            yield (
                f"rows={self.rows}: two dimensions are counted for dense layers and plain attention alone; "
                "write rows=1"
            )
        if self.cp > 1 and model.state_elements:
            # its state is a recurrence over tokens: no ring of keys and values can make up for that
            yield f"cp={self.cp}: linear attention passes one token after the other; write cp=1"
        if self.columns > model.N:
            yield (
                f"{model.N} heads are fewer than the {self.columns} chips that split them: lower tp, or "
                "raise attention_dp or rows"
            )

    def stored(self, part: str) -> DType:
        """The type in which the weights of a part are stored."""
        # both tables are one type: a tied model has one matrix for them
        own = {"experts": self.experts, "embedding": self.outer, "unembedding": self.outer}.get(part)
        return own or self.weights

    def computed(self, part: str) -> DType:
        """The type in which the products of a part compute."""
        if part == "experts":
            return self.experts_compute or self.compute
        # what is not quantized is not computed in the narrow type either
        return self.activations if part == "unembedding" and self.outer else self.compute

    @property
    def degrees(self) -> str:
        """The degrees of parallelism above 1, as in 'TP 8, attention DP 2'."""
        ways = [f"{word} {getattr(self, name):,}" for name, word in WAYS.items() if getattr(self, name) > 1]
        return ", ".join(ways) or "one device"

    def __str__(self) -> str:
        return (
            f"{self.chips:,} chip{'s' * (self.chips > 1)} as {self.degrees}; "
            f"weights {self.weights}, KV cache {self.kv}, compute {self.compute}"
        )
