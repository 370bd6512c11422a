"""The layout of one model replica over the chips that serve it.

Chapter: Inference.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from scalingbook_lib.models import Transformer
from scalingbook_lib.units import BF16, DType, Result
from scalingbook_lib.words import pluralize

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
    """An impossible layout; the message says which rule it breaks and what to write."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout(Result):
    """Degrees with chips = tp · cp · pp per model replica; a machine holds machine.chips // chips replicas.

    Weights. `tp` chips of a stage shard every matrix, and the weights stay in place: F over `tp // rows`
    columns of chips, and D over `rows` rows (2-D weight-stationary; one row is 1-D). `pp` stages divide the
    layers. `ep` of the tp chips shard the experts, and tp / ep chips shard each expert. In each layer, the
    expert-parallel group also holds `redundant_experts` replicas of the experts with the most tokens (EPLB),
    which balances the load.

    Attention. With `attention_dp`, the tp chips form that many groups; each group replicates the weights of
    attention and has B / attention_dp sequences. If ep > 1, dense MLPs and shared experts are also replicated
    in every group. The chips of a group (without groups, all tp) shard its KV cache with a degree of
    `kv_batch` over sequences, `kv_sequence` over tokens, and the rest over heads; if that exceeds the number
    of KV heads, heads are replicated. `cp` sets of tp chips each hold all weights of a stage. They divide the
    tokens of a prompt, whose keys and values travel around a ring, and the sequences of a decode step.

    Dtypes. `weights` as stored, `kv` of the cache, `compute` of weight matmuls, and `activations` of
    everything that is stored or sent, and of attention. `experts` and `outer` (embedding and unembedding) may
    be stored in dtypes of their own; unquantized parts then compute in the dtype of the activations.
    """

    tp: int = 1  # Y
    rows: int = 1  # X of 2-D weight sharding
    cp: int = 1
    pp: int = 1
    ep: int = 1
    redundant_experts: int = 0
    attention_dp: int = 1
    kv_batch: int = 1
    kv_sequence: int = 1
    weights: DType = BF16
    kv: DType = BF16  # the KV cache
    compute: DType = BF16
    activations: DType = BF16
    experts: DType | None = None  # None: as weights
    experts_compute: DType | None = None  # None: as compute
    outer: DType | None = None  # None: as weights
    dispatch: DType | None = None  # dispatched tokens; None: as activations

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
        """The number of chips per model replica."""
        return self.tp * self.cp * self.pp  # ep and attention_dp regroup the same chips

    @property
    def group(self) -> int:
        """The number of chips that shard the weights of attention and one KV cache."""
        return self.tp // self.attention_dp

    @property
    def columns(self) -> int:
        """The sharding degree of attention's weights over heads."""
        return self.group // self.rows

    @property
    def kv_heads(self) -> int:
        """The sharding degree of a group's KV cache over heads."""
        return self.group // (self.kv_batch * self.kv_sequence)

    @property
    def wide(self) -> bool:
        """Whether dense MLPs are sharded over all tp chips instead of within each group."""
        # with expert parallelism, each group has its own dense MLP; tokens leave it only for experts
        return self.attention_dp == 1 or self.ep == 1

    def check(self, model: Transformer) -> None:
        """Raise a LayoutError if the model's sizes do not allow the layout."""
        for why in self._refusals(model):  # lazy, because a search checks very many layouts
            raise LayoutError(why)

    def _refusals(self, model: Transformer) -> Iterator[str]:
        if self.ep > 1 and (lacks := model.expert_axis_error(ep=self.ep)):
            yield lacks
        if self.pp > model.L:
            yield f"{model.L} layers are fewer than pp={self.pp} stages: lower pp"
        more = self.redundant_experts
        if model.experts and ((E := model.experts.E) + more) % self.ep:
            held = f"{E} + {more}" if more else f"{E}"
            yield (
                f"{held} experts are not divisible by ep={self.ep}: write a divisor of their number, or "
                f"redundant_experts={-E % self.ep}"
            )
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
            # its state is a recurrence over tokens, which a ring of keys and values cannot replace
            yield f"cp={self.cp}: linear attention passes one token after the other; write cp=1"
        if self.columns > model.N:
            yield (
                f"{model.N} heads are fewer than the {self.columns} chips that split them: lower tp, or "
                "raise attention_dp or rows"
            )

    def stored(self, part: str) -> DType:
        """Return the dtype in which the weights of a part are stored."""
        # both tables have one dtype, because a tied model has a single matrix
        own = {"experts": self.experts, "embedding": self.outer, "unembedding": self.outer}.get(part)
        return own or self.weights

    def computed(self, part: str) -> DType:
        """Return the dtype in which the matmuls of a part compute."""
        if part == "experts":
            return self.experts_compute or self.compute
        # unquantized weights are not multiplied in the narrow dtype either
        return self.activations if part == "unembedding" and self.outer else self.compute

    @property
    def degrees(self) -> str:
        """The degrees of parallelism above 1, as in 'TP 8, attention DP 2'."""
        ways = [f"{word} {getattr(self, name):,}" for name, word in WAYS.items() if getattr(self, name) > 1]
        return ", ".join(ways) or "one device"

    def __str__(self) -> str:
        return (
            f"{pluralize(self.chips, 'chip')} as {self.degrees}; "
            f"weights {self.weights}, KV cache {self.kv}, compute {self.compute}"
        )
