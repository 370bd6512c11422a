"""Figures of agent sessions: hit rate against the size of the pool, measured caches, and acceptance lengths."""

from functools import lru_cache
from random import Random

from scalingbook_book.reader.explorers.view import Chart, Curve, Points, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, IDLE, MATH, MEMORY, NETWORK
from scalingbook_lib import inference, serving
from scalingbook_lib.units import percent

# fmt: off
RECORDED_GAPS_S = (
    1.8, 3.0, 3.3, 4.0, 4.0, 4.0, 4.0, 4.9, 5.0, 5.0, 5.0, 5.2, 6.0, 6.0, 6.0, 6.2, 7.0, 7.0, 7.0, 7.9, 8.0, 8.3, 9.0,
    9.2, 10.0, 10.5, 11.1, 12.0, 12.8, 13.8, 15.0, 16.4, 17.8, 19.7, 22.0, 25.1, 29.0, 34.3, 40.0, 48.6, 60.8, 73.4,
    96.1, 121.6, 147.0, 195.5, 289.1, 472.5, 906.3, 5999.2,
)
# fmt: on
"""Seconds between the end of a turn and the next one of the same session: means of fifty equal parts of the
47,948 think times in 710 recorded sessions of Claude Code (callanjfox/kv-cache-tester, traces/ of
2026-07-12; sub-agents left out; 29 larger files were not in the copy that was read on 2026-11-29)."""

PAUSES_S = RECORDED_GAPS_S[:-1]
"""The same without the longest fiftieth, which lasts for hours: a server treats it as the end of a session."""

# fmt: off
WORKING_SET_RUNS = {
    "first run": (
        (0.405, 1.73),
        (
            (1.920, 0.5156), (1.920, 0.5057), (2.176, 0.6085), (2.176, 0.8143), (2.176, 0.6554), (2.432, 0.8397),
            (2.432, 0.7674), (2.688, 0.8843), (2.688, 1.0222), (2.688, 1.0219), (2.944, 0.8334), (3.136, 0.8453),
            (3.520, 0.9749), (3.712, 1.1751), (3.904, 1.0683), (4.096, 1.0609), (4.288, 1.2615), (4.288, 1.2967),
            (4.480, 1.0928),
        ),
    ),
    "second run": (
        (0.380, 1.70),
        (
            (1.920, 0.5995), (2.176, 0.5325), (2.176, 0.6323), (2.176, 0.5868), (2.432, 0.9492), (2.432, 0.9475),
            (2.688, 0.8572), (2.688, 0.8604), (2.688, 0.9668), (2.944, 1.0171), (2.944, 1.1456), (3.136, 0.9067),
            (3.520, 1.0575), (3.520, 1.2090), (3.520, 1.2052), (3.712, 1.1104), (3.712, 1.2410), (3.904, 1.2046),
            (3.904, 1.0663), (4.096, 0.9491), (4.480, 1.1464),
        ),
    ),
}
# fmt: on
"""TTFT of a found and of a lost prefix in seconds, then (working set in millions of tokens, mean TTFT in
seconds) of every period of 30 s with one request at a time. Prompts of 64,000 tokens, of which 96% are a
prefix that is drawn at random from the working set; Qwen3-Coder-30B-A3B in fp8, cached in HBM and host memory
(callanjfox/kv-cache-tester, results/dram_only_tp4_8125_2s and _64k_2s_v2 of 2026-03, read 2026-11-29). The
two TTFTs are the medians of periods in which nearly all, or most, requests took that long."""

ACCEPTANCE = {
    "Qwen3.5, MTP": {1: 1.93, 2: 2.73, 3: 3.39, 4: 3.97, 8: 5.21},
    "MiniMax-M3, EAGLE-3": {1: 1.78, 2: 2.38, 3: 2.83, 4: 3.11, 5: 3.35, 6: 3.45, 7: 3.53, 8: 3.74},
    "DeepSeek-V4-Pro, MTP": {1: 1.79, 2: 2.27, 3: 2.49, 4: 2.54, 8: 2.58},
}
"""Mean acceptance length by draft length, on the coding prompts of SPEED-Bench, with thinking
(SemiAnalysisAI/InferenceX, golden_al_distribution/, 2026-06, read 2026-11-29)."""

FITS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
SESSIONS, TURNS, CONTEXT = 64, 16, 16_000  # of the simulated sessions
INSTANT = serving.Affine(weights_s=1e-7, token_s=1e-9, cached_s=0.0)  # negligible compared with the tools


def shapes() -> dict[str, tuple[float, ...]]:
    """The distributions of the gaps between the turns of a session that the figure compares."""
    return {
        "recorded": PAUSES_S,
        "random": serving.erlang_gaps(1),
        "Erlang, 4 stages": serving.erlang_gaps(4),
        "regular": (1.0,),
    }


@lru_cache(maxsize=64)
def simulated(gaps: tuple[float, ...], fits: float) -> float:
    """The fraction of the history that is found in a pool with room for a fraction of all sessions."""
    rng, mean = Random(5), sum(gaps) / len(gaps)
    agents = [
        serving.Session(
            # in equilibrium, a gap is met with a probability in proportion to its length
            rng.random() * rng.choices(gaps, weights=gaps)[0],
            (
                serving.Turn(CONTEXT, 1, rng.choice(gaps)),
                *(serving.Turn(8, 8, rng.choice(gaps)) for _ in range(TURNS)),
            ),
        )
        for _ in range(SESSIONS)
    ]
    pool = serving.PagedCache(int(fits * SESSIONS * (CONTEXT + 8 * TURNS) / 16), spare=0.0)
    run = serving.serve_sessions(agents, INSTANT, serving.Continuous(SESSIONS), blocks=pool)
    # when the pool is full, and before the first sessions end
    steady = [turn for row in run.turns for turn in row if mean < turn.request.arrival_s < 0.6 * TURNS * mean]
    found = sum(one.cached for turn in steady for one in turn.residencies)
    return found / sum(turn.request.prompt - 8 for turn in steady)


def reuse() -> Figure:
    """Which fraction of the returning sessions does an LRU cache find, by the fraction that fits?"""
    found, colors = shapes(), (CACHE, MATH, NETWORK, MEMORY)
    at = {name: [serving.lru_reuse(fits, gaps).hit_rate for fits in FITS] for name, gaps in found.items()}
    dots = (0.3, 0.5, 0.7, 0.9)
    half = percent(at["recorded"][FITS.index(0.5)])
    return Figure(
        key="inference.reuse",
        alt="Hit rate against the fraction of the working set that fits. With regular pauses it is 0 until "
        "everything fits, and then 1. With four-stage Erlang pauses it is a curve below the diagonal, with random "
        f"pauses the diagonal, and with recorded pauses it is already at {half} when half fits. Simulated dots lie on "
        "the curves.",
        caption="The fraction of returning sessions whose prefix an LRU cache still holds, against the size of the "
        "pool. If all sessions return at regular intervals, the hit rate is a cliff. If they return at "
        "random, it equals the fraction that fits. Erlang pauses, sums of four random stages, lie between the two. "
        "Recorded sessions of a coding agent have many short pauses and a "
        "few long ones, so that with half of the memory, most of them are found. (Lines: the formula; dots: simulated.)",
        parts=lambda wide: [
            Chart(
                Scale("pool, as a fraction of the working set", "", "linear", 0, 1.1),
                Scale("hit rate", "", "linear", 0, 1),
                (
                    *(
                        Curve(name, list(FITS), rates, color)
                        for (name, rates), color in zip(at.items(), colors, strict=True)
                        if name != "regular"
                    ),
                    Curve("regular", [0.1, 1.0, 1.0, 1.1], [0.0, 0.0, 1.0, 1.0], MEMORY),
                    *(
                        Points("", list(dots), [simulated(found[name], x) for x in dots], (), color)
                        for name, color in zip(found, colors, strict=True)
                    ),
                ),
            )
        ],
    )


def acceptance() -> Figure:
    """How does the acceptance length grow with the draft length?"""
    first = ACCEPTANCE["MiniMax-M3, EAGLE-3"][1] - 1
    lengths = range(1, 9)
    return Figure(
        key="inference.acceptance",
        alt="Acceptance length against draft length, up to eight. A dashed curve for a constant acceptance rate of "
        f"{percent(first)} reaches 4.1. Qwen3.5 with MTP lies above it and reaches 5.2, MiniMax-M3 with "
        "EAGLE-3 lies below it, and DeepSeek-V4-Pro with MTP stays at 2.6 from three draft tokens on.",
        caption="Tokens per verification step against the number of draft tokens, as published for coding prompts. "
        "All three models accept the first draft token with a probability of about 0.8 or more, but they differ in "
        "how well later ones do: in DeepSeek-V4-Pro, whose single MTP layer is applied repeatedly, further draft "
        f"tokens add almost nothing after the third. (Dashed: a constant acceptance rate of {percent(first)}.)",
        parts=lambda wide: [
            Chart(
                Scale("draft tokens", "", "linear", 1, 8),
                Scale("tokens per step", "", "linear", 1, 5.5),
                (
                    Curve(
                        "constant rate",
                        list(lengths),
                        [inference.speculative(first, n, cost=0.0).tokens for n in lengths],
                        IDLE,
                        dashed=True,
                    ),
                    *(
                        Curve(name, list(row), list(row.values()), color)
                        for (name, row), color in zip(
                            ACCEPTANCE.items(), (CACHE, NETWORK, MEMORY), strict=True
                        )
                    ),
                ),
            )
        ],
    )
