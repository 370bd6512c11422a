"""Compares each prediction with the compiled program, with the reason for each large error."""

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

RINGS, RING = "collective-permute", 4  # shorter sides are no rings
FAR = 0.05  # an error above this has a reason
FLOPS, MOVED, HELD = MEASURES = "FLOPs", "bytes received", "bytes held"
CLASSES: Mapping[str, type[Case]] = {
    "training, in other people's style": Step,
    "training, by hand": Lab,
    "serving, any structure": Reading,
    "serving, the laboratory's engine": Engine,
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
    """All compiled programs."""
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
    """Whether rings are predicted but few are compiled."""
    predicted, found = (by_kind(moved).get(RINGS, 0) for moved in (one.case.moved(), one.facts.moved))
    return predicted > 2 * found


def _tied(one: Beside) -> bool:
    """Whether the embedding table is also the unembedding, unsharded on one chip."""
    return isinstance(one.case, Reading) and one.case.program.tp == 1 and one.case.program.model.tied


def _over(axes: int) -> Callable[[Beside], bool]:
    """A predicate: whether all chips shard the weights over that many ring axes."""

    def where(one: Beside) -> bool:
        sides = map(int, one.case.topology.partition(":")[2].split("x"))
        whole = isinstance(one.case, Step) and one.case.style.fsdp == one.case.devices
        return whole and sum(side >= RING for side in sides) == axes

    return where


def _named(*parts: str) -> Callable[[Beside], bool]:
    return lambda one: any(part in one.case.name for part in parts)


REASONS = (
    Reason(
        "key-value heads by one axis", FLOPS, False,
        "The engine splits heads of keys and values over one axis of its mesh alone, so with more ways a "
        "chip makes two of them, not one.",
        _is(Engine),
    ),
    Reason(
        "dispatch by products", FLOPS, False,
        "GShard's experts get their tokens by products with ones and zeros, which are no work of the "
        "model.",
        _style(lambda s: s.E > 0),
    ),
    Reason(
        "experts exchanged otherwise", MOVED, False,
        "For those products the partitioner gathers tokens and sums outputs, where the plan exchanges "
        "them.",
        _style(lambda s: s.ep > 1),
    ),
    Reason(
        "over three axes", MOVED, False,
        "A gather over all three axes of a torus is an all-reduce of the whole, however wide the shards.",
        _over(3),
    ),
    Reason(
        "over two axes", MOVED, False,
        "Some gradients that a whole torus of two axes shares are summed whole, where a scatter would do.",
        _over(2),
    ),
    Reason(
        "tokens and heads", MOVED, False,
        "With tokens split between the products, the partitioner turns arrays from one split to another "
        "more often than Megatron's gather and scatter.",
        _style(lambda s: s.sp),
    ),
    Reason(
        "the embedding", MOVED, True,
        "Beside tensor ways the gradients of looked-up tokens are predicted to be gathered over all chips"
        " that share the table; in these programs fewer are.",
        _style(lambda s: s.tp > 1),
    ),
    Reason(
        "no collective matmul", MOVED, True,
        "From eight ways on, weights are predicted to go round in rings of XLA's, which move two pieces "
        "more than a gather; these programs gather.",
        _unrolled,
    ),
    Reason(
        "shared experts apart", MOVED, False,
        "The partitioner sums the outputs of shared and of routed experts one by one; the plan sums them "
        "together.",
        _named("DeepSeek"),
    ),
    Reason(
        "summed whole", MOVED, False,
        "libtpu does not scatter a sum over two axes of a mesh: it sums all of it on every chip, twice "
        "the bytes.",
        _is(Engine, "decode"),
    ),
    Reason(
        "scores written out", HELD, False,
        "A kernel that fuses attention is predicted. These programs write scores, of all pairs or of a "
        "block of queries, with softmax and gradient, and copies of keys and values for each query head.",
        _is(Step),
    ),
    Reason(
        "logits beside the head's gradient", HELD, True,
        "Loss, softmax and the unembedding's gradient are counted at one moment, each whole; here XLA has"
        " freed or scattered some of them by then.",
        _full(AT_LOGITS),
    ),
    Reason(
        "a layer, matrix by matrix", HELD, True,
        "All matrices of the layer at work are counted gathered, beside two gradients; of wide layers XLA "
        "gathers one after the other.",
        _full(IN_LAYER),
    ),
    Reason(
        "32 bits, written out", HELD, False,
        "The trainer's attention keeps scores in 32 bits, its experts a place for every token, its "
        "pipeline all ticks.",
        _is(Lab),
    ),
    Reason(
        "windows gathered", HELD, False,
        "The program copies each query's window of keys and values; a kernel reads them where they are.",
        _named("prefill: Gemma-2"),
    ),
    Reason(
        "a tied table turned", HELD, False,
        "The unembedding is the embedding's table, and the compiler makes a copy of it that lies as the "
        "product reads it.",
        _tied,
    ),
    Reason(
        "a prompt's scores", HELD, False,
        "As in training: scores of all pairs are written out, of many heads beside few weights.",
        _is(Served, "prefill"),
    ),
    Reason(
        "a prompt's vectors", HELD, True,
        "Two vectors of the model's width and the widest hidden one are counted for each token; XLA fuses"
        " some away.",
        _is(Served, "prefill"),
    ),
    Reason(
        "the table by groups", HELD, False,
        "The engine splits the embedding over the chips of a group; the plan splits it over all.",
        _named("decode: groups"),
    ),
    Reason(
        "two heads on a chip", HELD, False,
        "As with FLOPs: a chip has two key-value heads and their cache's gathered parts.",
        _is(Engine, "decode"),
    ),
)  # fmt: skip


def reasons(one: Beside) -> Iterator[Reason]:
    """The first matching reason for each large error."""
    for measure, error in one.far.items():
        yield from [r for r in REASONS if (r.measure, r.more) == (measure, error > 0) and r.where(one)][:1]
