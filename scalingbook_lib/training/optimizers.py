"""What does an optimizer keep, what does it compute, and how is its work laid over chips?

AdamW touches each parameter alone. Shampoo, SOAP and Muon take a weight W[D, F] as a matrix, and need all of
it in one place, or collectives: `layouts` has four ways for Muon's Newton-Schulz iteration. Here D is the
shorter side. Chapter: Low precision and optimizers.

>>> print(MUON.state(70e9))
840 GB, 12 for each parameter: weights 140 GB (17%), gradients 140 GB (17%), master 280 GB (33%), \
moments 280 GB (33%)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective, Transfer, bytes_received
from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.formats import INT8_256
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic.memory import TrainingState
from scalingbook_lib.models.arithmetic.terms import Term
from scalingbook_lib.units import BF16, FP8, FP32, DType, Result, si

ITERATIONS = 5
JORDAN = (3.4445, -4.7750, 2.0315)  # a, b, c of Keller Jordan's Muon: fast, to 1 +- 0.3
EXACT = (2.0, -1.5, 0.5)  # slower, and to 1 itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer(Result):
    """The types of what is kept for each parameter, and for each matrix beside it.

    `moments`: running averages of the weight's own shape. `factored`: one average for each row and each
    column, in fp32. `sides`: how many matrices of D x D and of F x F, in fp32. `products` of the weight with
    a matrix of either side, in each step.
    """

    name: str
    moments: tuple[DType, ...] = ()
    factored: bool = False
    sides: int = 0
    products: int = 0
    iterations: int = 0
    weights: DType = BF16
    gradients: DType = BF16
    master: DType = FP32

    def state(self, params: float, D: int = 8192, F: int = 28_672) -> TrainingState:
        """Bytes between steps for so many parameters in matrices of that shape."""
        own = {
            "weights": self.weights.bytes,
            "gradients": self.gradients.bytes,
            "master": self.master.bytes,
            # Adam's: averages of the gradient, and of its square
            "moments": sum(moment.bytes for moment in self.moments),
            # D + F figures for D · F weights: all but nothing
            "rows and columns": FP32.bytes * (D + F) / (D * F) * self.factored,
            # X Xᵀ is [D, D], Xᵀ X is [F, F]: for F = 3.5 D more than the weight itself
            "sides": FP32.bytes * self.sides * (D * D + F * F) / (D * F),
        }
        terms = tuple(
            Term(part, params * each, f"{each:.4g} bytes each") for part, each in own.items() if each
        )
        return TrainingState(terms, params)

    def flops(self, D: int, F: int) -> float:
        """FLOPs a step of its products of matrices; what is done to each element alone is left out."""
        # a [D, D] with [D, F], and [D, F] with an [F, F]
        return 2 * self.products * D * F * (D + F) + newton_schulz(D, F, self.iterations)

    def __str__(self) -> str:
        return f"{self.name}: {self.state(1).bytes_per_parameter:.4g} bytes a parameter"


_MOMENT8 = INT8_256.dtype
ADAMW = Optimizer(name="AdamW", moments=(FP32, FP32))
ADAM8 = Optimizer(name="8-bit Adam", moments=(_MOMENT8, _MOMENT8))
ADAFACTOR = Optimizer(name="Adafactor", factored=True)
MUON = Optimizer(name="Muon", moments=(FP32,), iterations=ITERATIONS)
# statistics and their roots; two products make the statistics, two use the roots
SHAMPOO = Optimizer(name="Shampoo", sides=2, products=2)
# statistics and their directions; AdamW in those: to them and back
SOAP = Optimizer(name="SOAP", moments=(FP32, FP32), sides=2, products=3)
DEEPSEEK_V3 = Optimizer(name="AdamW of DeepSeek-V3", moments=(BF16, BF16), weights=FP8, gradients=FP32)
OPTIMIZERS = {o.name: o for o in (ADAMW, ADAM8, ADAFACTOR, MUON, SHAMPOO, SOAP, DEEPSEEK_V3)}


def newton_schulz(D: int, F: int, iterations: int = ITERATIONS) -> float:
    """X <- aX + (bA + cA^2) X with A = X X^T: 4 D^2 F + 2 D^3 FLOPs each time, D the shorter side."""
    D, F = sorted((D, F))
    # A = X Xᵀ and (...) X are 2 D² F each, A A is 2 D³. Source: jordan2024muon
    return iterations * (4 * D * D * F + 2 * D**3)


def pushed(singular: float, iterations: int = ITERATIONS, abc: tuple[float, float, float] = JORDAN) -> float:
    """What becomes of a singular value: s <- a s + b s^3 + c s^5; the singular vectors stay."""
    a, b, c = abc
    for _ in range(iterations):
        # odd powers only: X, (X Xᵀ) X and (X Xᵀ)² X keep the singular vectors
        singular = a * singular + b * singular**3 + c * singular**5
    return singular


def matrices(model: Transformer) -> Iterator[tuple[int, int, int]]:
    """D, F and copies of what Muon works on: matrices of the layers, not the vocabulary's, nor the router."""
    for w in model.weights():
        # Muon leaves vectors and the vocabulary's matrices to AdamW (liu2025muon)
        if len(w.shape) > 1 and w.part not in ("embedding", "unembedding", "router"):
            rows = w.size // w.shape[-1] if w.shape[-1] == model.D else w.shape[0]
            D, F = sorted((rows, w.size // rows))
            yield D, F, w.copies


def orthogonalized(model: Transformer, iterations: int = ITERATIONS) -> float:
    """FLOPs of one step's Newton-Schulz iterations for all of a model, whatever the batch."""
    return sum(copies * newton_schulz(D, F, iterations) for D, F, copies in matrices(model))


@dataclass(frozen=True, slots=True)
class Orthogonalization(Result):
    """One way to orthogonalize a matrix that lies in parts: of one chip, and for one matrix."""

    name: str
    flops: float
    sent_bytes: float
    math_s: float
    network_s: float

    @property
    def total_s(self) -> float:
        """One after the other: an iteration waits for what it multiplies."""
        return self.math_s + self.network_s

    def __str__(self) -> str:
        return (
            f"{self.name}: {si(self.flops, 'FLOPs')} in {si(self.math_s, 's')}, "
            f"{si(self.sent_bytes, 'B')} sent in {si(self.network_s, 's')}"
        )


GATHER, REDUCE, EXCHANGE = Collective.ALL_GATHER, Collective.ALL_REDUCE, Collective.ALL_TO_ALL


def layouts(
    D: int, F: int, machine: Machine, *, iterations: int = ITERATIONS, dtype: DType = BF16
) -> tuple[Orthogonalization, ...]:
    """Four ways on p chips that each hold 1/p of the matrix.

    Short side cut: X and A gathered in each iteration. Long side cut: A = X X^T summed, and the product of A
    with itself done by all. Gathered: once, then everything by all. Owned: of p such matrices each chip
    gathers one by an AllToAll, and sends its result back by another.
    """
    # the short side is the one that is squared
    D, F = sorted((D, F))
    p, whole, square = machine.chips, dtype.bytes * D * F, dtype.bytes * D * D
    # of these FLOPs, A A is the part that a cut along F does not split
    all_of_it, cube = newton_schulz(D, F, iterations), iterations * 2 * D**3
    ways = (
        # every chip has rows of X, and needs all of X and of A for its rows of the products
        ("short side cut", all_of_it / p, ((GATHER, whole, iterations), (GATHER, square, iterations))),
        ("long side cut", (all_of_it - cube) / p + cube, ((REDUCE, square, iterations),)),
        ("gathered by all", all_of_it, ((GATHER, whole, 1),)),
        # an AllToAll over p matrices there, and one back: 2/p of them for each matrix
        ("owned by one", all_of_it / p, ((EXCHANGE, p * whole, 2 / p),)),
    )
    rate = machine.chip.flops_per_s(dtype)
    return tuple(
        Orthogonalization(
            name,
            flops,
            sum(times * bytes_received(kind, nbytes, p) for kind, nbytes, times in moves),
            flops / rate,
            sum(times * _moved(machine, kind, nbytes).total_s for kind, nbytes, times in moves),
        )
        for name, flops, moves in ways
    )


def _moved(machine: Machine, kind: str, nbytes: float) -> Transfer:
    return collectives.FORMULAS[kind](nbytes, *machine.mesh(X=machine.chips).axes("X"))
