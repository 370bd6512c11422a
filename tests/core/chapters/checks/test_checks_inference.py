"""The exercises on inference: answers worked out by hand or by brute force, and usual slips are named."""

import random
from math import ceil, sin, sqrt

import pytest
from judged import right, wrong

from scalingbook_lib.chapters import checks
from scalingbook_lib.chapters.inference.checks import speculative

CHECKS = checks.catalogue("inference")
HBM = 16 * 819e9  # sixteen v5e, bytes/s


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("inference.1", 64 * 4096 * (3 * 16384 + 2 * 256 * 40) + 4096 * 32128),
        ("inference.2", "256 KiB"),
        ("inference.3", "1.4 ms"),
        ("inference.4", "18.44 ms"),
        ("inference.5", 211.7e9),
        ("inference.6", "26.8 ms"),
        ("inference.7", 90),
        ("inference.8", "4.48 ms"),
        ("inference.9", 6),
        ("inference.10", 8.32),
        ("inference.11", "2.81 ms"),
        ("inference.12", 16),
        ("inference.13", 147 * (64 * 8192 * 163840 + 70.55e9) / HBM),
        ("inference.14", 163840 * 16 * 197e12 * 0.4 / (2 * 70.55e9)),
        ("inference.15", "22.9 ms"),
        ("inference.16", 7 / 6),
        ("inference.17", 2.533),
        ("inference.18", 0.45),
        ("inference.19", 245),
        ("inference.20", 3),
        ("inference.21", 39.65),
        ("inference.22", 94.5),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("inference.1", 18.386e9 - 64 * 4096 * 16384, "gated"),
        ("inference.2", 131_072, "two of them"),  # the reference, once
        ("inference.2", 1_048_576, "not all 32"),
        ("inference.3", "22.4 ms", "one chip"),
        ("inference.4", "20.88 ms", "bf16"),
        ("inference.4", "18.29 ms", "again"),
        ("inference.5", 294.2e9, "not copied"),
        ("inference.5", 31.27e9, "one token meets"),
        ("inference.6", "429 ms", "single chip"),
        ("inference.7", 3600, "tokens a second"),
        ("inference.8", "1.92 ms", "4 × 4"),
        ("inference.8", "2.56 ms", "no wraparound"),
        ("inference.9", 7, "one half"),
        ("inference.10", 16.6, "wraps"),
        ("inference.11", "2.02 ms", "eight ways only"),
        ("inference.12", 124, "share a key"),
        ("inference.13", "0.824 s", "64 of the tokens"),
        ("inference.14", 3.66e9, "40 %"),
        ("inference.15", "20.8 ms", "steps' time"),
        ("inference.16", 6 / 7, "other way round"),
        ("inference.17", 1.533, "own"),
        ("inference.17", 3.1, "of no use"),
        ("inference.18", 0.3, "random rule"),
        ("inference.19", 283, "critical batch"),
        ("inference.19", 277, "bf16"),
        ("inference.20", 6, "free"),
        ("inference.21", 79.3, "one byte"),
        ("inference.22", 63, "two hidden arrays"),
        ("inference.22", 70.9, "81"),  # the reference's constant
        ("inference.23", 222, "there once"),
        ("inference.23", 174, "in part"),
        ("inference.24", 2.69, "max(0, q − r)"),
        ("inference.25", 1 / 14.4, "other way round"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def steps(params, n, cache, *, flops=197e12):
    """The rule of a step, for int8 weights on n v5e, as a function of the batch."""
    return lambda B: B * cache / (n * 819e9) + max(2 * B * params / (n * flops), params / (n * 819e9))


def test_the_largest_batch_within_a_limit_is_the_last_one_that_a_search_finds():
    step = steps(30e9, 16, 8192 * 100e3)
    right("inference.19", max(B for B in range(1, 400) if step(B) <= 20e-3))


def test_the_best_draft_is_the_best_of_all():
    def speed_up(K):
        check = max(1.0, 32 * (K + 1) * 2 * 819e9 / 197e12)
        return sum(0.8**i for i in range(K + 1)) / (check + 0.1 * K)

    right("inference.20", max(range(40), key=speed_up))


def test_two_dimensions_win_from_where_a_search_over_rows_says():
    def two(n):  # in units of aBD/W: columns on two axes, rows on one, F = 3.5 D
        return min(1 / x + 3 * 3.5 * x / n for x in (k / 100 for k in range(100, 3000)))

    assert two(93) > 2 / 3 > two(96)


def blocks_of(trace, common):
    """A server whose blocks are sets of what their tokens are: equal ones are one block."""
    most = 0
    for step in range(1800):
        held = set()
        for who, (start, prompt, output) in enumerate(trace):
            if start <= step < start + output:
                tokens = [("all", i) if i < common else (who, i) for i in range(prompt + step - start + 1)]
                held |= {tuple(tokens[at : at + 16]) for at in range(0, len(tokens), 16)}
        most = max(most, len(held))
    return most


def test_blocks_are_shared_where_all_their_tokens_are_the_same():
    trace = [(4 * i, 48 + 37 * i % 200, 1 + 53 * i % 120) for i in range(400)]
    right("inference.23", blocks_of(trace, 40))
    assert blocks_of(trace, 0) == speculative.most_blocks(shared=0)


def one_round(chance, last, *, residual):
    """Four drafts, each kept by chance; the words that a round writes."""
    drafted, state = [], last
    for _ in range(4):
        state = chance.choices(range(3), speculative.DRAFT[state])[0]
        drafted.append(state)
    words = []
    for x in drafted:
        q, r = speculative.TARGET[last], speculative.DRAFT[last]
        if chance.random() >= q[x] / r[x]:
            law = [max(0.0, a - b) for a, b in zip(q, r, strict=True)] if residual else q
            return [*words, chance.choices(range(3), law)[0]]
        words.append(x)
        last = x
    return [*words, chance.choices(range(3), speculative.TARGET[last])[0]]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("residual", [True, False])
def test_rounds_that_are_played_are_as_long_as_computed(residual, seed):
    chance, written, rounds = random.Random(seed), [0], 50_000
    for _ in range(rounds):
        written += one_round(chance, written[-1], residual=residual)
    mean = (len(written) - 1) / rounds
    assert mean == pytest.approx(speculative.per_round(4, residual=residual), rel=0.012)
    if residual:
        right("inference.24", mean)
    else:
        wrong("inference.24", mean, "not from q")


def test_a_round_without_drafts_is_one_word_and_an_equal_draft_always_passes(monkeypatch):
    assert speculative.per_round(0) == pytest.approx(1)
    monkeypatch.setattr(speculative, "DRAFT", speculative.TARGET)
    assert speculative.per_round(4) == pytest.approx(5)


def test_a_threshold_does_not_keep_the_law_and_the_random_rule_does():
    q, r = (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
    kept = [b if a / b >= 0.5 else 0 for a, b in zip(q, r, strict=True)]
    law = [k + (1 - sum(kept)) * a for k, a in zip(kept, q, strict=True)]
    assert sum(law) == pytest.approx(1)
    right("inference.18", law[1])


def rms_of_quiet(cut):
    """Errors of the quiet channels when keys are cut into groups of one scale each."""
    keys = {(s, h): sin(1 + s * (h + 1)) * (20 if h == 5 else 1) for s in range(256) for h in range(64)}
    largest: dict[int, float] = {}
    for at, x in keys.items():
        largest[at[cut]] = max(largest.get(at[cut], 0.0), abs(x))
    squares = [
        (x - round(127 * x / largest[at[cut]]) * largest[at[cut]] / 127) ** 2
        for at, x in keys.items()
        if at[1] != 5
    ]
    return sqrt(sum(squares) / len(squares))


def test_a_loud_channel_spoils_the_scales_of_tokens_alone():
    by_token, by_channel = rms_of_quiet(0), rms_of_quiet(1)
    assert by_channel == pytest.approx(1 / 127 / sqrt(12), rel=0.02)  # of even rounding
    right("inference.25", by_token / by_channel)


def test_seven_sequences_fit_evenly_and_six_in_two_halves():
    each, room = 131_072 * 262_144, 16 * 16 * 2**30 - 18.386e9
    assert int(room / each) == 7
    right("inference.9", 2 * int(room / 2 / each))


def test_a_chunk_is_what_the_critical_batch_leaves():
    step, critical = steps(70.55e9, 16, 8192 * 163840), int(197e12 / (2 * 819e9))
    right("inference.13", ceil(8192 / (critical - 64)) * step(64))


def test_the_easy_ones_come_first():
    difficulties = [check.difficulty for check in CHECKS.values()]
    assert difficulties == sorted(difficulties)
