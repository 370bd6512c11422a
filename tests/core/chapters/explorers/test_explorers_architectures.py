"""The explorers of other architectures obey the laws of what they show."""

import pytest
from looked import panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.view import Bars, Chart

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("architectures")}
approx = pytest.approx


def test_an_index_wins_two_costs_and_loses_the_third():
    view = ALL["costs"].evaluate()
    assert "reduces FLOPs per token and bytes read per step but increases bytes kept" in view.verdict
    assert "reduces all three" in ALL["costs"].evaluate(layer="CSA (4:1, top 1,024)").verdict
    for curve in panel(ALL["costs"].evaluate(layer="MLA (8 bits)"), Chart).marks[:3]:
        assert curve.ys == approx([1] * len(curve.ys))


def test_a_hybrid_saves_at_most_one_in_so_many():
    views = [ALL["strip"].evaluate(S=2**e) for e in (10, 14, 20)]
    gains = [readout(view, "saving factor over full attention") for view in views]
    assert gains == sorted(gains)
    assert gains[0] < 1 < 7.8 < gains[-1] < 8
    assert sum(panel(ALL["strip"].evaluate(every=1), Bars).series[0].values) == approx(96 * 1152 * 2**17)


def test_a_chunk_as_long_as_the_unit_wastes_nothing():
    assert readout(ALL["chunk"].evaluate(chunk=128), "utilization of the unit") == 1
    assert "the minimum is at 128" in ALL["chunk"].evaluate(chunk=64).verdict
    exact = panel(ALL["chunk"].evaluate(), Chart).marks[0].ys
    assert list(exact) == sorted(exact)


def test_states_cross_the_links_whatever_the_length():
    short, long = (ALL["relay"].evaluate(T=t) for t in (4096, 2**21))
    assert readout(short, "states") == readout(long, "states")
    assert "Keys and values take fewer" in short.verdict
    assert "States take fewer" in long.verdict
    assert (
        readout(ALL["relay"].evaluate(erases=False), "sent per chip") == readout(short, "sent per chip") / 2
    )


def test_a_block_wins_alone_and_loses_in_company():
    assert "Diffusion is 4 times" in ALL["blocks"].evaluate().verdict
    assert "Token-by-token decode is" in ALL["blocks"].evaluate(B=8).verdict
    assert "at any number" in ALL["blocks"].evaluate(passes=256).verdict


def test_four_times_the_tokens_are_sixteen_times_the_attention():
    small, large = (panel(ALL["video"].evaluate(size=s), Bars).series[0].values for s in ("480p", "1080p"))
    tokens = large[0] / small[0]
    assert large[1] / small[1] == approx(tokens**2)
    assert readout(ALL["video"].evaluate(guided="one"), "passes") == 50


def test_the_pools_of_a_rack_have_the_throughput_that_their_decode_and_prefill_allow():
    view = ALL["frontier"].evaluate()
    share, output = readout(view, "GPUs for prefill"), readout(view, "output tokens/s per decode GPU")
    assert output == approx(49 / readout(view, "ITL"))
    assert panel(view, Chart).marks[1].ys[0] == approx(output * (1 - share) * 9)


def test_drafts_that_are_accepted_shorten_the_time_between_tokens():
    slow, fast = (readout(ALL["frontier"].evaluate(drafts=drafts), "ITL") for drafts in (0, 3))
    assert fast < slow
    lost = [readout(ALL["frontier"].evaluate(accepted=p), "ITL") for p in (0.9, 0.6, 0.3)]
    assert lost == sorted(lost)


def test_the_best_predicted_rate_is_near_the_published_one():
    view = ALL["frontier"].evaluate(degree="16", users=85)
    assert 1 / readout(view, "ITL") == approx(50, rel=0.02)
    assert 11_200 / 1.42 < panel(view, Chart).marks[1].ys[0] < 11_200


def test_more_sequences_than_fit_are_refused_with_their_number():
    with pytest.raises(ValueError, match="has memory for"):
        ALL["frontier"].evaluate(P=131072, users=512, gpu="GB200", degree="8")
