"""Which chunk is where, and what does the link do meanwhile? A collective matmul on a ring, step by step."""

from dataclasses import dataclass, replace

from scalingbook_lib import collectives, roofline
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.reader.explorers import layouts
from scalingbook_lib.reader.explorers.parts import (
    Cell,
    Choice,
    Explorer,
    Grid,
    Link,
    Network,
    Node,
    Readout,
    RefLine,
    Slider,
    Span,
    Steps,
    Switch,
    Timeline,
    View,
)
from scalingbook_lib.reader.offered.chips import TORI
from scalingbook_lib.units import BF16, Told, percent, si

GATHER, SCATTER = "gather, then @", "@, then scatter"
_ARRAYS = {GATHER: "In[B, D_Y] · W[D, F_Y] -> Tmp[B, F_Y]", SCATTER: "Tmp[B, F_Y] · W[F_Y, D] -> Out[B, D_Y]"}
_NOW, _PALE = 1.0, 0.35


@dataclass(frozen=True, kw_only=True)
class Ring(Told):
    """A product over a ring of n chips in n steps: in each, a chunk is multiplied and one is on its way."""

    kind: str
    n: int
    both: bool
    B: int
    D: int
    F: int
    chip: chips.Chip

    @property
    def axis(self) -> Axis:
        """The ring."""
        return Axis(self.n, True, self.chip.link_bytes_per_s, self.chip.hop_s)

    @property
    def moved_bytes(self) -> float:
        """In[B, D] before the product, or Out[B, D] after it, over all chips of the ring."""
        return BF16.bytes * self.B * self.D

    @property
    def multiply_s(self) -> float:
        """One step's arithmetic: B rows, D/n of the columns, all F of this chip."""
        return roofline.matmul(self.B, self.D, self.F, self.chip).math_s / self.n

    @property
    def move_s(self) -> float:
        """One step's transfer, to the neighbor: all of a chunk, or half of it each way."""
        share = self.moved_bytes / (2 if self.both else 1)
        return collectives.all_gather(share, self.axis, both_ways=False).total_s / (self.n - 1)

    @property
    def step_s(self) -> float:
        """Both at once: the longer of the two."""
        return max(self.multiply_s, self.move_s)

    @property
    def total_s(self) -> float:
        """n products and n - 1 moves, of which one product has no move beside it."""
        return self.multiply_s + (self.n - 1) * self.step_s

    @property
    def serial_s(self) -> float:
        """All of the moves, and then all of the arithmetic, or the other way round."""
        return self.n * self.multiply_s + (self.n - 1) * self.move_s

    @property
    def hidden_from(self) -> float:
        """The F of one chip from which the link never holds the matrix unit up: C/W, and the hops."""
        return self.F * self.move_s / self.multiply_s

    @property
    def ratio(self) -> float:
        """C/W: FLOPs that take as long as a byte over the links in use."""
        return self.chip.flops_per_s(BF16) / (self.chip.link_bytes_per_s * (2 if self.both else 1))

    def chunks(self, device: int, step: int) -> tuple[int, ...]:
        """Which chunk a device multiplies in a step, or of whom it adds to; one for each way in use.

        The first way, and the only one of one, goes to the next device: chunks come from the one before, and
        sums end where they belong.
        """
        if self.kind == GATHER:
            ways = (device - step, device + step)
        else:
            ways = (device - 1 - step, device + 1 + step)
        return tuple(way % self.n for way in ways[: 2 if self.both else 1])

    def __str__(self) -> str:
        return f"{_ARRAYS[self.kind]} on a ring of {self.n}: {si(self.total_s, 's')} in {self.n} steps"


def _ring(*, kind: str, n: int, both: bool, B: int, D: int, F: int, chip: str, step: int) -> View:
    r = Ring(kind=kind, n=n, both=both, B=B, D=D, F=F, chip=chips.find(chip))
    done = min(step, n)
    return View(
        _verdict(r),
        (_network(r, done), _table(r, done), _timeline(r, done)),
        (
            Readout("a step's product", r.multiply_s, "s"),
            Readout("a step's move", r.move_s, "s"),
            Readout("in steps", r.total_s, "s"),
            Readout("one after the other", r.serial_s, "s"),
            Readout("C/W of these links", r.ratio, "", f"{r.ratio:,.0f}"),
            Readout("hidden from F of", r.hidden_from, "", f"{r.hidden_from:,.0f}"),
        ),
        frames=n + 1,
        columns=2,
    )


# Who holds what


def _network(r: Ring, done: int) -> Network:
    at = max(done - 1, 0)
    nodes = [
        Node(str(i), x, y, r.chunks(i, at), _note(r, i, at)) for i, (x, y) in enumerate(layouts.ring(r.n))
    ]
    wires = [Link(i, (i + 1) % r.n) for i in range(r.n)]
    what = "Chunks" if r.kind == GATHER else "Sums"
    title = f"{what} at work in step {done}" if done else f"{what} before the first step"
    return Network(nodes, [*wires, *_arrows(r, done)], title, 0.74)


def _note(r: Ring, device: int, at: int) -> str:
    names = " and ".join(map(str, r.chunks(device, at)))
    return f"device {device}: {'chunk' if r.kind == GATHER else 'sum for device'} {names}"


def _arrows(r: Ring, done: int) -> list[Link]:
    """What is on its way during a step: chunks beside their product, sums after it."""
    sent = done - 1 if r.kind == GATHER else done - 2
    if not 0 <= sent < r.n - 1:
        return []
    return [
        Link(i, (i + way) % r.n, 1, color=chunk, bend=0.3 if r.both else 0.0)
        for i in range(r.n)
        for way, chunk in zip((1, -1), r.chunks(i, sent), strict=False)
    ]


def _table(r: Ring, done: int) -> Grid:
    what = "Chunk multiplied" if r.kind == GATHER else "Sum added to"
    cells = [[_cell(r, i, s, done) for s in range(r.n)] for i in range(r.n)]
    return Grid(
        f"{what}, by device and step", [str(i) for i in range(r.n)], [str(s + 1) for s in range(r.n)], cells
    )


def _cell(r: Ring, device: int, at: int, done: int) -> Cell:
    """The chunk by its number, of both halves where they come from two sides; pale where it is not yet."""
    names = r.chunks(device, at)
    text = "+".join(map(str, names)) if len(set(names)) > 1 else str(names[0])
    return Cell(text, names[0], _note(r, device, at), level=_NOW if at < done else _PALE)


# When


def spans(r: Ring) -> list[tuple[str, float, float, int]]:
    """Every (lane, start, end, step): the product that has no move beside it is last, or for sums first."""
    first = 0.0 if r.kind == GATHER else r.multiply_s
    moves = [("link", first + k * r.step_s, k) for k in range(r.n - 1)]
    starts = [
        k * r.step_s if r.kind == GATHER else (k > 0) * r.multiply_s + max(k - 1, 0) * r.step_s
        for k in range(r.n)
    ]
    products = [("matrix unit", start, k) for k, start in enumerate(starts)]
    length = {"link": r.move_s, "matrix unit": r.multiply_s}
    return [(lane, start, start + length[lane], k) for lane, start, k in (*moves, *products)]


def _timeline(r: Ring, done: int) -> Timeline:
    drawn = [Span(lane, start, end, str(k + 1), _color(r, lane, k, done)) for lane, start, end, k in spans(r)]
    refs = (RefLine("one after the other", r.serial_s),)
    return Timeline(("link", "matrix unit"), drawn, end=1.03 * r.serial_s, refs=refs, label="elapsed time")


def _color(r: Ring, lane: str, k: int, done: int) -> int:
    """Blue and green for what is done or under way, gray for what is to come."""
    at = k + 1 if lane == "link" and r.kind == SCATTER else k
    return (1 if lane == "link" else 2) if at < done else 5


# What there is to discover


def _verdict(r: Ring) -> str:
    said = (
        f"{_ARRAYS[r.kind]}: {si(r.total_s, 's')} in {r.n} steps, {si(r.serial_s, 's')} one after the other"
    )
    if r.multiply_s >= r.move_s:
        return f"{said}; every move is hidden, as it is from an F of {r.hidden_from:,.0f} on each device."
    waits = (r.n - 1) * (r.move_s - r.multiply_s)
    said += f"; the matrix unit waits {si(waits, 's')}, {percent(waits / r.total_s)} of it, for the link"
    both = "" if r.both else f", or {replace(r, both=True).hidden_from:,.0f} with both ways in use"
    return f"{said}: an F of {r.hidden_from:,.0f} on each device would hide it{both}."


RING = Explorer(
    key="jax.ring",
    title="Collective matmul, step by step",
    question="Which chunk does each device multiply while the next one is on its way?",
    controls={
        "kind": Choice("product", (GATHER, SCATTER)),
        "n": Slider("devices on the ring", 2, 8, 4),
        "both": Switch("both ways", False),
        "B": Slider("B per device", 64, 65536, 1024, "pow2"),
        "D": Slider("D in all", 512, 65536, 2048, "pow2"),
        "F": Slider("F per device", 256, 32768, 2048, "pow2"),
        "chip": Choice("chip", TORI, "TPU v5e"),
        "step": Steps("step", 2),
    },
    view=_ring,
)
