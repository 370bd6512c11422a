"""Chips, and the same with one rate higher; and what may break a law of the closed forms, by name.

The laws, with the plan fixed: no time grows when a rate grows; model state never grows with sharding; steady
throughput does not fall with the batch; the first token's time grows with the prompt.
"""

from dataclasses import fields, replace
from functools import cache
from math import ceil

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import CATALOG
from scalingbook_lib.machines.clusters import Cluster, ClusterError
from scalingbook_lib.machines.slices import Slice, SliceError
from scalingbook_lib.units import BF16, FP8, INT8

EXCEPTIONS = {
    "whole waves": "A way has whole sequences: one more than divide evenly takes a step of all for itself.",
    "queues": "Prompts that more sequences send wait for one another: a first token, not a rate.",
}
MATH = tuple(f.name for f in fields(chips.H100) if f.name.endswith(("flops_per_s", "ops_per_s")))
RATES = {
    "FLOP/s": MATH,
    "HBM": ("hbm_bytes_per_s",),
    "links": ("link_bytes_per_s",),
    "network": ("dcn_bytes_per_s",),
    "host": ("host_bytes_per_s", "pcie_bytes_per_s"),
}
SLICES = ("2x2", "4x4", "16x16", "2x2x2", "4x4x4", "8x8x8")
COUNTS = (1, 8, 16, 64, 72, 144, 256, 1024)
SLACK = 1 + 1e-9  # what is equal may differ by rounding


@cache
def machine(name, size, rate="", by=1.0):
    """So many chips of a name, or a slice; one rate of the chip is `by` times as high."""
    chip = CATALOG[name]
    known = [one for one in RATES.get(rate, ()) if getattr(chip, one) is not None]
    there = {one: by * getattr(chip, one) for one in known if one != "bf16_flops_per_s" or name != "V100"}
    chip = replace(chip, **there)
    return Slice.of(chip, size) if isinstance(size, str) else Cluster.of(chip, size)


def _places():
    for name, chip in CATALOG.items():
        for size in SLICES if chip.torus else COUNTS:
            try:
                machine(name, size)
            except (ClusterError, SliceError):
                continue
            yield name, size


PLACES = tuple(_places())  # what can be built of the catalog's chips


def types(chip):
    """What its matrix unit multiplies."""
    rates = {BF16: "bf16_flops_per_s", FP8: "fp8_flops_per_s", INT8: "int8_ops_per_s"}
    return [dtype for dtype, rate in rates.items() if getattr(chip, rate)]


def divisors(n, most):
    """Ways that are tried of so many chips."""
    return [ways for ways in (1, 2, 3, 4, 6, 8, 9, 16, 32, 64) if n % ways == 0 and ways <= most]


def rough(layout, sequences, prompts):
    """Whole waves over even shares, 1 where all divide evenly: for each level of ways, and the hosts'."""
    stages, dp = min(layout.pp, ceil(sequences)), layout.attention_dp
    found, left, even = [], sequences, sequences
    for ways in (stages, layout.cp, dp, layout.kv_batch):
        if ways > 1:
            left, even = ceil(left / ways), even / ways
        found.append(left / even)
    return [*found, *(ceil(n / dp) * dp / n for n in (prompts, sequences + prompts) if dp > 1)]
