"""What do tiles, links and hosts limit? Checks of the rooflines chapter beyond one memory."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP32


def _tile() -> roofline.TiledMatmul:
    return roofline.tiled_matmul(8192, 8192, 8192, chips.V6E, rows=1121, columns=1121, depth=512)


def _scattered_in_fp32() -> float:
    """The width from which a product split over a ring of sixteen hides its sum: twice that of bf16."""
    in_bf16 = roofline.break_even_contraction(chips.V5P, chips.V5P.axis(16), keep_sharded=True)
    return in_bf16 * FP32.bytes / BF16.bytes


def _fused(B: int = 1024, D: int = 2048, F: int = 8192) -> float:
    """Bytes of two separate matmuls over the bytes of one that never writes its hidden array."""
    apart = 2 * BF16.bytes * (B * D + D * F + B * F)  # both: D × F weights, a narrow array and a wide one
    together = BF16.bytes * (B * D + 2 * D * F + B * D)
    return apart / together


MACHINES = (
    Check(
        key="rooflines.tile-in-vmem",
        title="Does the tile fit?",
        answer=lambda: _tile().vmem_bytes,
        unit="B",
        difficulty=2,
        hints=(
            "Three things are in VMEM: a tile of X, a tile of W, and the sums.",
            "The two input tiles are there twice, because of double buffering. The sums are fp32.",
        ),
        mistakes=(
            Mistake(
                lambda: 2 * 2 * 1121 * 512 + 4 * 1121**2,
                "One buffer for each input: nothing could be copied while it is used.",
            ),
            Mistake(
                lambda: 4 * 2 * 1121 * 512 + 2 * 1121**2, "The accumulator is kept in fp32, four bytes a sum."
            ),
        ),
        right="Right: a small part of the 128 MiB, so much larger tiles fit.",
    ),
    Check(
        key="rooflines.decoding-share",
        title="Thirty-two conversations",
        answer=lambda: roofline.matmul(32, 8192, 28672, chips.V6E).attained_fraction,
        difficulty=2,
        hints=(
            "Each conversation adds one token to the batch of a decoding step.",
            "The share of the peak is intensity over ridge.",
        ),
        mistakes=(
            Mistake(
                lambda: 32 / rules.ridge(chips.V5E),
                "That is the ridge of a v5e. A v6e needs more.",
                slip="wrong-chip",
            ),
            Mistake(
                100, "Write a share between 0 and 1, or a number followed by %.", slip="percent-for-share"
            ),
        ),
        right="Right. The other nineteen twentieths of the arithmetic units wait.",
    ),
    Check(
        key="rooflines.split-contraction",
        title="Two chips, and the sum may stay split",
        answer=lambda: roofline.break_even_contraction(chips.V5P, chips.V5P.axis(2), keep_sharded=True),
        difficulty=2,
        hints=(
            "Each chip does B · D · F FLOPs and sends half of its partial sum, in bf16.",
            "B · D · F / C against 2 · (B · F / 2) / W1: solve for D.",
        ),
        mistakes=(
            Mistake(2, "That is the threshold when both chips need the whole sum.", slip="two-passes"),
            Mistake(
                0.5,
                "The two chips are joined by one link: each way it carries W1, not 2 W1.",
                slip="both-directions",
            ),
        ),
        right="Right: C over the one-way rate of the link.",
    ),
    Check(
        key="rooflines.latency-size",
        title="How small is too small?",
        answer=lambda: roofline.bytes_in_flight(chips.V5P.hbm_bytes_per_s, 1e-6),
        unit="B",
        difficulty=2,
        hints=("Below which size is bytes/W less than a microsecond?", "Rate times latency."),
        mistakes=(
            Mistake(lambda: roofline.bytes_in_flight(chips.V5E.hbm_bytes_per_s, 1e-6), "That is a v5e."),
        ),
        right="Right. Smaller copies all take about a microsecond.",
    ),
    Check(
        key="rooflines.host-weights",
        title="Weights that stay on the host",
        answer=lambda: rules.ridge(chips.V5E, bytes_per_s=chips.V5E.pcie_bytes_per_s),
        unit="tokens",
        difficulty=2,
        hints=(
            "Only the weights cross PCIe, two bytes each, and each does 2B FLOPs.",
            "So the intensity over PCIe is B. What is the ridge?",
        ),
        mistakes=(
            Mistake(2, "Two bytes a weight, and two FLOPs a weight for each token: the twos cancel."),
            Mistake(lambda: rules.ridge(chips.V5E), "That is the ridge against HBM."),
        ),
        right="Right. Training batches are that large; decoding batches are not.",
    ),
    Check(
        key="rooflines.needed-bandwidth",
        title="A better memory for a v6e",
        answer=lambda: chips.V6E.bf16_flops_per_s / 240,
        unit="B/s",
        difficulty=3,
        hints=("Which ridge makes 240 tokens enough?", "The ridge is C/W: solve for W."),
        mistakes=(
            Mistake(lambda: chips.V6E.hbm_bytes_per_s, "That is what it has. It needs more."),
            Mistake(2, "In bf16 the intensity of a wide matmul is B, not 2B.", slip="factor-two-flops"),
        ),
        right="Right: 2.3 times the memory bandwidth that a v6e has.",
    ),
    Check(
        key="rooflines.split-sixteen",
        title="Splitting over sixteen",
        answer=_scattered_in_fp32,
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "The sum is a reduce-scatter: each chip takes in 1 - 1/16 of 4BF bytes, over both directions.",
            "Each chip does 2BDF/16 FLOPs. Solve for D.",
        ),
        mistakes=(
            Mistake(
                16 / 15,
                "That leaves out the (1 - 1/16): a chip need not receive what it has.",
                slip="fraction-left-out",
            ),
            Mistake(0.5, "That is for sums in bf16. Here they travel in fp32.", slip="wrong-dtype-size"),
            Mistake(2, "One pass and two links: is either counted otherwise?", slip="one-direction"),
        ),
        right="Right: no layer is that wide. A contraction split over many chips is network-bound.",
    ),
    Check(
        key="rooflines.fused-layers",
        title="Keep the hidden layer on the die",
        answer=_fused,
        difficulty=3,
        hints=(
            "Unfused: read X, W1, write H; read H, W2, write Y.",
            "Fused: H is neither written nor read. The FLOPs are the same, "
            "so the intensities compare as the bytes do.",
        ),
        mistakes=(
            Mistake(lambda: 1 / _fused(), "That is the inverse: fewer bytes, higher intensity."),
            Mistake(2, "The weights have to be read either way."),
        ),
        right="Right: the FLOPs stay, the bytes of the hidden array go.",
    ),
)
