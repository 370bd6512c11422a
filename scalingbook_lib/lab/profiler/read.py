"""What did the profiler write? Its planes, lines and events as a `Trace`.

On a CPU every operation of a program is an event with `hlo_op` and `device_ordinal`, on whatever thread ran
it. A TPU has a plane for each device, with the operations on the line `XLA Ops` and each run of a program on
`XLA Modules`; a GPU's plane has its streams, whose kernels name their `hlo_op`: the operation they belong to
or, where they were launched together, the CUDA graph, so that only a kernel's own name tells them apart.
"""

import re
import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalingbook_lib.lab.profiler import times
from scalingbook_lib.lab.profiler.table import COLLECTIVE, COMPILE, LOOP, Moment, Op, Trace
from scalingbook_lib.lab.profiler.times import Event

DEVICE = re.compile(r"/device:(TPU|GPU):(\d+)")
TPU_LINES = OPS_LINE, ASYNC_LINE, MODULES_LINE = "XLA Ops", "Async XLA Ops", "XLA Modules"
MARK = re.compile(r"num_bytes:\d{1,3}\b")  # a few bytes set to zero, before a product of cuBLAS
COMPILING = "backend_compile_and_load"
HOLDERS = ("while", "conditional", "call")
MOVES = re.compile(
    r"^(all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute|ragged-all-to-all|"
    r"collective-broadcast|send|recv)\b"
)


class TraceEvent(NamedTuple):
    """An event as the profiler has it: nanoseconds, and the lane on which nothing else runs meanwhile."""

    name: str
    module: str
    device: int
    run: int | None  # the profiler's number of this execution
    start_ns: float
    took_ns: float
    lane: str
    told: Mapping[str, Any]  # what the profiler itself says: flops, bytes_accessed, tf_op


def newest(folder: str | Path) -> Path:
    """The latest profile below a folder, or the file itself."""
    if Path(folder).is_file():
        return Path(folder)
    found = sorted(Path(folder).rglob("*.xplane.pb"), key=lambda p: p.stat().st_mtime)
    if not found:
        raise FileNotFoundError(f"no profile (*.xplane.pb) below {folder}; record one with trace.record")
    return found[-1]


def read(
    path: str | Path, known: Mapping[tuple[str, str], Op], marks: Sequence[str] = (), **about: Any
) -> Trace:
    """A profile as a trace; `known` are operations by (module, name), `marks` host events to keep."""
    import jax

    file = newest(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the profiler's own types
        data = jax.profiler.ProfileData.from_file(str(file))
        about |= _recorded_on(data, about)
        seen = sorted(_events(data), key=lambda s: s.start_ns)
        host = sorted(_host(data, marks), key=lambda m: m[1])
    began = min([s.start_ns for s in seen] + [start for _, start, _ in host], default=0.0)
    ops, events = _table(seen, known, began)
    moments = tuple(Moment(name, (start - began) / 1e9, took / 1e9) for name, start, took in host)
    return Trace(ops=ops, events=events, host=moments, folder=str(path), **about)


def _recorded_on(data: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    """The devices that a profile itself speaks of, where they are not this machine's."""
    for plane in data.planes:
        device = DEVICE.match(plane.name)
        if device and device[1].lower() != about["platform"] and any(True for _ in plane.lines):
            told = dict(plane.stats)
            kind = told.get("device_type_string") or told.get("gpu_device_name") or device[1]
            return {"platform": device[1].lower(), "kind": str(kind), "simulated": False}
    return {}


def _events(data: Any) -> Iterator[TraceEvent]:
    for plane in data.planes:
        device = DEVICE.match(plane.name)
        if device and device[1] == "TPU":
            yield from _of_tpu(plane, int(device[2]))
        elif device:
            yield from (s for line in plane.lines for s in _of_line(line, int(device[2])))
        elif plane.name == "/host:CPU":
            yield from (s for line in plane.lines for s in _of_line(line, None))


def _of_line(line: Any, device: int | None) -> Iterator[TraceEvent]:
    """The events that name an operation of a program."""
    for e in line.events:
        told = dict(e.stats)
        if (name := told.get("hlo_op")) is None or MARK.search(told.get("Memset_details", "")):
            continue
        name = e.name if "cuda_graph_id" in told or "splitK" in e.name else name
        where = told.get("device_ordinal", 0) if device is None else device
        lane = f"{line.name} {where}"
        yield TraceEvent(
            name,
            told.get("hlo_module", ""),
            int(where),
            told.get("run_id"),
            e.start_ns,
            e.duration_ns,
            lane,
            told,
        )


def _of_tpu(plane: Any, device: int) -> Iterator[TraceEvent]:
    """A TPU's operations; which program and run each belongs to is what runs around it."""
    lines = {line.name: line for line in plane.lines}
    events = {name: [*lines[name].events] if name in lines else [] for name in TPU_LINES}
    runs = sorted((e.start_ns, e.name.partition("(")[0]) for e in events[MODULES_LINE])
    starts = [start for start, _ in runs]
    for name in (OPS_LINE, ASYNC_LINE):
        for e in events[name]:
            at = bisect_right(starts, e.start_ns) - 1
            module = runs[at][1] if at >= 0 else ""
            yield TraceEvent(
                op_name(e.name), module, device, at, e.start_ns, e.duration_ns, name, dict(e.stats)
            )


def op_name(text: str) -> str:
    """The name of an operation, where the profiler gives its whole line: '%fusion.1 = bf16[8]{0} ...'."""
    return text.partition(" = ")[0].lstrip("%")


def _host(data: Any, marks: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    for plane in data.planes:
        if plane.name != "/host:CPU":
            continue
        for e in (e for line in plane.lines for e in line.events):
            if e.name == COMPILING or e.name in marks:
                yield (COMPILE if e.name == COMPILING else e.name), e.start_ns, e.duration_ns


def _table(
    seen: Sequence[TraceEvent], known: Mapping[tuple[str, str], Op], began: float
) -> tuple[tuple[Op, ...], tuple[Event, ...]]:
    """Operations, each once, and the events that point to them."""
    places: dict[tuple[str, str], int] = {}
    ops: list[Op] = []
    runs, owns, events = _runs(seen), _owns(seen), []
    # `dot.1` becomes a kernel dot_1
    kernels = {(module, re.sub(r"\W", "_", name)): op for (module, name), op in known.items()}
    for s, run, own_ns in zip(seen, runs, owns, strict=True):
        key = (s.module, s.name)
        if key not in places:
            places[key] = len(ops)
            ops.append(known.get(key) or kernels.get(key) or guessed(s))
        events.append(
            Event(places[key], s.device, run, (s.start_ns - began) / 1e9, s.took_ns / 1e9, own_ns / 1e9)
        )
    return tuple(ops), tuple(events)


def _runs(seen: Sequence[TraceEvent]) -> list[int]:
    """Of each event the run of its program, from 0: as the profiler numbers it, or by what comes again."""
    found, order = [], defaultdict(dict)
    again: dict[tuple[int, str], tuple[str, Any, int]] = {}
    for s in seen:
        if s.run is not None:
            here = order[s.device, s.module]
            found.append(here.setdefault(s.run, len(here)))
            continue
        launch = s.told.get("correlation_id", s)  # a CUDA graph has many kernels alike in one
        first, last, n = again.get((s.device, s.module), (s.name, None, -1))
        if s.name == first and launch != last:
            last, n = launch, n + 1
        again[s.device, s.module] = first, last, n
        found.append(n)
    return found


def _owns(seen: Sequence[TraceEvent]) -> list[float]:
    """The nanoseconds of each event without those within it on its own lane and device."""
    lanes = defaultdict(list)
    for i, s in enumerate(seen):
        lanes[s.device, s.lane].append(i)
    found = [0.0] * len(seen)
    for places in lanes.values():
        stretches = [(seen[i].start_ns, seen[i].start_ns + seen[i].took_ns) for i in places]
        for i, left in zip(places, times.own(stretches), strict=True):
            found[i] = left
    return found


def guessed(s: TraceEvent) -> Op:
    """An operation whose program is not at hand: by its name and what the profiler says of it."""
    moves = MOVES.match(s.name)
    kind = COLLECTIVE if moves else "kernel" if re.search("fusion|custom-call", s.name) else "elementwise"
    if s.name.split(".")[0] in HOLDERS:
        kind = LOOP
    elif s.name.lower().startswith(("copy", "transpose", "mem")):
        kind = "copy"
    elif re.match(r"(dot|convolution|gemm|cublas|matmul|nvjet|cutlass|sm\d+_xmma)", s.name):
        kind = "matmul"
    names = {"flops": "flops", "nbytes": "bytes_accessed"}
    said = {mine: int(s.told[its]) for mine, its in names.items() if its in s.told}
    return Op(s.name, kind, s.module, str(s.told.get("tf_op", "")), moves=moves[1] if moves else "", **said)
