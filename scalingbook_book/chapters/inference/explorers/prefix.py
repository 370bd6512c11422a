"""Explorer: hit rate and TTFT of a prefix cache, and loading a prefix compared with recomputing it."""

from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    Scale,
    Series,
    Slider,
    View,
    machine,
    spread,
)
from scalingbook_lib import inference, models, serving
from scalingbook_lib.units import count, percent, si

MODELS = ("Llama 3 70B", "Llama 3 8B", "Llama 3.1 405B", "Qwen3 32B")
WHERE = {"Llama 3.1 405B": "TPU v5e 8x8"}
STORES = {
    "host memory, over PCIe": None,
    "network, 25 GB/s": 25e9,
    "network, 3 GB/s": 3e9,
    "disk, 1 GB/s": 1e9,
}
REQUESTS, SEED, SLOTS, OWN, G, SIZE = 120, 13, 4, 200, 64, 16
_SHARES = (0.125, 0.25, 0.5, 0.75, 1.0, 2.0)  # of the blocks that all prefixes need


def where(model: str) -> str:
    """The machine that serves the model."""
    return WHERE.get(model, "TPU v5e 4x4")


def room(families: int, shared: int, size: float) -> int:
    """Cache blocks: those that the slots need for their own tokens, and a share of those of all prefixes."""
    own = SLOTS * -(-(2 * OWN + G) // SIZE)
    return own + max(round(size * families), 1) * -(-shared // SIZE)


@lru_cache(maxsize=32)  # a run holds much memory
def played(model: str, families: int, shared: int, blocks: int, kept: bool) -> serving.ServingRun:
    """A simulated run at 80% of the load that the server can take without a prefix cache."""
    on, o = machine(where(model)), spread(model, where(model), "int8", "int8")
    full = inference.serve(models.find(model), on, o, P=shared + OWN, G=G, batch=SLOTS)
    asked = serving.poisson(
        0.8 * full.requests_per_s,
        REQUESTS,
        prompt=serving.lognormal(OWN, 0.5, 4 * OWN),
        output=G,
        seed=SEED,
        families=families,
        prefix=shared,
    )
    quick = inference.case(models.find(model), on, o)
    return serving.simulate(
        asked, quick, serving.Continuous(SLOTS), blocks=serving.PagedCache(blocks, SIZE), prefix_cache=kept
    )


def loaded(model: str, shared: int, store: str) -> inference.Prefix:
    """Times to recompute a prefix and to load it from `store`."""
    on, o = machine(where(model)), spread(model, where(model), "int8", "int8")
    return inference.prefix(
        models.find(model), on, o, P=shared + OWN, cached=shared, bytes_per_s=STORES[store]
    )


def _prefix(*, model: str, families: int, shared: int, size: float, store: str) -> View:
    blocks = room(families, shared, size)
    run, bare = (played(model, families, shared, blocks, kept) for kept in (True, False))
    one = loaded(model, shared, store)
    return View(
        _verdict(run, bare, one, store),
        (_hits(model, families, shared, size, run), _latency(run, bare), _ways(one)),
        (
            Readout.percent("hit rate", run.hit_rate),
            Readout("median TTFT", run.ttft(50), "s"),
            Readout("median TTFT without the cache", bare.ttft(50), "s"),
            Readout("blocks evicted", run.evicted_blocks),
            Readout("break-even bandwidth", one.break_even_bytes_per_s, "B/s"),
        ),
        columns=2,
    )


def _hits(model: str, families: int, shared: int, size: float, run: serving.ServingRun) -> Chart:
    runs = [played(model, families, shared, room(families, shared, x), True) for x in _SHARES]
    here = Points("", [size], [run.hit_rate], [percent(run.hit_rate)], 0)
    x = Scale("cache size, as a fraction of all prefixes", "", "log")
    line = Curve("LRU eviction", _SHARES, [r.hit_rate for r in runs], 0)
    return Chart(
        x,
        Scale("fraction of prompt tokens found in the cache", "", "linear", 0.0, 1.0),
        (line, here),
        title="Hit rate",
    )


def _ways(one: inference.Prefix) -> Bars:
    labels = ("recompute", "load")
    series = (Series("time", (one.recompute_s, one.reload_s), 1),)
    return Bars(
        Scale("time", "s"),
        labels,
        series,
        title=f"A prefix of {count(one.cached)} tokens, {si(one.nbytes, 'B')}",
    )


def _latency(run: serving.ServingRun, bare: serving.ServingRun) -> Chart:
    ranks = list(range(5, 100, 5))
    lines = (
        Curve("without the cache", ranks, [bare.ttft(p) for p in ranks], 5, dashed=True),
        Curve("with the cache", ranks, [run.ttft(p) for p in ranks], 0),
    )
    x, y = Scale("percentile of requests"), Scale("TTFT", "s", "log")
    return Chart(x, y, lines, title="Time to first token")


def _verdict(run: serving.ServingRun, bare: serving.ServingRun, one: inference.Prefix, store: str) -> str:
    slow_s, fast_s = si(bare.ttft(50), "s"), si(run.ttft(50), "s")
    again_s, load_s = si(one.recompute_s, "s"), si(one.reload_s, "s")
    return (
        f"The hit rate is {percent(run.hit_rate)}, and with the same memory, the prefix cache reduces "
        f"the median TTFT from {slow_s} to {fast_s}. Loading a prefix from "
        f"{'the ' if store.startswith('network') else ''}{store.split(',')[0]} takes {load_s}, and "
        f"recomputing it takes {again_s}."
    )


PREFIX = Explorer(
    key="inference.prefix",
    title="Prefix caching: hit rate and time to first token",
    question="How much does a prefix cache shorten the time to first token, and how large does it have to "
    "be?",
    controls={
        "model": Choice("model", MODELS),
        "families": Slider("number of different prefixes", 1, 64, 16, "pow2"),
        "shared": Slider("prefix length in tokens", 256, 16384, 2048, "pow2"),
        "size": Slider("cache size, as a fraction of all prefixes", 0.125, 2.0, 0.5, "log"),
        "store": Choice("load prefixes from", tuple(STORES)),
    },
    view=_prefix,
)
