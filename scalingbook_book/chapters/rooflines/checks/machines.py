"""Checks of the exercises on tiles, links, hosts and latency."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP32


def _tile() -> roofline.TiledMatmul:
    return roofline.tiled_matmul(8192, 8192, 8192, chips.V6E, rows=1121, columns=1121, depth=512)


def _scattered_in_fp32() -> float:
    """Least D at which a ReduceScatter of fp32 partial sums over 16 chips is hidden: twice that of bf16."""
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
            "VMEM holds three things: a tile of X, a tile of W, and the accumulators.",
            "It holds both input tiles twice, because of double buffering. The accumulators are in fp32.",
        ),
        mistakes=(
            Mistake(
                lambda: 2 * 2 * 1121 * 512 + 4 * 1121**2,
                "With one buffer per input, nothing could be copied while it is in use. There are two.",
            ),
            Mistake(
                lambda: 4 * 2 * 1121 * 512 + 2 * 1121**2,
                "The accumulators are in fp32, which takes four bytes each.",
            ),
        ),
        right="Right. That is a small part of the 128 MiB, so much larger tiles would fit too.",
    ),
    Check(
        key="rooflines.decoding-share",
        title="Decode with 32 sequences",
        answer=lambda: roofline.matmul(32, 8192, 28672, chips.V6E).attained_fraction,
        difficulty=2,
        hints=(
            "Each sequence adds one row to the batch of a decode step.",
            "The attained fraction of the peak is the intensity over the ridge.",
        ),
        mistakes=(
            Mistake(
                lambda: 32 / rules.ridge(chips.V5E),
                "That uses the ridge of a v5e. The ridge of a v6e is higher.",
                slip="wrong-chip",
            ),
            Mistake(
                100, "Write a fraction between 0 and 1, or a number followed by %.", slip="percent-for-share"
            ),
        ),
        right="Right. The matrix units wait for the other 94% of the time.",
    ),
    Check(
        key="rooflines.split-contraction",
        title="ReduceScatter over two chips",
        answer=lambda: roofline.break_even_contraction(chips.V5P, chips.V5P.axis(2), keep_sharded=True),
        difficulty=2,
        hints=(
            "Each chip performs B · D · F FLOPs and sends half of its partial sums, in bf16.",
            "Set B · D · F / C equal to 2 · (B · F / 2) / W1, and solve for D.",
        ),
        mistakes=(
            Mistake(
                2,
                "That is the threshold if both chips need the whole sum, as after an AllReduce.",
                slip="two-passes",
            ),
            Mistake(
                0.5,
                "The two chips are connected by one link, which carries W1 in each direction, not 2 W1.",
                slip="both-directions",
            ),
        ),
        right="Right. It is C over the bandwidth of the link in one direction.",
    ),
    Check(
        key="rooflines.latency-size",
        title="Bandwidth or latency: how small is too small?",
        answer=lambda: roofline.bytes_in_flight(chips.V5P.hbm_bytes_per_s, 1e-6),
        unit="B",
        difficulty=2,
        hints=(
            "Below which size is bytes/W less than a microsecond?",
            "Multiply the bandwidth by the latency.",
        ),
        mistakes=(
            Mistake(
                lambda: roofline.bytes_in_flight(chips.V5E.hbm_bytes_per_s, 1e-6),
                "That is the size for a v5e.",
            ),
        ),
        right="Right. Any much smaller copy takes about a microsecond.",
    ),
    Check(
        key="rooflines.host-weights",
        title="Weights offloaded to the host",
        answer=lambda: rules.ridge(chips.V5E, bytes_per_s=chips.V5E.pcie_bytes_per_s),
        unit="tokens",
        difficulty=2,
        hints=(
            "Only the weights cross PCIe. Each takes two bytes and is used for 2B FLOPs.",
            "So the intensity with respect to PCIe is B. What is the ridge?",
        ),
        mistakes=(
            Mistake(
                2, "A weight takes two bytes, and each token takes two FLOPs per weight, so the twos cancel."
            ),
            Mistake(
                lambda: rules.ridge(chips.V5E),
                "That is the ridge with respect to HBM. Here the weights come over PCIe.",
            ),
        ),
        right="Right. A training step can have that many tokens per replica. A decode step does not.",
    ),
    Check(
        key="rooflines.needed-bandwidth",
        title="A v6e with faster memory",
        answer=lambda: chips.V6E.bf16_flops_per_s / 240,
        unit="B/s",
        difficulty=3,
        hints=("For which ridge are 240 tokens enough?", "The ridge is C/W. Solve for W."),
        mistakes=(
            Mistake(
                lambda: chips.V6E.hbm_bytes_per_s, "That is the bandwidth of a v6e as it is. It needs more."
            ),
            Mistake(2, "In bf16 the intensity of a wide matmul is B, not 2B.", slip="factor-two-flops"),
        ),
        right="Right. That is 2.3 times the memory bandwidth of a v6e.",
    ),
    Check(
        key="rooflines.split-sixteen",
        title="ReduceScatter over a ring of sixteen",
        answer=_scattered_in_fp32,
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "In the ReduceScatter, each chip receives 1 - 1/16 of 4BF bytes, from both directions together.",
            "Each chip performs 2BDF/16 FLOPs. Set the two times equal and solve for D.",
        ),
        mistakes=(
            Mistake(
                16 / 15,
                "That leaves out the (1 - 1/16). A chip does not have to receive what it already has.",
                slip="fraction-left-out",
            ),
            Mistake(
                0.5, "That is for partial sums in bf16. Here they are sent in fp32.", slip="wrong-dtype-size"
            ),
            Mistake(
                2,
                "A ReduceScatter makes one pass, and a chip receives over two links. Check both factors.",
                slip="one-direction",
            ),
        ),
        right="Right. No layer is that wide: sharded over many chips, the contraction is network-bound.",
    ),
    Check(
        key="rooflines.fused-layers",
        title="A fused feed-forward layer",
        answer=_fused,
        difficulty=3,
        hints=(
            "The two operations read X and W1 and write H, and then read H and W2 and write Y.",
            "The fused kernel neither writes nor reads H. The FLOPs are the same, so the ratio of the "
            "intensities is the inverse ratio of the bytes.",
        ),
        mistakes=(
            Mistake(lambda: 1 / _fused(), "That is the inverse. Fewer bytes make the intensity higher."),
            Mistake(
                2,
                "The fused kernel does not save half of the bytes, because it still has to read the weights.",
            ),
        ),
        right="Right. The FLOPs stay the same, and the bytes of the hidden array are saved.",
    ),
)
