"""Scaling laws: how a model's loss depends on its size, its training tokens and its batch size.

`CHINCHILLA` and `CHINCHILLA_REFIT` are two fits of one formula to the same experiments. Each gives the loss
of a run, the compute-optimal size for a budget of FLOPs, and the size with the fewest FLOPs over a model's
lifetime. `batch_cost`, `noise_scale` and `step_law` are about the batch size and the learning rate. All of
them are fits to dense Transformers and to the data of their authors. Chapter: Scaling laws.

>>> print(CHINCHILLA_REFIT.optimum(5.76e23))
72.2B parameters, 1.33T tokens (18.4 per parameter), 5.76e23 FLOPs
>>> print(CHINCHILLA_REFIT.lifetime_optimum(5.76e23, served_tokens=1e13))
34.1B parameters, 3.73T tokens (109 per parameter), 7.62e23 FLOPs
>>> print(batch_cost(2**24, 2**22))
1.25 times the minimum number of steps, 5 times that of tokens
"""

from dataclasses import dataclass
from math import exp, log

from scalingbook_lib.units import Result, compact


@dataclass(frozen=True, slots=True)
class Allocation(Result):
    """The size of a model and the number of tokens that it is trained on."""

    params: float
    tokens: float

    @property
    def flops(self) -> float:
        """The FLOPs of training, 6 per parameter per token."""
        return 6 * self.params * self.tokens

    @property
    def tokens_per_param(self) -> float:
        """Training tokens for each parameter."""
        return self.tokens / self.params

    def lifetime_flops(self, served_tokens: float) -> float:
        """The FLOPs of training and of all tokens served afterwards, at 2 per parameter per token."""
        return self.flops + 2 * self.params * served_tokens

    def __str__(self) -> str:
        return (
            f"{compact(self.params)} parameters, {compact(self.tokens)} tokens ({self.tokens_per_param:,.3g} "
            f"per parameter), {f'{self.flops:.3g}'.replace('e+', 'e')} FLOPs"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLaw:
    """floor + params_scale/params^params_exponent + tokens_scale/tokens^tokens_exponent, in nats per token.

    `source` says where the constants were published, and `as_of` when.
    """

    name: str
    floor: float
    params_scale: float
    tokens_scale: float
    params_exponent: float
    tokens_exponent: float
    source: str
    as_of: str

    def loss(self, params: float, tokens: float) -> float:
        """The loss of a model of this size after that many tokens."""
        return (
            self.floor
            + self.params_scale / params**self.params_exponent
            + self.tokens_scale / tokens**self.tokens_exponent
        )

    @property
    def growth(self) -> float:
        """The power of the training FLOPs with which the compute-optimal size grows."""
        return self.tokens_exponent / (self.params_exponent + self.tokens_exponent)

    def optimum(self, flops: float) -> Allocation:
        """The size with the lowest loss among all runs of that many training FLOPs."""
        _positive(flops=flops)
        # the derivative of the loss along params · tokens = flops/6 is 0 there
        ratio = self.params_exponent * self.params_scale / (self.tokens_exponent * self.tokens_scale)
        params = ratio ** (1 / (self.params_exponent + self.tokens_exponent)) * (flops / 6) ** self.growth
        return Allocation(params, flops / 6 / params)

    def tokens_for(self, loss: float, params: float) -> float:
        """The tokens after which a model of this size reaches the loss.

        Raises ValueError if it never does.
        """
        left = loss - self.floor - self.params_scale / params**self.params_exponent
        if left <= 0:
            raise ValueError(
                f"{compact(params)} parameters never reach a loss of {loss:.4g} by the fit {self.name!r}; "
                f"give a loss above {loss - left:.4g}, or at least "
                f"{compact(self.least_params(loss))} parameters"
            )
        return (self.tokens_scale / left) ** (1 / self.tokens_exponent)

    def least_params(self, loss: float) -> float:
        """The size that would reach the loss after infinitely many tokens."""
        if loss <= self.floor:
            raise ValueError(f"a loss of {loss:.4g} is not above the floor of {self.floor:.4g} ({self.name})")
        return (self.params_scale / (loss - self.floor)) ** (1 / self.params_exponent)

    def same_loss(self, flops: float, size: float) -> Allocation:
        """A model `size` times as large as the optimum of that budget, trained until it has the same loss."""
        best = self.optimum(flops)
        params = size * best.params
        return Allocation(params, self.tokens_for(self.loss(best.params, best.tokens), params))

    def lifetime_optimum(self, flops: float, served_tokens: float) -> Allocation:
        """The run with the fewest lifetime FLOPs among those as good as the optimum of that budget.

        A served token costs 2 FLOPs per parameter, a training token 6 (sardana2024beyond).
        """
        best = self.optimum(flops)
        loss = self.loss(best.params, best.tokens)
        low, high = log(self.least_params(loss) * (1 + 1e-9)), log(best.params)
        for _ in range(100):  # bisection of the derivative's sign over log(params)
            middle = (low + high) / 2
            if self._lifetime_slope(exp(middle), loss, served_tokens) < 0:
                low = middle
            else:
                high = middle
        return Allocation(exp(high), self.tokens_for(loss, exp(high)))

    def _lifetime_slope(self, params: float, loss: float, served_tokens: float) -> float:
        """The derivative of the lifetime FLOPs by the parameters, at a constant loss."""
        tokens = self.tokens_for(loss, params)
        # of the loss above the floor, the part that the size causes
        share = self.params_scale / params**self.params_exponent / (loss - self.floor)
        fewer = self.params_exponent / self.tokens_exponent * share / (1 - share)
        return 6 * tokens * (1 - fewer) + 2 * served_tokens


# The parametric fit (Approach 3) as it is printed in the paper, equation 10.
CHINCHILLA = LossLaw(
    name="Hoffmann et al. 2022",
    floor=1.69,
    params_scale=406.4,
    tokens_scale=410.7,
    params_exponent=0.34,
    tokens_exponent=0.28,
    source="hoffmann2022training, Approach 3",
    as_of="2022-03-29",
)

# The same formula, fitted again to the data of the same paper, read from its figure.
CHINCHILLA_REFIT = LossLaw(
    name="Besiroglu et al. 2024",
    floor=1.8172,
    params_scale=482.01,
    tokens_scale=2085.43,
    params_exponent=0.3478,
    tokens_exponent=0.3658,
    source="besiroglu2024chinchilla",
    as_of="2024-05-15",
)


@dataclass(frozen=True, slots=True)
class BatchCost(Result):
    """Steps and tokens of a run to a given loss, relative to the fewest of each."""

    steps: float
    tokens: float

    def __str__(self) -> str:
        return f"{self.steps:.3g} times the minimum number of steps, {self.tokens:.3g} times that of tokens"


def batch_cost(batch_tokens: float, critical_tokens: float) -> BatchCost:
    """1 + critical/batch times the steps, and 1 + batch/critical times the tokens (mccandlish2018batch)."""
    _positive(batch_tokens=batch_tokens, critical_tokens=critical_tokens)
    return BatchCost(1 + critical_tokens / batch_tokens, 1 + batch_tokens / critical_tokens)


@dataclass(frozen=True, slots=True)
class NoiseScale(Result):
    """|G|², the squared norm of the true gradient, and tr Σ, the variance of that of one example."""

    gradient_squared: float
    variance: float

    @property
    def examples(self) -> float:
        """tr Σ/|G|²: the batch whose average has a variance as large as the squared gradient."""
        return self.variance / self.gradient_squared

    def __str__(self) -> str:
        return (
            f"noise scale {self.examples:.3g} "
            f"(|G|² = {self.gradient_squared:.3g}, tr Σ = {self.variance:.3g})"
        )


def noise_scale(small: float, small_squared: float, large: float, large_squared: float) -> NoiseScale:
    """The simple noise scale, from the mean squared gradient norms of a small and a large batch.

    A batch of b examples has a mean squared norm of |G|² + tr Σ/b; two batches give both terms
    (mccandlish2018batch, appendix A). The unit of the result is the unit of the batch sizes.
    """
    _positive(small=small, large=large)
    if small >= large:
        raise ValueError(f"the small batch ({small:g}) must be smaller than the large one ({large:g})")
    squared = (large * large_squared - small * small_squared) / (large - small)
    if squared <= 0:
        raise ValueError(
            f"squared norms of {small_squared:g} and {large_squared:g} leave no gradient: "
            "average each of them over more batches"
        )
    return NoiseScale(squared, (small_squared - large_squared) / (1 / small - 1 / large))


@dataclass(frozen=True, slots=True)
class Hyperparameters(Result):
    """The peak learning rate of AdamW, and the batch size in tokens."""

    rate: float
    batch_tokens: float

    def __str__(self) -> str:
        return f"learning rate {self.rate:.2g}, batch {compact(self.batch_tokens)} tokens"


def step_law(params: float, tokens: float) -> Hyperparameters:
    """1.79 · params^-0.713 · tokens^0.307 for the rate and 0.58 · tokens^0.571 for the batch (li2025step).

    A fit to dense models of up to about one billion parameters, without their embeddings, and to runs of up
    to about 100 billion tokens; beyond them it is extrapolated.
    """
    _positive(params=params, tokens=tokens)
    return Hyperparameters(1.79 * params**-0.713 * tokens**0.307, 0.58 * tokens**0.571)


def _positive(**given: float) -> None:
    for name, value in given.items():
        if not value > 0:
            raise ValueError(f"{name} is {value:g}; give a number above 0")
