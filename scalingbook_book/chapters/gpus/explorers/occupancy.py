"""Explorer of occupancy: how many warps fit on an SM, and whether their loads keep HBM busy."""

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib.machines import chips, occupancy
from scalingbook_lib.machines.occupancy import MOST_WARPS, WARP, Occupancy
from scalingbook_lib.units import KiB, count, percent, si

_CHIPS = ("A100", "H100", "H200", "B200", "GB200")
_OTHERS = (4, 16, 64)  # bytes that a thread waits for: one number of fp32, one load of four, four of them


def _occupancy(*, chip: str, threads: int, registers: int, smem: int, each: int, latency: float) -> View:
    held = occupancy.occupancy(chips.find(chip), threads=threads, registers=registers, smem_bytes=smem * KiB)
    rate, needed = held.bytes_per_s(each, latency), occupancy.bytes_to_saturate(held.chip, latency)
    return View(
        _verdict(held, each, rate),
        (_blocks(held), _rates(held, each, latency)),
        (
            Readout("warps per SM", held.warps, "", f"{held.warps} of {MOST_WARPS}"),
            Readout.percent("occupancy", held.share),
            Readout("bytes in flight, whole chip", held.bytes_in_flight(each), "B"),
            Readout("needed by Little's law", needed, "B"),
            Readout("HBM bandwidth reached", rate, "B/s"),
        ),
        columns=2,
    )


def _blocks(held: Occupancy) -> Bars:
    """Blocks by each resource, as if the others were plentiful; the shortest bar decides."""
    names = {
        "registers": "registers",
        "shared memory": "shared memory",
        "warps": "64 warps",
        "blocks": "32 blocks",
    }
    return Bars(
        Scale("blocks that fit on an SM"),
        [names[name] for name in held.blocks_by],
        (Series("blocks", list(held.blocks_by.values()), 0),),
        refs=(RefLine("fit", held.blocks),),
        title=f"Blocks of {held.warps_per_block} warps",
    )


def _rates(held: Occupancy, each: int, latency: float) -> Chart:
    others = [b for b in _OTHERS if b != each]
    here = held.bytes_per_s(each, latency)
    return Chart(
        Scale("warps per SM", "", "linear", 0, MOST_WARPS),
        Scale("HBM bandwidth reached", "B/s", "linear", 0, 1.12 * held.chip.hbm_bytes_per_s),
        (
            *(_curve(held, b, latency, 5, dashed=True) for b in others),
            _curve(held, each, latency, 0),
            RefLine("HBM", held.chip.hbm_bytes_per_s, axis="y"),
            Points("", [held.warps], [here], [si(here, "B/s")], 3),
        ),
        title="Bytes in flight divided by latency",
    )


def _curve(held: Occupancy, each: int, latency: float, color: int, *, dashed: bool = False) -> Curve:
    """A line that rises to the number of warps that saturate HBM, and is flat above it."""
    per_warp = held.bytes_in_flight(each) / held.warps / latency
    most = held.chip.hbm_bytes_per_s
    warps = [0.0, min(most / per_warp, MOST_WARPS), float(MOST_WARPS)]
    return Curve(f"{each} B per thread", warps, [min(w * per_warp, most) for w in warps], color, dashed)


def _verdict(held: Occupancy, each: int, rate: float) -> str:
    said = (
        f"{pluralize(held.blocks, 'block')} of {held.warps_per_block} "
        f"warp{'s' * (held.warps_per_block > 1)} fit{'s' * (held.blocks == 1)} on an SM, "
        f"limited by {_reason(held)}: {held.warps} of {MOST_WARPS} warps."
    )
    most = held.chip.hbm_bytes_per_s
    if rate >= most:
        return f"{said} With {each} bytes in flight per thread, they saturate HBM at {si(most, 'B/s')}."
    lack = most / rate
    return (
        f"{said} With {each} bytes in flight per thread, they sustain {percent(rate / most)} of the HBM "
        f"bandwidth. Saturating it would take {count(lack)} times as many bytes in flight."
    )


def _reason(held: Occupancy) -> str:
    ties = [name for name, n in held.blocks_by.items() if n == held.blocks]
    words = {"warps": "its 64 warps", "blocks": "its 32 blocks"}
    return " and ".join(words.get(name, name) for name in ties)


OCCUPANCY = Explorer(
    key="gpus.occupancy",
    title="Occupancy and memory latency",
    question="Which resource limits the warps on an SM, and are there enough of them to saturate HBM?",
    controls={
        "chip": Choice("chip", _CHIPS, "H100"),
        "threads": Slider("threads per block", WARP, 1024, 256, step=WARP),
        "registers": Slider("registers per thread", 16, 255, 64),
        "smem": Slider("shared memory per block, KiB", 0, 227, 64),
        "each": Slider("bytes in flight per thread", 4, 128, 16, "pow2"),
        "latency": Slider("HBM latency", 2e-7, 1.2e-6, 6e-7, unit="s", step=5e-8),
    },
    view=_occupancy,
)
