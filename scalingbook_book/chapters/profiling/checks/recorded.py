"""Numbers read from the book's profiles in `data/traces`, and from bundles of the TPU compiler.

The checks also run without JAX, so the numbers are constants here. `test_profiling_recorded.py` reads the
traces and compiles the program again.
"""

from scalingbook_lib.units import MiB

# sharding-before: `breakdown` of profiles.load("sharding-before"), seconds a run and device
RUN_S, EXPOSED_S, GATHER_S, COMMS_SHARE = 0.195271, 0.0665116, 0.0562771, 0.409742

# recompile-before: from the first step's beginning to the last one's end; compilations; the device's work;
# from the first compilation's beginning to the end of the device's work
STEPS_S, COMPILE_S, DEVICE_S, FROM_COMPILE_S = 0.1366954, 0.0782953, 0.0099372, 0.1322691

# serial-before: all-reduces a run, the array of each, and how much of their time is waiting
SUMS, SUMMED_BYTES, DEVICES, RUNS = 12, 1 * MiB, 4, 3
WAITING, BEYOND_SHORTEST = 0.442480, 0.526049  # until the last device is there; beyond the shortest of four

# Bundles of tanh(X @ W), all sides of 256 in bf16, for v5e by libtpu 0.0.51: MATMUL slots used, bundle after
# bundle, as (slots, bundles).
MATMUL_256 = ((0, 41), (1, 1), (2, 1), (3, 1), (4, 142), (3, 1), (2, 1), (1, 1), (0, 100))
MATMUL_1024 = ((0, 83), (1, 2), (2, 2), (3, 2), (4, 4588), (3, 2), (2, 2), (1, 2), (0, 162))


def idle(runs: tuple[tuple[int, int], ...]) -> float:
    """The fraction of bundles that use no slot."""
    return sum(n for slots, n in runs if not slots) / sum(n for _, n in runs)
