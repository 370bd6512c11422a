"""The state and the FLOPs of optimizers, and layouts of their work over chips.

AdamW updates each parameter on its own. Shampoo, SOAP and Muon treat a weight W[D, F] as a matrix: they need
all of it on one chip, or collectives. `layouts` compares four layouts of Muon's Newton-Schulz iteration. Here
D is the shorter side. Chapter: Low precision.

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
JORDAN = (3.4445, -4.7750, 2.0315)  # a, b, c of Keller Jordan's Muon: fast, but only to 1 +- 0.3
EXACT = (2.0, -1.5, 0.5)  # slower, but they converge to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer(Result):
    """The dtypes of the state per parameter, and the further state and matmuls per weight matrix.

    `moments` are running averages with the shape of the weight. With `factored`, there is one fp32 average
    per row and per column instead. `sides` is the number of fp32 matrices of D x D and of F x F, and
    `products` the number of matmuls of the weight with a matrix of either kind, per step.
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
        """Return the bytes of training state for `params` parameters in matrices of D x F."""
        own = {
            "weights": self.weights.bytes,
            "gradients": self.gradients.bytes,
            "master": self.master.bytes,
            # Adam's: averages of the gradient, and of its square
            "moments": sum(moment.bytes for moment in self.moments),
            # D + F numbers for D · F weights, which is negligible
            "rows and columns": FP32.bytes * (D + F) / (D * F) * self.factored,
            # X Xᵀ is [D, D], Xᵀ X is [F, F]: for F = 3.5 D more than the weight itself
            "sides": FP32.bytes * self.sides * (D * D + F * F) / (D * F),
        }
        terms = tuple(
            Term(part, params * each, f"{each:.4g} bytes each") for part, each in own.items() if each
        )
        return TrainingState(terms, params)

    def flops(self, D: int, F: int) -> float:
        """Return the FLOPs of the matmuls per step; elementwise work is not counted."""
        # [D, D] times [D, F], and [D, F] times [F, F]
        return 2 * self.products * D * F * (D + F) + newton_schulz(D, F, self.iterations)

    def __str__(self) -> str:
        return f"{self.name}: {self.state(1).bytes_per_parameter:.4g} bytes per parameter"


_MOMENT8 = INT8_256.dtype
ADAMW = Optimizer(name="AdamW", moments=(FP32, FP32))
ADAM8 = Optimizer(name="8-bit Adam", moments=(_MOMENT8, _MOMENT8))
ADAFACTOR = Optimizer(name="Adafactor", factored=True)
MUON = Optimizer(name="Muon", moments=(FP32,), iterations=ITERATIONS)
# statistics and their roots; two matmuls update the statistics, and two apply the roots
SHAMPOO = Optimizer(name="Shampoo", sides=2, products=2)
# statistics and their eigenvectors; AdamW runs in that basis, so matmuls lead there and back
SOAP = Optimizer(name="SOAP", moments=(FP32, FP32), sides=2, products=3)
DEEPSEEK_V3 = Optimizer(name="AdamW of DeepSeek-V3", moments=(BF16, BF16), weights=FP8, gradients=FP32)
OPTIMIZERS = {o.name: o for o in (ADAMW, ADAM8, ADAFACTOR, MUON, SHAMPOO, SOAP, DEEPSEEK_V3)}


def newton_schulz(D: int, F: int, iterations: int = ITERATIONS) -> float:
    """Return the FLOPs of X <- aX + (bA + cA^2) X, A = X X^T: 4 D^2 F + 2 D^3 per iteration, D <= F."""
    D, F = sorted((D, F))
    # A = X Xᵀ and (...) X are 2 D² F each, A A is 2 D³. Source: jordan2024muon
    return iterations * (4 * D * D * F + 2 * D**3)


def pushed(singular: float, iterations: int = ITERATIONS, abc: tuple[float, float, float] = JORDAN) -> float:
    """Return a singular value after the iterations s <- a s + b s^3 + c s^5, which keep singular vectors."""
    a, b, c = abc
    for _ in range(iterations):
        # odd powers only: X, (X Xᵀ) X and (X Xᵀ)² X keep the singular vectors
        singular = a * singular + b * singular**3 + c * singular**5
    return singular


def matrices(model: Transformer) -> Iterator[tuple[int, int, int]]:
    """Yield D, F and the copies of each matrix that Muon updates: all but embeddings and routers."""
    for w in model.weights():
        # AdamW updates vectors, embedding and unembedding (liu2025muon)
        if len(w.shape) > 1 and w.part not in ("embedding", "unembedding", "router"):
            rows = w.size // w.shape[-1] if w.shape[-1] == model.D else w.shape[0]
            D, F = sorted((rows, w.size // rows))
            yield D, F, w.copies


def orthogonalized(model: Transformer, iterations: int = ITERATIONS) -> float:
    """Return the FLOPs of a step's Newton-Schulz iterations over the whole model, whatever the batch."""
    return sum(copies * newton_schulz(D, F, iterations) for D, F, copies in matrices(model))


@dataclass(frozen=True, slots=True)
class Orthogonalization(Result):
    """FLOPs, bytes and time per chip to orthogonalize one sharded matrix in one layout."""

    name: str
    flops: float
    sent_bytes: float
    math_s: float
    network_s: float

    @property
    def total_s(self) -> float:
        """Compute plus communication in seconds: each iteration waits for its operands."""
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
    """Return four layouts of the iteration on p chips that each hold 1/p of the matrix.

    With the short side sharded, X and A are gathered in each iteration. With the long side sharded,
    A = X X^T is all-reduced, and every chip computes A A. The matrix can also be gathered once, and every
    chip performs all of the work. Or each of p matrices has an owner, which gathers it with one AllToAll and
    sends the result back with another.
    """
    # the short side is squared
    D, F = sorted((D, F))
    p, whole, square = machine.chips, dtype.bytes * D * F, dtype.bytes * D * D
    # sharding along F does not divide the FLOPs of A A
    all_of_it, cube = newton_schulz(D, F, iterations), iterations * 2 * D**3
    ways = (
        # every chip has rows of X, and needs all of X and of A to compute its rows of the results
        ("short side cut", all_of_it / p, ((GATHER, whole, iterations), (GATHER, square, iterations))),
        ("long side cut", (all_of_it - cube) / p + cube, ((REDUCE, square, iterations),)),
        ("gathered by all", all_of_it, ((GATHER, whole, 1),)),
        # one AllToAll for p matrices there, and one back: 2/p per matrix
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
