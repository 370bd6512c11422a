"""Reads the planes, lines and events of TPUs and GPUs, and decodes the protobuf that holds them."""

import gzip
import json
import struct

import pytest

from scalingbook_lib import profiles
from scalingbook_lib.profiles import trace_events, xplane
from scalingbook_lib.profiles.protobuf import XEvent, XLine, XPlane


def event(name, start, duration, **stats):
    return XEvent(name, float(start), float(duration), stats)


def line(name, *events):
    return XLine(name, events)


def read(*planes, platform, kind):
    return xplane.from_planes(planes, {}, title="t", platform=platform, kind=kind)


def test_a_tpu_plane_has_operations_runs_and_nested_loops():
    whole = "%fusion.1 = bf16[8,128]{1,0} fusion(%p0), kind=kOutput"
    plane = XPlane(
        name="/device:TPU:0",
        lines=(
            line("XLA Modules", event("jit_f(123)", 1000, 100), event("jit_f(123)", 2000, 100)),
            line(
                "XLA Ops",
                event("%while.2 = (s32[]) while(...)", 1000, 60),
                event(whole, 1010, 40, flops=512, bytes_accessed=64, tf_op="jit(f)/up/dot_general:"),
                event("%all-gather.3 = bf16[8]{0} all-gather(...)", 2010, 20),
            ),
            line("Async XLA Ops", event("%all-reduce-start.4 = ...", 2005, 50)),
        ),
    )
    found = read(plane, platform="tpu", kind="TPU v5 lite")
    assert [(op.name, op.kind) for op in found.ops] == [
        ("while.2", "loop"), ("fusion.1", "kernel"), ("all-reduce-start.4", "collective"),
        ("all-gather.3", "collective"),
    ]  # fmt: skip
    fusion = found.ops[1]
    assert (fusion.flops, fusion.nbytes, fusion.module, fusion.scope) == (512, 64, "jit_f", "up")
    assert [e.run for e in found.events] == [0, 0, 1, 1]
    assert found.events[0].self_s == pytest.approx(20e-9)  # the loop without the fusion in it
    assert found.events[0].start_s == 0


def test_a_profile_names_the_devices_that_it_was_recorded_on():
    stats = {"device_type_string": "TPU v5 lite"}
    plane = XPlane(name="/device:TPU:0", stats=stats, lines=(line("XLA Ops", event("%copy.1 = ...", 0, 5)),))
    found = read(plane, platform="cpu", kind="cpu")
    assert (found.platform, found.kind, found.simulated) == ("tpu", "TPU v5 lite", False)
    assert profiles.against(found).name == "TPU v5e"


def test_kernels_of_a_gpu_belong_to_the_operations_that_they_name():
    def kernel(name, op, start):
        return event(name, start, 10, hlo_op=op, hlo_module="jit_f")

    plane = XPlane(
        name="/device:GPU:1",
        lines=(
            line("Stream #16(Compute)", kernel("gemm_h100", "dot.1", 0), kernel("gemm_h100", "dot.1", 100)),
            line("Stream #20(Memcpy)", event("MemcpyD2D", 5, 3)),
            line("Stream #24", kernel("ncclDevKernel_AllReduce", "all-reduce-start.1", 12)),
        ),
    )
    found = read(plane, platform="gpu", kind="NVIDIA H100 80GB HBM3")
    assert [(op.name, op.kind, op.moves) for op in found.ops] == [
        ("dot.1", "matmul", ""), ("all-reduce-start.1", "collective", "all-reduce"),
    ]  # fmt: skip
    assert [(e.device, e.run) for e in found.events] == [(1, 0), (1, 0), (1, 1)]


def varint(value):
    value, found = value % 2**64, b""
    while value > 127:
        found, value = found + bytes([value % 128 + 128]), value // 128
    return found + bytes([value])


def message(*fields):
    """A protobuf message of (number, value) pairs."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            found += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            found += varint(number << 3 | 2) + varint(len(raw)) + raw
    return found


def entry(key, value):
    return message((1, key), (2, value))


NAMES = ["share", "bytes", "shift", "op", "kind", "v5e"]
STATS = [(2, 0.5), (3, 2**63), (4, -7), (5, "dot.1"), (7, 6)]
PLANE = message(
    (2, "/device:TPU:0"),
    *((5, entry(n, message((1, n), (2, name)))) for n, name in enumerate(NAMES, 1)),
    (4, entry(9, message((1, 9), (2, "fusion"), (5, message((1, 5), (7, 6)))))),
    (
        3,
        message(
            (2, "XLA Ops"),
            (3, 1000),
            (
                4,
                message(
                    (1, 9), (2, 2500), (3, 500), *((4, message((1, n), s)) for n, s in enumerate(STATS, 1))
                ),
            ),
            (12, b"a field that later versions may add"),
        ),
    ),
)


def test_a_plane_is_decoded_with_its_names_times_and_statistics(tmp_path):
    for name, content in (("p.xplane.pb", message((1, PLANE))), ("p.gz", gzip.compress(message((1, PLANE))))):
        (tmp_path / name).write_bytes(content)
        (plane,) = xplane.planes_of(tmp_path / name)
        stats = {"share": 0.5, "bytes": 2**63, "shift": -7, "op": "dot.1", "kind": "v5e"}
        assert plane == XPlane("/device:TPU:0", (XLine("XLA Ops", (XEvent("fusion", 1002.5, 0.5, stats),)),))


@pytest.mark.parametrize("end", [-1, 7, 40])
def test_a_truncated_file_is_refused(tmp_path, end):
    (tmp_path / "p.xplane.pb").write_bytes(message((1, PLANE))[:end])
    with pytest.raises(ValueError, match="not a complete XPlane file"):
        xplane.planes_of(tmp_path / "p.xplane.pb")


def test_a_folder_without_a_profile_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"record one with trace\.record"):
        xplane.read(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        xplane.read(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 89012\n",
            "is a Git LFS pointer",
        ),
        (b"", "is empty; record the profile again"),
        (b'{"format": 1}', "is JSON, but not a profiler's trace.json"),
        (b'{"traceEvents": [{"ph": ', "is not complete JSON"),
        (b'{"schemaVersion": 1, "traceEvents": []}', "is a trace of PyTorch's profiler, which is not read"),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1}]}',
            "is a trace of PyTorch's profiler, which is not read",
        ),
        (
            b'{"traceEvents": [{"ph": "X", "name": "build", "pid": 1, "tid": 1, "ts": 0, "dur": 1}]}',
            "is a Chrome trace of another tool",
        ),
        (b"[build-system]\nrequires = []\n", "is a text, not a profile"),
        (b"{name: step, time: 3}", "is a text, not a profile"),
        (b"// notes\nHloModule jit_f\n\nENTRY main {", "is the text of a program, not a profile"),
        (gzip.compress(b"{}" * 1000)[:20], "is compressed with gzip and truncated"),
    ],
    ids=[
        "pointer",
        "empty",
        "other JSON",
        "cut JSON",
        "PyTorch",
        "cut PyTorch",
        "Chrome",
        "TOML",
        "YAML",
        "program",
        "cut gzip",
    ],
)
def test_another_file_is_refused_with_what_it_is(tmp_path, content, reason):
    (tmp_path / "p.xplane.pb").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        xplane.read(tmp_path)


def on_host(*events):
    """A `trace.json` of events on the host: name, start and duration in µs, and what the profiler says."""
    spans = [
        {"ph": "X", "pid": 701, "tid": 7, "name": name, "ts": ts, "dur": dur, "args": args}
        for name, ts, dur, args in events
    ]
    names = [
        {"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}},
        {"ph": "M", "pid": 701, "tid": 7, "name": "thread_name", "args": {"name": "tf_XLAEigen"}},
    ]
    return json.dumps({"traceEvents": [*names, *spans, {}]})


OPERATION = {"hlo_op": "dot.4", "hlo_module": "jit_f"}


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_json_is_read_as_the_profile_beside_it(tmp_path, packed):
    text = on_host(("dot.4", 10, 5, OPERATION), ("dot.4", 20, 7, OPERATION), ("a Python call", 0, 40, {}))
    name, content = (
        ("vm.trace.json.gz", gzip.compress(text.encode())) if packed else ("vm.trace.json", text.encode())
    )
    (tmp_path / name).write_bytes(content)
    trace = xplane.read(tmp_path)
    assert (trace.runs, trace.run_s) == (2, pytest.approx(6e-6))
    assert [(row.op.name, row.op.kind) for row in trace.rows] == [("dot.4", "matmul")]


def test_a_profile_without_operations_is_refused(tmp_path):
    (tmp_path / "vm.trace.json").write_text(on_host(("TfrtCpuExecutable::Execute", 0, 40, {})))
    with pytest.raises(
        ValueError, match=r"holds no operations: none of its 1 events .* with JAX 0\.7 or later"
    ):
        xplane.read(tmp_path)


def test_operations_of_several_devices_that_are_not_named_are_refused(tmp_path):
    """Four simulated devices of JAX 0.4.38 run an operation at once, and no event says on which."""
    twice = ("dot.4", 10, 5, OPERATION), ("dot.4", 12, 5, OPERATION)
    (tmp_path / "vm.trace.json").write_text(on_host(*twice))
    with pytest.raises(ValueError, match=r"does not say on which device .* ran: 'dot\.4'"):
        xplane.read(tmp_path)
    placed = [
        (name, ts, dur, args | {"device_ordinal": str(n)}) for n, (name, ts, dur, args) in enumerate(twice)
    ]
    (tmp_path / "vm.trace.json").write_text(on_host(*placed))
    assert xplane.read(tmp_path).devices == 2


def test_a_trace_json_that_was_cut_off_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_events, "MOST_EVENTS", 2)
    (tmp_path / "vm.trace.json").write_text(on_host(*[("dot.4", 10 * n, 5, OPERATION) for n in range(2)]))
    with pytest.raises(ValueError, match="the most that the profiler writes"):
        xplane.read(tmp_path)
