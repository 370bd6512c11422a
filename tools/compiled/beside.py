"""Compare each prediction with the compiled program, and give the reason for each large error."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from scalingbook_lib.evidence.compiled.cycles import Estimates
from scalingbook_lib.training.memory import AT_LOGITS, IN_LAYER
from scalingbook_lib.units import BF16
from tools.compiled.case import Case, by_kind
from tools.compiled.cases import cases
from tools.compiled.facts import Facts, recorded
from tools.compiled.others import Style
from tools.compiled.served import Engine, Reading, Served
from tools.compiled.trained import Lab, Step

RINGS, RING = "collective-permute", 4  # shorter torus sides have no wraparound
FAR = 0.05  # an error above this needs a reason
FLOPS, MOVED, HELD = MEASURES = "FLOPs", "bytes received", "bytes held"
CLASSES: Mapping[str, type[Case]] = {
    "training, partitioned by XLA": Step,
    "training, explicit collectives": Lab,
    "serving, partitioned by XLA": Reading,
    "serving, explicit collectives": Engine,
}


@dataclass(frozen=True)
class Beside:
    """One program: its prediction per device, and its compiled properties."""

    case: Case
    facts: Facts

    @cached_property
    def predicted(self) -> dict[str, float]:
        """Predictions by measure."""
        return {FLOPS: self.case.flops(), MOVED: sum(self.case.moved().values()), HELD: self.case.held()}

    @property
    def compiled(self) -> dict[str, float]:
        """Compiled values by measure."""
        return {FLOPS: self.facts.flops, MOVED: sum(self.facts.moved.values()), HELD: self.facts.held}

    @property
    def errors(self) -> dict[str, float]:
        """Predicted over compiled, minus 1, by measure; without communication if none is predicted."""
        return {
            measure: self.predicted[measure] / found - 1
            for measure, found in self.compiled.items()
            if self.predicted[measure]
        }

    @property
    def far(self) -> dict[str, float]:
        """The errors that need a reason."""
        return {measure: error for measure, error in self.errors.items() if abs(error) > FAR}

    @property
    def over_roofline(self) -> float | None:
        """The compiler's time estimate over the roofline of matmuls and bytes held, or None."""
        chip = self.case.chip
        if not self.facts.cycles:
            return None
        least_s = max(self.predicted[FLOPS] / chip.bf16_flops_per_s, self.facts.held / chip.hbm_bytes_per_s)
        return self.facts.cycles / Estimates(chip, BF16, {}).clock_hz / least_s

    @property
    def kind(self) -> str:
        """Its class."""
        return next(name for name, kind in CLASSES.items() if isinstance(self.case, kind))


@cache
def every() -> tuple[Beside, ...]:
    """Return all compiled programs."""
    return tuple(Beside(case, recorded()[name]) for name, case in cases().items())


@dataclass(frozen=True)
class Reason:
    """A known cause of errors in one measure; `more` if the prediction is too large."""

    name: str
    measure: str
    more: bool
    says: str
    where: Callable[[Beside], bool]


def _is(kind: type[Case], phase: str = "") -> Callable[[Beside], bool]:
    return lambda one: isinstance(one.case, kind) and phase in ("", one.case.phase)


def _style(of: Callable[[Style], bool]) -> Callable[[Beside], bool]:
    return lambda one: isinstance(one.case, Step) and of(one.case.style)


def _full(moment: str) -> Callable[[Beside], bool]:
    return lambda one: isinstance(one.case, Step) and one.case.memory.moment == moment


def _unrolled(one: Beside) -> bool:
    """Return whether rings are predicted but few are compiled."""
    predicted, found = (by_kind(moved).get(RINGS, 0) for moved in (one.case.moved(), one.facts.moved))
    return predicted > 2 * found


def _tied(one: Beside) -> bool:
    """Return whether the embedding table is also the unembedding, unsharded on one chip."""
    return isinstance(one.case, Reading) and one.case.program.tp == 1 and one.case.program.model.tied


def _over(axes: int) -> Callable[[Beside], bool]:
    """Return a predicate: whether all chips shard the weights over this many ring axes."""

    def where(one: Beside) -> bool:
        sides = map(int, one.case.topology.partition(":")[2].split("x"))
        whole = isinstance(one.case, Step) and one.case.style.fsdp == one.case.devices
        return whole and sum(side >= RING for side in sides) == axes

    return where


def _named(*parts: str) -> Callable[[Beside], bool]:
    return lambda one: any(part in one.case.name for part in parts)


REASONS = (
    Reason(
        "KV heads on one axis", FLOPS, False,
        "The engine shards the KV heads over a single axis of its mesh, so with a larger TP degree each chip "
        "computes two KV heads instead of one.",
        _is(Engine),
    ),
    Reason(
        "dispatch by matmuls", FLOPS, False,
        "GShard dispatches tokens to experts with one-hot matmuls, which the formulas do not count as work "
        "of the model.",
        _style(lambda s: s.E > 0),
    ),
    Reason(
        "dispatch without an all-to-all", MOVED, False,
        "The partitioner gathers tokens and reduces outputs, where the plan has an all-to-all.",
        _style(lambda s: s.ep > 1),
    ),
    Reason(
        "gather over three axes", MOVED, False,
        "Over all three axes of a torus, XLA writes all-gathers and reduce-scatters as all-reduces, "
        "which move twice the bytes.",
        _over(3),
    ),
    Reason(
        "gradients over two axes", MOVED, False,
        "XLA all-reduces some gradients that are sharded over both axes of a torus, where a reduce-scatter "
        "would be enough.",
        _over(2),
    ),
    Reason(
        "resharding for sequence parallelism", MOVED, False,
        "Between matmuls the partitioner reshards activations more often than Megatron's all-gather and "
        "reduce-scatter.",
        _style(lambda s: s.sp),
    ),
    Reason(
        "embedding gradients", MOVED, True,
        "With TP, the gradients of looked-up embeddings are predicted to be gathered over all chips that "
        "share the table; these programs gather fewer.",
        _style(lambda s: s.tp > 1),
    ),
    Reason(
        "no collective matmul", MOVED, True,
        "From a degree of eight, weights are predicted to move in rings of permutes, which send two pieces "
        "more than an all-gather; these programs use the all-gather.",
        _unrolled,
    ),
    Reason(
        "shared experts reduced separately", MOVED, False,
        "The partitioner reduces the outputs of shared and of routed experts one after the other; the plan "
        "reduces them together.",
        _named("DeepSeek"),
    ),
    Reason(
        "all-reduce for reduce-scatter", MOVED, False,
        "libtpu has no reduce-scatter over two mesh axes: it all-reduces the array, twice the bytes.",
        _is(Engine, "decode"),
    ),
    Reason(
        "materialized scores", HELD, False,
        "The prediction assumes fused attention. These programs write attention scores to HBM, for all pairs "
        "or for a block of queries, with the softmax, its gradient, and copies of keys and values for each "
        "query head.",
        _is(Step),
    ),
    Reason(
        "logits and head gradient together", HELD, True,
        "The loss, the softmax and the gradient of the unembedding are counted at one moment, each in full; "
        "XLA has freed or scattered some of them by then.",
        _full(AT_LOGITS),
    ),
    Reason(
        "gathered matrices of a layer", HELD, True,
        "All matrices of the current layer are counted as gathered, with two gradients; XLA gathers the "
        "matrices of wide layers one after the other.",
        _full(IN_LAYER),
    ),
    Reason(
        "fp32 intermediates", HELD, False,
        "The trainer's attention keeps scores in fp32, its experts reserve a slot for every token, and its "
        "pipeline keeps all ticks.",
        _is(Lab),
    ),
    Reason(
        "gathered windows", HELD, False,
        "The program copies the window of keys and values of each query; a kernel would read them in place.",
        _named("prefill: Gemma-2"),
    ),
    Reason(
        "tied table transposed", HELD, False,
        "The unembedding is the embedding table, and the compiler transposes a copy of it for the matmul.",
        _tied,
    ),
    Reason(
        "scores of a prefill", HELD, False,
        "As in training, scores of all pairs are materialized, for many heads in a small model.",
        _is(Served, "prefill"),
    ),
    Reason(
        "activations of a prefill", HELD, True,
        "Two vectors of the model width and the widest hidden vector are counted for each token; XLA fuses "
        "some of them away.",
        _is(Served, "prefill"),
    ),
    Reason(
        "embedding sharded by group", HELD, False,
        "The engine shards the embedding over the chips of one group; the plan shards it over all chips.",
        _named("decode: data-parallel"),
    ),
    Reason(
        "two KV heads per chip", HELD, False,
        "As for FLOPs: a chip holds two KV heads and the gathered parts of their cache.",
        _is(Engine, "decode"),
    ),
)  # fmt: skip


def reasons(one: Beside) -> Iterator[Reason]:
    """Yield the first matching reason for each large error."""
    for measure, error in one.far.items():
        yield from [r for r in REASONS if (r.measure, r.more) == (measure, error > 0) and r.where(one)][:1]
