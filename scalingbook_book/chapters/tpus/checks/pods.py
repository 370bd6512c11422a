"""Checks of the exercises on chips and hosts: hops, checkpoints, PCIe, and moving the work to the data."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import rules
from scalingbook_lib.machines import Slice, chips

_POD = Slice.of(chips.V5E, "8x16")
_CORNER = chips.V6E  # of a slice of 8 × 8, no axis of which wraps
_MESSAGE = 2 * 8 * 128 * 8192
_ARRAY = 131_072**2  # int8: a byte an element
_CHECKPOINT = 512e9
_PCIE = rules.ridge(chips.V6E, bytes_per_s=chips.V6E.pcie_bytes_per_s)


def _across(paths: int | None = None) -> float:
    route = _POD.route((0, 0), (7, 8))
    return (route.message(_MESSAGE, paths=paths) if paths else route.message(_MESSAGE)).total_s


def _corner() -> float:
    """All but a chip's own share enters the corner by its two links."""
    return _ARRAY * 63 / 64 / (2 * _CORNER.link_bytes_per_s)


def _from_hosts() -> float:
    return _ARRAY / 64 / (_CORNER.pcie_bytes_per_s or 0)


PODS = (
    Check(
        key="tpus.corner-to-corner",
        title="From corner to corner",
        answer=_across,
        unit="s",
        difficulty=2,
        rel_tol=0.003,
        hints=(
            "The axis of 16 is a ring, and the axis of 8 is a line. How many hops is it along each?",
            "On a ring of 16, chip 8 is equally far in both directions. Over which links can it go?",
            "The first byte takes all hops, and the others follow over all paths. Add the two times.",
        ),
        mistakes=(
            Mistake(
                lambda: _across(1), "That is over a single path, but there are more.", slip="one-direction"
            ),
            Mistake(
                lambda: _across(2), "That is over two paths. But there are two directions around the ring."
            ),
            Mistake(
                lambda: _across() - 15e-6,
                "The hops are missing: the first byte has to take all of them.",
                slip="hops-left-out",
            ),
            Mistake(lambda: _across() + 7e-6, "On the ring of 16, no chip is more than eight hops away."),
            Mistake(lambda: _across() - 6e-6, "The axis of 8 is a line, not a ring.", slip="ring-for-line"),
        ),
    ),
    Check(
        key="tpus.mean-hops",
        title="The average distance",
        answer=lambda: Slice.of(chips.V5E, "8x16").mean_hops,
        unit="hops",
        difficulty=2,
        rel_tol=0.005,
        hints=(
            "The distances along the two axes add up, and so do their averages.",
            "The axis of 16 is a ring: the distances are 0, 1, 2, ..., 8, ..., 2, 1.",
            "The axis of 8 is a line: average |i − j| over all 64 pairs.",
        ),
        mistakes=(
            Mistake(lambda: 2.0 + 4.0, "On v5e, an axis of 8 does not wrap around.", slip="ring-for-line"),
            Mistake(lambda: 2.625 + 255 / 48, "On v5e, an axis of 16 wraps around.", slip="line-for-ring"),
            Mistake(128 / 127, "That leaves out the pairs of a chip with itself, which count here."),
        ),
    ),
    Check(
        key="tpus.checkpoint-time",
        title="Writing a checkpoint over PCIe and DCN",
        answer=lambda: _CHECKPOINT / 256 / (chips.V5E.dcn_bytes_per_s or 0),
        unit="s",
        difficulty=2,
        hints=(
            "What does one host have to send, and which of its connections is the slowest?",
            "Two 100 Gbit/s NICs carry 25 GB/s, which eight chips share.",
        ),
        mistakes=(
            Mistake(
                lambda: _CHECKPOINT / 256 / (chips.V5E.pcie_bytes_per_s or 1),
                "That is PCIe alone. The network beyond the host is slower.",
            ),
            Mistake(0.5, "Two 100 Gbit/s NICs carry 25 GB/s out of a host. Your answer uses twice that."),
            Mistake(
                32.0,
                "That is for one host sending everything. There are 32 hosts, and all send at the same time.",
            ),
        ),
    ),
    Check(
        key="tpus.pcie-width",
        title="Everything over PCIe",
        answer=lambda: 1.25 * _PCIE,
        difficulty=3,
        hints=(
            "The intensity grows with the batch toward a limit. Let B go to infinity.",
            "The limit is D · F / (D + F), with F = 4D. It has to reach the ridge point of PCIe.",
        ),
        mistakes=(
            Mistake(
                lambda: _PCIE,
                "That is the batch if only the weights moved. Activations cross PCIe too.",
                slip="factor-left-out",
            ),
            Mistake(
                lambda: 0.8 * _PCIE,
                "The intensity approaches 0.8 D, so D is the ridge point divided by 0.8.",
                slip="inverted-ratio",
            ),
            Mistake(lambda: 2 * _PCIE, "That is for a square W, but here F = 4D."),
        ),
        right=(
            "Right: in a narrower layer, no batch is large enough to keep the chip busy. Check every "
            "assumption against the answer that it leads to."
        ),
    ),
    Check(
        key="tpus.to-one-chip",
        title="Moving all data to one chip",
        answer=_corner,
        unit="s",
        rel_tol=0.005,
        difficulty=3,
        hints=(
            (
                "How long does each stage take alone: PCIe of all chips, the links into the corner, "
                "HBM, and the compute?"
            ),
            (
                "A corner of a slice without wraparound links has two links, and all but a "
                "sixty-fourth of the array comes in over them."
            ),
        ),
        mistakes=(
            Mistake(_from_hosts, "PCIe works on all 64 chips at once. Another stage takes longer."),
            Mistake(2.0, "Data comes in over both links of the corner."),
            Mistake(0.5, "The corner has only two links, because no axis of an 8 × 8 slice is a ring."),
            Mistake(64 / 63, "The part of the corner chip itself crosses no link.", slip="fraction-left-out"),
            Mistake(1 / 0.9, "That is at 90% of the documented rate of a link."),
        ),
    ),
    Check(
        key="tpus.work-to-data",
        title="Moving the computation to the data",
        answer=lambda: _corner() / _from_hosts(),
        difficulty=3,
        hints=(
            "What has to cross the links now, and how many bytes is that?",
            "Every chip reads its own part from its host. Which stage is the slowest now?",
        ),
        mistakes=(
            Mistake(lambda: _from_hosts() / _corner(), "That is the inverse."),
            Mistake(64.0, "The 64 chips now share HBM reads and compute, but neither is the slowest stage."),
            Mistake(
                lambda: _corner() / (_ARRAY / _CORNER.hbm_bytes_per_s),
                "Each chip reads only its own part from HBM. Which stage is the slowest now?",
            ),
        ),
        right="Right: two megabytes travel between chips instead of sixteen gigabytes.",
    ),
)
