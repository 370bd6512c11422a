"""Compiles for TPU slices without a TPU: devices, memory, and errors about memory that is too small."""

import tomllib
from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scalingbook_lab.compiler import aot, sharding, slices
from scalingbook_lib import hlo
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import SliceError
from scalingbook_lib.notation import Mesh
from scalingbook_lib.units import BF16, FP32, INT8

SMALL = {"I": 256, "J": 512, "K": 1024}


def multiply(a, b):
    return a @ b


def coordinates(topology, sizes):
    """For every mesh axis, the torus axes along which its devices differ, by their sizes."""
    grid = slices.topology(topology).grid(sizes)
    torus = slices.topology(topology).torus
    moves = {}
    for k, name in enumerate(sizes):
        line = np.moveaxis(grid, k, 0).reshape(grid.shape[k], -1)[:, 0]
        at = [d.coords for d in line]
        moves[name] = sorted(torus[i] for i in range(len(torus)) if len({c[i] for c in at}) > 1)
    return moves


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize(
    ("chip", "topology", "sizes"),
    [
        (chips.V5E, "v5e:2x4", {"X": 2, "Y": 4}),
        (chips.V5E, "v5e:2x4", {"X": 4, "Y": 2}),
        (chips.V5E, "v5e:4x8", {"X": 32}),
        (chips.V5P, "v5p:4x4x4", {"X": 4, "Y": 16}),
        (chips.V5P, "v5p:4x4x8", {"X": 8, "Y": 4, "Z": 4}),
        (chips.V4, "v4:2x2x1", {"X": 2, "Y": 2}),
        (chips.V6E, "v6e:16x16", {"Y": 16, "X": 16}),
    ],
)
def test_meshes_are_laid_over_the_torus_as_in_the_library(chip, topology, sizes):
    laid = chips.Slice.of(chip, topology.partition(":")[2]).mesh(**sizes)
    library = {name: sorted(a.size for a in laid.axes(name)) for name in sizes}
    assert coordinates(topology, sizes) == library
    assert slices.topology(topology).grid(sizes).size == laid.machine.chips


@pytest.mark.parametrize(
    ("topology", "devices", "hbm"),
    [
        ("v2:2x2", 8, chips.V2.hbm_bytes / 2),
        ("v3:2x2", 8, chips.V3.hbm_bytes / 2), ("v4:2x2x1", 4, chips.V4.hbm_bytes),
        ("v5e:1x1", 1, chips.V5E.hbm_bytes), ("v5p:2x2x1", 4, chips.V5P.hbm_bytes),
        ("v6e:2x4", 8, chips.V6E.hbm_bytes), ("tpu7x:2x2x1", 8, chips.TPU7X.hbm_bytes / 2),
    ],
)  # fmt: skip
def test_every_generation_compiles(tpu, topology, devices, hbm):
    """A chip of v2, v3 and TPU7x is two devices, with half the memory each."""
    program = tpu(multiply, "A[I_X, J]", "B[J, K]", out="C[I_X, K]", topology=topology, **SMALL)
    assert program.mesh.size == devices
    assert program.memory.limit == hbm
    assert program.flops == 2 * 256 * 512 * 1024 // devices
    assert program.cycles > 0


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize(
    ("topology", "sizes", "says"),
    [
        ("v5e:2x4", {"X": 8, "Y": 2}, "product of whole axes"),
        ("v5e:3x3", {"X": 9}, "does not support the slice"),
        ("v9:2x2", {"X": 4}, "write one as in v5e:2x4"),
        ("v5e:two", {"X": 4}, "not a shape of a slice"),
    ],
)
def test_a_slice_that_does_not_exist_says_what_does(topology, sizes, says):
    with pytest.raises(SliceError, match=says):
        aot.compile(multiply, "A[I, J]", "B[J, K]", topology=topology, mesh=Mesh(**sizes), **SMALL)


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize("generation", slices.GENERATIONS)
def test_the_compiler_knows_every_shape_of_the_catalog(generation):
    """Up to 64 chips: the compiler takes every slice that the vendor offers, with all its devices."""
    chip = slices.GENERATIONS[generation]
    shapes = [shape for shape in chip.topology().small if np.prod(shape) <= 64]
    for shape in shapes:
        found = slices.topology(f"{generation}:{'x'.join(map(str, shape))}")
        assert found.devices.size == np.prod(shape) * found.devices_per_chip
        assert {d.platform for d in found.devices.flat} == {"tpu"}
        assert found.devices_per_chip == (2 if generation in ("v2", "v3", "tpu7x") else 1)
    assert shapes


def test_every_tpu_of_the_catalog_can_be_compiled_for():
    assert tuple(slices.GENERATIONS.values()) == chips.TPUS


@pytest.mark.parametrize(("dtype", "element"), [(BF16, 2), (INT8, 1), ({"A": INT8, "B": FP32}, None)])
def test_memory_is_that_of_the_notation(tpu, dtype, element):
    def first(a, b):
        return a[:1, :1].astype(jnp.float32) + b[:1, :1]

    how = {"mesh": Mesh(X=2, Y=4), "topology": "v5e:2x4"}
    program = tpu.__wrapped__(first, "A[I_X, J]", "B[J_Y, K]", dtype=dtype, **how, **SMALL)
    a, b = 256 * 512 // 2, 512 * 1024 // 4
    assert program.memory.arguments == (element * (a + b) if element else a + 4 * b)
    assert program.memory.fits


def test_a_donated_argument_counts_once(tpu):
    def update(w):
        return w + 1

    held = {
        donate: tpu(update, "W[I, J]", topology="v5e:1x1", donate=donate, I=1024, J=1024).memory
        for donate in ((), (0,))
    }
    assert held[()].needed == 2 * 2 * 1024**2
    assert held[(0,)].needed == 2 * 1024**2


@pytest.mark.parametrize(
    ("system", "machine", "says"),
    [
        ("Darwin", "arm64", "Darwin on arm64"),
        ("Windows", "AMD64", "Windows"),
        ("Linux", "aarch64", "aarch64"),
    ],
)
def test_without_a_tpu_compiler_the_error_gives_the_reason(monkeypatch, system, machine, says):
    monkeypatch.setattr(slices.platform, "system", lambda: system)
    monkeypatch.setattr(slices.platform, "machine", lambda: machine)
    slices.topology.cache_clear()
    assert not aot.available()
    with pytest.raises(aot.NoTpuCompiler, match=says):
        aot.compile(multiply, "A[I, J]", "B[J, K]", topology="v5e:2x4", **SMALL)


def test_the_book_prints_what_the_locked_compiler_says():
    locked = tomllib.loads((Path(__file__).parents[3] / "uv.lock").read_text())["package"]
    assert [p["version"] for p in locked if p["name"] == "libtpu"] == [slices.LOCKED_LIBTPU]
    assert aot.as_printed() == (aot.available() and metadata.version("libtpu") == slices.LOCKED_LIBTPU)


def test_without_a_compiler_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(slices.importlib.util, "find_spec", lambda name: None)
    if not aot.why_not().startswith("the TPU compiler (libtpu) exists"):
        assert "pip install libtpu" in aot.why_not()


def test_a_program_for_this_machine_runs_and_one_for_a_slice_does_not(tpu, cpu):
    a, b = np.ones((256, 512), np.float32), np.ones((512, 1024), np.float32)
    here = cpu(multiply, "A[I_X, J]", "B[J, K_Y]", mesh=Mesh(X=4, Y=2), dtype=FP32, **SMALL)
    assert (here.run(a, b) == 512).all()
    there = tpu(multiply, "A[I_X, J]", "B[J, K]", out="C[I_X, K]", topology="v6e:2x4", **SMALL)
    with pytest.raises(RuntimeError, match="not here to run on"):
        there.run(a, b)


def test_arguments_may_be_nested_or_jax_structs(cpu):
    mesh = Mesh(X=8)

    def apply(weights, x):
        return x @ weights["up"] @ weights["down"][0]

    x = sharding.struct("X[B_X, D]", mesh, FP32, B=64, D=32)
    program = aot.compile(
        apply, {"up": "W[D, F]", "down": ["V[F, D]"]}, x, mesh=mesh, dtype=FP32, D=32, F=128
    )
    assert program.flops == 4 * 8 * 32 * 128
    assert program.collectives == {}
    assert hlo.collectives(program) == {}


@pytest.mark.parametrize("given", [jax.ShapeDtypeStruct((512, 512), jnp.float32), np.ones((512, 512))])
def test_a_shape_without_a_sharding_is_replicated_over_the_slice(given):
    program = aot.compile(lambda x: x @ x, given, topology="v5e:2x4")
    (placed,) = jax.tree.leaves(program.compiled.input_shardings)
    assert placed.device_set == set(program.mesh.devices.flat)
    assert placed.is_fully_replicated
    assert program.memory.arguments == 512 * 512 * 4
    assert program.cycles > 0, "a TPU's compiler made it"


@pytest.mark.parametrize("given", [(), (3.0,)])
def test_a_program_without_arguments_on_the_slice_is_refused(given):
    def ones(x=1.0):
        return x * jnp.ones((8, 8))

    with pytest.raises(ValueError, match=r"on v5e:2x4, so JAX compiled it for cpu; give one argument"):
        aot.compile(ones, *given, topology="v5e:2x4")
    assert aot.compile(ones, *given, out="A[I, J]", topology="v5e:2x4").target == "TPU v5e 2x4"


def test_several_results_have_several_shardings():
    def both(a):
        return a, a

    program = aot.compile(both, "A[I_X, J]", out=["B[I, J]", "C[I_X, J]"], mesh=Mesh(X=8), I=64, J=8)
    assert program.collectives == {"all-gather": 1}


def test_a_local_function_needs_its_result_in_the_notation():
    with pytest.raises(ValueError, match="local=True needs"):
        aot.compile(multiply, "A[I, J]", "B[J, K]", local=True, mesh=Mesh(X=8), **SMALL)


def test_a_program_prints_its_numbers(tpu):
    program = tpu(multiply, "A[I_X, J]", "B[J, K]", out="C[I_X, K]", topology="v5e:2x2", **SMALL)
    first, memory, collectives = str(program).splitlines()
    assert first.startswith("TPU v5e 2x2 as X4: 67.1 MFLOPs of matmuls per device; the compiler estimates ")
    assert memory.startswith("1.188 MiB of 16 GiB per device: ")
    assert collectives == "no collectives"
    assert "HloModule" not in repr(program)
