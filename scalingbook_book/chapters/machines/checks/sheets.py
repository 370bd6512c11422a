"""Can a reader take a data sheet apart? Factors, ridges, sweeps, domains, capacity."""

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
        hints=("How many chips share it?", "The figure is dense already."),
        mistakes=(
            Mistake(lambda: per_chip_figure(362e15, pieces=64), "This rack is of the second generation."),
            Mistake(
                lambda: per_chip_figure(362e15, pieces=144, sparse=True),
                "Nobody said that it counts sparsity.",
            ),
        ),
    ),
    Check(
        key="machines.sweep",
        title="Read it once",
        answer=lambda: rules.ChipRatios(chips.MI455X, FP8).hbm_read_time_s,
        unit="s",
        hints=("Bytes over bytes a second.", "432 GB and 23.3 TB/s."),
        mistakes=(
            Mistake(lambda: 432 * GiB / 23.3e12, "These are GB, not GiB."),
            Mistake(lambda: 432e9 / 19.6e12, "That rate is of January."),
        ),
    ),
    Check(
        key="machines.largest-batch",
        title="The largest batch",
        answer=lambda: "TPU 8t",
        choices=("GB300", "Rubin", "TPU 8t", "Trainium3"),
        hints=(
            "Divide each FP4 rate by the bytes a second of memory.",
            "Which has many FLOPs and little bandwidth?",
        ),
        mistakes=(
            Mistake("GB300", "1,875 is close. One is above.", slip="wrong-option"),
            Mistake("Rubin", "Its bandwidth grew, too.", slip="wrong-option"),
            Mistake("Trainium3", "Its FP4 is as fast as its fp8, so its ridge is low.", slip="wrong-option"),
        ),
    ),
    Check(
        key="machines.chips-for-k3",
        title="Chips that hold a model",
        answer=lambda: ceil(K3 / chips.MI455X.hbm_bytes),
        unit="chips",
        hints=("How many bytes is an element with its part of a scale?", "Round up."),
        mistakes=(
            Mistake(lambda: K3 / chips.MI455X.hbm_bytes, "A part of a chip holds nothing.", slip="rounding"),
            Mistake(
                lambda: ceil(2.78e12 / chips.MI455X.hbm_bytes),
                "Four bits, not eight.",
                slip="wrong-dtype-size",
            ),
            Mistake(lambda: ceil(K3 / chips.RUBIN.hbm_bytes), "MI455X has more memory than that."),
        ),
    ),
    Check(
        key="machines.tokens-across",
        title="Beyond the rack",
        answer=lambda: (
            chips.GB300.bf16_flops_per_s / (72 * chips.GB300.dcn_bytes_per_s)
            if chips.GB300.dcn_bytes_per_s
            else 0
        ),
        unit="tokens",
        difficulty=2,
        hints=(
            "Copies of the weights are whole racks: what is the bandwidth of a rack, and its rate?",
            "C/W of the cards: 72 chips send different parts, so each sends a 72nd.",
        ),
        mistakes=(
            Mistake(
                lambda: chips.GB300.bf16_flops_per_s / 1e11,
                "All cards of a rack send: each a part of the sum.",
                slip="one-for-total",
            ),
            Mistake(lambda: chips.GB300.bf16_flops_per_s / 9e11, "That is the way inside the rack."),
        ),
    ),
    Check(
        key="machines.desk",
        title="A token on a desk",
        answer=lambda: DESK,
        unit="s",
        hints=("Every weight is read once for a token.", "4.5 bits are 0.5625 bytes."),
        mistakes=(
            Mistake(lambda: 70e9 / 273e9, "That is for eight bits."),
            Mistake(lambda: 70e9 * 4 / 8 / 273e9, "Scales are read as well."),
        ),
    ),
    Check(
        key="machines.wafer-layer",
        title="What a layer waits for",
        answer=lambda: (1 / 2100 - weights_resident(140e9, chips.WSE3, steps=0, hop_s=0).read_s) / 80,
        unit="s",
        difficulty=2,
        hints=("How long is a token?", "Take off the reading, and share the rest among 80 layers."),
        mistakes=(
            Mistake(lambda: 1 / 2100, "That is a token, of 80 layers."),
            Mistake(
                lambda: weights_resident(140e9, chips.WSE3, steps=0, hop_s=0).read_s / 80,
                "That is the reading. What is the rest?",
            ),
        ),
    ),
    Check(
        key="machines.planes",
        title="Planes",
        answer=lambda: (4 * 128) ** 2 // 2,
        unit="end points",
        hints=(
            "A card in four parts leaves a switch with four times the ports.",
            "Two tiers: half of the square.",
        ),
        mistakes=(
            Mistake(lambda: 128**2 // 2, "That is without planes.", slip="factor-left-out"),
            Mistake(
                lambda: 4 * 128**2 // 2,
                "Ports grow by four; end points with their square.",
                slip="factor-left-out",
            ),
            Mistake(lambda: (4 * 128) ** 2, "Half of a leaf's ports go up.", slip="factor-two"),
        ),
    ),
    Check(
        key="machines.unseen-sheet",
        title="A sheet that you have not seen",
        answer=lambda: (
            per_chip_figure(POD_FP8, sparse=True, pieces=POD)
            / per_chip_figure(POD_LINKS, bidirectional=True, pieces=POD)
        ),
        difficulty=2,
        hints=(
            "Undo sparsity, both ways and the pod, in this order.",
            "The pod drops out of the ratio. What is left of the two factors of two?",
        ),
        mistakes=(
            Mistake(lambda: POD_FP8 / POD_LINKS / 2, "The links are printed both ways."),
            Mistake(lambda: 2 * POD_FP8 / POD_LINKS, "The rate counts sparsity."),
            Mistake(
                lambda: per_chip_figure(POD_FP8, sparse=True) / POD_READ,
                "That is the ridge. Which bytes leave the chip?",
            ),
        ),
    ),
    Check(
        key="machines.unseen-width",
        title="Its experts",
        answer=lambda: POD_FP8 / POD_LINKS / 2,
        unit="columns",
        difficulty=2,
        hints=("6 D F FLOPs against 3 D bytes.", "Half of the ratio of before."),
        mistakes=(
            Mistake(lambda: POD_FP8 / POD_LINKS, "6DF over 3D is 2F."),
            Mistake(
                lambda: 2 * POD_FP8 / POD_LINKS / 3,
                "Out in fp8, back in bf16: three bytes.",
                slip="wrong-dtype-size",
            ),
        ),
    ),
)
