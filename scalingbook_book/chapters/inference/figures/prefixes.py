"""Figures of the KV cache: fourteen models, the tree of shared prefixes, and hit rates by conversation round."""

from functools import lru_cache
from random import Random

from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, Points, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, IDLE, MEMORY, NETWORK, Area, Arrow, Shape
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models
from scalingbook_lib.models import arithmetic
from scalingbook_lib.serving import PrefixTree
from scalingbook_lib.units import count, percent

SHOWN = {  # what each of them does with its keys and values
    "Llama 2 7B": "MHA",
    "GLM-4.5": "GQA, 8 of 96 heads",
    "Llama 3 70B": "GQA, 8 of 64",
    "MiniMax-M2.5": "GQA, 8 of 48",
    "Qwen3 235B-A22B": "GQA, 4 of 64",
    "Gemma-3 27B": "5 of 6 layers: window 1,024",
    "Llama 4 Maverick": "3 of 4 layers: chunks of 8,192",
    "gpt-oss 120B": "1 of 2 layers: window 128",
    "Mistral 7B v0.1": "all layers: window 4,096",
    "DeepSeek-V3": "MLA",
    "DeepSeek-V3.2": "MLA + indexer, top 2,048",
    "Qwen3.5 397B-A17B": "3 of 4 layers: linear",
    "Nemotron 3 Super 120B-A12B": "40 Mamba-2, 8 GQA layers",
    "DeepSeek-V4-Pro": "compressed 4:1 and 128:1",
}
CONTEXT = 131_072
CLIENTS, ROUNDS, QUESTION, ANSWER, POOL, PAGE = 128, 10, 512, 64, 262_144, 64
MEASURED = (0.0, 0.470588, 0.653846, 0.630580, 0.363459, 0.239976, 0.146925, 0.143266, 0.055469, 0.035112)
"""Hit rates by round with GPU memory alone (sglang pull request 27010, 2026). The size of the pool is that of
pull request 31668 by the same author, with the same benchmark."""


def storage() -> Figure:
    """How much does a sequence of 131,072 tokens store, and how much does each step read of it?"""
    found = {name: arithmetic.cache_profile(models.find(name), CONTEXT) for name in SHOWN}
    sparse, latent = found["DeepSeek-V3.2"], found["DeepSeek-V3"]
    most = found["Llama 2 7B"].stored_bytes / found["DeepSeek-V4-Pro"].stored_bytes
    return Figure(
        key="inference.storage",
        alt=f"Pairs of bars for fourteen models on a logarithmic axis: bytes stored for {count(CONTEXT)} "
        "tokens, and bytes read per step. They are equal for attention to all or to recent tokens, from 69 "
        "GB of Llama 2 7B down to half a GB of Mistral 7B. Only the sparse models, DeepSeek-V3.2 and V4-Pro, "
        "read much less than they store.",
        caption=f"Bytes that one sequence of {count(CONTEXT)} tokens stores, and bytes that each decode step "
        "reads of it. Shared heads and windows reduce both. An indexer reduces only the reads: DeepSeek-V3.2 "
        "stores even more than V3, because of the index, but reads "
        f"{percent(sparse.read_bytes / latent.read_bytes)} of what V3 reads. From the first model to the last, "
        f"storage shrinks by a factor of {most:.0f}. (In bf16, with recurrent states in fp32. Models are in the "
        "order of their mechanism: full attention, windows, and latent, recurrent and compressed caches.)",
        parts=lambda wide: [
            Bars(
                Scale("bytes per sequence", "B", "log"),
                [name.removesuffix(" 120B-A12B") for name in SHOWN],
                [
                    Series("stored", [one.stored_bytes for one in found.values()], CACHE),
                    Series("read per step", [one.read_bytes for one in found.values()], MEMORY),
                ],
            )
        ],
    )


def radix() -> Figure:
    """How do three prompts share the blocks of their common beginning?"""
    return Figure(
        key="inference.radix",
        alt="A tree of blocks. The root is followed by a block of the system prompt, which is used by three "
        "requests. Below it are two branches: one with the first turn of a chat, used by two requests, and "
        "then its second and its retried turn; the other with another user's question. The leaves are "
        "marked as the first to be evicted.",
        caption="A prefix tree (radix tree). Each node is a block of tokens together with everything before "
        "it, labeled with the requests that use it. Three prompts of 4, 4 and 3 blocks store only 6. If "
        "memory runs out, the least recently used leaf is evicted first (gray), because every block needs "
        "those above it.",
        parts=lambda wide: [_tree(wide)],
    )


def _tree(wide: float) -> Sketch:
    x, box, high, step = wide / 2, min(150.0, wide / 3 - 12), 42.0, 70.0
    left, right = wide * 0.3, wide * 0.78

    def node(at: float, level: int, text: str, color: int, shade: float = 0.3) -> Area:
        return Area(
            x=at - box / 2, y=8 + step * level, wide=box, high=high, text=text, color=color, shade=shade
        )

    def edge(a: tuple[float, int], b: tuple[float, int]) -> Arrow:
        return Arrow(x0=a[0], y0=8 + step * a[1] + high, x1=b[0], y1=8 + step * b[1] - 2, thick=1.4)

    near, far = left - box / 2 - 4, left + box / 2 + 4
    shapes: list[Shape] = [
        node(x, 0, "system 1\n3 requests", CACHE),
        node(x, 1, "system 2\n3 requests", CACHE),
        node(left, 2, "turn 1\n2 requests", CACHE),
        node(right, 2, "question\n1 request", IDLE, 0.15),
        node(max(near, box / 2 + 4), 3, "turn 2\n1 request", IDLE, 0.15),
        node(far, 3, "retry\n1 request", IDLE, 0.15),
        edge((x, 0), (x, 1)),
        edge((x, 1), (left, 2)),
        edge((x, 1), (right, 2)),
        edge((left, 2), (max(near, box / 2 + 4), 3)),
        edge((left, 2), (far, 3)),
    ]
    return Sketch(wide, 16 + step * 3 + high, shapes)


@lru_cache(maxsize=8)
def hit_rates(pool: int | None = None) -> tuple[float, ...]:
    """Return the hit rate of each round, with a pool of so many tokens or, for None, without evictions.

    Each client sends its whole conversation so far and a new question. The newest answer is not yet in the
    cache, as in the published benchmark.
    """
    tree = PrefixTree(10**6 if pool is None else pool // PAGE, PAGE)
    order, found = Random(0), []
    talks: list[tuple[int, list[tuple[int, int]]]] = [(client, []) for client in range(CLIENTS)]
    for _ in range(ROUNDS):
        order.shuffle(talks)
        hits = total = 0
        for client, talk in talks:
            talk += [(client, len(talk) + i) for i in range(QUESTION)]
            hits, total = hits + tree.serve(talk), total + len(talk)
            talk += [(client, len(talk) + i) for i in range(ANSWER)]
        found.append(hits / total)
    return tuple(found)


def cliff() -> Figure:
    """What happens to the hit rate when the conversations no longer fit in the cache?"""
    rounds = list(range(1, ROUNDS + 1))
    whole, limited = hit_rates(), hit_rates(POOL)
    last = percent(MEASURED[-1])
    return Figure(
        key="inference.cliff",
        alt=f"Hit rate by round of {CLIENTS} conversations. Without evictions it rises to "
        f"{percent(whole[-1])}. With a pool of {count(POOL)} tokens, simulated and measured values rise to "
        f"{percent(MEASURED[2])} in the third round and then fall together, to {percent(limited[-1], 1)} and "
        f"{last} in the last round.",
        caption=f"Hit rate of {CLIENTS} multi-turn conversations by round, each with {QUESTION} new prompt "
        f"tokens and {ANSWER} answer tokens. As long as everything fits, more of each prompt is known in "
        "every round. In the fourth round, the conversations outgrow the pool, and the hit rate falls much faster than "
        "the fraction of them that fits: the cache evicts exactly what is needed next. (Line: simulated with a "
        f"pool of {count(POOL)} tokens; dots: measured with SGLang.)",
        parts=lambda wide: [
            Chart(
                Scale("round", "", "linear", 1, ROUNDS),
                Scale("hit rate", "", "linear", 0, 1),
                (
                    Curve("nothing evicted", rounds, whole, IDLE, dashed=True),
                    Curve("LRU, simulated", rounds, limited, MEMORY),
                    Points("measured", rounds, MEASURED, (), NETWORK),
                ),
            )
        ],
    )
