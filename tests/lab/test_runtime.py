"""A notebook's first cell says what it runs on, where that is news."""

import jax
import pytest

from scalingbook_lib.lab import devices, runtime


class Tpu:
    platform, device_kind = "tpu", "TPU v5 lite"


@pytest.fixture
def tpus(monkeypatch):
    """Make JAX show so many TPUs beside the CPU's devices."""
    cpus = jax.devices("cpu")

    def show(count):
        monkeypatch.setattr(jax, "devices", lambda kind=None: cpus if kind == "cpu" else [Tpu()] * count)
        monkeypatch.setattr(devices, "has_accelerator", lambda: True)
        monkeypatch.delenv("JAX_PLATFORMS", raising=False)

    return show


def test_nothing_is_told_where_nothing_is_new(capsys, monkeypatch):
    runtime.tell(installed=False)
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(devices, "has_accelerator", lambda: True)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")  # a TPU that nobody asked for
    runtime.tell(installed=False)
    assert capsys.readouterr().out == ""


def test_a_new_library_tells_versions_and_devices(capsys):
    runtime.tell(installed=True)
    versions, told = capsys.readouterr().out.splitlines()
    assert versions.startswith("scalingbook-lib 0.")
    assert f"JAX {jax.__version__}" in versions
    assert told.startswith("No TPU or GPU here. Demos of sharding run on 8 simulated devices")


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (1, "Here: 1 real TPU device (TPU v5 lite). Demos of sharding run on 8 simulated devices"),
        (8, "Here: 8 real TPU devices (TPU v5 lite). Demos of sharding run on 8 real TPU devices"),
    ],
)
def test_an_accelerator_is_told_and_whether_it_is_enough(tpus, capsys, count, told):
    tpus(count)
    runtime.tell(installed=False)
    assert capsys.readouterr().out.splitlines()[1].startswith(told)


def test_without_jax_the_versions_are_told(monkeypatch):
    def missing(n):
        raise ModuleNotFoundError("No module named 'jax'")

    monkeypatch.setattr(devices, "simulate", missing)
    assert "No JAX here" in str(runtime.runtime())
