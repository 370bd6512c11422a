"""Checks of the exercises on expert dispatch and on gradient accumulation."""

from math import comb

from scalingbook_book.chapters.jax.checks.rings import f32
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_book.reader.checks.programs import right

_N, _D, _F, _ROOM = 8, 16, 32, 4  # devices (and experts), widths, places for a device's tokens at an expert
_GRADIENT, _MICROBATCHES = f32(16, 8), 6
_TOKENS, _EXPERTS, _PLACES = 1024, 64, 20


def _law(n: int) -> float:
    """The chance that n of a device's tokens want one expert, when all of them choose at random."""
    p = 1 / _EXPERTS
    return comb(_TOKENS, n) * p**n * (1 - p) ** (_TOKENS - n)


def _dropped(places: int = _PLACES) -> float:
    """The share of tokens for which there is no place."""
    beyond = sum((n - places) * _law(n) for n in range(places + 1, 200))  # from 200 on: 1e-80
    return beyond * _EXPERTS / _TOKENS


def _exchange(*widths: int, room: int = _ROOM) -> int:
    """The bytes of all-to-alls of n buckets on each of n devices."""
    return sum(_N * f32(_N, room, width) for width in widths)


SUMS = (
    Check(
        key="jax.expert-alltoall",
        title="Expert dispatch and combine",
        answer=lambda: right({"all-to-all X": (2, _exchange(_D, _F))}),
        kind="program",
        difficulty=2,
        hints=(
            "Each device fills eight buckets of four slots, one bucket per expert. Empty slots hold zeros.",
            "The slot of a token is the number of earlier tokens for the same expert. `jnp.cumsum` "
            "counts them.",
            "`lax.all_to_all(buckets, 'X', 0, 0)` sends bucket e to device e, and later returns the results.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather X": f32(_N, _D, _F)}),
                "You send the experts to the tokens, so every device ends up with all experts. Send "
                "the tokens.",
            ),
            Mistake(
                lambda: right({"all-to-all X": (2, _exchange(_D, _F, room=8))}),
                "Right, but your buckets hold all tokens of a device. Four slots per expert are enough here.",
            ),
        ),
        right="Right: one AllToAll dispatches the tokens, and one combines the results.",
    ),
    Check(
        key="jax.dropped-tokens",
        title="Dropped tokens",
        answer=_dropped,
        rel_tol=0.04,
        difficulty=2,
        hints=(
            "The number of a device's tokens for one expert has a binomial distribution.",
            "Sum (n - 20) times the probability of n, over all n greater than 20.",
        ),
        mistakes=(
            Mistake(
                lambda: sum(_law(n) for n in range(_PLACES + 1, 200)),
                "That is the fraction of buckets that overflow. Most of their tokens still get a slot.",
            ),
            Mistake(
                lambda: _dropped(16),
                "That is for a capacity factor of 1. With 1.25, there are 20 slots for 16 expected tokens.",
            ),
            Mistake(
                lambda: _dropped() * _TOKENS / _EXPERTS,
                "That is the number of tokens that one bucket drops, not the fraction of all tokens.",
            ),
        ),
    ),
    Check(
        key="jax.one-allreduce",
        title="Gradient accumulation with one AllReduce",
        answer=lambda: right({"all-reduce X": (1, _GRADIENT)}),
        kind="program",
        difficulty=2,
        hints=(
            "Why is there an AllReduce in every microbatch? w is the same on all devices, so its "
            "gradient must be, too.",
            "Inside `shard_map`, say that w may differ between devices: `compat.varying(w, 'X')`.",
            "Then every device accumulates its own gradients, and one `lax.psum` after the loop "
            "completes them.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-reduce X": (_MICROBATCHES, _MICROBATCHES * _GRADIENT)}),
                "You run an AllReduce for every microbatch, but nothing inside the loop needs its result.",
            ),
            Mistake(
                lambda: right({"all-reduce X": (1, _MICROBATCHES * _GRADIENT)}),
                "There is one AllReduce of six gradients, because XLA merged the six AllReduces. "
                "Accumulate first, then sum once.",
            ),
        ),
        right="Right: you get the same gradient for a sixth of the bytes.",
    ),
)
