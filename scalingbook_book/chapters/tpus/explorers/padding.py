"""Explorer of the cost of sizes that are not multiples of the array's side: tiles with their unused part."""

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Chart,
    Choice,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    Scale,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib.machines import systolic
from scalingbook_lib.units import count, dtype, percent

_SIDES = ("128", "256")
_SHOWN = 8  # tiles along each side of the picture
# where a tile ends, and one further: between them the shares are straight lines
_COLUMNS = [1, *(128 * i + more for i in range(1, 16) for more in (0, 1)), 2048]


def _padding(*, M: int, K: int, N: int, side: str, stored: str) -> View:
    now = systolic.padding(M, K, N, int(side))
    memory = systolic.storage(K, N, dtype(stored))
    return View(
        _verdict(now),
        (_tiles(now), _curves(now)),
        (
            Readout.percent("cells that hold weights", now.useful, 3),
            Readout.percent("useful cell-cycles", now.utilization, 3),
            Readout("cycles", now.cycles, "", f"{now.cycles:,}"),
            Readout.percent("utilization if activation-stationary", now.activation_stationary.utilization, 3),
            Readout("W without padding", memory.useful_bytes, "B"),
            Readout("W as stored, with padding", memory.bytes, "B"),
        ),
        columns=2,
    )


def _tiles(now: systolic.Padding) -> Grid:
    """W in tiles, each with the part that holds weights; the last row and column stay in the picture."""
    down, across = _kept(now.k_tiles), _kept(now.n_tiles)
    more = "" if (len(down), len(across)) == (now.k_tiles, now.n_tiles) else ", not all shown"
    cells = [[_tile(now, k, n) for n in across] for k in down]
    return Grid(f"W in {now.k_tiles} × {now.n_tiles} tile{'s' * (now.tiles > 1)}{more}", (), (), cells)


def _kept(tiles: int) -> list[int]:
    return list(range(tiles)) if tiles <= _SHOWN else [*range(_SHOWN - 1), tiles - 1]


def _tile(now: systolic.Padding, k: int, n: int) -> Cell:
    rows, columns = min(now.K - k * now.side, now.side), min(now.N - n * now.side, now.side)
    full = rows == columns == now.side
    note = f"tile ({k}, {n}): {rows} × {columns} weights in {now.side} × {now.side} cells"
    return Cell("", 0 if full else 1, note, (0, rows / now.side, 0, columns / now.side), 0.8)


def _curves(now: systolic.Padding) -> Chart:
    many = [systolic.padding(now.M, now.K, n, now.side) for n in _COLUMNS]
    return Chart(
        Scale("columns F", "", "linear", 0, 2048),
        Scale("fraction", "", "linear", 0, 1.05),
        (
            Curve("cells that hold weights", _COLUMNS, [p.useful for p in many], 0),
            Curve("useful cell-cycles", _COLUMNS, [p.utilization for p in many], 2),
            Points("your F", [now.N], [now.useful], ["your F"], 1),
        ),
    )


def _verdict(now: systolic.Padding) -> str:
    tiles = pluralize(now.tiles, "tile")
    said = (
        f"W[{now.K:,}, {now.N:,}] takes {tiles} of {now.side} × {now.side}: "
        f"{percent(now.useful)} of the cells hold weights"
    )
    if now.tiles > 1 and now.side > now.M:
        rows = pluralize(now.M, "row")
        return (
            f"{said}. With only {rows}, a tile still takes {now.side} cycles, because that is how long "
            "its weights take to load."
        )
    if (other := now.activation_stationary).cycles < now.cycles:
        less, more = count(other.cycles), count(now.cycles)
        return f"{said}. If X were stationary instead, it would take {less} cycles, not {more}."
    return f"{said}, and {percent(now.utilization)} of all cell-cycles do useful work."


PADDING = Explorer(
    key="tpus.padding",
    title="Padding: partly filled tiles",
    question="What does it cost if a dimension is not a multiple of the array's side?",
    controls={
        "M": Slider("rows B", 1, 2048, 64),
        "K": Slider("contracting dimension D", 1, 2048, 128),
        "N": Slider("columns F", 1, 2048, 129),
        "side": Choice("side of the array", _SIDES, "128"),
        "stored": Choice("data type", ("bf16", "int8", "fp32")),
    },
    view=_padding,
)
