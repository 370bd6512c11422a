"""What can one GPU do, what fits into it, and from which width or batch does a layer wait for the network?"""

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
        title="The peak at a lower clock",
        answer=_slowed,
        unit="FLOP/s",
        hints=(
            "SMs · Tensor Cores in each · FLOPs of one in a cycle · cycles in a second.",
            "The FLOPs of a cycle already count a multiplication and an addition each.",
        ),
        mistakes=(
            Mistake(2, "Twice too much: a multiply-add counted twice, or the sparse figure of a datasheet."),
            Mistake(0.25, "An SM has four Tensor Cores."),
            Mistake(lambda: _slowed(1.83e9), "That is the peak at 1.83 GHz, the clock of the datasheet."),
            Mistake(lambda: _slowed(1.98e9), "That is at the highest clock. This chip is held below it."),
        ),
        right="Right: three quarters of what the datasheet promises, and no line of code has changed.",
    ),
    Check(
        key="gpus.sm-bytes",
        title="What the SMs hold",
        answer=_in_the_sms,
        unit="B",
        rel_tol=0.01,
        hints=(
            "Per SM: 256 KiB of registers, and 256 KiB that L1 and shared memory divide between them.",
            "How many SMs does an H100 have?",
        ),
        mistakes=(
            Mistake(
                0.5, "That is one of the two, the registers or L1 with shared memory.", slip="term-left-out"
            ),
            Mistake(
                lambda: _in_the_sms() + (chips.H100.l2_bytes or 0),
                "The L2 is outside the SMs, shared by all of them.",
            ),
            Mistake(lambda: _in_the_sms(chips.B200), "That is with the 148 SMs of a B200."),
            Mistake(lambda: _in_the_sms() / (chips.H100.cores or 1), "That is one SM.", slip="one-for-total"),
        ),
        right="Right: more than the L2 holds, but in 132 pieces, each for its own SM alone.",
    ),
    Check(
        key="gpus.resident-warps",
        title="How many warps?",
        answer=lambda: _blocks(256) * 256 / _WARP,
        hints=(
            "How many bytes of registers does one thread take, and how many one block?",
            "A block is in the SM whole or not at all. How many warps are in one block?",
        ),
        mistakes=(
            Mistake(lambda: _blocks(_WARP), "So many warps would have registers. But blocks come whole."),
            Mistake(lambda: _blocks(256), "That is the number of blocks. How many warps has each?"),
            Mistake(lambda: 64, "That is the most that an SM can hold. The registers run out before."),
            Mistake(lambda: _blocks(256) * 256, "That is the number of threads. 32 of them make a warp."),
        ),
        right="Right: a quarter of the 64 that an SM could hold.",
    ),
    Check(
        key="gpus.vector-add",
        title="Adding two vectors",
        answer=_added_s,
        unit="s",
        hints=(
            "How many bytes are read and how many written for each of the numbers?",
            "Two arrays come, one goes, four bytes an element, at 3,350 GB/s.",
        ),
        mistakes=(
            Mistake(lambda: _added_s(arrays=2), "The sum is written as well."),
            Mistake(lambda: _added_s(1024), "That is for 1,024 numbers. Here there are 64 times as many."),
            Mistake(
                lambda: 65_536 / ((chips.H100.vector_flops_per_s or 0) / 2),
                "That is the time of the additions. The bytes take longer.",
            ),
        ),
        right="Right, as a bound. Starting a kernel takes longer than that.",
    ),
    Check(
        key="gpus.critical-batch",
        title="From which batch on?",
        answer=lambda: rules.matmul_critical_batch(4096, 8192, chips.B200),
        unit="tokens",
        difficulty=2,
        hints=(
            "The intensity of the product is 1 / (1/B + 1/D + 1/F). What must it equal?",
            "Solve for B: the ridge, divided by 1 - ridge · (1/D + 1/F).",
        ),
        mistakes=(
            Mistake(
                lambda: rules.ridge(chips.B200),
                "That is the ridge, the batch of a very wide layer. X and Y have bytes as well.",
            ),
            Mistake(
                lambda: rules.matmul_critical_batch(4096, 8192, chips.H100),
                "That is an H100, with its own rates of arithmetic and memory.",
            ),
            Mistake(
                lambda: rules.matmul_critical_batch(4096, 8192, chips.GB200),
                "That is with 2,500 TFLOPs/s, a GB200.",
            ),
        ),
        right="Right: a tenth more than the ridge, because this layer is not that wide.",
    ),
)


_TWO = Cluster.of(chips.B200, 16)
_C = chips.B200.bf16_flops_per_s


def _width(chip: Chip, Y: int) -> float:
    """The least F for tensor parallelism over Y chips of a node."""
    return limits.tensor_parallel(Cluster.of(chip, 8), Y).least


def _copied(chip: Chip = chips.H100, bytes_per_s: float | None = None) -> float:
    """Copying a layer's input out, over the forward pass of that layer, for a token of LLaMA-3 70B."""
    model = models.find("LLaMA-3 70B")
    flops = sum(w.flops_per_token for w in model.weights() if w.part != "unembedding") / model.L
    rate = bytes_per_s or chip.host_bytes_per_s or chip.pcie_bytes_per_s or 0
    return (BF16.bytes * model.D / rate) / (flops / chip.bf16_flops_per_s)


LAYERS = (
    Check(
        key="gpus.mesh-tensor-width",
        title="Two GPUs of a full mesh",
        answer=lambda: _width(chips.MI300X, 2),
        difficulty=2,
        hints=(
            "How many of a GPU's seven links lead to one certain other?",
            "Each has 4BDF/2 FLOPs. The network gathers 2BD bytes and later scatters 2BD; half of them move.",
        ),
        mistakes=(
            Mistake(1 / 7, "That is with all seven links. Six of them lead to GPUs that do not take part."),
            Mistake(lambda: _width(chips.H100, 2), "That is an H100, whose links all lead to a switch."),
            Mistake(2, "Half of the array is there already."),
        ),
        right="Right. On a full mesh it is the same width for two, four and eight GPUs.",
    ),
    Check(
        key="gpus.host-offload",
        title="Activations on the host",
        answer=_copied,
        difficulty=2,
        hints=(
            "The input of a layer has D elements for each token.",
            "A layer does two FLOPs per parameter and token: about 0.86 G parameters.",
        ),
        mistakes=(
            Mistake(
                lambda: _copied(bytes_per_s=450e9), "That is over NVLink-C2C. An H100 has PCIe, 63 GB/s."
            ),
            Mistake(1 / 80, "That is the whole model's arithmetic for one layer's input."),
            Mistake(0.5, "Bytes and FLOPs both have a factor of two here: bf16, and multiply-add."),
            Mistake(1 / 3, "That is with the backward pass. Here the copy has the forward pass to hide in."),
        ),
        right="Right: it hides easily, as long as nothing else uses the bus.",
    ),
    Check(
        key="gpus.two-node-fsdp",
        title="Data parallelism over two nodes",
        answer=lambda: limits.data_parallel(_TWO).least,
        unit="tokens",
        difficulty=2,
        hints=(
            "Per GPU: 8BDF/N FLOPs against 8DF bytes, of which a part is there already.",
            "Through the cards of a node comes half of the array. And over NVLink?",
            "Each GPU receives 7/8 of the array over NVLink: from its own node, or passed on by it.",
        ),
        mistakes=(
            Mistake(
                lambda: limits.data_parallel(_TWO).term("NVLink"),
                "That is NVLink's stage. It binds on H100; here the cards take longer.",
                slip="wrong-stage",
            ),
            Mistake(
                lambda: limits.data_parallel(Cluster.of(chips.H100, 16)).least,
                "That is two nodes of H100. A B200 calculates faster, with the same card.",
            ),
            Mistake(
                lambda: _C / 400e9,
                "That is for many nodes. With two, half of the array is there already.",
                slip="fraction-left-out",
            ),
            Mistake(
                lambda: _C / 50e9 / 2,
                "A node has eight cards, and each brings another part.",
                slip="one-for-total",
            ),
        ),
        right="Right: here the cards bind, where on H100 it was NVLink.",
    ),
    Check(
        key="gpus.two-node-tensor",
        title="Tensor parallelism over two nodes",
        answer=lambda: limits.tensor_parallel(_TWO, 16).least,
        difficulty=3,
        hints=(
            "4BDF / (16 C) of arithmetic; a gather and a scatter of 2BD bytes each.",
            "The network brings half of 2BD into a node, 400 GB/s. NVLink brings 7/8 of it to each GPU.",
            "Take the stage that lasts longer; F is 16 C times its seconds per byte.",
        ),
        mistakes=(
            Mistake(
                lambda: limits.tensor_parallel(_TWO, 16).term("NVLink"),
                "That is NVLink's stage. The cards' stage lasts longer.",
            ),
            Mistake(
                lambda: 15 * _C / 900e9, "That is one domain of 16. Half of what comes has one way more."
            ),
            Mistake(
                lambda: 16 * _C / 400e9, "That is for many nodes, where nearly nothing is there already."
            ),
            Mistake(lambda: 8 * _C / 800e9, "That is for eight GPUs: 16 share the arithmetic."),
        ),
        right="Right. A gated MLP has a third matrix for the same activations, and needs two thirds of it.",
    ),
)
