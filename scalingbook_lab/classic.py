"""Recognize common mistakes in a wrong array: a sum instead of a mean, a wrong sign, a roll in the wrong
direction.

Each mistake is applied to the oracle's result, or to the oracle itself, and the outcome is compared with the
program's result.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

type Near = Callable[[np.ndarray, np.ndarray], bool]


def slip(got: np.ndarray, wanted: np.ndarray, turned: np.ndarray | None, near: Near) -> str:
    """Return a sentence about the mistake that leads from `wanted` to `got`, or "" if none is recognized.

    `turned` is the oracle's result when all its rolls go in the opposite direction.
    """
    if got.shape != wanted.shape or not wanted.any():
        return ""
    return next(_slips(got, wanted, turned, near), "")


def _slips(got: np.ndarray, wanted: np.ndarray, turned: np.ndarray | None, near: Near) -> Iterator[str]:
    if near(got, -wanted):
        yield "every entry has the wrong sign, as when the difference is taken the other way round"
    if turned is not None and not near(wanted, turned):
        if near(got, turned):
            yield "it rolls in the other direction (down is towards larger indices)"
        if near(got, -turned):
            yield "it rolls in the other direction, and the sign is wrong, too"
    times = _times(got, wanted)
    if times and near(got, times * wanted):
        yield _scaled(times)
    for axis, size in enumerate(wanted.shape):
        for by in range(1, size):
            if near(got, np.roll(wanted, by, axis)):
                yield f"the right entries are in other places: dimension {axis} is rolled by {_way(by, size)}"


def _times(got: np.ndarray, wanted: np.ndarray) -> float:
    """Return the factor between two arrays at the largest entry of `wanted`, or 0 if there is none."""
    at = np.unravel_index(int(np.abs(wanted).argmax()), wanted.shape)
    times = float(got[at] / wanted[at])
    return times if math.isfinite(times) and abs(times) > 1e-6 else 0.0


def _scaled(times: float) -> str:
    whole = round(times if times > 1 else 1 / times)
    if whole > 1 and math.isclose(whole, times, rel_tol=1e-3):
        return f"every entry is {whole} times what it should be, as when a sum is taken for a mean"
    if whole > 1 and math.isclose(1 / whole, times, rel_tol=1e-3):
        return f"every entry is 1/{whole} of what it should be, as when a mean is taken for a sum"
    return f"every entry is {times:.3g} times what it should be"


def _way(by: int, size: int) -> str:
    return f"{by}" if by <= size // 2 else f"{by - size}"


def turned(oracle: Callable, arrays: tuple[Any, ...]) -> list[np.ndarray]:
    """Return the oracle's results with all its rolls reversed, or an empty list if it rolls nothing."""
    rolled = False

    def backwards(roll: Callable) -> Callable:
        def rolls(a: Any, shift: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal rolled
            rolled = True
            return roll(a, jax.tree.map(lambda by: -by, shift), *args, **kwargs)

        return rolls

    with contextlib.ExitStack() as patched:
        for module in (np, jnp):
            patched.enter_context(mock.patch.object(module, "roll", backwards(module.roll)))
        results = [np.asarray(a) for a in jax.tree.leaves(oracle(*arrays))]
    return results if rolled else []
