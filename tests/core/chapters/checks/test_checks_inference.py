"""The exercises on inference: answers worked out by hand or by brute force, and usual slips are named."""

import random
from math import ceil, sin, sqrt

import pytest
from judged import right, wrong

from scalingbook_book.chapters import checks
from scalingbook_book.chapters.inference.checks import speculative

CHECKS = checks.catalog("inference")
HBM = 16 * 819e9  # sixteen v5e, bytes/s


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("inference.count-parameters", 64 * 4096 * (3 * 16384 + 2 * 256 * 40) + 4096 * 32128),
        ("inference.cache-per-token", "256 KiB"),
        ("inference.weights-floor", "1.4 ms"),
        ("inference.step-in-int8", "18.44 ms"),
        ("inference.sixteen-experts", 211.7e9),
        ("inference.cache-transfer", "26.8 ms"),
        ("inference.concurrent-sequences", 90),
        ("inference.hop-latency", "4.48 ms"),
        ("inference.sequences-that-fit", 6),
        ("inference.prefill-ways", 8.32),
        ("inference.experts-on-rows", "2.81 ms"),
        ("inference.tokens-to-compute", 16),
        ("inference.free-chunk", 147 * (64 * 8192 * 163840 + 70.55e9) / HBM),
        ("inference.compute-or-load", 163840 * 16 * 197e12 * 0.4 / (2 * 70.55e9)),
        ("inference.prefill-pauses", "22.9 ms"),
        ("inference.prefill-copies", 7 / 6),
        ("inference.tokens-per-round", 2.533),
        ("inference.threshold-bias", 0.45),
        ("inference.largest-batch", 245),
        ("inference.best-drafts", 3),
        ("inference.shared-latents", 39.65),
        ("inference.two-dimensions", 94.5),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("inference.count-parameters", 18.386e9 - 64 * 4096 * 16384, "gated"),
        ("inference.cache-per-token", 131_072, "two of them"),  # the reference, once
        ("inference.cache-per-token", 1_048_576, "not all 32"),
        ("inference.weights-floor", "22.4 ms", "one chip"),
        ("inference.step-in-int8", "20.88 ms", "bf16"),
        ("inference.step-in-int8", "18.29 ms", "again"),
        ("inference.sixteen-experts", 294.2e9, "not replicated"),
        ("inference.sixteen-experts", 31.27e9, "process one token"),
        ("inference.cache-transfer", "429 ms", "single chip"),
        ("inference.concurrent-sequences", 3600, "tokens per second"),
        ("inference.hop-latency", "1.92 ms", "4 × 4"),
        ("inference.hop-latency", "2.56 ms", "no wraparound"),
        ("inference.sequences-that-fit", 7, "one half"),
        ("inference.prefill-ways", 16.6, "wraps"),
        ("inference.experts-on-rows", "2.02 ms", "only eight ways"),
        ("inference.tokens-to-compute", 124, "share a key"),
        ("inference.free-chunk", "0.824 s", "64 of the tokens"),
        ("inference.compute-or-load", 3.66e9, "40%"),
        ("inference.prefill-pauses", "20.8 ms", "spent on decode steps"),
        ("inference.prefill-copies", 6 / 7, "inverse"),
        ("inference.tokens-per-round", 1.533, "own"),
        ("inference.tokens-per-round", 3.1, "discarded"),
        ("inference.threshold-bias", 0.3, "random rule"),
        ("inference.largest-batch", 283, "critical batch"),
        ("inference.largest-batch", 277, "bf16"),
        ("inference.best-drafts", 6, "free"),
        ("inference.shared-latents", 79.3, "one byte"),
        ("inference.two-dimensions", 63, "two hidden arrays"),
        ("inference.two-dimensions", 70.9, "81"),  # the reference's constant
        ("inference.block-allocator", 222, "stored once"),
        ("inference.block-allocator", 174, "partly the same"),
        ("inference.speculative-sampling", 2.69, "max(0, q − r)"),
        ("inference.loud-channel", 1 / 14.4, "inverse"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def steps(params, n, cache, *, flops=197e12):
    """The rule of a step, for int8 weights on n v5e, as a function of the batch."""
    return lambda B: B * cache / (n * 819e9) + max(2 * B * params / (n * flops), params / (n * 819e9))


def test_the_largest_batch_within_a_limit_is_the_last_one_that_a_search_finds():
    step = steps(30e9, 16, 8192 * 100e3)
    right("inference.largest-batch", max(B for B in range(1, 400) if step(B) <= 20e-3))


def test_the_best_draft_is_the_best_of_all():
    def speed_up(K):
        check = max(1.0, 32 * (K + 1) * 2 * 819e9 / 197e12)
        return sum(0.8**i for i in range(K + 1)) / (check + 0.1 * K)

    right("inference.best-drafts", max(range(40), key=speed_up))


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
    right("inference.block-allocator", blocks_of(trace, 40))
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
        right("inference.speculative-sampling", mean)
    else:
        wrong("inference.speculative-sampling", mean, "not from q")


def test_a_round_without_drafts_is_one_word_and_an_equal_draft_always_passes(monkeypatch):
    assert speculative.per_round(0) == pytest.approx(1)
    monkeypatch.setattr(speculative, "DRAFT", speculative.TARGET)
    assert speculative.per_round(4) == pytest.approx(5)


def test_a_threshold_does_not_keep_the_law_and_the_random_rule_does():
    q, r = (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
    kept = [b if a / b >= 0.5 else 0 for a, b in zip(q, r, strict=True)]
    law = [k + (1 - sum(kept)) * a for k, a in zip(kept, q, strict=True)]
    assert sum(law) == pytest.approx(1)
    right("inference.threshold-bias", law[1])


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
    right("inference.loud-channel", by_token / by_channel)


def test_seven_sequences_fit_evenly_and_six_in_two_halves():
    each, room = 131_072 * 262_144, 16 * 16 * 2**30 - 18.386e9
    assert int(room / each) == 7
    right("inference.sequences-that-fit", 2 * int(room / 2 / each))


def test_a_chunk_is_what_the_critical_batch_leaves():
    step, critical = steps(70.55e9, 16, 8192 * 163840), int(197e12 / (2 * 819e9))
    right("inference.free-chunk", ceil(8192 / (critical - 64)) * step(64))
