"""The profiler on simulated devices: what ran, how often, where from; TPU and GPU planes by their names."""

from collections.abc import Callable
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lib.lab.compiler import sharding
from scalingbook_lib.lab.profiler import read as trace_read
from scalingbook_lib.lab.profiler import trace
from scalingbook_lib.notation import Mesh

MESH = Mesh(X=4)


def mlp(x, w, v):
    with jax.named_scope("up"):
        h = jnp.tanh(x @ w)
    with jax.named_scope("down"):
        return h @ v


@pytest.fixture(scope="module")
def recorded():
    shapes = {"X[B, D]": (64, 128), "W[D, F_X]": (128, 256), "V[F_X, D]": (256, 128)}
    arrays = [sharding.place(jnp.ones(shape), text, MESH) for text, shape in shapes.items()]
    step = jax.jit(mlp, out_shardings=sharding.named("Y[B, D]", MESH))
    return trace.record(step, *arrays, runs=2)


def test_every_device_runs_every_operation_in_every_run(recorded):
    assert (recorded.runs, recorded.devices, recorded.warmup) == (2, 4, 1)
    assert {row.times for row in recorded.rows} == {1}
    assert len(recorded.events) == 2 * 4 * len(recorded.ops)


def test_after_a_warm_up_nothing_compiles(recorded):
    assert recorded.compilations == ()
    assert [m.name for m in recorded.host] == ["step", "step"]


def test_operations_have_scopes_work_and_collectives(recorded):
    flops = {row.op.scope: row.op.flops for row in recorded.rows if row.op.kind == "matmul"}
    assert flops == {"up": 2 * 64 * 128 * 256 // 4, "down": 2 * 64 * 128 * 256 // 4}
    nbytes = 4 * 64 * 128
    assert recorded.collectives == {f"all-reduce over X of {nbytes / 1000:.3g} kB": 1}


def test_a_recorded_trace_survives_its_file(recorded, tmp_path):
    again = trace.load(trace.save(recorded, tmp_path / "mlp.json"))
    assert again.ops == recorded.ops
    assert [e[:3] for e in again.events] == [e[:3] for e in recorded.events]
    assert again.run_s == pytest.approx(recorded.run_s)


def test_a_block_counts_its_compilations():
    square = jax.jit(lambda x: x @ x)
    small, large = jnp.ones((3, 3)), jnp.ones((5, 5))
    with trace.recording(title="shapes") as seen:
        for x in (small, large, large):
            jax.block_until_ready(square(x))
        with pytest.raises(RuntimeError, match="ask for its trace behind"):
            _ = seen.trace
    assert len(seen.trace.compilations) == 2
    assert "2 compilations within" in str(seen.trace)


def test_profiling_writes_nothing_to_standard_error(capfd):
    with trace.recording():
        jax.block_until_ready(jnp.ones(4) + 1)
    assert capfd.readouterr().err == ""


def test_two_programs_of_one_name_are_refused():
    programs = [jax.jit(mlp).lower(*[jnp.ones((n, n))] * 3).compile() for n in (2, 3)]
    with pytest.raises(ValueError, match="give their functions different names"), trace.recording(*programs):
        pass


class Plane(SimpleNamespace):
    """As ProfileData shows it."""

    name: str
    lines: list


def event(name, start, took, **stats):
    return SimpleNamespace(
        name=name, start_ns=float(start), duration_ns=float(took), stats=list(stats.items())
    )


def line(name, *events):
    return SimpleNamespace(name=name, events=list(events))


def reading(monkeypatch: pytest.MonkeyPatch, tmp_path, *planes: Plane) -> Callable:
    (tmp_path / "vm.xplane.pb").write_bytes(b"")
    data = SimpleNamespace(from_file=lambda _: SimpleNamespace(planes=planes))
    monkeypatch.setattr(jax.profiler, "ProfileData", data)
    about = {"title": "t", "devices": 1, "simulated": False, "warmup": None, "versions": ""}
    return lambda **more: trace_read.read(tmp_path, {}, **about, **more)


def test_a_tpu_plane_is_read_by_its_lines(monkeypatch, tmp_path):
    whole = "%fusion.1 = bf16[8,128]{1,0} fusion(%p0), kind=kOutput"
    plane = Plane(
        name="/device:TPU:0",
        lines=[
            line("XLA Modules", event("jit_f(123)", 1000, 100), event("jit_f(123)", 2000, 100)),
            line(
                "XLA Ops",
                event("%while.2 = (s32[]) while(...)", 1000, 60),
                event(whole, 1010, 40, flops=512, bytes_accessed=64, tf_op="jit(f)/up/dot_general:"),
                event("%all-gather.3 = bf16[8]{0} all-gather(...)", 2010, 20),
            ),
            line("Async XLA Ops", event("%all-reduce-start.4 = ...", 2005, 50)),
        ],
    )
    found = reading(monkeypatch, tmp_path, plane)(platform="tpu", kind="TPU v5 lite")
    assert [(op.name, op.kind) for op in found.ops] == [
        ("while.2", "loop"), ("fusion.1", "kernel"), ("all-reduce-start.4", "collective"),
        ("all-gather.3", "collective"),
    ]  # fmt: skip
    fusion = found.ops[1]
    assert (fusion.flops, fusion.nbytes, fusion.module, fusion.scope) == (512, 64, "jit_f", "up")
    assert [e.run for e in found.events] == [0, 0, 1, 1]
    assert found.events[0].own_s == pytest.approx(20e-9)  # the loop without the fusion in it
    assert found.events[0].start_s == 0


def test_a_profile_from_elsewhere_says_where_it_was_recorded(monkeypatch, tmp_path):
    stats = [("device_type_string", "TPU v5 lite")]
    plane = Plane(name="/device:TPU:0", stats=stats, lines=[line("XLA Ops", event("%copy.1 = ...", 0, 5))])
    found = reading(monkeypatch, tmp_path, plane)(platform="cpu", kind="cpu")
    assert (found.platform, found.kind, found.simulated) == ("tpu", "TPU v5 lite", False)
    assert trace.against(found).name == "TPU v5e"


def test_a_gpu_plane_is_read_by_the_operations_that_its_kernels_name(monkeypatch, tmp_path):
    def kernel(name, op, start):
        return event(name, start, 10, hlo_op=op, hlo_module="jit_f")

    plane = Plane(
        name="/device:GPU:1",
        lines=[
            line("Stream #16(Compute)", kernel("gemm_h100", "dot.1", 0), kernel("gemm_h100", "dot.1", 100)),
            line("Stream #20(Memcpy)", event("MemcpyD2D", 5, 3)),
            line("Stream #24", kernel("ncclDevKernel_AllReduce", "all-reduce-start.1", 12)),
        ],
    )
    found = reading(monkeypatch, tmp_path, plane)(platform="gpu", kind="NVIDIA H100 80GB HBM3")
    assert [(op.name, op.kind, op.moves) for op in found.ops] == [
        ("dot.1", "matmul", ""), ("all-reduce-start.1", "collective", "all-reduce"),
    ]  # fmt: skip
    assert [(e.device, e.run) for e in found.events] == [(1, 0), (1, 0), (1, 1)]


def test_a_folder_without_a_profile_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"record one with trace\.record"):
        trace.read(str(tmp_path))
