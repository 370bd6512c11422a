"""Simulated devices must be asked for in time, and a told result says what will be used."""

import subprocess
import sys

import jax
import pytest

from scalingbook_lib.lab import devices

TOO_LATE = """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
jax.devices()
from scalingbook_lib.lab import devices
try:
    devices.simulate(8)
except RuntimeError as error:
    print(error)
"""
AFTER_IMPORT = """
import jax
from scalingbook_lib.lab import devices
print(devices.simulate(4))
print(devices.simulate(4))
"""


def run(code):
    """A fresh interpreter, since JAX starts once a process; what it prints, and what it must not."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.splitlines(), done.stderr


def test_too_late_says_to_restart():
    (line,), _ = run(TOO_LATE)
    assert "restart the kernel and run this cell first: devices.simulate(8)" in line


def test_in_time_is_after_the_import_and_twice_is_as_good_as_once():
    lines, noise = run(AFTER_IMPORT)
    assert lines[0] == lines[1]
    assert lines[0].startswith("4 ")
    assert noise == ""


def test_here_there_are_eight():
    told = devices.simulate(8)
    assert len(devices.get(8)) == told.count == 8
    assert ("simulated" in str(told)) == (told.platform == "cpu")


def test_more_than_there_are_is_an_error():
    with pytest.raises(RuntimeError, match="restart the kernel"):
        devices.get(1000)


def test_real_devices_come_first_where_there_are_enough(monkeypatch):
    class Tpu:
        platform, device_kind = "tpu", "TPU v5 lite"

    cpus, tpus = jax.devices("cpu"), [Tpu()] * 4
    monkeypatch.setattr(jax, "devices", lambda kind=None: cpus if kind == "cpu" else tpus)
    assert devices.get(4) == tpus
    assert devices.get(8) == cpus
    assert str(devices.used(4)) == "4 real TPU devices (TPU v5 lite)"
    assert devices.used(8).simulated
