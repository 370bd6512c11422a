"""Explorer: weights of a decode step sharded in one dimension or in two."""

from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Chart,
    Choice,
    Curve,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    machine,
    pluralize,
)
from scalingbook_lib import inference, models, rules
from scalingbook_lib.inference import InferenceStep, Layout, LayoutError
from scalingbook_lib.machines import SliceError, chips
from scalingbook_lib.units import INT8, percent, si

MODELS = ("Llama 3.1 405B", "Llama 3 70B", "Llama 2 13B")
SLICES = {
    "TPU v5e": ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"),
    "TPU v5p": ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8"),
    "TPU v6e": ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"),
}
CHIPS = ("4", "8", "16", "32", "64", "128", "256", "512")


def stepped(model: str, name: str, rows: int, B: int, S: int) -> InferenceStep | None:
    """A decode step on all chips, or None if the model or the torus cannot be divided this way."""
    m, on = models.find(model), machine(name)
    columns = on.chips // rows
    heads = max(n for n in range(1, min(on.chips, m.K) + 1) if on.chips % n == 0 and m.K % n == 0)
    try:
        o = Layout(tp=on.chips, rows=rows, kv_batch=on.chips // heads, weights=INT8, kv=INT8)
        return inference.decode(m, on, o, batch=B, S=S) if columns <= m.N else None
    except (LayoutError, SliceError):
        return None


@lru_cache(maxsize=512)
def ways(model: str, name: str, B: int, S: int) -> dict[int, InferenceStep]:
    """Decode steps by the number of rows over D; one row is one-dimensional sharding."""
    n = machine(name).chips
    found = {rows: stepped(model, name, rows, B, S) for rows in (1, 2, 4, 8, 16, 32) if n % rows == 0}
    return {rows: step for rows, step in found.items() if step}


def slice_of(chip: str, n: str) -> str:
    """The slice with n chips, or the largest slice of this chip."""
    found = {machine(f"{chip} {shape}").chips: f"{chip} {shape}" for shape in SLICES[chip]}
    return found.get(int(n), found[max(found)])


def _split(*, model: str, chip: str, n: str, B: int, S: int) -> View:
    name = slice_of(chip, n)
    found = ways(model, name, B, S)
    if not found:
        return View(f"{model} cannot be divided evenly over {name}.", (_rule(model, chip, B),))
    best = min(found, key=lambda rows: found[rows].total_s)
    one, fits = found.get(1), least(model, chip, B, S)
    rule = by_bytes(model, chip)
    return View(
        _verdict(name, int(n), found, best, fits),
        (_sizes(model, chip, B=B, S=S, name=name, fits=fits), _rows(name, found)),
        (
            Readout(
                "step, one dimension", one.total_s if one else 0.0, "s", "" if one else "cannot be divided"
            ),
            Readout("step, best layout", found[best].total_s, "s"),
            Readout("rows over D, best layout", best),
            Readout("network, best layout", found[best].network_s, "s"),
            Readout("by bytes alone, 2D sharding wins above", rule, "", f"{rule:.3g} chips"),
        ),
        columns=2,
    )


def by_bytes(model: str, chip: str) -> float:
    """Fewest chips at which two dimensions move fewer bytes: 16 F/D on a 2D torus, 18 F/D on three axes."""
    m, columns_axes = models.find(model), SLICES[chip][0].count("x")
    return rules.two_dimensional_layout(m.D, m.F, 1, chips.find(chip), columns_axes=columns_axes).least


def least(model: str, chip: str, B: int, S: int) -> int:
    """The fewest chips of a slice that holds weights and cache, or 0 if none does."""
    for shape in SLICES[chip]:
        on = machine(f"{chip} {shape}")
        found = ways(model, f"{chip} {shape}", B, S).values()
        if any(inference.memory(models.find(model), s.layout, on, batch=B, S=S).fits for s in found):
            return on.chips
    return 0


def _sizes(model: str, chip: str, *, B: int, S: int, name: str, fits: int) -> Chart:
    one, two, links = [], [], []
    for shape in SLICES[chip]:
        at = f"{chip} {shape}"
        found = ways(model, at, B, S)
        n = machine(at).chips
        if 1 in found:
            one.append((n, found[1].total_s))
        if rest := [step for rows, step in found.items() if rows > 1]:
            best = min(rest, key=lambda step: step.total_s)
            two.append((n, best.total_s))
            links.append((n, best.network_s))
    named = (
        ("one dimension", one, 0, False),
        ("two dimensions, best rows", two, 1, False),
        ("its network time", links, 1, True),
    )
    lines = [
        Curve(label, [n for n, _ in rows], [s for _, s in rows], color, dashed=dashed)
        for label, rows, color, dashed in named
        if len(rows) > 1
    ]
    refs = [RefLine("here", machine(name).chips)]
    if fits not in (0, machine(name).chips):
        refs.append(RefLine("it fits", fits))
    x, y = Scale("chips per replica", "", "pow2"), Scale("decode step", "s", "log")
    return Chart(x, y, (*lines, *refs), title="Step time against the number of chips")


def _rows(name: str, found: dict[int, InferenceStep]) -> Bars:
    n = machine(name).chips
    labels = [f"{rows} × {n // rows}" + (": one dimension" if rows == 1 else "") for rows in found]
    steps = list(found.values())
    series = (
        Series("compute and memory", [s.total_s - s.network_s for s in steps], 0),
        Series("network", [s.network_s for s in steps], 3),
    )
    title = "Rows over D × columns over F"
    return Bars(Scale("decode step", "s"), labels, series, stacked=True, title=title)


def _rule(model: str, chip: str, B: int) -> Chart:
    """If nothing divides, the times of both layouts by the rule."""
    m, c = models.find(model), machine(f"{chip} {SLICES[chip][-1]}").chip
    sizes = [2**e for e in range(2, 10)]
    both = [rules.two_dimensional_layout(m.D, m.F, n, c) for n in sizes]
    lines = (
        Curve("one dimension", sizes, [B * r.one_s for r in both], 0),
        Curve("two dimensions", sizes, [B * r.two_s for r in both], 1),
    )
    return Chart(Scale("chips", "", "pow2"), Scale("transfer time of one MLP", "s", "log"), lines)


def _verdict(name: str, asked: int, found: dict[int, InferenceStep], best: int, fits: int) -> str:
    n = machine(name).chips
    said = f"On {name}{', the largest slice' if asked > n else ''}, {_compared(n, found, best)}"
    if not fits:
        return f"{said}. No slice of this chip has enough memory for the model."
    return (
        f"{said}. But its memory is too small: the weights and the cache need {fits} chips."
        if fits > n
        else f"{said}."
    )


def _compared(n: int, found: dict[int, InferenceStep], best: int) -> str:
    one, two = found.get(1), found[best]
    share, took = percent(two.network_s / two.total_s), si(two.total_s, "s")
    if best == 1:
        return f"one-dimensional sharding is best: a step takes {took}, of which the network takes {share}"
    how = f"{best} rows and {pluralize(n // best, 'column')} take {took}"
    if one is None:
        return f"the heads cannot be divided in one dimension; {how}, of which the network takes {share}"
    less = percent(1 - two.total_s / one.total_s)
    return f"{how}, {less} less than one-dimensional sharding; the network takes {share} of the step"


SPLIT = Explorer(
    key="inference.split",
    title="Sharding weights in one dimension or two",
    question="Do more chips shorten a decode step, and how should they shard the weights?",
    controls={
        "model": Choice("model", MODELS),
        "chip": Choice("chip", tuple(SLICES)),
        "n": Choice("chips per replica", CHIPS, "64"),
        "B": Slider("sequences, B", 1, 256, 16, "pow2"),
        "S": Slider("context length", 512, 32768, 2048, "pow2"),
    },
    view=_split,
)
