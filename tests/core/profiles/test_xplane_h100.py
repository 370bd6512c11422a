"""Reads two profiles of a real H100, by JAX 0.11.2: a program in one CUDA graph, and matmuls by cuBLAS."""

import gzip
from pathlib import Path

import pytest

from scalingbook_lib import profiles
from scalingbook_lib.hlo import cost, not_counted
from scalingbook_lib.machines import chips
from scalingbook_lib.profiles import xplane

HERE = Path(__file__).parent / "h100"


@pytest.fixture
def recorded(tmp_path):
    """A profile read with its program, and the program's text."""

    def read(name):
        (tmp_path / "p.xplane.pb").write_bytes(gzip.decompress((HERE / f"{name}.xplane.pb.gz").read_bytes()))
        text = gzip.decompress((HERE / f"{name}.hlo.gz").read_bytes()).decode()
        return xplane.read(tmp_path, text, title=name), text

    return read


def test_the_kernels_of_a_cuda_graph_are_told_apart_by_name(recorded):
    """Eight layers of two matmuls: all kernels name one operation, the graph."""
    found, text = recorded("whole")
    assert (found.platform, found.kind) == ("gpu", "NVIDIA H100 80GB HBM3")
    assert not found.simulated
    assert {e.run for e in found.events} == {0, 1, 2}
    assert len(found.events) == 3 * 8 * 4
    assert {op.name for op in found.ops if op.kind == "matmul"} == {
        "gemm_fusion_dot", "gemm_fusion_dot.1", "gemm_fusion_dot.2",
    }  # fmt: skip
    assert all(op.flops == 2 * 16 * 1024 * 4096 for op in found.ops if op.kind == "matmul")
    assert cost.matmul_flops(text) == 8 * 2 * (2 * 16 * 1024 * 4096)


def test_cublas_matmuls_count_once_without_the_memset_before_them(recorded):
    """Before each matmul cuBLAS clears four bytes, in a kernel that names the same operation."""
    found, text = recorded("layer")
    assert [(op.kind, op.scope) for op in found.ops] == [
        ("matmul", "up"), ("elementwise", "up"), ("matmul", "down"),
    ]  # fmt: skip
    assert [e.run for e in found.events] == [0] * 3 + [1] * 3 + [2] * 3
    assert cost.matmul_flops(text) == 2 * (2 * 8192 * 4096 * 14336)
    assert not_counted.not_counted(text) == ()
    attained = [
        row.roofline.lower_s / row.mean_s
        for row in profiles.against(found, chips.H100).rows
        if row.row.op.flops
    ]
    assert len(attained) == 2
    assert all(0.8 < share < 0.85 for share in attained)
