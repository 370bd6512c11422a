"""Exercises on datasheets: factors of two, ridge points, HBM read times, domains, capacity."""

from math import ceil

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import rules
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.datasheet import per_chip_figure, weights_resident
from scalingbook_lib.units import FP8, GiB

K3 = 2.78e12 * 4.25 / 8  # bytes of Kimi K3 in MXFP4
DESK = 70e9 * 4.5 / 8 / 273e9
POD, POD_FP8, POD_LINKS, POD_READ = 512, 4.6e18, 1.64e15, 6.2e15

CHECKS = (
    Check(
        key="machines.rack",
        title="From a rack to a chip",
        answer=lambda: per_chip_figure(362e15, pieces=144),
        unit="FLOPs/s",
        hints=("How many chips does the quoted number cover?", "The rate is already dense."),
        mistakes=(
            Mistake(
                lambda: per_chip_figure(362e15, pieces=64),
                "You divided by 64 chips. This UltraServer has 144.",
            ),
            Mistake(
                lambda: per_chip_figure(362e15, pieces=144, sparse=True),
                "You halved it for sparsity, but the datasheet says that the rate is dense.",
            ),
        ),
    ),
    Check(
        key="machines.sweep",
        title="HBM read time",
        answer=lambda: rules.ChipRatios(chips.MI455X, FP8).hbm_read_time_s,
        unit="s",
        hints=("Divide bytes by bytes per second.", "432 GB over 23.3 TB/s."),
        mistakes=(
            Mistake(lambda: 432 * GiB / 23.3e12, "You used GiB. The memory is given in GB."),
            Mistake(
                lambda: 432e9 / 19.6e12,
                "You used 19.6 TB/s, the bandwidth that was announced in January. The current number is "
                "23.3 TB/s.",
            ),
        ),
    ),
    Check(
        key="machines.largest-batch",
        title="The largest critical batch size",
        answer=lambda: "TPU 8t",
        choices=("GB300", "Rubin", "TPU 8t", "Trainium3"),
        hints=(
            "Divide each FP4 rate by the memory bandwidth.",
            "Which chip has a high rate and a low bandwidth?",
        ),
        mistakes=(
            Mistake(
                "GB300", "Its 1,875 FLOPs per byte are close, but one chip has more.", slip="wrong-option"
            ),
            Mistake(
                "Rubin",
                "Rubin has the highest rate, but by far the highest bandwidth, too.",
                slip="wrong-option",
            ),
            Mistake(
                "Trainium3",
                "Trainium3 is no faster in FP4 than in fp8, so its ridge point is low.",
                slip="wrong-option",
            ),
        ),
    ),
    Check(
        key="machines.chips-for-k3",
        title="Chips that hold a model",
        answer=lambda: ceil(K3 / chips.MI455X.hbm_bytes),
        unit="chips",
        hints=("How many bytes does a parameter of 4.25 bits take?", "Round up to whole chips."),
        mistakes=(
            Mistake(
                lambda: K3 / chips.MI455X.hbm_bytes, "Round up: there are only whole chips.", slip="rounding"
            ),
            Mistake(
                lambda: ceil(2.78e12 / chips.MI455X.hbm_bytes),
                "You used eight bits per parameter. MXFP4 takes 4.25.",
                slip="wrong-dtype-size",
            ),
            Mistake(
                lambda: ceil(K3 / chips.RUBIN.hbm_bytes), "That is for 288 GB per chip. An MI455X has 432."
            ),
        ),
    ),
    Check(
        key="machines.tokens-across",
        title="Data parallelism between racks",
        answer=lambda: (
            chips.GB300.bf16_flops_per_s / (72 * chips.GB300.dcn_bytes_per_s)
            if chips.GB300.dcn_bytes_per_s
            else 0
        ),
        unit="tokens",
        difficulty=2,
        hints=(
            "Each rack is one replica. What are the compute rate and the network bandwidth of a whole rack?",
            "The 72 NICs of a rack send different parts of the gradients, so each sends one 72nd.",
        ),
        mistakes=(
            Mistake(
                lambda: chips.GB300.bf16_flops_per_s / 1e11,
                "All 72 NICs of a rack send at the same time, each a part of the gradients.",
                slip="one-for-total",
            ),
            Mistake(
                lambda: chips.GB300.bf16_flops_per_s / 9e11,
                "You used the bandwidth inside the rack. Between racks, the NICs count.",
            ),
        ),
    ),
    Check(
        key="machines.desk",
        title="One token on a desktop machine",
        answer=lambda: DESK,
        unit="s",
        hints=("Every weight is read once per token.", "4.5 bits are 0.5625 bytes."),
        mistakes=(
            Mistake(lambda: 70e9 / 273e9, "That is for eight bits per parameter. Here they take 4.5."),
            Mistake(
                lambda: 70e9 * 4 / 8 / 273e9,
                "You used four bits. The scales have to be read as well, so a parameter takes 4.5 bits.",
            ),
        ),
    ),
    Check(
        key="machines.wafer-layer",
        title="The latency of a layer on wafers",
        answer=lambda: (1 / 2100 - weights_resident(140e9, chips.WSE3, steps=0, hop_s=0).read_s) / 80,
        unit="s",
        difficulty=2,
        hints=(
            "How long does one token take?",
            "Subtract the time to read the weights, and divide the rest by 80 layers.",
        ),
        mistakes=(
            Mistake(lambda: 1 / 2100, "That is the time of a whole token, which passes through 80 layers."),
            Mistake(
                lambda: weights_resident(140e9, chips.WSE3, steps=0, hop_s=0).read_s / 80,
                "That is the time per layer to read the weights. How long does the rest take?",
            ),
        ),
    ),
    Check(
        key="machines.planes",
        title="A multiplane network",
        answer=lambda: (4 * 128) ** 2 // 2,
        unit="endpoints",
        hints=(
            "At a quarter of the rate, a switch has four times as many ports.",
            "Two tiers connect half the square of the number of ports.",
        ),
        mistakes=(
            Mistake(lambda: 128**2 // 2, "That is the number without planes.", slip="factor-left-out"),
            Mistake(
                lambda: 4 * 128**2 // 2,
                "There are four times as many ports, and the number of endpoints grows with their square.",
                slip="factor-left-out",
            ),
            Mistake(
                lambda: (4 * 128) ** 2,
                "Half the ports of each leaf switch go up to the second tier.",
                slip="factor-two",
            ),
        ),
    ),
    Check(
        key="machines.unseen-sheet",
        title="A datasheet that you have not seen",
        answer=lambda: (
            per_chip_figure(POD_FP8, sparse=True, pieces=POD)
            / per_chip_figure(POD_LINKS, bidirectional=True, pieces=POD)
        ),
        difficulty=2,
        hints=(
            "Undo three things: sparsity, the two directions, and the pod.",
            "In the ratio, the size of the pod cancels. What happens to the two factors of two?",
        ),
        mistakes=(
            Mistake(
                lambda: POD_FP8 / POD_LINKS / 2,
                "The link bandwidth is quoted with both directions added up. Halve it, too.",
            ),
            Mistake(lambda: 2 * POD_FP8 / POD_LINKS, "The quoted rate assumes sparsity. Halve it, too."),
            Mistake(
                lambda: per_chip_figure(POD_FP8, sparse=True) / POD_READ,
                "That is the ridge point. Which bandwidth applies to the bytes that leave the chip?",
            ),
        ),
    ),
    Check(
        key="machines.unseen-width",
        title="How wide do its experts have to be?",
        answer=lambda: POD_FP8 / POD_LINKS / 2,
        unit="columns",
        difficulty=2,
        hints=("Compare 6 D F FLOPs with 3 D bytes.", "It is half of the ratio from the previous exercise."),
        mistakes=(
            Mistake(lambda: POD_FP8 / POD_LINKS, "6 D F over 3 D is 2 F, so the width is half of the ratio."),
            Mistake(
                lambda: 2 * POD_FP8 / POD_LINKS / 3,
                "Dispatch is in fp8 and combine in bf16, which is three bytes together.",
                slip="wrong-dtype-size",
            ),
        ),
    ),
)
