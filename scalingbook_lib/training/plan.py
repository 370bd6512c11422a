"""A parallelism plan of a training step: a degree for each kind of parallelism, and the policies.

Chapter: Training.
"""

from dataclasses import dataclass, fields

from scalingbook_lib.steps import pipelines
from scalingbook_lib.training.remat import FULL_LAYERS, named
from scalingbook_lib.units import BF16, FP32, DType, Result
from scalingbook_lib.words import pluralize

# `steps.pipelines` simulates more schedules. Here all stages end a step together, so ZB-H2 would save no
# time, and a V-shaped schedule puts embedding and unembedding on one stage, which this model does not cover.
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zero-bubble", "dualpipe")
REMAT = ("none", "alternate", "selective", "all", "dots", "dots_no_batch", "full")
CONTEXTS = ("ring", "gather", "ulysses")
AXES = ("tp", "cp", "fsdp", "pp", "dp", "dcn")  # from the innermost to the outermost
WAYS = {  # the degrees of parallelism by field, as they are printed
    "dcn": "pods",
    "dp": "replicas",
    "fsdp": "FSDP",  # with zero=3
    "tp": "TP",
    "cp": "CP",
    "pp": "PP",
    "ep": "EP",
}
_SIMULATED = "steps.pipelines simulates this schedule, but the model of a training step does not cover it; "
_KNOWN = {"schedule": SCHEDULES, "context": CONTEXTS, "zero": (0, 1, 2, 3)}
_REMAT = ", ".join(map(repr, REMAT))
# the fraction of overlappable communication that is hidden
_OVERLAP = {"full": 1.0, "none": 0.0}
# the names of the stages of rajbhandari2020zero, by `zero`
_ZERO = ("DP", "ZeRO-1", "ZeRO-2", "FSDP")


class PlanError(ValueError):
    """An impossible plan; the message says which rule it breaks and what to write."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan(Result):
    """Degrees with chips = dcn · dp · fsdp · tp · cp · pp, from the outermost to the innermost, and policies.

    Degrees. `tp` chips shard every matrix, and with `sequence_parallel` also the tokens between the matmuls.
    `cp` chips shard a sequence; each has one shard from its front and one from its back, unless `zigzag` is
    False (then, with a causal mask, the chip with the end has the most work, and the others wait for it).
    `pp` groups are pipeline stages. `fsdp · dp · dcn` data ranks divide the batch; a rank processes
    `microbatch` sequences at a time and accumulates gradients over microbatches.

    Sharding of the training state. `zero` says what is sharded over the fsdp · cp chips: nothing (0), the
    optimizer state (1), also the gradients (2), also the weights (3). Over dp and dcn (between pods),
    everything is replicated, so fsdp together with dp is hybrid FSDP. Without `prefetch`, the backward pass
    requests a layer's weights only after the layer behind it has finished (PyTorch's BACKWARD_POST), so the
    gather is exposed. `frozen` weights have no gradients and no optimizer state, as with LoRA, whose adapters
    are not counted (less than 1%).

    Experts. `ep` chips hold each expert once. They are the innermost of the tp/expert_tp · cp · fsdp chips of
    a stage, and `expert_tp` of them (tp or 1) shard one expert. The router may send a token to experts in at
    most `expert_domains` domains.

    Rematerialization. With `remat`, "none" saves what fused kernels save, "alternate" saves every second
    matmul, and "selective" is dots_no_batch. "save:..." and "offload:..." name the matmuls whose results are
    saved on the chip or in host memory, "recompute:..." names the modules whose results are not saved, and
    "full:16" recomputes 16 layers in full (see `remat`). Further policies are those of
    `arithmetic.activations`. All activations of `offload_layers` layers are kept in host memory. With
    `offload_optimizer`, so is the optimizer state, which travels to the chip and back in every step.

    Schedule and overlap. `stage_layers` are the layers of each stage, first stage first; None distributes
    them so that the longest stage is as short as possible. `overlap` is "full", "none" or a fraction of the
    communication that can overlap; tensor parallelism overlaps only with `collective_matmul`.

    Dtypes. `weights` and `gradients` are stored, `compute` is the dtype of matmuls, and `activations` are
    saved and sent. Gradients are reduced over chips in the dtype `reduced` (None: as stored). `master` is a
    master copy of the weights (None: no copy). `logit_bytes` is per logit: 6 for the matmul in bf16 and its
    softmax in fp32, as in XLA (8 for a single sequence, whose matmul is not overwritten), or 14 with an fp32
    copy and the gradient, as in PyTorch. With a loss in `loss_tiles` tiles (MaxText's vocabulary tiling,
    fused linear cross-entropy), the logits of one tile exist at a time, and the backward pass recomputes
    them.
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
    prefetch: bool = True  # FSDP gathers one layer ahead
    frozen: bool = False
    sequence_parallel: bool = True
    context: str = "ring"
    zigzag: bool = True
    schedule: str = "1f1b"
    chunks: int = 1  # v of notation.md
    microbatch: int = 1  # sequences per data rank
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
    stage_layers: tuple[int, ...] | None = None  # None: distributed evenly

    def __post_init__(self) -> None:
        for name in (*AXES, "ep", "chunks", "microbatch", "loss_tiles"):
            if getattr(self, name) < 1:
                raise PlanError(f"{name}={getattr(self, name)}: write a whole number of at least 1")
        for name, known in _KNOWN.items():
            if (given := getattr(self, name)) not in known:
                why = _SIMULATED if given in pipelines.SCHEDULES else ""
                raise PlanError(f"{name}={given!r}: {why}write one of {', '.join(map(repr, known))}")
        for broken, why in (
            (
                self.remat not in REMAT and ":" not in self.remat,
                "remat={0.remat!r}: write one of "
                + _REMAT
                + ", or 'save:q,k,v', 'offload:q,k,v', 'recompute:mlp' or 'full:16'",
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
        """The number of chips over all pods."""
        return self.dcn * self.dp * self.fsdp * self.tp * self.cp * self.pp

    @property
    def ranks(self) -> int:
        """The number of data ranks: groups of tp · cp · pp chips that process sequences of their own."""
        return self.dcn * self.dp * self.fsdp

    @property
    def hidden(self) -> float:
        """The fraction of the overlappable communication that is hidden: 1 for "full", 0 for "none"."""
        return _OVERLAP[self.overlap] if isinstance(self.overlap, str) else self.overlap

    @property
    def replays(self) -> bool:
        """Whether the backward pass repeats the forward pass of layers, including their collectives."""
        return self.remat == "full" or self.remat.startswith(FULL_LAYERS) or bool(named(self.remat).kept)

    @property
    def bytes_of_logit(self) -> float:
        """The bytes per logit: as given, or as in XLA; divided by the number of tiles of the loss."""
        whole = (8.0 if self.microbatch == 1 else 6.0) if self.logit_bytes is None else self.logit_bytes
        return whole / self.loss_tiles

    @property
    def expert_ways(self) -> int:
        """The number of chips that shard one expert's matrices."""
        return self.tp if self.expert_tp is None else self.expert_tp

    def microbatches(self, batch: int) -> int:
        """Return the number of microbatches per data rank in one step of `batch` sequences."""
        each = self.ranks * self.microbatch  # sequences of one microbatch on all ranks
        if batch % each or batch < 1:
            near = max(batch // each, 1) * each
            raise PlanError(
                f"{batch:,} sequences cannot be divided among {self.ranks:,} data ranks with microbatches of "
                f"{self.microbatch}; use a multiple, such as {near:,}"
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
        return f"{pluralize(self.chips, 'chip')} as {self.summary}, overlap {self.overlap}"


PLAN_FIELDS = tuple(f.name for f in fields(Plan))
