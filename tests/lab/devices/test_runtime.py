"""The first cell of a notebook prints its runtime where something
was installed or there is an accelerator.
"""

import subprocess

import jax
import pytest

from scalingbook_lab import devices
from scalingbook_lab.compiler import slices
from scalingbook_lab.devices import runtime


class Tpu:
    platform, device_kind = "tpu", "TPU v5 lite"


@pytest.fixture
def tpus(monkeypatch):
    """Make JAX show so many TPUs besides the CPU's devices."""
    cpus = jax.devices("cpu")

    def show(count):
        tpus = [Tpu()] * count
        monkeypatch.setattr(jax, "devices", lambda kind=None: cpus if kind == "cpu" else tpus)
        monkeypatch.setattr(devices, "has_accelerator", lambda: True)
        monkeypatch.delenv("JAX_PLATFORMS", raising=False)

    yield show
    jax.config.update("jax_default_matmul_precision", None)
    jax.config.update("jax_default_device", None)


def test_nothing_is_printed_without_an_installation_or_accelerator(capsys, monkeypatch):
    runtime.begin(installed=False)
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(devices, "has_accelerator", lambda: True)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")  # a TPU that nobody asked for
    runtime.begin(installed=False)
    assert capsys.readouterr().out == ""


def test_after_an_installation_versions_and_devices_are_printed(capsys):
    runtime.begin(installed=True)
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
def test_an_accelerator_is_reported_with_its_number_of_devices(tpus, capsys, count, told):
    tpus(count)
    runtime.begin(installed=False)
    assert capsys.readouterr().out.splitlines()[1].startswith(told)
    exact, elsewhere = jax.config.jax_default_matmul_precision, jax.config.jax_default_device
    assert (exact, bool(elsewhere)) == (("highest", False) if count == 8 else (None, True))


@pytest.fixture
def asked(monkeypatch):
    """The arguments of pip; nothing is installed."""
    seen = []

    def pip(command, **how):
        seen.append(command[-2:])
        return subprocess.CompletedProcess(command, 1, "", "no network")

    monkeypatch.setattr(runtime.subprocess, "run", pip)
    return seen


def test_the_matching_tpu_compiler_is_installed_where_it_is_missing(monkeypatch, asked, capsys):
    monkeypatch.setattr(slices, "why_not", lambda: "not installed")
    monkeypatch.setattr(slices, "is_supported_platform", lambda: True)
    monkeypatch.setattr(runtime.metadata, "requires", lambda name: ['libtpu==0.0.23.*; extra == "tpu"'])
    runtime.begin(installed=False)
    assert asked == [], "a reader's own environment is left alone"
    runtime.begin(installed=True)
    assert asked == [["--no-deps", "libtpu==0.0.23.*"]]
    assert "cells that compile for TPUs will not run: no network" in capsys.readouterr().out


def test_the_tpu_compiler_is_installed_only_where_needed_and_possible(monkeypatch, asked):
    monkeypatch.setattr(slices, "why_not", lambda: "")
    runtime.install_tpu_compiler()
    monkeypatch.setattr(slices, "why_not", lambda: "for Linux alone")
    monkeypatch.setattr(slices, "is_supported_platform", lambda: False)
    runtime.install_tpu_compiler()
    assert asked == []


def test_without_jax_the_versions_are_printed(monkeypatch):
    def missing(n):
        raise ModuleNotFoundError("No module named 'jax'")

    monkeypatch.setattr(devices, "simulate", missing)
    assert "No JAX here" in str(runtime.runtime())
