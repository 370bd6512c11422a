"""A parallelism plan: the degree of each kind of parallelism in a training step, and its settings.

Chapter: Training.
"""

from dataclasses import dataclass, fields

from scalingbook_lib.steps import pipelines
from scalingbook_lib.training.remat import named
from scalingbook_lib.units import BF16, FP32, DType, Result

# Fewer than steps.pipelines simulates: all stages end a step together here, so ZB-H2 would save no time, and
# a V-shaped schedule puts the embedding and the unembedding on one stage, which this model does not cover.
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
_SIMULATED = "steps.pipelines simulates this schedule, but the model of a training step does not cover it; "
_KNOWN = {"schedule": SCHEDULES, "context": CONTEXTS, "zero": (0, 1, 2, 3)}
_REMAT = ", ".join(map(repr, REMAT))
# the share of what can be hidden
_OVERLAP = {"full": 1.0, "none": 0.0}
# by `zero`, as people call the stages of rajbhandari2020zero
_ZERO = ("DP", "ZeRO-1", "ZeRO-2", "FSDP")


class PlanError(ValueError):
    """An impossible plan; the message says which rule it breaks and what to write instead."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan(Result):
    """The degrees of parallelism of a training step, its schedule, rematerialization and data types.

    The step takes dcn · dp · fsdp · tp · cp · pp chips. The axis tp is innermost, so neighboring chips
    share a matmul.

    - `tp`: tensor parallelism shards every matrix. With `sequence_parallel`, it also shards the tokens
      between the matmuls.
    - `cp`: context parallelism shards a sequence. Each chip gets a piece from its beginning and one from
      its end, which balances the work under a causal mask; with `zigzag=False`, the last chip is the slowest.
    - `pp`: pipeline stages divide the layers. `stage_layers` lists the layers of each stage; None splits them
      so that the longest one is as short as possible.
    - `fsdp`, `dp`, `dcn`: these data-parallel ranks divide the batch. `zero` says what is sharded over the
      fsdp · cp chips that would otherwise hold the same: 1 the optimizer state, 2 also the gradients, 3 also
      the weights, 0 nothing. Everything is replicated over dp, and over dcn, which is between pods; fsdp with
      dp is hybrid FSDP.
    - `ep`: expert parallelism. The ep chips hold each expert once. They are the innermost of the
      tp/expert_tp · cp · fsdp chips of a stage, and `expert_tp` chips (tp unless it is 1) share an expert.
      Routing may limit the experts of a token to `expert_domains` domains.

    A data rank processes `microbatch` sequences at a time and accumulates gradients over its microbatches.
    Without `prefetch`, the backward pass requests a layer's weights only after the layer above is done
    (PyTorch's BACKWARD_POST), and waits for them. `frozen` weights have no gradients and no optimizer state,
    as with LoRA, whose adapters are not counted (they are less than 1% of the weights). `overlap` is "full",
    "none", or the share that is hidden of the communication that can overlap; the collectives of tensor
    parallelism can overlap only with `collective_matmul`.

    `remat` says which activations are kept. "none" keeps what fused kernels keep, "alternate" every second
    matmul, and "selective" is dots_no_batch. "save:..." and "offload:..." name the results that are kept on
    the chip or in host memory, and "recompute:..." the modules that are recomputed (see `remat`). The others
    are those of `arithmetic.activations`. All activations of `offload_layers` layers are offloaded to host
    memory. With `offload_optimizer`, the optimizer state is there too, and it travels to the chip and back in
    every step.

    The data types are those of the stored `weights`, of the matmuls (`compute`), of the saved and sent
    `activations`, and of the stored `gradients`, which are reduced over the chips as `reduced` (None: as they
    are stored). `master` is the type of the master copy of the weights, or None without one. `logit_bytes`
    counts the bytes per logit: 6 for a bf16 result with its softmax in fp32, as with XLA (8 for one sequence,
    whose result is not overwritten), or 14 with an fp32 copy and the gradient, as with PyTorch. If the loss
    is computed in `loss_tiles` tiles (MaxText's vocabulary tiling, fused linear cross entropy), only one
    tile's logits are held at a time, and they are computed again in the backward pass.
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
            if (given := getattr(self, name)) not in known:
                why = _SIMULATED if given in pipelines.SCHEDULES else ""
                raise PlanError(f"{name}={given!r}: {why}write one of {', '.join(map(repr, known))}")
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
        """The chips of all pods."""
        return self.dcn * self.dp * self.fsdp * self.tp * self.cp * self.pp

    @property
    def ranks(self) -> int:
        """The number of data ranks, which are groups of tp · cp · pp chips with sequences of their own."""
        return self.dcn * self.dp * self.fsdp

    @property
    def hidden(self) -> float:
        """The hidden share of the communication that can overlap: 1 for "full", 0 for "none"."""
        return _OVERLAP[self.overlap] if isinstance(self.overlap, str) else self.overlap

    @property
    def replays(self) -> bool:
        """Whether the backward pass repeats the forward pass of a layer with its collectives."""
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
