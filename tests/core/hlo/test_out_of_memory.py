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


def test_one_allocation_is_read_in_every_form():
    for text in ("Out of memory while trying to allocate 137438953472 bytes.",
                 "Out of memory trying to allocate 137438953472 bytes.",
                 "Out of memory allocating 137438953472 bytes."):  # fmt: skip
        error = out_of_memory.read(f"RESOURCE_EXHAUSTED: {text}")
        assert error is not None
        assert (error.memory, error.asked_bytes) == ("GPU memory", 128 * GiB)


@pytest.mark.parametrize(
    ("message", "asked", "free", "told"),
    [
        (
            "Error allocating device buffer: Attempting to allocate 16.00G. That was not possible. There are "
            "14.25G free.; (0x0x0_HBM0)",
            16 * GiB,
            14.25 * GiB,
            "an allocation of 16 GiB of HBM does not fit next to the data already on the TPU, where "
            "14.25 GiB were free;",
        ),
        (
            "Attempting to reserve 6.50G at the bottom of memory. That was not possible. There are 6.75G "
            "free, 0B reserved, and 3.33G reservable.",
            6.5 * GiB,
            6.75 * GiB,
            "where 6.75 GiB were free in pieces;",
        ),
        ("Attempting to reserve 12.50G at the bottom of memory.", 12.5 * GiB, None, "on the TPU; make"),
        ("Attempting to allocate 2.00G. That was not possible. There are 0B free.", 2 * GiB, 0, "0 B were"),
    ],
)
def test_an_allocation_on_a_tpu_is_read(message, asked, free, told):
    error = out_of_memory.read(f"RESOURCE_EXHAUSTED: {message}")
    assert error is not None
    assert (error.memory, error.asked_bytes, error.free_bytes) == ("HBM", asked, free)
    assert told in str(error)
    assert pickle.loads(pickle.dumps(error)).free_bytes == free


GPU = """RESOURCE_EXHAUSTED: Out of memory while trying to allocate 10228218416 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    2.86GiB
              constant allocation:    38.7KiB
        maybe_live_out allocation:  462.23MiB
     preallocated temp allocation:    9.53GiB
  preallocated temp fragmentation:  784.48MiB (8.04%)
                 total allocation:   12.83GiB
Peak buffers:
        Buffer 1:
                Size: 1.57GiB
                XLA Label: fusion
                Shape: f32[5120,1286,64]
                ==========================

        Buffer 2:
                Size: 384.0KiB
                Entry Parameter Subshape: f32[256,128,3]
                ==========================
"""  # as in patrickbryant1/SpeedPPI#1


def test_a_gpu_s_message_names_what_the_program_needs_and_what_found_no_room():
    error = out_of_memory.read(GPU)
    assert error is not None
    assert (error.memory, error.limit_bytes, error.asked_bytes) == ("GPU memory", 0, 10_228_218_416)
    assert error.used_bytes == round(12.83 * GiB)
    assert [part.purpose for part in error.parts] == ["HLO temporaries", "arguments", "results", "constants"]
    assert [each.purpose for each in error.largest] == [
        "f32[5120,1286,64], fusion",
        "argument f32[256,128,3]",
    ]
    assert "needs 12.83 GiB of GPU memory (9.53 GiB for HLO temporaries; 2.86 GiB for arguments" in str(error)
    assert "recompute intermediate values" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    given = (out_of_memory.HbmAllocation(2**30, "argument f32[8]"),)
    assert str(error.with_arguments(given)) == str(error)  # XLA counts the arguments itself


def test_the_summary_of_libtpu_names_temporaries_that_take_most():
    error = out_of_memory.read(
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 20.50G of 15.75G hbm.\n"
        "    arguments         8.00G\n    HLO temp         12.50G (98.5% utilization: Unpadded (12.00G))\n"
    )
    assert "has 15.75 GiB (12.5 GiB for HLO temporaries; 8 GiB for arguments); recompute" in str(error)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
            "capacity of 79.11 GiB of which 1.31 GiB is free. Including non-PyTorch memory, this process has "
            "77.79 GiB memory in use. Of the allocated memory 75.20 GiB is allocated by PyTorch, and 1.02 "
            "GiB is reserved by PyTorch but unallocated.",
            "an allocation of 2 GiB failed on a GPU of 79.11 GiB, of which 1.31 GiB was free; PyTorch had "
            "allocated 75.2 GiB; use a smaller microbatch",
        ),
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.90 GiB total capacity; "
            "14.75 GiB already allocated; 1.75 MiB free; 14.80 GiB reserved in total by PyTorch)",
            "51.2 MiB of its reserved memory was unused, but in pieces; set PYTORCH_CUDA_ALLOC_CONF=",
        ),
        ("RuntimeError: shape mismatch", ""),
    ],
    ids=["2.1 and later", "earlier, in pieces", "another error"],
)
def test_an_error_of_pytorch_is_told_with_its_sizes(message, said):
    assert said in out_of_memory.of_pytorch(message)
    assert bool(out_of_memory.of_pytorch(message)) == bool(said)


@pytest.mark.parametrize(
    ("message", "asked", "limit"),
    [
        (
            "RESOURCE_EXHAUSTED: Failed to allocate request for 256.00MiB (268435456B) on device ordinal 0",
            2**28,
            0,
        ),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 32.00GiB.", 32 * GiB, 0),
        (
            "Resource exhausted: Out of memory while trying to allocate 5520758552 bytes.\n"
            "Reported by CUDA: Free memory/Total memory: 22635544576/85095874560",
            5_520_758_552,
            85_095_874_560,
        ),
    ],
)
def test_an_allocation_that_a_gpu_refuses_is_told_with_its_size(message, asked, limit):
    error = out_of_memory.read(message)
    assert error is not None
    assert (error.asked_bytes, error.used_bytes, error.limit_bytes) == (asked, asked, limit)
    assert "of GPU memory does not fit next to the data already on the GPU" in str(error)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (2**27, "HLO temporaries, which live between operations, and results take 16.32 GiB, while its arg"),
        (2**34, "has 15.75 GiB; its arguments take 16 GiB (16 GiB for argument bf16[8]), results and temp"),
    ],
    ids=["temporaries", "arguments"],
)
def test_the_sentence_names_what_takes_most_of_the_memory(given, said):
    error = out_of_memory.read(
        "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries "
        "(16.44G) "
        "exceeds available HBM (15.75G)."
    )
    assert error is not None
    told = str(error.with_arguments((out_of_memory.HbmAllocation(given, "argument bf16[8]"),)))
    assert said in told
    assert ("jax.checkpoint" in told) == (given < 2**30)
