"""Reads XLA's messages about memory that is too small."""

import pickle

import pytest

from scalingbook_lib.hlo import out_of_memory
from scalingbook_lib.units import GiB


def test_the_purpose_of_the_memory_survives_pickling():
    error = out_of_memory.read(
        "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required "
        "for HLO temporaries (16.44G) exceeds available HBM (15.75G). HLO module: jit_att."
    )
    assert error is not None
    assert (error.kind, error.memory, error.largest) == ("HLO temporaries", "HBM", ())
    assert "needs 16.44 GiB of HBM for HLO temporaries and a chip has 15.75 GiB" in str(error)
    assert pickle.loads(pickle.dumps(error)).kind == error.kind


@pytest.mark.parametrize(
    ("message", "memory", "used"),
    [
        (
            "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 20.5G of 15.75G hbm. Exceeded",
            "HBM",
            20.5 * GiB,
        ),
        (
            "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 900.0K of 512K vmem.",
            "VMEM",
            900 * 1024,
        ),
    ],
)
def test_messages_of_older_compilers_are_read(message, memory, used):
    error = out_of_memory.read(message)
    assert error is not None
    assert (error.memory, error.used_bytes) == (memory, used)


@pytest.mark.parametrize(
    "message", ["INTERNAL: something else", "Ran out of memory in memory space hbm. Used 1G of 2G"]
)
def test_other_errors_are_not_out_of_memory(message):
    assert out_of_memory.read(message) is None
