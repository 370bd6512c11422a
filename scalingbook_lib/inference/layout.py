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
    """A layout that cannot be; the message says which rule it breaks and what to write."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout(Result):
    """chips = tp · cp · pp for one copy of the model; a machine holds machine.chips // chips copies.

    `tp` chips of a stage share every matrix, and the weights stay where they are: over its width F in `tp //
    rows` columns and over D in `rows` rows ("2-D weight-stationary"; 1 is 1-D). `pp` stages split the layers.
    `ep` of the tp ways are over experts, and tp / ep chips split each expert; in each layer they hold
    `redundant_experts` copies of the experts that get most tokens (EPLB), so that the loads of the chips
    differ less. `attention_dp` groups of the tp chips each hold the attention's weights and own B /
    attention_dp sequences; with ep > 1 also the dense MLPs and shared experts are held group by group. The
    chips of a group (all tp without groups) split its cache `kv_batch` ways over sequences, `kv_sequence`
    ways over tokens, and the rest over heads: where these are more ways than key-value heads, heads are
    copied. `cp` times tp chips each hold all weights of a stage and split the tokens of a prompt, whose keys
    and values pass all of them (a ring), and the sequences of a decode step: for prompts that one group of tp
    chips is too slow for.

    Types: `weights` as stored, `kv` of the cache, `compute` of products with weights, `activations` of all
    that is stored and sent, and of attention. `experts` and `outer` (embedding and unembedding) are stored in
    their own types where they have one; then what is not quantized computes in the type of the activations.
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
        """Those of one copy."""
        return self.tp * self.cp * self.pp  # ep and attention_dp share out these chips once more

    @property
    def group(self) -> int:
        """Chips that share the attention's weights, and one cache."""
        return self.tp // self.attention_dp

    @property
    def columns(self) -> int:
        """Ways over the heads of the attention's weights."""
        return self.group // self.rows

    @property
    def kv_heads(self) -> int:
        """Ways of a group's cache over heads."""
        return self.group // (self.kv_batch * self.kv_sequence)

    @property
    def wide(self) -> bool:
        """Whether dense MLPs are split over all tp chips, not group by group."""
        # With expert parallelism, each group has its own dense MLP: its tokens leave it only for experts.
        return self.attention_dp == 1 or self.ep == 1

    def check(self, model: Transformer) -> None:
        """Refuse what the model's sizes do not allow."""
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
