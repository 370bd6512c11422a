"""Reads a profiler's file (`*.xplane.pb`, or the `trace.json` next to it) as a `Trace`.

On a CPU, every operation of a program is an event with `hlo_op` and `device_ordinal`, on the thread that ran
it. A TPU has a plane per device, with the operations on the line `XLA Ops` and each run of a program on `XLA
Modules`. A GPU's plane has its streams, whose kernels name their `hlo_op`: the operation that they belong to
or, if they were launched together, the CUDA graph, so that only a kernel's own name distinguishes them.
"""

import gzip
import re
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from scalingbook_lib import git_lfs
from scalingbook_lib.profiles import intervals, operations, protobuf, trace_events
from scalingbook_lib.profiles.intervals import Event
from scalingbook_lib.profiles.protobuf import XEvent, XLine, XPlane
from scalingbook_lib.profiles.trace import COLLECTIVE, COMPILE, LOOP, HostEvent, Op, Trace

type Operations = Mapping[tuple[str, str], Op]  # by module and name

DEVICE = re.compile(r"/device:(TPU|GPU):(\d+)")
TPU_LINES = OPS_LINE, ASYNC_LINE, MODULES_LINE = "XLA Ops", "Async XLA Ops", "XLA Modules"
SMALL_MEMSET = re.compile(r"num_bytes:\d{1,3}\b")  # cuBLAS clears a few bytes before a matmul
HOST = "/host:CPU"
COMPILING = "backend_compile_and_load"
CONTAINERS = ("while", "conditional", "call")
PATTERNS = "*.xplane.pb", "*.xplane.pb.gz", "*trace.json.gz", "*trace.json"  # the first kind found is read
GZIP = b"\x1f\x8b"
_RECORD_AGAIN = "record the profile with JAX 0.7 or later, or on a TPU or a GPU"
MOVES = re.compile(
    r"^(all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute|ragged-all-to-all|"
    r"collective-broadcast|send|recv)\b"
)


# NCCL's kernels in a CUDA graph: ncclDevKernel_AllReduce_Sum_bf16_RING_LL
NCCL = re.compile(r"^nccl\w*?(AllGather|AllReduce|ReduceScatter|AllToAll|SendRecv|Broadcast)", re.I)
# XLA:CPU names a collective after the function of JAX that it comes from.
_JAX_KINDS = {
    "psum": "all-reduce", "pmax": "all-reduce", "pmin": "all-reduce", "all_gather": "all-gather",
    "psum_scatter": "reduce-scatter", "reduce_scatter": "reduce-scatter", "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}  # fmt: skip
_NCCL_KINDS = {"sendrecv": "collective-permute", "broadcast": "collective-broadcast"}


class ProfiledEvent(NamedTuple):
    """An event of the profiler, in nanoseconds; on `line`, events are nested or disjoint."""

    name: str
    module: str
    device: int
    run: int | None  # the profiler's number of this execution
    start_ns: float
    duration_ns: float
    line: str
    stats: Mapping[str, Any]  # of the profiler, such as flops, bytes_accessed, tf_op


def newest(folder: str | Path) -> Path:
    """The latest profile below a folder, or the file itself. Raises a FileNotFoundError if there is none."""
    if Path(folder).is_file():
        return Path(folder)
    if not Path(folder).exists():
        raise FileNotFoundError(
            f"there is no file or folder {folder}; give a *.xplane.pb, or a folder above one"
        )
    for pattern in PATTERNS:
        if profiles := sorted(Path(folder).rglob(pattern), key=lambda p: p.stat().st_mtime):
            return profiles[-1]
    raise FileNotFoundError(
        f"no profile ({', '.join(PATTERNS)}) below {folder}; record one with trace.record"
    )


def planes_of(file: Path) -> tuple[XPlane, ...]:
    """The planes of a profiler's file: `*.xplane.pb` or `trace.json`, compressed with gzip or not.

    Raises a ValueError if it is neither (a Git LFS pointer, for example), is truncated, or holds no plane.
    """
    content = file.read_bytes()
    if git_lfs.is_pointer(content):
        raise ValueError(git_lfs.refusal(str(file)))
    if content.startswith(GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{file} is compressed with gzip and truncated; copy it again") from error
    if not content.strip():
        raise ValueError(f"{file} is empty; record the profile again, or copy it again")
    if re.match(rb"(//.*\n|\s)*(HloModule |module[ @{])", content):
        raise ValueError(
            f"{file} is the text of a program, not a profile; write `scalingbook inspect --hlo {file}`, or "
            "give it as --hlo beside a profile"
        )
    if _is_text(content) and not trace_events.begins(content):
        raise ValueError(
            f"{file} is a text, not a profile; give a *.xplane.pb, a *.trace.json.gz, or the folder of a run"
        )
    found = (trace_events if trace_events.begins(content) else protobuf).planes(content, str(file))
    if not found:
        raise ValueError(f"{file} holds no events; record the profile again")
    return found


def _is_text(content: bytes) -> bool:
    """Whether a file has no control characters but white space; the tags of a protobuf are some."""
    return not re.search(rb"[\0-\x08\x0e-\x1f]", content)


def read(
    path: str | Path,
    *programs: Any,
    annotations: Sequence[str] = (),
    title: str = "a profile",
    platform: str = "cpu",
    kind: str = "cpu",
    versions: str = "",
) -> Trace:
    """A profile as a trace.

    `programs` are compiled programs that ran, or their texts, which describe each operation. `annotations`
    are the names of host events to include. `platform`, `kind` and `versions` describe the devices if the
    profile does not. Raises a FileNotFoundError if there is no profile, and a ValueError if the file is of
    another kind or damaged, or does not say which operations ran, or on which device.
    """
    file = newest(path)
    planes = planes_of(file)
    _require_operations(file, planes)
    known = operations.of_programs(programs)
    about = {"title": title, "platform": platform, "kind": kind, "versions": versions}
    return replace(from_planes(planes, known, annotations, **about), folder=str(path))


def _require_operations(file: Path, planes: Sequence[XPlane]) -> None:
    """Raise a ValueError for a profile whose events name no operation, or no device of an operation."""
    operations_of_host = [
        e
        for plane in planes
        if plane.name == HOST
        for line in plane.lines
        for e in line.events
        if "hlo_op" in e.stats
    ]
    if next(_events(planes), None) is None:
        events = sum(len(line.events) for plane in planes for line in plane.lines)
        names = ", ".join(plane.name for plane in planes if plane.lines) or "none"
        raise ValueError(
            f"{file} holds no operations: none of its {events:,} events (planes: {names}) names an operation "
            "of a compiled program. On a CPU, JAX 0.4.30 and 0.6 record none, and no JAX does where nothing "
            "ran "
            f"between start_trace and stop_trace; {_RECORD_AGAIN}"
        )
    unplaced = [e for e in operations_of_host if "device_ordinal" not in e.stats]
    if unplaced and _overlap(unplaced):
        raise ValueError(
            f"{file} does not say on which device an operation ran: {unplaced[0].name!r} runs several times "
            "at "
            "once, on several CPU devices, and JAX before 0.7 records no device_ordinal with it; "
            f"{_RECORD_AGAIN}"
        )


def _overlap(events: Sequence[XEvent]) -> bool:
    """Whether an operation of a program starts again before it has ended, which means on another device."""
    ended: dict[tuple[str, str], float] = {}
    for e in sorted(events, key=lambda e: e.start_ns):
        key = (str(e.stats.get("hlo_module", "")), e.name)
        if e.start_ns < ended.get(key, 0.0):
            return True
        ended[key] = e.start_ns + e.duration_ns
    return False


def from_planes(
    planes: Sequence[XPlane],
    known: Operations,
    annotations: Sequence[str] = (),
    *,
    title: str,
    platform: str,
    kind: str,
    versions: str = "",
) -> Trace:
    """The decoded planes of a profile as a trace; `known` are operations by (module, name)."""
    platform, kind = _recorded_on(planes, platform) or (platform, kind)
    profiled = sorted(_events(planes), key=lambda e: e.start_ns)
    host = sorted(_host_events(planes, annotations), key=lambda e: e[1])
    began_ns = min([e.start_ns for e in profiled] + [start for _, start, _ in host], default=0.0)
    ops, events = _table(profiled, known, began_ns)
    return Trace(
        title=title,
        platform=platform,
        kind=kind,
        devices=len({e.device for e in events}) or 1,
        simulated=platform == "cpu",
        warmup=None,
        versions=versions,
        ops=ops,
        events=events,
        host=tuple(HostEvent(n, (start - began_ns) / 1e9, duration / 1e9) for n, start, duration in host),
    )


def _recorded_on(planes: Sequence[XPlane], platform: str) -> tuple[str, str] | None:
    """The platform and kind of the devices that a profile names, if they differ from the given platform."""
    for plane in planes:
        device = DEVICE.match(plane.name)
        if device and device[1].lower() != platform and plane.lines:
            kind = plane.stats.get("device_type_string") or plane.stats.get("gpu_device_name") or device[1]
            return device[1].lower(), str(kind)
    return None


def _events(planes: Sequence[XPlane]) -> Iterator[ProfiledEvent]:
    """The operations' events of all planes."""
    for plane in planes:
        device = DEVICE.match(plane.name)
        if device and device[1] == "TPU":
            yield from _tpu_events(plane, int(device[2]))
        elif device:
            yield from (e for line in plane.lines for e in _line_events(line, int(device[2])))
        elif plane.name == HOST:
            yield from (e for line in plane.lines for e in _line_events(line, None))


def _line_events(line: XLine, device: int | None) -> Iterator[ProfiledEvent]:
    """The events of a line that name an operation of a program."""
    for e in line.events:
        name = e.stats.get("hlo_op")
        if name is None or SMALL_MEMSET.search(str(e.stats.get("Memset_details", ""))):
            continue
        # kernels of a CUDA graph all name the graph, and the two of a split-K matmul name the same operation
        name = e.name if "cuda_graph_id" in e.stats or "splitK" in e.name else name
        on = int(e.stats.get("device_ordinal", 0) if device is None else device)
        yield ProfiledEvent(
            name=name,
            module=e.stats.get("hlo_module", ""),
            device=on,
            run=e.stats.get("run_id"),
            start_ns=e.start_ns,
            duration_ns=e.duration_ns,
            line=f"{line.name} {on}",
            stats=e.stats,
        )


def _tpu_events(plane: XPlane, device: int) -> Iterator[ProfiledEvent]:
    """A TPU's operations, each with the program and the run during which it ran."""
    lines = {line.name: line for line in plane.lines}
    events = {name: lines[name].events if name in lines else () for name in TPU_LINES}
    runs = sorted((e.start_ns, e.name.partition("(")[0]) for e in events[MODULES_LINE])
    starts = [start for start, _ in runs]
    for name in (OPS_LINE, ASYNC_LINE):
        for e in events[name]:
            run = bisect_right(starts, e.start_ns) - 1
            yield ProfiledEvent(
                name=op_name(e.name),
                module=runs[run][1] if run >= 0 else "",
                device=device,
                run=run,
                start_ns=e.start_ns,
                duration_ns=e.duration_ns,
                line=name,
                stats=e.stats,
            )


def op_name(text: str) -> str:
    """The name of an operation, from the instruction that a TPU's profiler writes: '%fusion.1 = bf16[8]'."""
    return text.partition(" = ")[0].lstrip("%")


def operation_spans(planes: Sequence[XPlane]) -> Iterator[tuple[int, float, float]]:
    """The device, the start and the end of every operation, in nanoseconds."""
    return ((e.device, e.start_ns, e.start_ns + e.duration_ns) for e in _events(planes))


def host_spans(planes: Sequence[XPlane]) -> Iterator[tuple[str, float, float]]:
    """The name, the start and the duration in nanoseconds of every host event that is no operation."""
    for plane in planes:
        if plane.name == HOST:
            for line in plane.lines:
                yield from (
                    (e.name, e.start_ns, e.duration_ns) for e in line.events if "hlo_op" not in e.stats
                )


def share_in_graphs(planes: Sequence[XPlane]) -> float:
    """The share of a GPU's kernels that CUDA graphs launched; 0 on other devices."""
    kernels = [e for e in _events(planes) if "correlation_id" in e.stats or "cuda_graph_id" in e.stats]
    return sum("cuda_graph_id" in e.stats for e in kernels) / len(kernels) if kernels else 0.0


def _host_events(planes: Sequence[XPlane], annotations: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    """The compilations and the annotated events of the host: name, start and duration in nanoseconds."""
    lines = (line for plane in planes if plane.name == HOST for line in plane.lines)
    for e in (e for line in lines for e in line.events):
        if e.name == COMPILING or e.name in annotations:
            yield (COMPILE if e.name == COMPILING else e.name), e.start_ns, e.duration_ns


def _table(
    profiled: Sequence[ProfiledEvent], known: Operations, began_ns: float
) -> tuple[tuple[Op, ...], tuple[Event, ...]]:
    """Each operation once, and the events that refer to them."""
    indices: dict[tuple[str, str], int] = {}
    ops: list[Op] = []
    runs, self_times, events = _runs(profiled), _self_times(profiled), []
    # `dot.1` becomes a kernel dot_1
    kernels = {(module, re.sub(r"\W", "_", name)): op for (module, name), op in known.items()}
    for s, run, self_ns in zip(profiled, runs, self_times, strict=True):
        key = (s.module, s.name)
        if key not in indices:
            indices[key] = len(ops)
            ops.append(known.get(key) or kernels.get(key) or guess_op(s))
        events.append(
            Event(
                indices[key], s.device, run, (s.start_ns - began_ns) / 1e9, s.duration_ns / 1e9, self_ns / 1e9
            )
        )
    return tuple(ops), tuple(events)


def _runs(profiled: Sequence[ProfiledEvent]) -> list[int]:
    """The run of each event, from 0: as the profiler numbers it, or by repeats of the first operation."""
    found, order = [], defaultdict(dict)
    last_launch: dict[tuple[int, str], tuple[str, Any, int]] = {}
    for s in profiled:
        if s.run is not None:
            here = order[s.device, s.module]
            found.append(here.setdefault(s.run, len(here)))
            continue
        launch = s.stats.get("correlation_id", s)  # a CUDA graph launches several kernels of the same name
        first, last, n = last_launch.get((s.device, s.module), (s.name, None, -1))
        if s.name == first and launch != last:
            last, n = launch, n + 1
        last_launch[s.device, s.module] = first, last, n
        found.append(n)
    return found


def _self_times(profiled: Sequence[ProfiledEvent]) -> list[float]:
    """The nanoseconds of each event without the events nested in it on its line and device."""
    lines = defaultdict(list)
    for i, s in enumerate(profiled):
        lines[s.device, s.line].append(i)
    found = [0.0] * len(profiled)
    for indices in lines.values():
        spans = [(profiled[i].start_ns, profiled[i].start_ns + profiled[i].duration_ns) for i in indices]
        for i, left in zip(indices, intervals.self_times(spans), strict=True):
            found[i] = left
    return found


def guess_op(s: ProfiledEvent) -> Op:
    """An operation whose program is not available, by its name and its statistics in the profile."""
    moves = MOVES.match(s.name)
    moved = moves[1] if moves else _JAX_KINDS.get(s.name.partition(".")[0]) or _nccl(s.name)
    kind = COLLECTIVE if moved else "kernel" if re.search("fusion|custom-call", s.name) else "elementwise"
    if s.name.split(".")[0] in CONTAINERS:
        kind = LOOP
    elif s.name.lower().startswith(("copy", "transpose", "mem")):
        kind = "copy"
    elif re.match(r"(dot|convolution|gemm|cublas|matmul|nvjet|cutlass|sm\d+_xmma)", s.name):
        kind = "matmul"
    names = {"flops": "flops", "nbytes": "bytes_accessed"}
    work = {ours: int(s.stats[theirs]) for ours, theirs in names.items() if theirs in s.stats}
    return Op(s.name, kind, s.module, str(s.stats.get("tf_op", "")), moves=moved, **work)


def _nccl(name: str) -> str:
    """The collective of a kernel of NCCL, 'all-reduce'; "" for other kernels."""
    found = NCCL.match(name)
    if found is None:
        return ""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", found[1]).lower()
    return _NCCL_KINDS.get(words.replace("-", ""), words)
