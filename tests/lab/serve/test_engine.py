"""In every mode of the engine, each request gets the tokens that the plain model generates for it alone."""

import functools

import numpy as np
import pytest
from writing import CLOSE, TINY, TINY_MOE, weights, written

from scalingbook_lab.serve.engine import Engine
from scalingbook_lab.serve.layout import Config, on_other_devices
from scalingbook_lab.serve.requests import RequestState
from scalingbook_lab.train import text

TIGHT, ROOMY = 12, 32  # blocks of 8 tokens
SPREAD = {
    "one device": {"Y": 1},
    "heads and sequences": {"Y": 2, "Z": 2},
    "half": {"A": 2, "Y": 2},
    "all": {"A": 2, "C": 2, "Y": 2},
}
HOW = {
    "whole prompts": {},
    "chunks": {"chunk": 8},
    "no prefixes": {"chunk": 8, "prefix_cache": False},
    "apart": {"apart": "Y"},
    "apart, in chunks": {"apart": "C", "chunk": 8},
}


@functools.cache
def asked():
    """Prompts of 3 to 30 bytes of the book, some with common prefixes, and limits of 0 to 11 tokens."""
    drawn, book = np.random.default_rng(0), text.book()
    prompts = [
        book[at : at + n] for at, n in zip(drawn.integers(99_999, size=12), range(3, 30, 2), strict=False)
    ]
    prompts[4], prompts[9] = (np.concatenate([prompts[11][:16], prompts[i]]) for i in (0, 1))
    return tuple(tuple(prompt.tolist()) for prompt in prompts), tuple(range(11, -1, -1))


@functools.cache
def plain(model):
    words, lead = written(model, asked()[0], max(asked()[1]) + 1)
    assert lead.min() > CLOSE
    return [row[: limit + 1].tolist() for row, limit in zip(words, asked()[1], strict=True)]


@functools.cache
def config(model, spread, blocks):
    """A configuration, which all tests share with the programs compiled for it."""
    return Config(model, SPREAD[spread], sequences=4, tokens=64, blocks=blocks, block=8)


@functools.cache
def elsewhere(model, spread, axis):
    return on_other_devices(config(model, spread, TIGHT), {axis: 2})


def engine(spread="one device", model=TINY, *, blocks=TIGHT, apart=None, **how):
    prefill = elsewhere(model, spread, apart) if apart else None
    return Engine(weights(model), config(model, spread, blocks), prefill=prefill, **how)


def served(one):
    """Submit all requests at once; the report and their outputs."""
    tickets = [one.submit(prompt, limit + 1) for prompt, limit in zip(*asked(), strict=True)]
    return one.run(), [one.output(ticket) for ticket in tickets]


def assert_empty(one):
    """No request holds a slot or a block."""
    for worker in (one.prefill_worker, one.decode_worker):
        assert not worker.running
        assert all(pool.available == pool.count for pool in worker.pools)
    assert not one.waiting
    assert not one.transferring


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("spread", SPREAD)
def test_every_request_gets_the_tokens_of_the_plain_model(spread, how):
    one = engine("half" if spread == "all" and "apart" in how else spread, **HOW[how])
    report, words = served(one)
    assert words == plain(TINY)
    assert (report.done, report.canceled) == (12, 0)
    assert report.preemptions or "apart" in how
    assert_empty(one)


@pytest.mark.parametrize("how", ["chunks", "apart"])
def test_a_model_with_experts_is_served_too(how):
    one = engine("half", TINY_MOE, **HOW[how])
    assert served(one)[1] == plain(TINY_MOE)


def test_the_number_of_programs_does_not_grow_with_requests():
    room = Config(TINY, {"Y": 1}, sequences=4, tokens=64, blocks=TIGHT, block=8)
    chunked, whole = Engine(weights(TINY), room, chunk=8), Engine(weights(TINY), room)
    assert [served(chunked)[0].programs for _ in range(2)] == [2, 2]
    assert set(chunked.decode_worker.runs) == {(1, 4), (1, 4 + 8)}  # words alone, and words with a chunk
    served(whole)
    read = {T for T, rows in whole.decode_worker.runs if rows == 1}
    assert read <= {1, 2, 4, 8, 16, 32}
    assert set(whole.decode_worker.runs) == {(1, 4)} | {(T, 1) for T in read}
    assert len(room.programs) == 2 + len(read)  # what writes alone is the same program for both


def test_a_repeated_prompt_is_found_in_the_prefix_cache():
    first, again, without = engine(chunk=8), engine(chunk=8), engine(chunk=8, prefix_cache=False)
    prompt = asked()[0][11] + asked()[0][10][:9]  # 25 + 9 bytes: four full blocks
    tickets = [one.submit(prompt, 2) for one in (first, again, without)]
    once = first.run()
    again.run()
    twice, never = again.submit(prompt, 2), without.submit(prompt, 2)
    assert again.run().prefix_hits == (len(prompt) - 1) // 8 * 8
    assert without.run().prefix_hits == once.prefix_hits == 0
    assert again.report.computed == 2 * once.computed - again.report.prefix_hits
    assert again.output(twice) == first.output(tickets[0]) == without.output(never)


def test_shared_blocks_are_never_overwritten():
    one = engine(chunk=8, blocks=ROOMY)
    start = asked()[0][11][:17]
    one.submit(start, 2)
    one.run()
    prompts = [(*start, *asked()[0][i][:3]) for i in range(4)]
    tickets = [one.submit(prompt, 9) for prompt in prompts]
    one.step()
    pool = one.decode_worker.pools[0]
    assert sum(n == 4 for n in pool.references) == 2
    one.run()
    words, lead = written(TINY, prompts, 9)
    assert lead.min() > CLOSE
    assert [one.output(ticket) for ticket in tickets] == words.tolist()


@pytest.mark.parametrize("how", ["whole prompts", "chunks", "apart"])
def test_a_canceled_request_changes_no_other_request(how):
    one, drawn = engine(**HOW[how]), np.random.default_rng(1)
    tickets = [one.submit(prompt, limit + 1) for prompt, limit in zip(*asked(), strict=True)]
    gone, states = {0, 3, 8, 11}, set()
    for ticket in sorted(gone):
        for _ in range(int(drawn.integers(3))):
            one.step()
        states.add(one.requests[ticket].state)
        one.cancel(ticket)
    report = one.run()
    assert report.canceled == sum(s.state is RequestState.CANCELED for s in one.requests.values()) >= 3
    assert len(states) > 1
    for ticket in tickets:
        words = one.output(ticket)
        assert words == plain(TINY)[ticket][: len(words)]
        assert len(words) == len(plain(TINY)[ticket]) or ticket in gone
    assert_empty(one)


def test_requests_are_admitted_in_the_order_of_their_tickets():
    one = engine(chunk=8)
    served(one)
    admitted = [s.admitted for s in one.requests.values()]
    assert admitted == sorted(admitted)


def test_only_the_youngest_sequence_of_a_group_is_preempted():
    one = engine("heads and sequences", chunk=8)
    gave_way = []
    preempt = one._preempt
    one._preempt = lambda s: (gave_way.append((s, one.decode_worker.in_group(s.group))), preempt(s))
    assert served(one)[0].preemptions == len(gave_way) > 0
    assert all(s is group[-1] for s, group in gave_way)
    assert not one.requests[0].preemptions


def test_disaggregation_transfers_the_blocks_of_each_prompt():
    one = engine(apart="Y", blocks=ROOMY)
    report, _ = served(one)
    m = TINY
    each = 2 * m.L * m.K * m.H * 4 * 8
    moved = [prompt for prompt, limit in zip(*asked(), strict=True) if limit]
    assert report.transfers == len(moved)
    assert one.decode_worker.block_bytes == each
    assert report.transfer_bytes == sum(-(-len(prompt) // 8) for prompt in moved) * each


def test_requests_that_cannot_fit_are_refused_on_submission():
    one = engine()
    for prompt, limit in (((), 3), ((1, 2), 0), ((1,) * 60, 6)):
        with pytest.raises(ValueError, match="at most 64 of both together"):
            one.submit(prompt, limit)
    with pytest.raises(ValueError, match="the engine pages the cache"):
        Engine(weights(TINY), Config(TINY, {"Y": 1}))


def test_engines_and_requests_print_what_they_have_done():
    one = engine(chunk=8)
    assert "12 requests done" in str(served(one)[0])
    assert "prefix tokens cached" in str(one.requests[0])
    assert "12 blocks of 8 tokens" in str(one.decode_worker)


def test_static_batching_gives_the_same_tokens_in_more_steps():
    one, other = engine(chunk=8, blocks=ROOMY), engine(chunk=8, blocks=ROOMY, continuous=False)
    (report, words), (later, same) = served(one), served(other)
    assert words == same == plain(TINY)
    assert report.output == later.output == sum(map(len, words))
    assert report.steps < later.steps
