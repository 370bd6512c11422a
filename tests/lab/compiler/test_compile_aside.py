"""A machine with a TPU keeps its libtpu; a child process compiles with another one."""

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lab import devices
from scalingbook_lab.compiler import aot, slices
from scalingbook_lab.devices import runtime
from scalingbook_lib.notation import Mesh

SIZES = {"B": 64, "D": 512, "F": 512}
OLD = "libtpu 0.0.1 is older than this JAX needs"


@pytest.fixture
def tpu_machine(monkeypatch, tmp_path):
    """A machine whose own libtpu is too old for this JAX; its cache folder is empty."""
    monkeypatch.setattr(devices, "has_tpu", lambda: True)
    monkeypatch.setattr(slices, "why_not", lambda: OLD)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    slices.topology.cache_clear()
    return slices.aside_folder()


@pytest.fixture
def second_compiler(tpu_machine):
    """The same machine, where this environment's libtpu is the one that was installed aside."""
    spec = importlib.util.find_spec("libtpu")
    if spec is None or spec.origin is None:
        pytest.skip("there is no libtpu to compile with")
    tpu_machine.mkdir(parents=True)
    for path in Path(spec.origin).parents[1].glob("libtpu*"):
        (tpu_machine / path.name).symlink_to(path)
    return tpu_machine


def test_the_second_compiler_is_installed_into_a_folder_of_its_own(tpu_machine, monkeypatch, capsys):
    asked = []

    def pip(command, **how):
        asked.append(command)
        return runtime.subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(runtime.subprocess, "run", pip)
    runtime.install_tpu_compiler()
    (command,) = asked
    assert command[command.index("--target") + 1] == str(tpu_machine)
    assert "beside the one that the TPU runs on" in capsys.readouterr().out
    (tpu_machine / "libtpu").mkdir(parents=True)
    runtime.install_tpu_compiler()
    assert len(asked) == 1, "it is installed once"


def test_a_child_process_compiles_what_this_process_would(second_compiler, monkeypatch):
    scale = 2.0

    def product(x, w):
        return scale * jnp.matmul(x, w)

    def compiled():
        arrays, where = ("X[B, D_X]", "W[D_X, F]"), {"topology": "v5e:2x4", "mesh": Mesh(X=8)}
        return aot.compile(product, *arrays, out="Y[B, F]", **where, **SIZES)

    aside = compiled()
    with monkeypatch.context() as patch:
        patch.setattr(slices, "why_not", lambda: "")
        here = compiled()
    assert aside.memory == here.memory
    assert str(aside) == str(here)
    assert aside.chip == here.chip
    assert aside.collectives.over_axes() == here.collectives.over_axes() != {}


def test_errors_of_the_child_process_are_raised_here(second_compiler):
    with pytest.raises(aot.DoesNotFit, match="HBM"):
        aot.compile(jnp.matmul, "X[B, D]", "W[D, F]", topology="v5e:1x1", B=2**17, D=2**17, F=2**17)
    with pytest.raises(slices.SliceError, match="does not support the slice"):
        aot.compile(jnp.matmul, "X[B, D]", "W[D, F]", topology="v5e:3x5", **SIZES)


def test_what_cannot_be_sent_to_the_child_process_is_refused_with_the_reason(second_compiler):
    handle = open(__file__, encoding="utf-8")  # noqa: SIM115
    try:
        with pytest.raises(aot.NoTpuCompiler, match="handle cannot be taken to another process"):
            aot.compile(lambda x: x * len(handle.name), "X[B, D]", topology="v5e:1x1", **SIZES)
    finally:
        handle.close()
    with pytest.raises(aot.NoTpuCompiler, match="only a child process can compile for TPUs"):
        aot.mesh_for("v5e:2x4", {"X": 8})


def test_without_a_topology_this_process_compiles(second_compiler):
    program = aot.compile(jnp.matmul, "X[B, D]", "W[D, F]", **SIZES)
    assert isinstance(program.mesh, jax.sharding.Mesh)


@pytest.mark.parametrize("name", ["COLAB_TPU_ADDR", "TPU_NAME", "TPU_WORKER_ID"])
def test_a_tpu_is_recognized_by_what_its_runtime_sets(monkeypatch, name):
    for other in devices._TPU_VARIABLES:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setattr(devices, "_TPU_FILES", ())
    assert not devices.has_tpu()
    monkeypatch.setenv(name, "1")
    assert devices.has_tpu()


def test_a_tpu_is_recognized_by_its_device_files(monkeypatch, tmp_path):
    monkeypatch.setattr(devices, "_TPU_VARIABLES", ())
    (tmp_path / "accel0").touch()
    monkeypatch.setattr(devices, "_TPU_FILES", (f"{tmp_path}/accel*",))
    assert devices.has_tpu()
    assert not devices.WITHOUT_TPU.keys() & set(devices._TPU_VARIABLES), "what the book sets is no TPU"
