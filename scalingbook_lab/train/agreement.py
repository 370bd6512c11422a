"""Compare the collectives of a compiled training step with those that `training.traffic` predicts.

`agreement.of(trainer)` compares kind, axes, counts and bytes. In some places the laboratory's program differs
from the plan on purpose, or performs work that no plan counts (the loss, gradients of norms). Each such
difference is a line of this module that gives its reason and its exact size. Chapter: Training.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from scalingbook_lab.train import transformer
from scalingbook_lab.train.trainer import Trainer
from scalingbook_lib import hlo, training
from scalingbook_lib.hlo.predicted import NOTHING, Amount, Key, Row, Sums, of_traffic, summed
from scalingbook_lib.hlo.text_table import text_table
from scalingbook_lib.machines import chips, slices
from scalingbook_lib.units import FP32, Result

SHAPES = {1: (1, 1), 4: (2, 2), 8: (2, 4), 16: (4, 4), 32: (4, 8), 64: (8, 8)}


@dataclass(frozen=True, slots=True)
class CollectiveAgreement(Result):
    """One kind of collective over some axes in one step: predicted and compiled counts and bytes."""

    kind: str
    axes: str
    predicted_times: float
    predicted: float
    compiled_times: float
    compiled: float

    @property
    def agrees(self) -> bool:
        """Whether bytes and counts are equal; counts of all-reduces, which compilers merge, may differ."""
        same_count = self.kind == "all-reduce" or self.predicted_times == self.compiled_times
        return same_count and self.predicted == self.compiled

    def __str__(self) -> str:
        compiled, predicted = f"{self.compiled:,.0f}", f"{self.predicted:,.0f}"
        return f"{self.kind} over {self.axes}: {compiled} bytes compiled, {predicted} predicted"


@dataclass(frozen=True, slots=True)
class Agreement(Result):
    """All predicted or compiled collectives, one line each."""

    lines: tuple[CollectiveAgreement, ...]

    @property
    def differences(self) -> tuple[CollectiveAgreement, ...]:
        """The lines that do not agree."""
        return tuple(line for line in self.lines if not line.agrees)

    def __str__(self) -> str:
        head = ("collective", "axes", "predicted times", "compiled", "predicted bytes", "compiled")
        rows: list[tuple[str, ...]] = [head]
        for a in self.lines:
            numbers = (a.predicted_times, a.compiled_times, a.predicted, a.compiled)
            rows.append((a.kind, a.axes, *(f"{n:,.0f}" for n in numbers)))
        return text_table(rows)


def of(trainer: Trainer) -> Agreement:
    """Return predicted and compiled collectives of one training step."""
    return compare(predicted(trainer), trainer.program.collectives)


def compare(predicted_sums: Sums, rows: hlo.Collectives) -> Agreement:
    """Return a line for each kind and axes that is predicted, compiled, or both."""
    compiled_sums = summed(
        (Key(c.kind, c.axes), Amount(c.times or 0, (c.times or 0) * c.nbytes)) for c in rows
    )
    pairs = {
        key: (predicted_sums.get(key, NOTHING), compiled_sums.get(key, NOTHING))
        for key in sorted(predicted_sums | compiled_sums)
    }
    return Agreement(
        tuple(
            CollectiveAgreement(*key, w.times or 0, w.nbytes, f.times or 0, f.nbytes)
            for key, (w, f) in pairs.items()
        )
    )


def plan(trainer: Trainer) -> training.Plan:
    """Return the trainer's mesh as a plan: Z and X together shard the weights, and R counts replicas."""
    n = trainer.sizes
    ranks = n["R"] * n["X"] * n["Z"]
    return training.Plan(
        tp=n["Y"],
        cp=n["C"],
        fsdp=n["X"] * n["Z"],
        ep=n["Z"],
        pp=n["P"],
        dp=n["R"],
        context=trainer.context,
        microbatch=trainer.batch // trainer.microbatches // ranks,
        remat="full" if trainer.remat else "none",
        schedule="gpipe",
        master=None,
        logit_bytes=8.0 if n["Y"] > 1 else 4.0,  # with TP, logits outlive the sums of the softmax
        **dict.fromkeys(("weights", "compute", "activations", "gradients", "moments"), FP32),
    )


def predicted(trainer: Trainer) -> Sums:
    """Return the collectives that the plan predicts, adjusted for the laboratory program's intended
    differences.

    Raises ValueError for a trainer without rematerialization.
    """
    if not trainer.remat:
        raise ValueError("remat=False saves gathered weights, which no plan does; compare with remat=True")
    where = slices.Slice(chips.V5E, SHAPES[trainer.devices.size])
    planned = training.traffic(trainer.model, plan(trainer), where, batch=trainer.batch, T=trainer.T)
    rows = [_predicted_row(trainer, t) for t in planned]
    return over_devices([*rows, *_differences(trainer, {key for key, _ in rows})], trainer.sizes)


def over_devices(rows: Iterable[Row], sizes: Mapping[str, int]) -> Sums:
    """Return rows summed by kind and axes; axes of size 1 are left out, because nothing moves over them."""
    real = [axis for axis, n in sizes.items() if n > 1]
    renamed = ((Key(kind, "".join(a for a in real if a in axes)), amount) for (kind, axes), amount in rows)
    return summed((key, amount) for key, amount in renamed if key.axes)


def _predicted_row(trainer: Trainer, t: training.TrainingCollective) -> Row:
    """Return one row of the prediction with the laboratory's axes, counts and bytes."""
    n, e, of = trainer.sizes, trainer.model.experts, t.name
    axes = {"X": "XC" if of.startswith("expert") else "XZC"}.get(t.axes, t.axes)
    key, (times, nbytes) = of_traffic(t)
    assert times is not None  # a plan fixes the number of times
    if t.axes in "XR":  # the laboratory gathers each weight separately
        times *= _layer_weights(trainer, "experts" if of.startswith("expert") else "dense")
    if t.axes == "Z" and e:  # every expert has a slot for every token, and tokens are gathered over Y first
        nbytes *= e.E / e.k * n["Y"]
    if of == "tensor, experts" and e:  # gathered before the routing, so once for all k experts
        nbytes /= e.k
    if n["P"] > 1 and t.axes in "YCZPX":  # of M + P - 1 ticks, P - 1 move padding
        M, shares = trainer.microbatches, t.axes == "X"
        if shares and not of.startswith("expert"):  # embeddings and the last norm are not gathered in a tick
            nbytes -= M * 4 * trainer.model.D * (trainer.model.V / n["Y"] + 1 / n["P"])
        # in the forward pass, a stage's gathers do not depend on the tick, so XLA hoists them out of the loop
        ticks = 1 if shares and t.when == "fwd" else M + n["P"] - 1
        times, nbytes = times * ticks / M, nbytes * ticks / M
    return Key(key.kind, axes), Amount(times, nbytes)


def _differences(trainer: Trainer, keys: set[Key]) -> Iterator[Row]:
    """Yield the differences in the loss, the embeddings and the norms."""
    m, n = trainer.model, trainer.sizes
    shards, tokens = n["X"] * n["Z"] * n["C"], trainer.batch * trainer.T
    table, per_token = 4 * m.V * m.D / n["Y"], 4 * tokens / (n["R"] * shards)  # bytes of one number per token
    yield Key("all-reduce", transformer.AXES), Amount(1, 4)  # the loss, on every device
    if shards > 1:  # a lookup's gradient needs no second gather of the table
        ends = (-table, 0) if n["P"] == 1 else (3 * table + 8 * m.D, 2 * table + 4 * m.D)
        yield Key("all-gather", "XZC"), Amount(5, ends[0])
        yield Key("reduce-scatter", "XZC"), Amount(3, ends[1])
    if n["Y"] > 1:  # largest logit, sum and target logit; two are recomputed, two have gradients
        yield Key("all-reduce", "Y"), Amount(7, 7 * per_token)
    if n["P"] > 1 and n["Y"] > 1:  # the vocabulary's pair of collectives, for all microbatches at once
        yield Key("all-gather", "Y"), Amount(3, 3 * per_token * m.D)
        yield Key("reduce-scatter", "Y"), Amount(2, 2 * per_token * m.D)
    yield from _replicated(trainer, table / shards, 4 * m.D / shards, keys)


def _replicated(trainer: Trainer, table: float, norm: float, keys: set[Key]) -> Iterator[Row]:
    """Yield gradients of weights replicated over more axes than R: embeddings over stages, norms over Y."""
    m, n = trainer.model, trainer.sizes
    stages, tensor = n["P"] > 1, n["Y"] > 1
    norms = m.L / n["P"] * norm * (2 + (m.experts.E if m.experts else 0))
    if ("all-reduce", "R") in keys:
        fewer = (table + norm / n["P"]) * stages + (norms + norm * (not stages)) * tensor
        yield Key("all-reduce", "R"), Amount(0, -fewer)
    if stages:
        yield Key("all-reduce", "PR"), Amount(2, 2 * table)
    if stages or tensor:
        yield Key("all-reduce", "PRY"), Amount(1, norm)
    if tensor:
        yield Key("all-reduce", "RY"), Amount(2, norms)


def _layer_weights(trainer: Trainer, which: str) -> int:
    """Return how many weights of one layer are gathered separately."""
    names = transformer.layer_weights(transformer.shapes(trainer.model))
    return sum(name.startswith("expert") == (which == "experts") for name in names)
