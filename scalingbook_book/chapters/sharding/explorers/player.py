"""Explorer that plays a collective on a ring or line step by step: shards, links and time."""

from collections import Counter
from dataclasses import replace
from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    LINKED,
    Cell,
    Chips,
    Choice,
    Explorer,
    Grid,
    Link,
    Network,
    Node,
    Readout,
    Slider,
    Span,
    Steps,
    Switch,
    Timeline,
    View,
    layouts,
    pluralize,
)
from scalingbook_lib import collectives
from scalingbook_lib.collectives import Transfer, schedules
from scalingbook_lib.collectives.schedules import Piece, Schedule, Send, holdings
from scalingbook_lib.machines import Axis, chips
from scalingbook_lib.units import si

_FORMULAS = {  # each as steps, and as a time
    "AllGather": (schedules.all_gather, collectives.all_gather),
    "ReduceScatter": (schedules.reduce_scatter, collectives.reduce_scatter),
    "AllReduce": (schedules.all_reduce, collectives.all_reduce),
    "AllToAll": (schedules.all_to_all, collectives.all_to_all),
}
COLLECTIVES = (*_FORMULAS, "CollectivePermute")
_HUES, _PARTIAL = 5, 5  # chunks take colors 0 to 4, the sixth is for sums that are not complete
_TITLES = {
    "AllGather": "Shards that each device holds",
    "ReduceScatter": "Shards held (gray: partial sum)",
    "AllReduce": "Shards held (gray: partial sum)",
    "AllToAll": "Pieces held, in the color of their destination",
    "CollectivePermute": "Shards that each device holds",
}


@lru_cache(maxsize=64)
def plan(op: str, n: int, wrapped: bool, both: bool) -> Schedule:
    """The schedule of a collective on one axis."""
    if op == "CollectivePermute":
        return schedules.permute(n, 1, wrapped)
    if not wrapped and not both:
        raise ValueError(
            "On a line, one direction is not enough, because nothing would reach the first device. "
            "Turn on wraparound, or use both directions."
        )
    steps, _ = _FORMULAS[op]
    return steps(n, wrapped, both)


def exact(op: str, nbytes: float, axis: Axis, both: bool = True) -> Transfer:
    """What `collectives` says of an array of `nbytes` over the whole axis."""
    if op == "CollectivePermute":
        return collectives.permute(nbytes / axis.size, axis)
    _, formula = _FORMULAS[op]
    return formula(nbytes, axis, bidirectional=both)


def for_many_devices(time: Transfer, n: int) -> Transfer:
    """The same transfer with 1 - 1/n taken as 1, as in the rules of the summary; an AllToAll is unchanged."""
    if time.name not in ("AllGather", "ReduceScatter", "AllReduce"):
        return time
    return replace(time, bandwidth_s=time.bandwidth_s * n / (n - 1))


def _player(*, op: str, n: int, wrapped: bool, both: bool, nbytes: float, chip: str, step: int) -> View:
    axis = chips.find(chip).axis(n, wrapped=wrapped)
    schedule = plan(op, n, wrapped, both)
    seconds = schedule.step_seconds(nbytes, axis)
    done = min(step, len(seconds))
    time = exact(op, nbytes, axis, both)
    loads = _loads(schedule, done, nbytes / schedule.pieces)
    return View(
        _verdict(op, nbytes, axis, both=both, time=time, steps=len(seconds)),
        (_network(op, schedule, done), _table(n, wrapped, loads), _timeline(seconds, done)),
        (
            Readout("elapsed", sum(seconds[:done]), "s"),
            Readout("exact total", time.total_s, "s"),
            Readout("of this, hops", time.latency_s, "s"),
            Readout("approximation without hops", for_many_devices(time, n).bandwidth_s, "s"),
            Readout("busiest link carries", max(schedule.loads.values()) * nbytes / schedule.pieces, "B"),
        ),
        frames=len(seconds) + 1,
        columns=2,
    )


# The devices and what they hold


def _network(op: str, schedule: Schedule, done: int) -> Network:
    n, read = schedule.chips, {"AllToAll": _goals, "CollectivePermute": _visitors}.get(op, _blocks)
    held = zip(layouts.ring(n), holdings(schedule, done), strict=True)
    nodes = [Node(str(i), x, y, *read(i, chunks, schedule)) for i, ((x, y), chunks) in enumerate(held)]
    wires = [Link(i, (i + 1) % n) for i in range(n if schedule.wrapped[0] else n - 1)]
    sends = schedule.steps[done - 1].sends if done else ()
    return Network(nodes, [*wires, *(_arrow(send, n) for send in sends)], _TITLES[op], 0.74)


def _arrow(send: Send, n: int) -> Link:
    """An arrow in the color of its chunk; gray where several chunks travel together."""
    source, _, way = send.link
    blocks = {piece.block for piece in send.pieces}
    color = blocks.pop() % _HUES if len(blocks) == 1 else _PARTIAL
    value = len(send.pieces) if n <= 10 else 0.0  # thin arrows where there is little room
    return Link(source, send.target, value, color=color, bend=0.6 if n == 2 and way < 0 else 0.0)


def _blocks(i: int, held: dict[Piece, int], schedule: Schedule) -> tuple[tuple[int | None, ...], str]:
    """One slot for each chunk; of sums, whether all devices are in."""
    n = schedule.chips
    sums = any(step.kind == "add" for step in schedule.steps)
    counts: dict[int, int] = {}
    for piece, amount in held.items():
        counts[piece.block] = min(amount, counts.get(piece.block, n))
    full = [b for b, amount in counts.items() if amount == n or not sums]
    slots = tuple((b % _HUES if b in full else _PARTIAL) if b in counts else None for b in range(n))
    note = f"device {i} holds {len(counts)} of {n} shards" + (f", {len(full)} complete" if sums else "")
    return slots, note


def _goals(i: int, held: dict[Piece, int], schedule: Schedule) -> tuple[tuple[int | None, ...], str]:
    """One slot for each chunk here, in the color of where it goes; chunks cut in half count once."""
    n = schedule.chips
    here = [i, *(p.goal or 0 for p in held if p.part == 0)]  # its chunk for itself never moves
    goals = sorted(here, key=lambda goal: (goal - i) % n)
    empty = (None,) * (n - len(goals))
    at_home = sum(goal == i for goal in goals)
    return (*(goal % _HUES for goal in goals), *empty), f"device {i} has {at_home} of its {n} pieces"


def _visitors(i: int, held: dict[Piece, int], schedule: Schedule) -> tuple[tuple[int | None, ...], str]:
    """The one chunk here; on a line, the last device keeps its own too, and the first is left with none."""
    leaving = {p.origin for step in schedule.steps for send in step.sends for p in send.pieces}
    here = [p.origin or 0 for p in held if p.part == 0] + [i] * (i not in leaving)
    said = " and ".join(f"the shard of device {origin}" for origin in here) or "nothing"
    return tuple(origin % _HUES for origin in here) or (None,), f"device {i} holds {said}"


# The links and what they carried

type Loads = dict[tuple[int, int], tuple[float, float]]  # by source and way: bytes in this step, and so far


def _loads(schedule: Schedule, done: int, piece_bytes: float) -> Loads:
    steps = [step.loads for step in schedule.steps[:done]]
    total = Counter(link for loads in steps for link, load in loads.items() for _ in range(load))
    now = steps[-1] if done else {}
    return {
        (link.source, link.direction): (now.get(link, 0) * piece_bytes, pieces * piece_bytes)
        for link, pieces in total.items()
    }


def _table(n: int, wrapped: bool, loads: Loads) -> Grid:
    """A row for every pair of neighbors: each direction in this step and so far."""
    pairs = [(i, (i + 1) % n) for i in range(n if wrapped else n - 1)]
    most = max((so_far for _, so_far in loads.values()), default=0.0)
    rows = []
    for i, j in pairs:
        up, down = loads.get((i, 1), (0.0, 0.0)), loads.get((j, -1), (0.0, 0.0))
        rows.append(
            [_cell(up[0], most, 0), _cell(up[1], most, 2), _cell(down[0], most, 0), _cell(down[1], most, 2)]
        )
    return Grid(
        "Bytes on each link", [f"{i}, {j}" for i, j in pairs], ("→ now", "→ total", "← now", "← total"), rows
    )


def _cell(nbytes: float, most: float, color: int) -> Cell:
    if not nbytes:
        return Cell("0")
    return Cell(si(nbytes, "B", 2), color, si(nbytes, "B", 4), level=0.3 + 0.7 * nbytes / most)


def _timeline(seconds: tuple[float, ...], done: int) -> Timeline:
    spans, start = [], 0.0
    for k, length in enumerate(seconds, 1):
        color = 0 if k == done else 2 if k < done else 5
        spans.append(Span("steps", start, start + length, str(k), color))
        start += length
    return Timeline(["steps"], spans, label="elapsed time")


# What there is to discover


def _verdict(op: str, nbytes: float, axis: Axis, *, both: bool, time: Transfer, steps: int) -> str:
    where = f"{'ring' if axis.wrapped else 'line'} of {axis.size}"
    said = f"{op} of {si(nbytes, 'B')} on a {where}: {si(time.total_s, 's')} in {pluralize(steps, 'step')}."
    return f"{said} {_discovery(op, nbytes, axis, both, time)}"


def _discovery(op: str, nbytes: float, axis: Axis, both: bool, time: Transfer) -> str:
    if time.bound == "latency":
        return (
            f"The hops take {si(time.latency_s, 's')} of that time, so a smaller array would hardly be "
            "faster."
        )
    if op == "CollectivePermute":
        links = "both links, half over each" if axis.size == 2 and axis.wrapped else "one link"
        share = si(nbytes / axis.size, "B")
        return f"Every device sends its shard, 1/{axis.size} of the array or {share}, over {links}."
    ring = Axis(axis.size, True, axis.link_bytes_per_s, axis.hop_s)
    if axis != ring or not both:
        ratio = time.bandwidth_s / exact(op, nbytes, ring).bandwidth_s
        why = (
            "on a line, the device at the end has only one link"
            if not axis.wrapped
            else "with one direction, every link is used at half of its capacity"
        )
        return f"A ring with both directions moves the bytes {ratio:.3g} times as fast, because {why}."
    if op == "AllToAll":
        gather = exact("AllGather", nbytes, axis)
        return (
            f"An AllGather of the same array takes {si(gather.total_s, 's')}, because every piece has to "
            "reach every device. In an AllToAll, each piece has a single destination."
        )
    if op == "AllReduce":
        return "An AllReduce is a ReduceScatter followed by an AllGather and takes as long as both together."
    wider = exact(op, nbytes, Axis(2 * axis.size, True, axis.link_bytes_per_s, axis.hop_s))
    return (
        f"With twice as many devices, it would take {si(wider.total_s, 's')}: the size of the ring "
        "hardly matters."
    )


PLAYER = Explorer(
    key="sharding.player",
    title="Collective player",
    question="What shard crosses each link in every step, and how long does the collective take?",
    controls={
        "op": Choice("collective", COLLECTIVES),
        "n": Slider("devices n", 2, 16, 8),
        "nbytes": Slider("array M", 1e3, 1e9, 32e6, "log", "B"),
        "chip": Chips("chip", LINKED, "TPU v5e"),
        "wrapped": Switch("wraparound (ring)", True),
        "both": Switch("both directions", True),
        "step": Steps("step", 2),
    },
    view=_player,
)
