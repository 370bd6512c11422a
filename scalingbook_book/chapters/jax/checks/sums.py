"""Can a reader say where tokens and gradients go, and how often? Checks on experts and gradients."""

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
        title="Experts on other devices",
        answer=lambda: right({"all-to-all X": (2, _exchange(_D, _F))}),
        kind="program",
        difficulty=2,
        hints=(
            "Each device fills eight buckets of four places, one for each expert; empty places hold zeros.",
            "A token's place in its bucket: how many before it want the same expert? `jnp.cumsum` counts.",
            "`lax.all_to_all(buckets, 'X', 0, 0)` gives bucket e to device e, and brings results home.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather X": f32(_N, _D, _F)}),
                "The experts come to the tokens: every device then holds all of them. Let the tokens go.",
            ),
            Mistake(
                lambda: right({"all-to-all X": (2, _exchange(_D, _F, room=8))}),
                "Right, with room for all tokens of a device at every expert. Four places will do here.",
            ),
        ),
        right="Right: two all-to-alls, there and back.",
    ),
    Check(
        key="jax.dropped-tokens",
        title="What does not fit",
        answer=_dropped,
        rel_tol=0.04,
        difficulty=2,
        hints=(
            "How many of a device's tokens want one expert? That has a binomial distribution.",
            "Sum (n - 20) times the chance of n, over all n that are more than 20.",
        ),
        mistakes=(
            Mistake(
                lambda: sum(_law(n) for n in range(_PLACES + 1, 200)),
                "That is the share of buckets that overflow. Most tokens of these still have a place.",
            ),
            Mistake(
                lambda: _dropped(16),
                "That is a factor of 1. With 1.25 there are 20 places where 16 tokens are expected.",
            ),
            Mistake(
                lambda: _dropped() * _TOKENS / _EXPERTS,
                "That is the number of tokens that one bucket drops, not their share.",
            ),
        ),
    ),
    Check(
        key="jax.one-allreduce",
        title="One sum for all microbatches",
        answer=lambda: right({"all-reduce X": (1, _GRADIENT)}),
        kind="program",
        difficulty=2,
        hints=(
            "Who asks for a sum in every microbatch? w is the same everywhere, so its gradient must be, too.",
            "Within `shard_map`, let w pass as one that may differ: `compat.varying(w, 'X')`.",
            "Then every device adds up gradients of its own; a `lax.psum` behind the loop completes them.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-reduce X": (_MICROBATCHES, _MICROBATCHES * _GRADIENT)}),
                "A sum in every microbatch. Nothing in the loop needs it: only the total is asked for.",
            ),
            Mistake(
                lambda: right({"all-reduce X": (1, _MICROBATCHES * _GRADIENT)}),
                "One all-reduce, of six gradients: XLA has merged them. Add first, then sum once.",
            ),
        ),
        right="Right: a sixth of the bytes for the same gradient.",
    ),
)
