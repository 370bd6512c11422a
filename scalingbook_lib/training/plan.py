"""How is one training step spread over the chips? A plan: so many ways for each kind of parallelism.

Chapter: Training.
"""

from dataclasses import dataclass, fields

from scalingbook_lib.training.remat import named
from scalingbook_lib.units import BF16, FP32, DType, Result

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zero-bubble", "dualpipe")
REMAT = ("none", "alternate", "selective", "all", "dots", "dots_no_batch", "full")
CONTEXTS = ("ring", "gather", "ulysses")
AXES = ("tp", "cp", "fsdp", "pp", "dp", "dcn")  # from the inside out
WAYS = {  # the degrees of parallelism by field, as they are printed
    "dcn": "pods",
    "dp": "replicas",
    "fsdp": "FSDP",  # with zero=3
    "tp": "TP",
    "cp": "CP",
    "pp": "PP",
    "ep": "EP",
}
_KNOWN = {"schedule": SCHEDULES, "context": CONTEXTS, "zero": (0, 1, 2, 3)}
_REMAT = ", ".join(map(repr, REMAT))
# the share of what can be hidden
_OVERLAP = {"full": 1.0, "none": 0.0}
# by `zero`, as people call the stages of rajbhandari2020zero
_ZERO = ("DP", "ZeRO-1", "ZeRO-2", "FSDP")


class PlanError(ValueError):
    """A plan that cannot be; the message says which rule it breaks and what to write."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan(Result):
    """chips = dcn · dp · fsdp · tp · cp · pp, and tp is innermost: neighbors split a product.

    `tp` chips split every matrix, with `sequence_parallel` also the tokens between the products; `cp` chips
    split a sequence, each with a piece from its front and one from its back unless `zigzag` is False (of a
    causal mask, whoever has the end does most then, and the others wait); `pp` groups split the layers;
    `fsdp · dp · dcn` ranks split the batch.
    What `zero` splits over the fsdp · cp chips that would hold the same: 1 the optimizer's state, 2 also the
    gradients, 3 also the weights, 0 nothing. Over dp and dcn (between pods) everything is copied: fsdp with
    dp is hybrid FSDP. `ep` chips hold each expert once; they are the innermost of the tp/expert_tp · cp ·
    fsdp chips of a stage, `expert_tp` (tp unless it is 1) of which split one expert. Routing may keep a
    token's experts in at most `expert_domains` domains.
    Without `prefetch`, a layer's weights are asked for in the backward pass when the one behind it is done
    (PyTorch's BACKWARD_POST), and waited for. `frozen` weights have no gradients and no optimizer, as beside
    LoRA's adapters, which are not counted: under a hundredth. A data rank works on `microbatch` sequences at
    a time, and sums gradients over microbatches.

    `remat`: "none" keeps what fused kernels keep, "alternate" every second product, "selective" is
    dots_no_batch, "save:..." and "offload:..." name the products that are kept, here or in the host's memory,
    "recompute:..." the modules that are not (`remat`); the others are those of `arithmetic.activations`. All
    activations of `offload_layers` layers wait in the host's memory. With `offload_optimizer`, the
    optimizer's state is there too, and travels to the chip and back in every step. `stage_layers` are the
    layers of each stage, from the first; None deals them so that the longest stage has least to do.
    `overlap`: "full", "none", or the share in between, of what can overlap; collectives of tensor parallelism
    can only with `collective_matmul`.
    `weights` are stored, products are of type `compute`, `activations` are kept and sent, `gradients` are
    stored, and summed over the chips as `reduced` (None: as stored); `master` is a copy of the weights, None
    without one. `logit_bytes` for each logit: 6 for the product in bf16 and its softmax in fp32, as XLA has
    them (8 for one sequence, whose product it does not overwrite); 14 with a copy in fp32 and the gradient
    besides, as PyTorch has. Of a loss in `loss_tiles` tiles (MaxText's vocabulary tiling, fused linear cross
    entropy), one tile's logits are held at a time, and computed again in the backward pass.
    """

    tp: int = 1
    cp: int = 1
    fsdp: int = 1
    pp: int = 1
    dp: int = 1
    dcn: int = 1
    ep: int = 1
    expert_tp: int | None = None  # None: as tp
    expert_domains: int | None = None  # None: any
    zero: int = 3
    prefetch: bool = True  # FSDP asks a layer ahead
    frozen: bool = False
    sequence_parallel: bool = True
    context: str = "ring"
    zigzag: bool = True
    schedule: str = "1f1b"
    chunks: int = 1  # v of notation.md
    microbatch: int = 1  # sequences of a data rank
    remat: str = "none"
    overlap: str | float = "full"
    collective_matmul: bool = False
    weights: DType = BF16
    compute: DType = BF16
    activations: DType = BF16
    gradients: DType = BF16
    reduced: DType | None = None  # None: as gradients
    moments: DType = FP32
    master: DType | None = FP32
    logit_bytes: float | None = None
    loss_tiles: int = 1
    offload_layers: int = 0
    offload_optimizer: bool = False
    stage_layers: tuple[int, ...] | None = None  # None: dealt evenly

    def __post_init__(self) -> None:
        for name in (*AXES, "ep", "chunks", "microbatch", "loss_tiles"):
            if getattr(self, name) < 1:
                raise PlanError(f"{name}={getattr(self, name)}: write a whole number of at least 1")
        for name, known in _KNOWN.items():
            if getattr(self, name) not in known:
                raise PlanError(f"{name}={getattr(self, name)!r}: write one of {', '.join(map(repr, known))}")
        for broken, why in (
            (
                self.remat not in REMAT and ":" not in self.remat,
                "remat={0.remat!r}: write one of "
                + _REMAT
                + ", or 'save:q,k,v', 'offload:q,k,v' or 'recompute:mlp'",
            ),
            (
                self.offload_layers < 0,
                "offload_layers={0.offload_layers}: write a whole number of at least 0",
            ),
            (
                self.stage_layers is not None
                and (len(self.stage_layers) != self.pp or min(self.stage_layers, default=0) < 0),
                "stage_layers={0.stage_layers}: write one number of layers for each of pp={0.pp} stages",
            ),
            (
                self.expert_tp not in (None, 1, self.tp),
                "expert_tp={0.expert_tp}: write 1, or {0.tp} as tp",
            ),
            (
                self.chunks > 1 and self.schedule != "interleaved",
                "chunks={0.chunks} are for schedule='interleaved', not {0.schedule!r}",
            ),
            (
                isinstance(self.overlap, str) and self.overlap not in _OVERLAP,
                "overlap={0.overlap!r}: write 'full', 'none' or a share from 0 to 1",
            ),
            (
                not isinstance(self.overlap, str) and not 0 <= self.overlap <= 1,
                "overlap={0.overlap}: write a share from 0 to 1",
            ),
        ):
            if broken:
                raise PlanError(why.format(self))
        try:
            named(self.remat)
        except ValueError as error:
            raise PlanError(str(error)) from error

    @property
    def chips(self) -> int:
        """All of them, over all pods."""
        return self.dcn * self.dp * self.fsdp * self.tp * self.cp * self.pp

    @property
    def ranks(self) -> int:
        """Data ranks: the groups of tp · cp · pp chips that each work on sequences of their own."""
        return self.dcn * self.dp * self.fsdp

    @property
    def hidden(self) -> float:
        """The share of the overlap that there can be: 1 for "full", 0 for "none"."""
        return _OVERLAP[self.overlap] if isinstance(self.overlap, str) else self.overlap

    @property
    def replays(self) -> bool:
        """Whether the backward pass does a layer's forward pass again, its collectives as well."""
        return self.remat == "full" or bool(named(self.remat).kept)

    @property
    def bytes_of_logit(self) -> float:
        """As given, or as XLA has them; of a loss in tiles, one tile's bytes over all logits."""
        whole = (8.0 if self.microbatch == 1 else 6.0) if self.logit_bytes is None else self.logit_bytes
        return whole / self.loss_tiles

    @property
    def expert_ways(self) -> int:
        """The chips that split one expert's matrices."""
        return self.tp if self.expert_tp is None else self.expert_tp

    def microbatches(self, batch: int) -> int:
        """How many of them a data rank works through in one step of `batch` sequences."""
        each = self.ranks * self.microbatch  # sequences of one microbatch, of all ranks
        if batch % each or batch < 1:
            near = max(batch // each, 1) * each
            raise PlanError(
                f"{batch:,} sequences do not divide into {self.ranks:,} data ranks with microbatches of "
                f"{self.microbatch}: write a multiple, as {near:,}"
            )
        return batch // each

    @property
    def degrees(self) -> str:
        """The degrees of parallelism above 1, as in 'FSDP 16, TP 8'."""
        names = WAYS | {"fsdp": _ZERO[self.zero]}
        ways = [f"{word} {getattr(self, axis):,}" for axis, word in names.items() if getattr(self, axis) > 1]
        return ", ".join(ways) or "one device"

    @property
    def summary(self) -> str:
        """The degrees, the schedule of a pipeline, the microbatch and the rematerialization."""
        pipe = f", {self.schedule}{f' in {self.chunks} chunks' * (self.chunks > 1)}" * (self.pp > 1)
        return f"{self.degrees}{pipe}, microbatch {self.microbatch}, remat {self.remat}"

    def __str__(self) -> str:
        return f"{self.chips:,} chip{'s' * (self.chips > 1)} as {self.summary}, overlap {self.overlap}"


PLAN_FIELDS = tuple(f.name for f in fields(Plan))
