"""Checks of exercises on inference: speculative decoding, paged allocation and KV-cache quantization."""

from collections.abc import Iterable
from itertools import product
from math import sin, sqrt

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference
from scalingbook_lib.serving import PagedCache

_Q = (0.5, 0.3, 0.2)
_R = (0.2, 0.3, 0.5)
TARGET = ((0.8, 0.1, 0.1), (0.3, 0.2, 0.5), (0.2, 0.2, 0.6))
DRAFT = ((0.3, 0.6, 0.1), (0.1, 0.3, 0.6), (0.1, 0.1, 0.8))

type Row = tuple[float, ...]


def _kept(q: Row = _Q, r: Row = _R) -> float:
    """The acceptance rate of tokens drawn from r: the sum of the smaller of the two probabilities."""
    return sum(map(min, q, r))


def _threshold(least: float, x: int) -> float:
    """Probability of token x if drafts are accepted above a ratio, and others replaced by a draw from q."""
    kept = [r if q / r >= least else 0.0 for q, r in zip(_Q, _R, strict=True)]
    return kept[x] + (1 - sum(kept)) * _Q[x]


def per_round(K: int, *, residual: bool = True, threshold: float | None = None) -> float:
    """Mean number of tokens per round, over the states in which rounds of a three-word language begin.

    From a state, `tokens` are expected and `ends` is where the round ends, draft by draft from the last one.
    Without `residual`, refused drafts are replaced by a draw from the target itself.
    """
    passed = [_passed(q, r, threshold) for q, r in zip(TARGET, DRAFT, strict=True)]
    tokens, ends = [1.0] * 3, [list(row) for row in TARGET]
    for _ in range(K):
        tokens = [1 + sum(p * t for p, t in zip(row, tokens, strict=True)) for row in passed]
        ends = [
            [sum(p * ends[x][y] for x, p in enumerate(row)) + _instead(s, row, y, residual) for y in range(3)]
            for s, row in enumerate(passed)
        ]
    begin = [1 / 3] * 3
    for _ in range(200):
        begin = [sum(begin[s] * ends[s][y] for s in range(3)) for y in range(3)]
    return sum(b * t for b, t in zip(begin, tokens, strict=True))


def _passed(q: Row, r: Row, threshold: float | None) -> Row:
    """The chance that a word is drafted and kept."""
    if threshold is None:
        return tuple(map(min, q, r))
    return tuple(b if a / b >= threshold else 0.0 for a, b in zip(q, r, strict=True))


def _instead(state: int, passed: Row, y: int, residual: bool) -> float:
    """The chance that the draft is refused and replaced by y."""
    q, r = TARGET[state][y], DRAFT[state][y]
    return max(q - r, 0.0) if residual else (1 - sum(passed)) * q


def most_blocks(*, shared: int = 40, whole: bool = False, size: int = 16) -> float:
    """The most blocks in use at once, the full ones of a shared beginning counted once.

    With `whole`, a request has the blocks of its output from its arrival on.
    """
    block, once = PagedCache(10_000, size), shared // size
    used = [0] * 2000
    for i in range(400):
        prompt, output = 48 + 37 * i % 200, 1 + 53 * i % 120
        for wrote in range(1, output + 1):
            used[4 * i + wrote - 1] += block.needed_for(prompt + (output if whole else wrote)) - once
    return max(used) + once


def _scales(by_channel: bool) -> float:
    """RMS error of 256 keys of 64 channels in int8, of all channels but the one that is 20 times as large."""
    keys = [[sin(1 + s * (h + 1)) * (20 if h == 5 else 1) for h in range(64)] for s in range(256)]
    rows = list(zip(*keys, strict=True)) if by_channel else keys
    errors = [_rounded(row) for row in rows]
    pairs = product(range(256), range(64))
    kept = [(errors[h][s] if by_channel else errors[s][h]) for s, h in pairs if h != 5]
    return sqrt(sum(e * e for e in kept) / len(kept))


def _rounded(row: Iterable[float]) -> list[float]:
    """The rounding error of each number, with one scale for all of them."""
    row = list(row)
    scale = max(map(abs, row)) / 127
    return [round(x / scale) * scale - x for x in row]


def _times_worse() -> float:
    return _scales(by_channel=False) / _scales(by_channel=True)


ACCEPTED = (
    Check(
        key="inference.tokens-per-round",
        title="Tokens per round of speculative decoding",
        answer=lambda: inference.speculative(_kept(), 3, cost=0).tokens,
        unit="tokens",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "The draft proposes x with probability r(x), and x is accepted "
            "with probability min(1, q(x)/r(x)).",
            "The first rejected token ends the round, and the target adds one of its own.",
        ),
        mistakes=(
            Mistake(
                lambda: inference.speculative(_kept(), 3, cost=0).tokens - 1,
                "Each round also yields one token of the target's own.",
            ),
            Mistake(
                lambda: 1 + 3 * _kept(),
                "After the first rejected token, the remaining draft tokens are discarded.",
            ),
            Mistake(
                # the probability that both draw the same token
                lambda: (
                    inference.speculative(sum(q * r for q, r in zip(_Q, _R, strict=True)), 3, cost=0).tokens
                ),
                "The two models need not draw the same token; the draft token only has to be accepted.",
            ),
        ),
    ),
    Check(
        key="inference.threshold-bias",
        title="Why an acceptance threshold is wrong",
        answer=lambda: _threshold(0.5, 1),
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "Which of the three tokens is always rejected?",
            "How often is a token drawn from q instead? Add the draft tokens that are accepted.",
        ),
        mistakes=(
            Mistake(
                lambda: _Q[1],
                "That is its probability under the target, which only the random rule preserves.",
            ),
            Mistake(
                lambda: _threshold(0.5, 2),
                "That is the token that is always rejected. The question asks about the second one.",
            ),
            Mistake(
                lambda: _R[1] * _Q[1] / 0.5, "Accepted draft tokens count as well, not only the replacements."
            ),
        ),
    ),
)

BUILT = (
    Check(
        key="inference.block-allocator",
        title="A block allocator for a paged KV cache",
        answer=most_blocks,
        unit="blocks",
        difficulty=3,
        rel_tol=0,
        hints=(
            "You need a table per request, a list of free blocks, and for each "
            "block the number of tables that use it.",
            "How many whole blocks do the 40 common tokens fill? Only these can be shared.",
            "A request takes a block when its last one is full, and "
            "returns all of its blocks when it leaves.",
        ),
        mistakes=(
            Mistake(
                lambda: most_blocks(shared=0),
                "The blocks of the common prefix are shared, so each is stored once.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: most_blocks(shared=48),
                "A block whose tokens are only partly the same cannot be shared.",
            ),
            Mistake(
                lambda: most_blocks(whole=True),
                "You reserved the blocks of the output on arrival. Take a block only when a token needs it.",
            ),
            Mistake(lambda: most_blocks(size=1), "That is a number of tokens. Count blocks of 16 tokens."),
        ),
        right="Right, and no request has more than one partly filled block.",
    ),
    Check(
        key="inference.speculative-sampling",
        title="Implement speculative sampling",
        answer=lambda: per_round(4),
        unit="tokens",
        difficulty=3,
        hints=(
            "Accept a draft token x if a random number in [0, 1) is below q(x)/r(x).",
            "Replace a rejected token by a draw from max(0, q − r), divided by its sum.",
            "If all four are accepted, draw one more from q. The next round continues after the last token.",
        ),
        mistakes=(
            Mistake(
                lambda: per_round(4, residual=False),
                "A rejected token is replaced by a draw from max(0, q − r), not from q. Compare how often "
                "each word is generated.",
            ),
            Mistake(lambda: per_round(4) - 1, "The token that the target adds counts as well."),
            Mistake(
                lambda: per_round(4, threshold=0.5, residual=False),
                "A draft token is accepted at random, not by a threshold.",
            ),
        ),
    ),
    Check(
        key="inference.loud-channel",
        title="KV-cache quantization with an outlier channel",
        answer=_times_worse,
        difficulty=3,
        hints=(
            "A scale is the largest absolute value of its group, divided by 127.",
            "Round to integer multiples of the scale, multiply back, and compare with the exact keys.",
            "Compute one error over all 63 other channels: the square root of the mean square.",
        ),
        mistakes=(
            Mistake(
                lambda: 1 / _times_worse(),
                "This is the inverse. Divide the error with a scale per token by the other one.",
            ),
            Mistake(
                lambda: _times_worse() ** 2, "That is the ratio of the mean squares. Take the square root."
            ),
        ),
    ),
)
