"""Which chips does this book speak of, and what are they capable of?

A catalogue: every figure stands beside its source, and where sources disagree, beside what the others
print. `chips.V5E`, `chips.find("H100")`, `chips.CATALOGUE`; slices of them with `chips.Slice`. The rows of
`data/chips.csv` are the same figures as they were collected. Chapters: Rooflines, TPUs, GPUs.
"""

# ruff: noqa: E501   a figure and its source stand on one line, as in a table

from typing import Any

from scalingbook_lib.hardware import Chip, Source
from scalingbook_lib.slices import Slice, SliceMesh
from scalingbook_lib.torus import Axis, SliceError, Torus
from scalingbook_lib.units import GB, GiB, KiB, MiB

__all__ = [
    "A100", "B200", "CATALOGUE", "H100", "H200", "TPU7X", "V3", "V4", "V5E", "V5P", "V6E",
    "Axis", "Chip", "Slice", "SliceError", "SliceMesh", "Source", "Torus", "find",
]  # fmt: skip

_READ = "2026-11-21"
T = 1e12  # of FLOPs, OPs or bytes: figures below are written as their sources print them


def _said(text: str, url: str = "", *, but: str = "") -> Source:
    return Source(text=text, as_of=_READ, url=url, disagreement=but)


def _google(page: str, what: str = "", *, but: str = "") -> Source:
    url = f"https://docs.cloud.google.com/tpu/docs/{page}"
    return _said(f"Google Cloud TPU documentation, page {page}" + (f": {what}" if what else ""), url, but=but)


def _jax(*, but: str = "") -> Source:
    return _said(
        "registry of TPU figures in JAX 0.12 (jax/_src/tpu_info.py)", "https://github.com/jax-ml/jax", but=but
    )


def _book(what: str, *, but: str = "") -> Source:
    url = "https://jax-ml.github.io/scaling-book/"
    return _said(f"How to Scale Your Model (Austin et al. 2025): {what}", url, but=but)


def _v4_paper(what: str, *, but: str = "") -> Source:
    return _said(
        f"Jouppi et al., TPU v4 (ISCA 2023), table 4: {what}", "https://arxiv.org/abs/2304.01433", but=but
    )


def _survey(what: str = "", *, but: str = "") -> Source:
    text = "S. Bekman, Machine Learning Engineering, tables at commit 744d01e, which cite the vendor's pages"
    return _said(text + (f": {what}" if what else ""), "https://github.com/stas00/ml-engineering", but=but)


def _smi(mebibytes: int, printed: str, url: str) -> Source:
    text = (
        f"NVIDIA's datasheet prints {printed}; nvidia-smi reports {mebibytes:,} MiB, so the prefix is binary"
    )
    return _said(text, url)


def _chip(name: str, vendor: str, **figures: tuple[Any, Source]) -> Chip:
    """A chip from pairs of a figure and its source."""
    values = {figure: value for figure, (value, _) in figures.items()}
    return Chip(name=name, vendor=vendor, **values, sources={f: source for f, (_, source) in figures.items()})


_HOP = _book("about 1 µs for a hop between neighbours, an order of magnitude")
_ACHIEVED = _book(
    "its 45 and 90 GB/s are 90 % of the documented 50 and 100",
    but="it measured 95 % on a ring of 16 v5e chips",
)
_SMALL_3D = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))
_PAIRS_2D = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
_XPK = "; shapes as in AI-Hypercomputer/xpk: multiples of 4 up to the pod's cubes, and 2x2x1, 2x2x2, 2x2x4, 2x4x4"

V3 = _chip(
    "TPU v3", "Google",
    bf16_flops_per_s=(123 * T, _google("v3", but="JAX's registry and the scaling book print 140 TFLOPs")),
    hbm_bytes=(32 * GiB, _google("v3", "32 GiB")),
    hbm_bytes_per_s=(900 * GB, _google("v3", but="JAX's registry has 825 GB/s, XLA's own roofline 860")),
    link_bytes_per_s=(70 * GB, _v4_paper(
        "4 links @ 70 GB/s", but="Google's page v3 implies 83 by its all-reduce of 340 TB/s a pod and 100 by its bisection of 6.4 TB/s; the scaling book prints 100")),
    links=(4, _google("v3", "a 2D torus")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(32 * MiB, _jax()),
    clock_hz=(0.94e9, _v4_paper("2 · 2 · 2 · 128² FLOPs a cycle give 123 TFLOPs")),
    chips_per_host=(8, _v4_paper("8 chips a CPU host", but="a Cloud VM (v3-8) has 4 chips, 8 cores")),
    torus=(
        Torus(dims=2, pod_chips=1024, small=((2, 2), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16), (16, 32), (32, 32)), wrap_at=32),
        _google("v3", "v3-8 to v3-2048; taken to wrap at the pod's full 32 only", but="the wrap rule of sub-slices is not documented"),
    ),
)  # fmt: skip

V4 = _chip(
    "TPU v4", "Google",
    bf16_flops_per_s=(275 * T, _google("v4")),
    int8_ops_per_s=(275 * T, _google("v4", "275 TFLOPs, bf16 or int8", but="JAX's registry lists no int8 rate")),
    vector_flops_per_s=(2 * 8 * 128 * 2 * 1.05e9, _book("2 cores of 8 x 128 lanes with 2 ALUs at 1.05 GHz")),
    hbm_bytes=(32 * GiB, _google("v4", "32 GiB")),
    hbm_bytes_per_s=(1200 * GB, _google("v4", but="JAX's registry has 1,230 GB/s, other sources 1,228")),
    link_bytes_per_s=(50 * GB, _v4_paper("6 links @ 50 GB/s",
                                         but="chips.csv prints the scaling book's 45 GB/s, which is 90 % of it")),
    links=(6, _google("v4", "a 3D mesh or torus")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(32 * MiB, _jax(but="beside it, 128 MiB of CMEM that the two cores share")),
    pcie_bytes_per_s=(16 * GB, _book("about 16 GB/s a chip")),
    dcn_bytes_per_s=(6.25 * GB, _book("DCN egress per chip")),
    clock_hz=(1.05e9, _v4_paper("2 · 4 · 2 · 128² FLOPs a cycle give 275 TFLOPs")),
    chips_per_host=(4, _google("v4")),
    torus=(Torus(dims=3, pod_chips=4096, small=_SMALL_3D, cube=4), _google(
        "v4", "4,096 chips" + _XPK, but="the page promises a torus only for k x k x 2k and k x 2k x 2k; the scaling book, for every whole cube")),
)  # fmt: skip

V5E = _chip(
    "TPU v5e", "Google",
    bf16_flops_per_s=(197 * T, _google("v5e")),
    int8_ops_per_s=(394 * T, _jax(but="Google's page prints 393 TOPs, twice 196.6")),
    int4_ops_per_s=(788 * T, _jax()),
    vector_flops_per_s=(8 * 128 * 4 * 1.5e9, _book("one core of 8 x 128 lanes with 4 ALUs at 1.5 GHz")),
    hbm_bytes=(16 * GiB, _jax(but="17.2e9 bytes there, hence GiB; Google's page prints 16 GB")),
    hbm_bytes_per_s=(819 * GB, _google("v5e", but="newer versions of the page print 800 GiBps, which would be 859 GB/s; JAX's registry 820, the scaling book 810 and 820")),
    link_bytes_per_s=(50 * GB, _google("v5e", "400 GB/s a chip, both directions, over 4 ports")),
    links=(4, _google("v5e", "4 ICI ports a chip")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(128 * MiB, _jax()),
    vmem_bytes_per_s=(18e12, _book("VMEM to MXU about 22 times HBM", but="not documented by Google; XLA's cycle model shows 7.5 times")),
    pcie_bytes_per_s=(16 * GB, _book("about 16 GB/s a chip")),
    dcn_bytes_per_s=(3.125 * GB, _google("v5e", "2 x 100 Gbps a host of 8 chips")),
    clock_hz=(1.5e9, _book("table of TPU clocks; 4 · 2 · 128² FLOPs a cycle give 197 TFLOPs")),
    chips_per_host=(8, _google("v5e", but="Cloud VMs have 1, 4 or 8 chips; libtpu's topologies group by 4")),
    torus=(Torus(dims=2, pod_chips=256, small=_PAIRS_2D, wrap_at=16),
           _book("an axis wraps where it is 16 long; shapes as in Google's page v5e")),
)  # fmt: skip

V5P = _chip(
    "TPU v5p", "Google",
    bf16_flops_per_s=(459 * T, _google("v5p")),
    int8_ops_per_s=(918 * T, _jax()),
    fp8_flops_per_s=(459 * T, _google("v5p", but="JAX's registry lists no fp8 rate: it runs at the bf16 rate")),
    int4_ops_per_s=(1840 * T, _jax()),
    vector_flops_per_s=(2 * 8 * 128 * 4 * 1.75e9, _book("2 cores of 8 x 128 lanes with 4 ALUs at 1.75 GHz")),
    hbm_bytes=(95 * GiB, _google("v5p", "95 GiB that a program can allocate, of 96 GiB physical", but="the scaling book prints 96 GB, JAX's registry 103e9 bytes, which is the 96 GiB")),
    hbm_bytes_per_s=(2765 * GB, _google("v5p", "2,765 GBps, in other versions 2,575 GiBps", but="JAX's registry has 2,460 GB/s, the scaling book 2,500 and 2,800")),
    link_bytes_per_s=(100 * GB, _google("v5p", "1,200 GB/s a chip, both directions, over 6 links")),
    links=(6, _google("v5p", "a 3D torus")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(128 * MiB, _jax()),
    vmem_bytes_per_s=(2 * 3 * 4 * KiB * 1.75e9, _book("2 cores, three register loads of 4 KiB a cycle at 1.75 GHz", but="22 times HBM, the book's rule, would be 61 TB/s")),
    pcie_bytes_per_s=(16 * GB, _book("about 16 GB/s a chip")),
    dcn_bytes_per_s=(6.25 * GB, _google("v5p", "50 Gbps a chip")),
    clock_hz=(1.75e9, _book("table of TPU clocks; 2 · 4 · 2 · 128² FLOPs a cycle give 459 TFLOPs")),
    chips_per_host=(4, _google("v5p")),
    torus=(Torus(dims=3, pod_chips=8960, small=_SMALL_3D, cube=4), _google(
        "v5p", "all slices of 4x4x4 and larger have full 3D torus connectivity, smaller ones have no wrap-around links" + _XPK,
        but="the pod has 8,960 chips, the largest job 6,144 (16x16x24)")),
)  # fmt: skip

V6E = _chip(
    "TPU v6e", "Google",
    bf16_flops_per_s=(918 * T, _google("v6e", but="the scaling book prints 910 and 920, JAX's registry 920")),
    int8_ops_per_s=(1836 * T, _google("v6e")),
    fp8_flops_per_s=(918 * T, _google("tpu7x", "918 TFLOPs in its comparison of generations")),
    int4_ops_per_s=(3680 * T, _jax()),
    hbm_bytes=(32 * GiB, _jax(but="34.4e9 bytes there, hence GiB; page v6e prints 32 GB, page tpu7x 32 GiB")),
    hbm_bytes_per_s=(1638 * GB, _google("v6e", but="the scaling book prints 1,600 GB/s")),
    link_bytes_per_s=(100 * GB, _google("v6e", "800 GB/s a chip, both directions, over 4 ports")),
    links=(4, _google("v6e", "4 ICI ports a chip")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(128 * MiB, _jax()),
    pcie_bytes_per_s=(32 * GB, _google("v6e", "PCIe Gen5, twice Gen4's 16 GB/s")),
    dcn_bytes_per_s=(12.5 * GB, _google("tpu7x", "100 Gbps a chip in its comparison of generations")),
    chips_per_host=(8, _google("v6e")),
    torus=(Torus(dims=2, pod_chips=256, small=_PAIRS_2D, wrap_at=16),
           _book("an axis wraps where it is 16 long; shapes as in Google's page v6e")),
)  # fmt: skip

TPU7X = _chip(
    "TPU7x", "Google",
    bf16_flops_per_s=(2307 * T, _google("tpu7x", but="JAX's registry has 2,310")),
    fp8_flops_per_s=(4614 * T, _google("tpu7x", but="JAX's registry has 4,600")),
    hbm_bytes=(192 * GiB, _google("tpu7x", "192 GiB")),
    hbm_bytes_per_s=(7370 * GB, _survey("approximately 7.37 TB/s, quoting Google's page", but="newer versions of the page print 7,380 GB/s, JAX's registry 7,400")),
    link_bytes_per_s=(100 * GB, _google("tpu7x", "1,200 GB/s a chip, both directions, over 6 links")),
    links=(6, _google("tpu7x", "a 3D torus")),
    link_achieved_fraction=(0.9, _ACHIEVED),
    hop_s=(1e-6, _HOP),
    vmem_bytes=(128 * MiB, _jax()),
    dcn_bytes_per_s=(12.5 * GB, _google("tpu7x", "100 Gbps a chip")),
    chips_per_host=(4, _google("tpu7x")),
    torus=(Torus(dims=3, pod_chips=9216, small=_SMALL_3D, cube=4), _google(
        "tpu7x", "9,216 chips; wrap rule taken from v5p, to which the page likens it" + _XPK)),
)  # fmt: skip

_NCCL = _survey("a copy between two H200 reaches 396 of 450 GB/s, 88 %")
_SWITCH_HOP = _said("assumed: the order of magnitude of a TPU hop, as no vendor documents it",
                    but="the smallest NCCL all-gather over 8 H100 takes 10 µs in all, data/collectives.csv")  # fmt: skip


def _gpu(name: str, **figures: tuple[Any, Source]) -> Chip:
    """An NVIDIA chip on its NVLink switches: eight to a host."""
    shared = {
        "link_achieved_fraction": (0.88, _NCCL),
        "hop_s": (1e-6, _SWITCH_HOP),
        "chips_per_host": (8, _survey()),
    }
    return _chip(name, "NVIDIA", **(shared | figures))


A100 = _gpu(
    "A100",
    bf16_flops_per_s=(312 * T, _survey()), fp16_flops_per_s=(312 * T, _survey()), int8_ops_per_s=(624 * T, _survey()),
    vector_flops_per_s=(19.5 * T, _survey("fp32 outside the tensor cores")),
    hbm_bytes=(80 * GiB, _smi(81920, "80 GB", "https://github.com/modal-labs/modal-client/pull/2797")),
    hbm_bytes_per_s=(2039 * GB, _survey(but="the same tables round it to 2.0 TB/s")),
    link_bytes_per_s=(25 * GB, _survey("NVLink 3")), links=(12, _survey("NVLink 3")),
    dcn_bytes_per_s=(25 * GB, _survey("8 x 200 Gbps a host of 8")),
    clock_hz=(1.41e9, _survey("108 SMs · 4 · 512 FLOPs a cycle give 312 TFLOPs")),
)  # fmt: skip

H100 = _gpu(
    "H100",
    bf16_flops_per_s=(989 * T, _survey(but="the datasheet's 1,979 counts sparsity")), fp16_flops_per_s=(989 * T, _survey()),
    fp8_flops_per_s=(1979 * T, _survey(but="the datasheet's 3,958 counts sparsity")), int8_ops_per_s=(1979 * T, _survey()),
    vector_flops_per_s=(67 * T, _survey("fp32 outside the tensor cores")),
    hbm_bytes=(80 * GiB, _smi(81559, "80 GB", "https://github.com/NVIDIA/nccl/issues/1264")),
    hbm_bytes_per_s=(3350 * GB, _survey()),
    link_bytes_per_s=(25 * GB, _survey("NVLink 4")), links=(18, _survey("NVLink 4")),
    pcie_bytes_per_s=(63 * GB, _survey("PCIe Gen5 with 16 lanes", but="55 measured")),
    dcn_bytes_per_s=(50 * GB, _survey("8 x 400 Gbps a host of 8")),
    clock_hz=(1.83e9, _survey("132 SMs · 4 · 1,024 FLOPs a cycle give 989 TFLOPs", but="the highest boost clock is 1.98 GHz")),
)  # fmt: skip

H200 = _gpu(
    "H200",
    bf16_flops_per_s=(989 * T, _survey()), fp16_flops_per_s=(989 * T, _survey()),
    fp8_flops_per_s=(1979 * T, _survey()), int8_ops_per_s=(1979 * T, _survey()),
    vector_flops_per_s=(67 * T, _survey("fp32 outside the tensor cores")),
    hbm_bytes=(141 * GiB, _said("NVIDIA's datasheet prints 141 GB; read as GiB, as for the H100 and the B200",
                                "https://www.nvidia.com/en-us/data-center/h200/", but="as GB it would be 7 % less")),
    hbm_bytes_per_s=(4800 * GB, _survey()),
    link_bytes_per_s=(25 * GB, _survey("NVLink 4")), links=(18, _survey("NVLink 4")),
    pcie_bytes_per_s=(63 * GB, _survey("PCIe Gen5 with 16 lanes", but="55 measured")),
    dcn_bytes_per_s=(50 * GB, _survey("8 x 400 Gbps a host of 8")),
    clock_hz=(1.83e9, _survey("132 SMs · 4 · 1,024 FLOPs a cycle give 989 TFLOPs")),
)  # fmt: skip

B200 = _gpu(
    "B200",
    bf16_flops_per_s=(2250 * T, _survey()), fp16_flops_per_s=(2250 * T, _survey()),
    fp8_flops_per_s=(4500 * T, _survey()), int8_ops_per_s=(4500 * T, _survey()),
    fp4_flops_per_s=(9000 * T, _survey(but="the same tables have 10,000 for nvfp4")),
    hbm_bytes=(180 * GiB, _smi(183359, "180 GB", "https://github.com/NVIDIA/TensorRT-LLM/issues/10278")),
    hbm_bytes_per_s=(8000 * GB, _survey(but="the DGX datasheet and a 7,680-bit bus at 3,996 MHz give 7,670 GB/s")),
    link_bytes_per_s=(50 * GB, _survey("NVLink 5")), links=(18, _survey("NVLink 5")),
    pcie_bytes_per_s=(63 * GB, _survey("PCIe Gen5 with 16 lanes", but="55 measured")),
    dcn_bytes_per_s=(50 * GB, _survey("8 x 400 Gbps a host of 8")),
)  # fmt: skip

CATALOGUE = {chip.name: chip for chip in (V3, V4, V5E, V5P, V6E, TPU7X, A100, H100, H200, B200)}


def find(name: str) -> Chip:
    """The chip of that name, however spelled: 'TPU v5e', 'v5e', 'h100'."""
    for known, chip in CATALOGUE.items():
        if _spelled(known) == _spelled(name):
            return chip
    raise ValueError(f"no chip {name!r} in the catalogue; there are {', '.join(CATALOGUE)}")


def _spelled(name: str) -> str:
    return "".join(name.lower().split()).removeprefix("tpu")
