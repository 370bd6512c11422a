"""Programs that XLA compiled for H100s (`tools/gpu_programs.py`): their FLOPs, collectives and memory.

The expected numbers follow from the shapes of the programs, and for the memory from XLA's own report.
"""

import gzip
import re
from pathlib import Path

import pytest

from scalingbook_lib import inspection
from scalingbook_lib.hlo import compiled_collectives, cost, not_counted
from scalingbook_lib.hlo.module import HloModule

FOLDER = Path(__file__).parent / "gpu"
RECORDED = Path(__file__).parents[1] / "profiles" / "h100"  # on a real H100
L, D, F, B, T, N, H = 2, 1024, 4096, 8, 512, 8, 128  # of sharded_step
DATA, MODEL = 4, 2
MESH = {"data": DATA, "model": MODEL}
BF16 = 2


def text(name, folder=FOLDER):
    return gzip.decompress((folder / f"{name}.hlo.gz").read_bytes()).decode()


@pytest.fixture(scope="module")
def sharded():
    return text("sharded-step")


@pytest.fixture(scope="module")
def attention():
    return text("attention")


def test_matmuls_in_triton_fusions_are_counted(sharded):
    assert '"kind":"__triton_nested_gemm_fusion"' in sharded
    tokens = B * T // DATA
    weights = (4 * D * N * H + 2 * D * F) // MODEL
    scores = 2 * 2 * (B // DATA) * (N // MODEL) * T * T * H
    assert cost.matmul_flops(sharded) == 3 * L * (2 * weights * tokens + scores)


def test_collectives_by_axis_come_from_the_replica_groups(sharded):
    found = compiled_collectives.collectives(sharded, MESH)
    assert found.over_axes() == {
        "all-gather data": 2 * L,  # of the weights, forward and backward
        "reduce-scatter data": L,  # of the gradients
        "all-reduce model": 4 * L,  # after attention and MLP, forward and backward
    }
    weights = (4 * D * N * H + 2 * D * F) // MODEL * BF16
    assert found.nbytes()["all-gather data"] == 2 * L * weights
    assert found.nbytes()["reduce-scatter data"] == L * weights
    activations = B * T // DATA * D * BF16
    # the three gradients by which the queries, keys and values contribute are reduced in one call
    assert found.nbytes()["all-reduce model"] == L * (1 + 1 + 1 + 3) * activations


def test_collectives_in_fusions_of_another_stream_are_counted_and_overlap(sharded):
    """XLA writes small all-reduces as kernels of its own: `fusion-start` with an all-reduce inside."""
    fused = [c for c in compiled_collectives.collectives(sharded, MESH) if c.name.startswith("all-reduce.")]
    assert len(fused) == 3
    assert all(c.overlapped and c.axes == "model" and c.times == L for c in fused)


def test_the_groups_of_a_text_without_a_mesh_become_two_axes(sharded):
    report = inspection.inspect(sharded, machine="h100:8")
    mesh = report.program.source.mesh
    assert [*mesh.values()] == [DATA, MODEL]
    assert {row.first.collective.axes for row in report.transfers} == set(mesh)


def test_the_memory_is_near_to_what_the_compiler_reports(sharded):
    memory = inspection.inspect(sharded, mesh=MESH).program.memory
    assert memory.estimated
    shard = L * (4 * D * N * H + 2 * D * F) // (DATA * MODEL) * BF16
    assert memory.arguments == shard + B // DATA * T * D * BF16
    assert memory.aliased == shard
    assert memory.temporaries == pytest.approx(139_040_496, rel=0.1)  # of XLA's CompiledMemoryStats


def test_calls_of_cublas_are_counted(attention):
    assert attention.count('custom_call_target="__cublas$lt$matmul"') == 5
    module = HloModule.of(attention)
    calls = [i for i in module.entry.instructions.values() if "__cublas$" in i.attributes]
    tokens, projection = 4 * 1024, 2 * 4 * 1024 * D * N * H
    assert tokens * D == 4 * 1024 * D
    assert sorted(cost.flops_of(module.entry, i) for i in calls) == [projection] * 3 + [3 * projection] * 2


def test_the_attention_of_cudnn_is_counted_forward_and_backward(attention):
    module = HloModule.of(attention)
    kernels = {
        i.quoted("custom_call_target"): cost.flops_of(module.entry, i)
        for i in module.entry.instructions.values()
        if "__cudnn$" in i.attributes
    }
    scores = 4 * N * 1024 * 1024
    assert kernels == {
        "__cudnn$fmhaSoftmax": 2 * 2 * scores * H,
        "__cudnn$fmhaSoftmaxBackward": 5 * 2 * scores * H,
    }


def test_the_mask_of_cudnn_is_named_and_hides_no_transfer(attention):
    found = not_counted.not_counted(attention)
    assert [one.message for one in found] == [
        f"kernel dot_product_attention_{name} skips about half of the scores (CAUSAL mask): counted as if it "
        "did not"
        for name in ("fwd.5", "bwd.8")
    ]
    assert not any(one.flops or one.transfers for one in found)
    assert compiled_collectives.collectives(attention, {"x": 1}) == {}


def test_a_program_of_a_real_h100_is_counted():
    layer = text("layer", RECORDED)
    assert '"__cublas$lt$matmul"' in layer
    assert cost.matmul_flops(layer) == 2 * 2 * 8192 * 4096 * 14336
    assert not_counted.not_counted(layer) == ()


CALL = """HloModule m, is_scheduled=true

%wrapped_scatter (p: f32[1024]) -> f32[256] {{
  %p = f32[1024]{{0}} parameter(0)
  ROOT %rs = f32[256]{{0}} reduce-scatter(%p), replica_groups=[2,4]<=[4,2]T(1,0), dimensions={{0}}
}}

%command_buffer (q: f32[128,64], r: f32[64,32], s: f32[1024]) -> f32[128,32] {{
  %q = f32[128,64]{{1,0}} parameter(0)
  %r = f32[64,32]{{1,0}} parameter(1)
  %s = f32[1024]{{0}} parameter(2)
  %start = ((f32[1024]{{0}}), f32[256]{{0}}) async-start(%s), calls=%wrapped_scatter
  %done = f32[256]{{0}} async-done(%start)
  ROOT %call = f32[128,32]{{1,0}} custom-call(%q, %r), custom_call_target="{target}", backend_config={config}
}}

ENTRY %main (a: f32[128,64], b: f32[64,32], c: f32[1024]) -> f32[128,32] {{
  %a = f32[128,64]{{1,0}} parameter(0)
  %b = f32[64,32]{{1,0}} parameter(1)
  %c = f32[1024]{{0}} parameter(2)
  ROOT %run = f32[128,32]{{1,0}} call(%a, %b, %c), to_apply=%command_buffer
}}
"""
GEMM = (
    '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],'
    '"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}}'
)


@pytest.mark.parametrize("config", [GEMM, re.sub(r"([:,])", r"\1 ", GEMM)])
@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8"])
def test_what_runs_in_a_command_buffer_is_counted(target, config):
    program = CALL.format(target=target, config=config)
    assert cost.matmul_flops(program) == 2 * 128 * 64 * 32
    found = compiled_collectives.collectives(program, MESH)
    assert found.over_axes() == {"reduce-scatter data": 1}
    assert found[0].overlapped
    assert not_counted.not_counted(program) == ()


@pytest.mark.parametrize(
    ("target", "messages", "transfers"),
    [
        ("__cudnn$fmhaSoftmax", ["not counted: the FLOPs of __cudnn$fmhaSoftmax"], False),
        ("__cudnn$convForward", ["not counted: the FLOPs of __cudnn$convForward"], False),
        ("__cub$DeviceRadixSort", [], False),
        ("cusolver_getrf_ffi", ["not counted: the FLOPs of cusolver_getrf_ffi"], False),
        ("__gpu$xla.gpu.triton", ["not counted: what __gpu$xla.gpu.triton computes and sends"], True),
    ],
)
def test_other_calls_on_gpus_are_named(target, messages, transfers):
    found = not_counted.not_counted(CALL.format(target=target, config="{}"))
    assert [one.message for one in found] == messages
    assert any(one.transfers for one in found) is transfers


def test_a_program_compared_with_itself_has_no_change(sharded):
    report = inspection.inspect(sharded, mesh=MESH)
    assert {value.signed for value in inspection.compare(report, report).values} == {"none"}
