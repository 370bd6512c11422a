"""Which TPUs does this book speak of? Every generation from v2 to Ironwood, TPU7x.

Figures are of a chip, not of a core, and each stands beside its source. Twisted tori, which v4 and later can
be wired as in k x k x 2k and k x 2k x 2k, have the same links; `Torus.twistable` says which shapes.
"""

# ruff: noqa: E501   a figure and its source stand on one line, as in a table

from dataclasses import replace

from scalingbook_lib.machines.chips.sources import (
    T,
    book,
    chip,
    google,
    jax,
    said,
    survey,
    tpu_price,
    v2_paper,
    v4_paper,
)
from scalingbook_lib.machines.torus import Torus
from scalingbook_lib.units import GB, GiB, KiB, MiB

_HOP = book("about 1 µs for a hop between neighbours, an order of magnitude")
_ACHIEVED = book(
    "its 45 and 90 GB/s are 90 % of the documented 50 and 100",
    but="it measured 95 % on a ring of 16 v5e chips",
)
_SMALL_3D = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))
_PAIRS_2D = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
_XPK = "; shapes as in AI-Hypercomputer/xpk: multiples of 4 up to the pod's cubes, and 2x2x1, 2x2x2, 2x2x4, 2x4x4"

V2 = chip(
    "TPU v2", "Google",
    bf16_flops_per_s=(46 * T, jax(but="2 · 2 · 128² FLOPs a cycle at 0.7 GHz give 45.9")),
    hbm_bytes=(16 * GiB, said("Google Cloud TPU pricing: 8 GiB for each of two cores", "https://cloud.google.com/tpu/pricing", but="JAX's registry has 16.0e9 bytes")),
    hbm_bytes_per_s=(700 * GB, v2_paper("700 GB/s a chip", but="JAX's registry has 716")),
    link_bytes_per_s=(62.5 * GB, v2_paper("four links of 500 Gbps", but="the same notes round it to 60 GB/s")),
    links=(4, v2_paper("four links to other chips")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(32 * MiB, jax()),
    pcie_bytes_per_s=(16 * GB, v2_paper("16 GB/s a chip")),
    clock_hz=(0.7e9, said("implied: 2 · 2 · 128² FLOPs a cycle give 45.9 TFLOPs at 700 MHz")),
    chips_per_host=(4, said("Google Cloud's v2-8 is one host: four chips, eight cores")),
    cores=(2, jax()), matrix_units=(2, jax("one MXU a core")), matrix_side=(128, jax()),
    smem_bytes_per_core=(16 * KiB, jax("SMEM of one core")),
    torus=(
        Torus(dims=2, pod_chips=256, small=((2, 2), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16)), wrap_at=16),
        said("v2-8 to v2-512, whose pod of 256 chips is a 2D torus; taken to wrap at the pod's full 16 only", but="the wrap rule of sub-slices is not documented"),
    ),
)  # fmt: skip

V3 = chip(
    "TPU v3", "Google",
    bf16_flops_per_s=(123 * T, google("v3", but="JAX's registry and the scaling book print 140 TFLOPs")),
    hbm_bytes=(32 * GiB, google("v3", "32 GiB")),
    hbm_bytes_per_s=(900 * GB, google("v3", but="JAX's registry has 825 GB/s, XLA's own roofline 860")),
    link_bytes_per_s=(70 * GB, v4_paper(
        "4 links @ 70 GB/s", but="Google's page v3 implies 83 by its all-reduce of 340 TB/s a pod and 100 by its bisection of 6.4 TB/s; the scaling book prints 100")),
    links=(4, google("v3", "a 2D torus")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(32 * MiB, jax()),
    clock_hz=(0.94e9, v4_paper("2 · 2 · 2 · 128² FLOPs a cycle give 123 TFLOPs")),
    chips_per_host=(8, v4_paper("8 chips a CPU host", but="a Cloud VM (v3-8) has 4 chips, 8 cores")),
    cores=(2, google("v3", "two TensorCores, each with two MXUs")), matrix_units=(4, google("v3", "two TensorCores, each with two MXUs")),
    matrix_side=(128, jax()), smem_bytes_per_core=(16 * KiB, jax("SMEM of one core")),
    power_w=(262, google("v3", "the most measured; 123 at least, 220 in the mean", but="Patterson et al. 2021, table 4, print 450 W")),
    torus=(
        Torus(dims=2, pod_chips=1024, small=((2, 2), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16), (16, 32), (32, 32)), wrap_at=32),
        google("v3", "v3-8 to v3-2048; taken to wrap at the pod's full 32 only", but="the wrap rule of sub-slices is not documented"),
    ),
)  # fmt: skip

V4 = chip(
    "TPU v4", "Google",
    bf16_flops_per_s=(275 * T, google("v4")),
    int8_ops_per_s=(275 * T, google("v4", "275 TFLOPs, bf16 or int8", but="JAX's registry lists no int8 rate")),
    vector_flops_per_s=(2 * 8 * 128 * 2 * 1.05e9, book("2 cores of 8 x 128 lanes with 2 ALUs at 1.05 GHz")),
    hbm_bytes=(32 * GiB, google("v4", "32 GiB")),
    hbm_bytes_per_s=(1200 * GB, google("v4", but="JAX's registry has 1,230 GB/s, other sources 1,228")),
    link_bytes_per_s=(50 * GB, v4_paper("6 links @ 50 GB/s",
                                         but="chips.csv prints the scaling book's 45 GB/s, which is 90 % of it")),
    links=(6, google("v4", "a 3D mesh or torus")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(32 * MiB, jax(but="beside it, 128 MiB of CMEM that the two cores share")),
    pcie_bytes_per_s=(16 * GB, book("about 16 GB/s a chip")),
    dcn_bytes_per_s=(6.25 * GB, book("DCN egress per chip")),
    clock_hz=(1.05e9, v4_paper("2 · 4 · 2 · 128² FLOPs a cycle give 275 TFLOPs")),
    chips_per_host=(4, google("v4")),
    cores=(2, google("v4", "two TensorCores, each with four MXUs")), matrix_units=(8, google("v4", "two TensorCores, each with four MXUs")),
    matrix_side=(128, jax()), smem_bytes_per_core=(1 * MiB, jax("SMEM of one core")),
    registers_bytes_per_core=(128 * KiB, book("32 vector registers of 4 KiB a core")),
    power_w=(192, google("v4", "the most measured; 90 at least, 170 in the mean")),
    torus=(Torus(dims=3, pod_chips=4096, small=_SMALL_3D, cube=4), google(
        "v4", "4,096 chips" + _XPK, but="the page promises a torus only for k x k x 2k and k x 2k x 2k; the scaling book, for every whole cube")),
)  # fmt: skip

V5E = chip(
    "TPU v5e", "Google",
    bf16_flops_per_s=(197 * T, google("v5e")),
    int8_ops_per_s=(394 * T, jax(but="Google's page prints 393 TOPs, twice 196.6")),
    int4_ops_per_s=(788 * T, jax()),
    vector_flops_per_s=(8 * 128 * 4 * 1.5e9, book("one core of 8 x 128 lanes with 4 ALUs at 1.5 GHz")),
    hbm_bytes=(16 * GiB, jax(but="17.2e9 bytes there, hence GiB; Google's page prints 16 GB")),
    hbm_bytes_per_s=(819 * GB, google("v5e", but="newer versions of the page print 800 GiBps, which would be 859 GB/s; JAX's registry 820, the scaling book 810 and 820")),
    link_bytes_per_s=(50 * GB, google("v5e", "400 GB/s a chip, both directions, over 4 ports")),
    links=(4, google("v5e", "4 ICI ports a chip")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(128 * MiB, jax()),
    vmem_bytes_per_s=(18e12, book("VMEM to MXU about 22 times HBM", but="not documented by Google; XLA's cycle model shows 7.5 times")),
    pcie_bytes_per_s=(16 * GB, book("about 16 GB/s a chip")),
    dcn_bytes_per_s=(3.125 * GB, google("v5e", "2 x 100 Gbps a host of 8 chips")),
    clock_hz=(1.5e9, book("table of TPU clocks; 4 · 2 · 128² FLOPs a cycle give 197 TFLOPs")),
    chips_per_host=(8, google("v5e", but="Cloud VMs have 1, 4 or 8 chips; libtpu's topologies group by 4")),
    cores=(1, google("v5e", "one TensorCore with four MXUs")), matrix_units=(4, google("v5e", "one TensorCore with four MXUs")),
    matrix_side=(128, jax()), smem_bytes_per_core=(1 * MiB, jax("SMEM of one core")), usd_per_hour=(1.2, tpu_price()),
    torus=(Torus(dims=2, pod_chips=256, small=_PAIRS_2D, wrap_at=16),
           book("an axis wraps where it is 16 long; shapes as in Google's page v5e")),
)  # fmt: skip

V5P = chip(
    "TPU v5p", "Google",
    bf16_flops_per_s=(459 * T, google("v5p")),
    int8_ops_per_s=(918 * T, jax()),
    fp8_flops_per_s=(459 * T, google("v5p", but="JAX's registry lists no fp8 rate: it runs at the bf16 rate")),
    int4_ops_per_s=(1840 * T, jax()),
    vector_flops_per_s=(2 * 8 * 128 * 4 * 1.75e9, book("2 cores of 8 x 128 lanes with 4 ALUs at 1.75 GHz")),
    hbm_bytes=(95 * GiB, google("v5p", "95 GiB that a program can allocate, of 96 GiB physical", but="the scaling book prints 96 GB, JAX's registry 103e9 bytes, which is the 96 GiB")),
    hbm_bytes_per_s=(2765 * GB, google("v5p", "2,765 GBps, in other versions 2,575 GiBps", but="JAX's registry has 2,460 GB/s, the scaling book 2,500 and 2,800")),
    link_bytes_per_s=(100 * GB, google("v5p", "1,200 GB/s a chip, both directions, over 6 links")),
    links=(6, google("v5p", "a 3D torus")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(128 * MiB, jax()),
    vmem_bytes_per_s=(2 * 3 * 4 * KiB * 1.75e9, book("2 cores, three register loads of 4 KiB a cycle at 1.75 GHz", but="22 times HBM, the book's rule, would be 61 TB/s")),
    pcie_bytes_per_s=(16 * GB, book("about 16 GB/s a chip")),
    dcn_bytes_per_s=(6.25 * GB, google("v5p", "50 Gbps a chip")),
    clock_hz=(1.75e9, book("table of TPU clocks; 2 · 4 · 2 · 128² FLOPs a cycle give 459 TFLOPs")),
    chips_per_host=(4, google("v5p")),
    cores=(2, google("v5p")), matrix_units=(8, google("v5p", "each TensorCore has four MXUs")),
    matrix_side=(128, jax()), smem_bytes_per_core=(1 * MiB, jax("SMEM of one core")),
    registers_bytes_per_core=(256 * KiB, book("64 vector registers of 4 KiB a core")), usd_per_hour=(4.2, tpu_price()),
    torus=(Torus(dims=3, pod_chips=8960, small=_SMALL_3D, cube=4), google(
        "v5p", "all slices of 4x4x4 and larger have full 3D torus connectivity, smaller ones have no wrap-around links" + _XPK,
        but="the pod has 8,960 chips, the largest job 6,144 (16x16x24)")),
)  # fmt: skip

V6E = chip(
    "TPU v6e", "Google",
    bf16_flops_per_s=(918 * T, google("v6e", but="the scaling book prints 910 and 920, JAX's registry 920")),
    int8_ops_per_s=(1836 * T, google("v6e")),
    fp8_flops_per_s=(918 * T, google("tpu7x", "918 TFLOPs in its comparison of generations")),
    int4_ops_per_s=(3680 * T, jax()),
    hbm_bytes=(32 * GiB, jax(but="34.4e9 bytes there, hence GiB; page v6e prints 32 GB, page tpu7x 32 GiB")),
    hbm_bytes_per_s=(1638 * GB, google("v6e", but="the scaling book prints 1,600 GB/s")),
    link_bytes_per_s=(100 * GB, google("v6e", "800 GB/s a chip, both directions, over 4 ports")),
    links=(4, google("v6e", "4 ICI ports a chip")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(128 * MiB, jax()),
    pcie_bytes_per_s=(32 * GB, google("v6e", "PCIe Gen5, twice Gen4's 16 GB/s")),
    dcn_bytes_per_s=(12.5 * GB, google("tpu7x", "100 Gbps a chip in its comparison of generations")),
    chips_per_host=(8, google("v6e")),
    cores=(1, jax()), matrix_units=(2, google("v6e", "two MXUs of 256 x 256", but="918 TFLOPs at 1.75 GHz need four times 256² MACs a cycle: each counts as two arrays")),
    matrix_side=(256, google("v6e", "two MXUs of 256 x 256")), smem_bytes_per_core=(1 * MiB, jax("SMEM of one core")),
    torus=(Torus(dims=2, pod_chips=256, small=_PAIRS_2D, wrap_at=16),
           book("an axis wraps where it is 16 long; shapes as in Google's page v6e")),
)  # fmt: skip

TPU7X = chip(
    "TPU7x", "Google",
    bf16_flops_per_s=(2307 * T, google("tpu7x", but="JAX's registry has 2,310")),
    fp8_flops_per_s=(4614 * T, google("tpu7x", but="JAX's registry has 4,600")),
    hbm_bytes=(192 * GiB, google("tpu7x", "192 GiB")),
    hbm_bytes_per_s=(7370 * GB, survey("approximately 7.37 TB/s, quoting Google's page", but="newer versions of the page print 7,380 GB/s, JAX's registry 7,400")),
    link_bytes_per_s=(100 * GB, google("tpu7x", "1,200 GB/s a chip, both directions, over 6 links")),
    links=(6, google("tpu7x", "a 3D torus")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(128 * MiB, jax()),
    dcn_bytes_per_s=(12.5 * GB, google("tpu7x", "100 Gbps a chip")),
    chips_per_host=(4, google("tpu7x")),
    cores=(2, google("tpu7x", "two TensorCores, which JAX shows as two devices")), matrix_units=(4, jax("two MXUs a core", but="as on v6e, each seems to count as two arrays")),
    matrix_side=(256, jax()), smem_bytes_per_core=(1 * MiB, jax("SMEM of one core")),
    torus=(Torus(dims=3, pod_chips=9216, small=_SMALL_3D, cube=4), google(
        "tpu7x", "9,216 chips; wrap rule taken from v5p, to which the page likens it" + _XPK)),
)  # fmt: skip

HALF_TPU7X = replace(
    TPU7X,
    name="half a TPU7x",
    bf16_flops_per_s=TPU7X.bf16_flops_per_s / 2,
    hbm_bytes_per_s=TPU7X.hbm_bytes_per_s / 2,
    matrix_units=2,
)
"""One of the two devices that a TPU7x is to JAX and to the compiler; it is not in the catalogue."""

TPUS = (V2, V3, V4, V5E, V5P, V6E, TPU7X)
