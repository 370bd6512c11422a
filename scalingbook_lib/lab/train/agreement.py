"""Does a compiled training step communicate what `training.traffic` says it must?

`agreement.of(trainer)` sets the two side by side: kind, axes, how often, how many bytes. Where the program of
the laboratory differs from the plan on purpose, or does what no plan counts (the loss, gradients of norms),
the difference is a line of this module with its reason and its exact size. Chapter: Training.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from scalingbook_lib import training
from scalingbook_lib.lab.compiler import hlo
from scalingbook_lib.lab.compiler.predicted import NOTHING, Amount, Key, Row, Sums, of_traffic, summed
from scalingbook_lib.lab.train import transformer
from scalingbook_lib.lab.train.trainer import Trainer
from scalingbook_lib.machines import chips, slices
from scalingbook_lib.units import FP32, Result

SHAPES = {1: (1, 1), 4: (2, 2), 8: (2, 4), 16: (4, 4), 32: (4, 8), 64: (8, 8)}


@dataclass(frozen=True, slots=True)
class CollectiveAgreement(Result):
    """One kind of collective over some axes in one step. All-reduces are merged, so they are not counted."""

    kind: str
    axes: str
    predicted_times: float
    predicted: float
    compiled_times: float
    compiled: float

    @property
    def agrees(self) -> bool:
        """The same bytes, as often."""
        often = self.kind == "all-reduce" or self.predicted_times == self.compiled_times
        return often and self.predicted == self.compiled

    def __str__(self) -> str:
        compiled, predicted = f"{self.compiled:,.0f}", f"{self.predicted:,.0f}"
        return f"{self.kind} over {self.axes}: {compiled} bytes compiled, {predicted} predicted"


@dataclass(frozen=True, slots=True)
class Agreement(Result):
    """The lines of all that is predicted or compiled."""

    lines: tuple[CollectiveAgreement, ...]

    @property
    def differ(self) -> tuple[CollectiveAgreement, ...]:
        """The lines that do not agree."""
        return tuple(line for line in self.lines if not line.agrees)

    def __str__(self) -> str:
        head = ("collective", "axes", "predicted times", "compiled", "predicted bytes", "compiled")
        rows: list[tuple[str, ...]] = [head]
        for a in self.lines:
            numbers = (a.predicted_times, a.compiled_times, a.predicted, a.compiled)
            rows.append((a.kind, a.axes, *(f"{n:,.0f}" for n in numbers)))
        return hlo.table(rows)


def of(trainer: Trainer) -> Agreement:
    """Prediction and compiled program of one training step."""
    return beside(predicted(trainer), trainer.program.collectives)


def beside(wanted: Sums, rows: hlo.Collectives) -> Agreement:
    """A line for each kind and axes that is predicted, compiled, or both."""
    found = summed((Key(c.kind, c.axes), Amount(c.times or 0, (c.times or 0) * c.nbytes)) for c in rows)
    both = {key: (wanted.get(key, NOTHING), found.get(key, NOTHING)) for key in sorted(wanted | found)}
    return Agreement(
        tuple(
            CollectiveAgreement(*key, w.times or 0, w.nbytes, f.times or 0, f.nbytes)
            for key, (w, f) in both.items()
        )
    )


def plan(trainer: Trainer) -> training.Plan:
    """The trainer's mesh as a plan: Z and X together share the weights, R are copies."""
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
        logit_bytes=8.0 if n["Y"] > 1 else 4.0,  # over Y, logits outlive the sums of the softmax
        **dict.fromkeys(("weights", "compute", "activations", "gradients", "moments"), FP32),
    )


def predicted(trainer: Trainer) -> Sums:
    """What the plan says, and what the laboratory's program does otherwise."""
    if not trainer.remat:
        raise ValueError("remat=False keeps gathered weights, which no plan does; compare with remat=True")
    where = slices.Slice(chips.V5E, SHAPES[trainer.devices.size])
    told = training.traffic(trainer.model, plan(trainer), where, batch=trainer.batch, T=trainer.T)
    said = [_said(trainer, t) for t in told]
    return over_devices([*said, *_otherwise(trainer, {key for key, _ in said})], trainer.sizes)


def over_devices(rows: Iterable[Row], sizes: Mapping[str, int]) -> Sums:
    """Rows summed by kind and axes; axes of one device are left out, and nothing moves over them."""
    real = [axis for axis, n in sizes.items() if n > 1]
    here = ((Key(kind, "".join(a for a in real if a in axes)), amount) for (kind, axes), amount in rows)
    return summed((key, amount) for key, amount in here if key.axes)


def _said(trainer: Trainer, t: training.TrainingCollective) -> Row:
    """One row of the prediction in the laboratory's terms."""
    n, e, of = trainer.sizes, trainer.model.experts, t.name
    axes = {"X": "XC" if of.startswith("expert") else "XZC"}.get(t.axes, t.axes)
    key, (times, nbytes) = of_traffic(t)
    assert times is not None  # a plan knows how often
    if t.axes in "XR":  # the laboratory moves each weight by itself
        times *= _layer_weights(trainer, "experts" if of.startswith("expert") else "dense")
    if t.axes == "Z" and e:  # a place for every token at every expert, and tokens are gathered over Y before
        nbytes *= e.E / e.k * n["Y"]
    if of == "tensor, experts" and e:  # before, so once for all k
        nbytes /= e.k
    if n["P"] > 1 and t.axes in "YCZPX":  # M + P - 1 ticks; in the others than M, what is moved is nothing
        M, shares = trainer.microbatches, t.axes == "X"
        if shares and not of.startswith("expert"):  # no tick gathers the ends, nor the last norm
            nbytes -= M * 4 * trainer.model.D * (trainer.model.V / n["Y"] + 1 / n["P"])
        # forward, a stage's gathers do not depend on the tick: they are moved out of the loop, and done once
        ticks = 1 if shares and t.when == "fwd" else M + n["P"] - 1
        times, nbytes = times * ticks / M, nbytes * ticks / M
    return Key(key.kind, axes), Amount(times, nbytes)


def _otherwise(trainer: Trainer, said: set[Key]) -> Iterator[Row]:
    """Where the program differs: the loss, the ends of the model, and norms, which Y and stages copy."""
    m, n = trainer.model, trainer.sizes
    ways, tokens = n["X"] * n["Z"] * n["C"], trainer.batch * trainer.T
    table, here = 4 * m.V * m.D / n["Y"], 4 * tokens / (n["R"] * ways)  # bytes of one number for each token
    yield Key("all-reduce", transformer.AXES), Amount(1, 4)  # the loss, told on every device
    if ways > 1:  # a lookup's gradient needs no second gather of the table
        ends = (-table, 0) if n["P"] == 1 else (3 * table + 8 * m.D, 2 * table + 4 * m.D)
        yield Key("all-gather", "XZC"), Amount(5, ends[0])
        yield Key("reduce-scatter", "XZC"), Amount(3, ends[1])
    if n["Y"] > 1:  # largest logit, sum, target's logit; the first two again; gradients of the last two
        yield Key("all-reduce", "Y"), Amount(7, 7 * here)
    if n["P"] > 1 and n["Y"] > 1:  # the vocabulary's pair, for all microbatches at once
        yield Key("all-gather", "Y"), Amount(3, 3 * here * m.D)
        yield Key("reduce-scatter", "Y"), Amount(2, 2 * here * m.D)
    yield from _copied(trainer, table / ways, 4 * m.D / ways, said)


def _copied(trainer: Trainer, table: float, norm: float, said: set[Key]) -> Iterator[Row]:
    """What lies on more devices than R, and is summed over these too: ends on stages, norms, routers on Y."""
    m, n = trainer.model, trainer.sizes
    stages, ways = n["P"] > 1, n["Y"] > 1
    norms = m.L / n["P"] * norm * (2 + (m.experts.E if m.experts else 0))
    if ("all-reduce", "R") in said:
        fewer = (table + norm / n["P"]) * stages + (norms + norm * (not stages)) * ways
        yield Key("all-reduce", "R"), Amount(0, -fewer)
    if stages:
        yield Key("all-reduce", "PR"), Amount(2, 2 * table)
    if stages or ways:
        yield Key("all-reduce", "PRY"), Amount(1, norm)
    if ways:
        yield Key("all-reduce", "RY"), Amount(2, norms)


def _layer_weights(trainer: Trainer, which: str) -> int:
    """How many weights of one layer are moved by themselves."""
    names = transformer.of_layers(transformer.shapes(trainer.model))
    return sum(name.startswith("expert") == (which == "experts") for name in names)
