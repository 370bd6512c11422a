"""Checks of the exercises on one GPU: its rates, its memory, and the width that hides the network."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, roofline, rules
from scalingbook_lib.machines import Chip, Cluster, chips
from scalingbook_lib.steps import limits
from scalingbook_lib.units import BF16

_REGISTERS, _REGISTER_BYTES, _WARP = 96, 4, 32


def _slowed(hz: float = 1.4e9) -> float:
    """The peak of an H100 whose clock is held at `hz`."""
    return chips.H100.bf16_flops_per_s * hz / (chips.H100.clock_hz or 0)


def _in_the_sms(chip: chips.Chip = chips.H100) -> float:
    """Registers, and L1 with shared memory, of all SMs."""
    each = (chip.registers_bytes_per_core or 0) + (chip.smem_bytes_per_core or 0)
    return (chip.cores or 0) * each


def _blocks(threads: int) -> int:
    """Blocks of so many threads whose registers one SM of an H100 has at once."""
    return int((chips.H100.registers_bytes_per_core or 0) // (_REGISTERS * _REGISTER_BYTES * threads))


def _added_s(numbers: int = 65_536, arrays: int = 3) -> float:
    return roofline.operation(numbers, arrays * 4 * numbers, chips.H100).memory_s


CHIP = (
    Check(
        key="gpus.peak-at-clock",
        title="Peak FLOPs/s at a lower clock",
        answer=_slowed,
        unit="FLOP/s",
        hints=(
            "Multiply SMs · Tensor Cores per SM · FLOPs per cycle · clock.",
            "The 1,024 FLOPs per cycle already count a multiply-add as two FLOPs.",
        ),
        mistakes=(
            Mistake(
                2,
                "This is twice the peak: either a multiply-add was counted twice, or this is the sparse "
                "number of a datasheet.",
            ),
            Mistake(0.25, "An SM has four Tensor Cores, not one."),
            Mistake(lambda: _slowed(1.83e9), "This is the peak at 1.83 GHz, the clock of the datasheet."),
            Mistake(
                lambda: _slowed(1.98e9),
                "This is the peak at the highest clock, but this chip runs at 1.4 GHz.",
            ),
        ),
        right=(
            "Right: about three quarters of the peak in the datasheet, without a single change in the code."
        ),
    ),
    Check(
        key="gpus.sm-bytes",
        title="Registers and shared memory of all SMs",
        answer=_in_the_sms,
        unit="B",
        rel_tol=0.01,
        hints=(
            "Each SM has 256 KiB of registers, and 256 KiB that are divided between L1 and shared memory.",
            "How many SMs does an H100 have?",
        ),
        mistakes=(
            Mistake(
                0.5,
                "This is only one of the two: the registers, or L1 with shared memory.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: _in_the_sms() + (chips.H100.l2_bytes or 0),
                "This includes the L2, which is outside the SMs and shared by all of them.",
            ),
            Mistake(lambda: _in_the_sms(chips.B200), "This uses the 148 SMs of a B200. An H100 has 132."),
            Mistake(
                lambda: _in_the_sms() / (chips.H100.cores or 1),
                "This is the amount in one SM.",
                slip="one-for-total",
            ),
        ),
        right="Right: more than the L2 holds, but in 132 pieces, each of which serves only its own SM.",
    ),
    Check(
        key="gpus.resident-warps",
        title="Resident warps per SM",
        answer=lambda: _blocks(256) * 256 / _WARP,
        hints=(
            "How many bytes of registers does one thread need, and how many does one block need?",
            "A block fits completely or not at all. How many warps does one block have?",
        ),
        mistakes=(
            Mistake(
                lambda: _blocks(_WARP),
                "There are registers for that many warps, but a block fits completely or not at all.",
            ),
            Mistake(
                lambda: _blocks(256), "This is the number of blocks. How many warps does each of them have?"
            ),
            Mistake(lambda: 64, "This is the maximum for an SM, but the registers run out first."),
            Mistake(lambda: _blocks(256) * 256, "This is the number of threads. A warp has 32 of them."),
        ),
        right="Right: a quarter of the 64 warps that an SM can hold.",
    ),
    Check(
        key="gpus.vector-add",
        title="Adding two vectors",
        answer=_added_s,
        unit="s",
        hints=(
            "How many bytes are read and written for each element?",
            "Two arrays are read and one is written, with four bytes per element, at 3,350 GB/s.",
        ),
        mistakes=(
            Mistake(lambda: _added_s(arrays=2), "The sum has to be written as well."),
            Mistake(
                lambda: _added_s(1024),
                "This is the time for 1,024 elements. Here there are 64 times as many.",
            ),
            Mistake(
                lambda: 65_536 / ((chips.H100.vector_flops_per_s or 0) / 2),
                "This is the time of the additions. Moving the bytes takes longer.",
            ),
        ),
        right="Right, as a lower bound. Launching a kernel takes longer than that.",
    ),
    Check(
        key="gpus.critical-batch",
        title="Critical batch size on a B200",
        answer=lambda: rules.matmul_critical_batch(4096, 8192, chips.B200),
        unit="tokens",
        difficulty=2,
        hints=(
            "The arithmetic intensity of the matmul is 1 / (1/B + 1/D + 1/F). What does it have to equal?",
            "Solve for B. You get the ridge divided by 1 - ridge · (1/D + 1/F).",
        ),
        mistakes=(
            Mistake(
                lambda: rules.ridge(chips.B200),
                "This is the ridge, which is the critical batch size of a very "
                "wide layer. Count the bytes of X and Y too.",
            ),
            Mistake(
                lambda: rules.matmul_critical_batch(4096, 8192, chips.H100),
                "This is the result for an H100, which has different peaks.",
            ),
            Mistake(
                lambda: rules.matmul_critical_batch(4096, 8192, chips.GB200),
                "This uses 2,500 TFLOPs/s, the peak of a GB200.",
            ),
        ),
        right="Right: about a tenth more than the ridge, because this layer is not very wide.",
    ),
)


_TWO = Cluster.of(chips.B200, 16)
_C = chips.B200.bf16_flops_per_s


def _width(chip: Chip, Y: int) -> float:
    """The least F for tensor parallelism over Y chips of a node."""
    return limits.tensor_parallel(Cluster.of(chip, 8), Y).least


def _copied(chip: Chip = chips.H100, bytes_per_s: float | None = None) -> float:
    """Copying a layer's input out, over the forward pass of that layer, for a token of Llama 3 70B."""
    model = models.find("Llama 3 70B")
    flops = sum(w.flops_per_token for w in model.weights() if w.part != "unembedding") / model.L
    rate = bytes_per_s or chip.host_bytes_per_s or chip.pcie_bytes_per_s or 0
    return (BF16.bytes * model.D / rate) / (flops / chip.bf16_flops_per_s)


LAYERS = (
    Check(
        key="gpus.mesh-tensor-width",
        title="Tensor parallelism on a full mesh",
        answer=lambda: _width(chips.MI300X, 2),
        difficulty=2,
        hints=(
            "How many of a GPU's seven links lead to the one other GPU of the group?",
            "Each GPU performs 4BDF/2 FLOPs. 2BD bytes are gathered and "
            "2BD are reduce-scattered; half of them move.",
        ),
        mistakes=(
            Mistake(
                1 / 7, "This uses all seven links, but six of them lead to GPUs that are not in the group."
            ),
            Mistake(
                lambda: _width(chips.H100, 2),
                "This is the result for an H100, where all links lead to a switch.",
            ),
            Mistake(2, "Each GPU already has half of the array."),
        ),
        right="Right. On a full mesh it is the same width for two, four and eight GPUs.",
    ),
    Check(
        key="gpus.host-offload",
        title="Offloading activations to the host",
        answer=_copied,
        difficulty=2,
        hints=(
            "The input of a layer has D elements per token.",
            "A layer performs two FLOPs per parameter per token, and has about 0.86 billion parameters.",
        ),
        mistakes=(
            Mistake(
                lambda: _copied(bytes_per_s=450e9),
                "This uses the bandwidth of NVLink-C2C. An H100 has PCIe with 63 GB/s.",
            ),
            Mistake(1 / 80, "This divides by the compute of the whole model instead of one layer."),
            Mistake(0.5, "There is a factor of two in the bytes (bf16) and in the FLOPs (multiply-add)."),
            Mistake(
                1 / 3, "This includes the backward pass, but the copy has to be hidden in the forward pass."
            ),
        ),
        right="Right: it is easy to hide, as long as nothing else uses the bus.",
    ),
    Check(
        key="gpus.two-node-fsdp",
        title="FSDP over two nodes",
        answer=lambda: limits.data_parallel(_TWO).least,
        unit="tokens",
        difficulty=2,
        hints=(
            "Each GPU performs 8BDF/N FLOPs, and 8DF bytes are gathered, part of which it already has.",
            "Half of the array comes in through the NICs of a node. "
            "How much does each GPU receive over NVLink?",
            "Each GPU receives 7/8 of the array over NVLink: what its "
            "neighbors hold and what they have received.",
        ),
        mistakes=(
            Mistake(
                lambda: limits.data_parallel(_TWO).term("NVLink"),
                "This is the NVLink stage. It is the bottleneck on H100, but here the NICs take longer.",
                slip="wrong-stage",
            ),
            Mistake(
                lambda: limits.data_parallel(Cluster.of(chips.H100, 16)).least,
                "This is the result for two nodes of H100. A B200 has faster compute and the same NIC.",
            ),
            Mistake(
                lambda: _C / 400e9,
                "This is the limit for many nodes. With two, a node already has half of the array.",
                slip="fraction-left-out",
            ),
            Mistake(
                lambda: _C / 50e9 / 2,
                "A node has eight NICs, and each of them brings in a different part.",
                slip="one-for-total",
            ),
        ),
        right="Right: here the NICs are the bottleneck, whereas on H100 it was NVLink.",
    ),
    Check(
        key="gpus.two-node-tensor",
        title="Tensor parallelism over two nodes",
        answer=lambda: limits.tensor_parallel(_TWO, 16).least,
        difficulty=3,
        hints=(
            "The compute takes 4BDF / (16 C), and there are an "
            "AllGather and a ReduceScatter of 2BD bytes each.",
            "The NICs bring half of 2BD into a node at 400 GB/s. NVLink brings 7/8 of it to each GPU.",
            "Take the slower stage. F is 16 C times its seconds per byte.",
        ),
        mistakes=(
            Mistake(
                lambda: limits.tensor_parallel(_TWO, 16).term("NVLink"),
                "This is the NVLink stage. The stage of the NICs takes longer.",
            ),
            Mistake(
                lambda: 15 * _C / 900e9, "This is the limit of one domain of 16 GPUs, but here there are two."
            ),
            Mistake(
                lambda: 16 * _C / 400e9,
                "This is the limit for many nodes. With two, a node already has half of the array.",
            ),
            Mistake(lambda: 8 * _C / 800e9, "This is for eight GPUs, but 16 GPUs share the compute."),
        ),
        right=(
            "Right. A gated MLP has a third matrix for the same "
            "activations, so it needs only two thirds of this width."
        ),
    ),
)
