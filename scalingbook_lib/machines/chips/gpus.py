"""Which GPUs does this book speak of? NVIDIA from Volta to Blackwell Ultra, AMD from MI300X to MI355X.

Every figure stands beside its source. Where a datasheet counts sparsity, the dense half is what stands here.
A full mesh (AMD) has one link for each pair: seven together for a collective of all eight chips, one for two.
"""

# ruff: noqa: E501   a figure and its source stand on one line, as in a table

from typing import Any

from scalingbook_lib.machines.chip import Chip, Source
from scalingbook_lib.machines.chips.sources import (
    T,
    book,
    chip,
    gpu_price,
    rocm,
    said,
    smi,
    survey,
    verda,
    volta,
)
from scalingbook_lib.units import GB, GiB, KiB, MiB

_NCCL = survey("a copy between two H200 reaches 396 of 450 GB/s, 88 %")
_SWITCH_HOP = said("assumed: the order of magnitude of a TPU hop, as no vendor documents it",
                    but="the smallest NCCL all-gather over 8 H100 takes 10 µs in all, data/collectives.csv")  # fmt: skip


_DGX1 = said("Dell EMC reference guide: 6 NVLinks a GPU, 25 GB/s each way")
_CUBE = said(
    "NVIDIA DGX-1: eight V100 in a hybrid cube mesh, without switches",
    but="pairs have two links, one or none; DGX-2 joined sixteen by NVSwitch",
)
_EIGHT = survey("8 GPUs a host, joined by NVSwitch")
_RACK = survey("72 GPUs in one NVLink domain, four to a compute tray")
_SM = book("table of GPU specifications")
_REGISTERS = book("256 KiB of registers per SM in all generations")
_TMEM = book("256 KiB of TMEM per SM of Blackwell")
_GEN5 = survey("PCIe Gen5 with 16 lanes", but="55 measured")
_TRAY_NIC = survey("one 400 Gbps NIC a GPU, four a compute tray")
_C2C = survey(
    "NVLink-C2C to the Grace CPU, 450 GB/s each way",
    but="359 to 377 measured one way, about 175 each way when both run; two GPUs share one Grace",
)
_ULTRA_TMEM = said(
    "NVIDIA on Blackwell Ultra at Hot Chips 2025, as reported by TweakTown: 256 KB of TMEM an SM"
)
_TUNING = said(
    "NVIDIA's Blackwell tuning guide: 126 MB of L2, 256 KB of L1 and shared memory per SM; read as binary, as A100's 40 and H100's 50",
    "https://docs.nvidia.com/cuda/blackwell-tuning-guide/",
)
_ULTRA_L2 = said("taken to be the B200's", but="one program that ran on a GB300 read 115.5 MiB of L2")
_ULTRA_FABRIC = survey("ConnectX-8, 800 Gbps a GPU")


def _gpu(name: str, *, sms: tuple[int, Source], per_sm: int = 4, **figures: tuple[Any, Source]) -> Chip:
    """An NVIDIA chip: its SMs, their tensor cores and registers, and eight to a host on NVLink switches."""
    cores, source = sms
    shared: dict[str, Any] = {
        "link_achieved_fraction": (0.88, _NCCL),
        "hop_s": (1e-6, _SWITCH_HOP),
        "chips_per_host": (8, _EIGHT),
        "domain_chips": (8, _EIGHT),
        "cores": sms,
        "matrix_units": (cores * per_sm, source),
        "registers_bytes_per_core": (256 * KiB, _REGISTERS),
    }
    return chip(name, "NVIDIA", full_mesh=False, **(shared | figures))


V100 = _gpu(
    "V100", sms=(80, volta("80 SMs")), per_sm=8,
    fp16_flops_per_s=(125 * T, said("NVIDIA's V100 datasheet: 125 TFLOPs in fp16; there is no bf16", but="112 on the PCIe card, 120 when announced")),
    vector_flops_per_s=(15.7 * T, said("NVIDIA's V100 datasheet, fp32 outside the tensor cores", but="15 when announced")),
    hbm_bytes=(32 * GiB, smi(32510, "32 GB", "https://developer.nvidia.com/nvidia-system-management-interface", but="the first V100 had 16")),
    hbm_bytes_per_s=(900 * GB, volta("HBM2 at 900 GB/s")),
    link_bytes_per_s=(25 * GB, _DGX1), links=(6, _DGX1), domain_chips=(8, _CUBE), chips_per_host=(8, _CUBE),
    clock_hz=(1.53e9, said("Dell EMC reference guide: highest clock of the V100-SXM2, 1,530 MHz; 80 SMs · 8 · 128 FLOPs a cycle give 125 TFLOPs", but="the scaling book prints 1.38 GHz")),
    smem_bytes_per_core=(96 * KiB, volta("shared memory configurable up to 96 KB", )), l2_bytes=(6 * MiB, volta("6,144 KB of L2")),
    power_w=(300, said("NVIDIA's V100 datasheet")),
)  # fmt: skip


A100 = _gpu(
    "A100", sms=(108, _SM),
    bf16_flops_per_s=(312 * T, survey()), fp16_flops_per_s=(312 * T, survey()), int8_ops_per_s=(624 * T, survey()),
    vector_flops_per_s=(19.5 * T, survey("fp32 outside the tensor cores")),
    hbm_bytes=(80 * GiB, smi(81920, "80 GB", "https://github.com/modal-labs/modal-client/pull/2797")),
    hbm_bytes_per_s=(2039 * GB, survey(but="the same tables round it to 2.0 TB/s")),
    link_bytes_per_s=(25 * GB, survey("NVLink 3")), links=(12, survey("NVLink 3")),
    dcn_bytes_per_s=(25 * GB, survey("8 x 200 Gbps a host of 8")),
    clock_hz=(1.41e9, survey("108 SMs · 4 · 512 FLOPs a cycle give 312 TFLOPs")),
    smem_bytes_per_core=(192 * KiB, survey("L1 and shared memory", but="163 KiB a block")), l2_bytes=(40 * MiB, survey()), power_w=(400, survey()),
    usd_per_hour=(2.79, gpu_price("lambda.ai/pricing", "1.39 to 3.43 elsewhere: RunPod's community cloud on that day, AWS on 2026-11-09")),
)  # fmt: skip

H100 = _gpu(
    "H100", sms=(132, _SM),
    bf16_flops_per_s=(989 * T, survey(but="the datasheet's 1,979 counts sparsity")), fp16_flops_per_s=(989 * T, survey()),
    fp8_flops_per_s=(1979 * T, survey(but="the datasheet's 3,958 counts sparsity")), int8_ops_per_s=(1979 * T, survey()),
    vector_flops_per_s=(67 * T, survey("fp32 outside the tensor cores")),
    hbm_bytes=(80 * GiB, smi(81559, "80 GB", "https://github.com/NVIDIA/nccl/issues/1264")),
    hbm_bytes_per_s=(3350 * GB, survey()),
    link_bytes_per_s=(25 * GB, survey("NVLink 4")), links=(18, survey("NVLink 4")),
    pcie_bytes_per_s=(63 * GB, _GEN5),
    dcn_bytes_per_s=(50 * GB, survey("8 x 400 Gbps a host of 8")),
    clock_hz=(1.83e9, survey("132 SMs · 4 · 1,024 FLOPs a cycle give 989 TFLOPs", but="the highest boost clock is 1.98 GHz")),
    smem_bytes_per_core=(256 * KiB, survey("L1 and shared memory", but="228 KiB of it can be shared memory, 227 a block")), l2_bytes=(50 * MiB, survey()), power_w=(700, survey()),
    usd_per_hour=(3.85, gpu_price("nebius.com/prices", "2.69 to 12.29 elsewhere: RunPod's community cloud on that day, Azure on 2026-11-09")),
)  # fmt: skip

H200 = _gpu(
    "H200", sms=(132, _SM),
    bf16_flops_per_s=(989 * T, survey()), fp16_flops_per_s=(989 * T, survey()),
    fp8_flops_per_s=(1979 * T, survey()), int8_ops_per_s=(1979 * T, survey()),
    vector_flops_per_s=(67 * T, survey("fp32 outside the tensor cores")),
    hbm_bytes=(141 * GiB, said("NVIDIA's datasheet prints 141 GB; read as GiB, as for the H100 and the B200",
                                "https://www.nvidia.com/en-us/data-center/h200/", but="as GB it would be 7 % less")),
    hbm_bytes_per_s=(4800 * GB, survey()),
    link_bytes_per_s=(25 * GB, survey("NVLink 4")), links=(18, survey("NVLink 4")),
    pcie_bytes_per_s=(63 * GB, _GEN5),
    dcn_bytes_per_s=(50 * GB, survey("8 x 400 Gbps a host of 8")),
    clock_hz=(1.83e9, survey("132 SMs · 4 · 1,024 FLOPs a cycle give 989 TFLOPs")),
    smem_bytes_per_core=(256 * KiB, survey("L1 and shared memory", but="228 KiB of it can be shared memory, 227 a block")), l2_bytes=(50 * MiB, survey()), power_w=(700, survey()),
    usd_per_hour=(4.5, gpu_price("nebius.com/prices", "3.59 to 10.44 elsewhere: RunPod's community cloud on that day, Google on 2026-10-13")),
)  # fmt: skip

B200 = _gpu(
    "B200", sms=(148, _SM),
    bf16_flops_per_s=(2250 * T, survey()), fp16_flops_per_s=(2250 * T, survey()),
    fp8_flops_per_s=(4500 * T, survey()), int8_ops_per_s=(4500 * T, survey()),
    fp4_flops_per_s=(9000 * T, survey(but="the same tables have 10,000 for nvfp4")),
    hbm_bytes=(180 * GiB, smi(183359, "180 GB", "https://github.com/NVIDIA/TensorRT-LLM/issues/10278")),
    hbm_bytes_per_s=(8000 * GB, survey(but="the DGX datasheet and a 7,680-bit bus at 3,996 MHz give 7,670 GB/s")),
    link_bytes_per_s=(50 * GB, survey("NVLink 5")), links=(18, survey("NVLink 5")),
    pcie_bytes_per_s=(63 * GB, _GEN5),
    dcn_bytes_per_s=(50 * GB, survey("8 x 400 Gbps a host of 8")),
    smem_bytes_per_core=(256 * KiB, _TUNING), tmem_bytes_per_core=(256 * KiB, _TMEM), l2_bytes=(126 * MiB, _TUNING), power_w=(1000, survey()),
    usd_per_hour=(7.15, gpu_price("nebius.com/prices", "5.98 to 6.99 elsewhere: RunPod's community cloud and Lambda on that day")),
)  # fmt: skip

B300 = _gpu(
    "B300", sms=(148, said("measured on a B300 SXM6: 148 multiprocessors", but="the whole die has 160")),
    bf16_flops_per_s=(2250 * T, survey()), fp16_flops_per_s=(2250 * T, survey()), fp8_flops_per_s=(4500 * T, survey()),
    int8_ops_per_s=(150 * T, verda("0.15 POPs", but="the tables of Machine Learning Engineering print 4,500, as for the B200")),
    fp4_flops_per_s=(12600 * T, survey(but="Verda prints 14,000, G. Lockwood 13,125")),
    vector_flops_per_s=(75 * T, verda("fp32 outside the tensor cores")),
    hbm_bytes=(288 * GB, said("NVIDIA prints 288 GB; nvidia-smi reports 275,040 MiB, 288.4e9 bytes, so this prefix is decimal", but="Verda prints 270 GB, which is binary")),
    hbm_bytes_per_s=(8000 * GB, survey(but="aiconfigurator has 7,750, Verda 7,700")),
    link_bytes_per_s=(50 * GB, survey("NVLink 5")), links=(18, survey("NVLink 5")),
    dcn_bytes_per_s=(100 * GB, _ULTRA_FABRIC),
    smem_bytes_per_core=(256 * KiB, _ULTRA_L2), tmem_bytes_per_core=(256 * KiB, _ULTRA_TMEM), l2_bytes=(126 * MiB, _ULTRA_L2), 
    power_w=(1100, said("limit in nvidia-smi of a B300 SXM6", but="Machine Learning Engineering prints 1,000")),
)  # fmt: skip

GB200 = _gpu(
    "GB200", sms=(152, said("multiprocessors as kernels tuned on a GB200 count them", but="the scaling book takes the B200's 148")),
    bf16_flops_per_s=(2500 * T, survey(but="NVIDIA/dgxc-benchmarking computes MFU with 2,450, Verda prints 2,250")),
    fp16_flops_per_s=(2500 * T, survey()), fp8_flops_per_s=(5000 * T, survey()), int8_ops_per_s=(5000 * T, survey()),
    fp4_flops_per_s=(10000 * T, survey()), vector_flops_per_s=(80 * T, survey("fp32 outside the tensor cores", but="Verda prints 75")),
    hbm_bytes=(186 * GiB, smi(189471, "186 GB", "https://www.nvidia.com/en-us/data-center/gb200-nvl72/")),
    hbm_bytes_per_s=(8000 * GB, survey(but="Verda prints 7,700")),
    link_bytes_per_s=(50 * GB, survey("NVLink 5")), links=(18, survey("NVLink 5")),
    domain_chips=(72, _RACK), chips_per_host=(4, _RACK), host_bytes_per_s=(450 * GB, _C2C), dcn_bytes_per_s=(50 * GB, _TRAY_NIC),
    clock_hz=(2.062e9, survey("the highest clock", but="152 SMs · 4 · 2,048 FLOPs a cycle reach 2,500 TFLOPs at 2.01 GHz")),
    smem_bytes_per_core=(256 * KiB, _TUNING), tmem_bytes_per_core=(256 * KiB, _TMEM), l2_bytes=(126 * MiB, _TUNING), power_w=(1200, survey()),
)  # fmt: skip

GB300 = _gpu(
    "GB300", sms=(152, said("multiprocessors as kernels measured on a GB300 count them", but="the whole die has 160")),
    bf16_flops_per_s=(2500 * T, survey()), fp16_flops_per_s=(2500 * T, survey()), fp8_flops_per_s=(5000 * T, survey()),
    int8_ops_per_s=(165 * T, verda("0.165 POPs", but="the tables of Machine Learning Engineering print 5,000, as for the GB200")),
    fp4_flops_per_s=(15000 * T, survey()), vector_flops_per_s=(80 * T, verda("fp32 outside the tensor cores")),
    hbm_bytes=(279 * GiB, verda("279 GB; nvidia-smi reports 284,208 MiB, so the prefix is binary", but="NVIDIA's announcement prints 288 GB")),
    hbm_bytes_per_s=(8000 * GB, verda("8 TB/s")),
    link_bytes_per_s=(50 * GB, survey("NVLink 5")), links=(18, survey("NVLink 5")),
    domain_chips=(72, _RACK), chips_per_host=(4, _RACK), host_bytes_per_s=(450 * GB, _C2C), dcn_bytes_per_s=(100 * GB, _ULTRA_FABRIC),
    smem_bytes_per_core=(256 * KiB, _ULTRA_L2), tmem_bytes_per_core=(256 * KiB, _ULTRA_TMEM), l2_bytes=(126 * MiB, _ULTRA_L2), power_w=(1400, survey()),
)  # fmt: skip


# A card: no NVLink, its one link is the PCIe slot, and what leads from slot to slot is the host.

_CARD = said(
    "NVIDIA's datasheet of the RTX PRO 6000 Blackwell Server Edition (December 2025), as quoted: 96 GB, 1,597 GB/s, 120 TFLOPs in fp32, up to 600 W",
    "https://www.nvidia.com/en-us/data-center/rtx-pro-6000-blackwell-server-edition/",
)
_CARD_RATES = said(
    "dense rates in the proportion to fp32 that NVIDIA's RTX PRO Blackwell whitepaper prints for the Workstation Edition (503.8 to 126 TFLOPs in bf16), fp8 twice that, fp4 four times",
    but="NVIDIA's page prints 1, 2 and 4 PFLOPs, which count sparsity, rounded",
)
_SLOTS = said("eight cards in a host, PCIe Gen5 x16 each, 63 GB/s each way")

RTX_PRO_6000 = _gpu(
    "RTX PRO 6000 SE", sms=(188, said("188 SMs, 24,064 cores for fp32, in all three editions, as reported at its announcement")),
    bf16_flops_per_s=(480 * T, _CARD_RATES), fp16_flops_per_s=(480 * T, _CARD_RATES), fp8_flops_per_s=(960 * T, _CARD_RATES), fp4_flops_per_s=(1920 * T, _CARD_RATES),
    vector_flops_per_s=(120 * T, _CARD),
    hbm_bytes=(96 * GiB, said("NVIDIA prints 96 GB; nvidia-smi reports 97,887 MiB of the Workstation Edition, so the prefix is binary", but="the driver keeps 0.4 GiB of it")),
    hbm_bytes_per_s=(1597 * GB, _CARD), link_bytes_per_s=(63 * GB, _GEN5), links=(1, _SLOTS), pcie_bytes_per_s=(63 * GB, _GEN5),
    chips_per_host=(8, _SLOTS), domain_chips=(8, _SLOTS), power_w=(600, _CARD),
)  # fmt: skip
"""The Blackwell of a server's PCIe slots, with GDDR7; `chips.find` knows it, the catalogue of chips joined by links does not."""


# AMD

_MESH = survey("eight in a full mesh: one Infinity Fabric link to each of the seven others")


def _amd(name: str, *, cus: int, **figures: tuple[Any, Source]) -> Chip:
    """An AMD chip on its board of eight: 4 matrix cores a CU, one link to each of seven peers."""
    shared: dict[str, Any] = {
        "cores": (cus, rocm(f"{cus} compute units on 8 XCDs")),
        "matrix_units": (4 * cus, said("four matrix cores a compute unit of CDNA 3 and 4, with which the peaks come out")),
        "registers_bytes_per_core": (512 * KiB, rocm("512 KiB of vector registers a compute unit")),
        "l2_bytes": (32 * MiB, rocm("4 MiB for each XCD, shared by its compute units alone")),
        "l3_bytes": (256 * MiB, rocm("Infinity Cache")),
        "links": (7, _MESH), "domain_chips": (8, _MESH), "chips_per_host": (8, _MESH),
        "link_achieved_fraction": (0.88, said("assumed: what NVLink reaches, as no measurement is at hand")),
        "hop_s": (1e-6, _SWITCH_HOP),
        "pcie_bytes_per_s": (63 * GB, said("PCIe Gen5 x16, MLPerf Inference v4.1, system 8xMI300X", but="55 measured on H100")),
        "dcn_bytes_per_s": (50 * GB, said("assumed: 400 Gbps a GPU, as hosts with eight NICs commonly have")),
    }  # fmt: skip
    return chip(name, "AMD", full_mesh=True, **(shared | figures))


MI300X = _amd(
    "MI300X", cus=304,
    bf16_flops_per_s=(1307 * T, survey("304 CUs · 4 · 512 FLOPs a cycle at 2.1 GHz", but="another of the same tables rounds it to 1,300; 668 were reached in a matmul")),
    fp16_flops_per_s=(1307 * T, survey(but="another of the same tables rounds it to 1,300")),
    fp8_flops_per_s=(2610 * T, survey(but="twice 1,307 is 2,615")), int8_ops_per_s=(2600 * T, survey(but="twice 1,307 is 2,615")),
    vector_flops_per_s=(163.4 * T, survey("fp32 outside the matrix cores")),
    hbm_bytes=(192 * GiB, said("rocm-smi reports 206,141,652,992 bytes, so the prefix is binary", "https://github.com/ROCm/legacy-rocm-build/issues/4750")),
    hbm_bytes_per_s=(5300 * GB, survey()), link_bytes_per_s=(64 * GB, _MESH), clock_hz=(2.1e9, survey()),
    smem_bytes_per_core=(64 * KiB, rocm("LDS", but="beside it, 32 KiB of vector L1")), power_w=(750, survey()),
)  # fmt: skip

MI325X = _amd(
    "MI325X", cus=304,
    bf16_flops_per_s=(1307 * T, survey("304 CUs · 4 · 512 FLOPs a cycle at 2.1 GHz", but="the same tables round it to 1,300")),
    fp16_flops_per_s=(1307 * T, survey(but="the same tables round it to 1,300")),
    fp8_flops_per_s=(2610 * T, survey(but="twice 1,307 is 2,615")), int8_ops_per_s=(2600 * T, survey(but="twice 1,307 is 2,615")),
    hbm_bytes=(256 * GiB, rocm("256 GiB")),
    hbm_bytes_per_s=(6000 * GB, survey()), link_bytes_per_s=(64 * GB, _MESH), clock_hz=(2.1e9, survey()),
    smem_bytes_per_core=(64 * KiB, rocm("LDS", but="beside it, 32 KiB of vector L1")), power_w=(1000, survey()),
)  # fmt: skip

MI355X = _amd(
    "MI355X", cus=256,
    bf16_flops_per_s=(2500 * T, survey("256 CUs · 4 · 1,024 FLOPs a cycle at 2.4 GHz give 2,517", but="another of the same tables takes 2,300")),
    fp16_flops_per_s=(2500 * T, survey(but="another of the same tables takes 2,300")),
    fp8_flops_per_s=(5000 * T, survey()), int8_ops_per_s=(5000 * T, survey()), fp4_flops_per_s=(10100 * T, survey()),
    hbm_bytes=(288 * GiB, rocm("288 GiB")),
    hbm_bytes_per_s=(8000 * GB, survey()), link_bytes_per_s=(76.5 * GB, _MESH), clock_hz=(2.4e9, survey()),
    smem_bytes_per_core=(160 * KiB, rocm("LDS", but="beside it, 32 KiB of vector L1")), power_w=(1400, survey()),
)  # fmt: skip

GPUS = (V100, A100, H100, H200, B200, B300, GB200, GB300, MI300X, MI325X, MI355X)
