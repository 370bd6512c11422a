"""How far and how fast between chips and hosts: hops, checkpoints, PCIe, and moving the work to the data."""

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
            "The axis of 16 closes into a ring, and the axis of 8 does not: how many hops is it?",
            "Place 8 of a ring of 16 is as far in both directions. Which links of the chip lead nearer?",
            "The first byte needs all hops, and the others follow at the rate of all ways: add the two.",
        ),
        mistakes=(
            Mistake(lambda: _across(1), "That is over one way, and there are more.", slip="one-direction"),
            Mistake(lambda: _across(2), "That is over two ways. The ring can be left in both directions."),
            Mistake(
                lambda: _across() - 15e-6,
                "The hops are missing: the first byte needs all of them.",
                slip="hops-left-out",
            ),
            Mistake(lambda: _across() + 7e-6, "On the ring of 16, place 8 is no farther than eight hops."),
            Mistake(
                lambda: _across() - 6e-6, "The axis of 8 does not close into a ring.", slip="ring-for-line"
            ),
        ),
    ),
    Check(
        key="tpus.mean-hops",
        title="The mean distance",
        answer=lambda: Slice.of(chips.V5E, "8x16").mean_hops,
        unit="hops",
        difficulty=2,
        rel_tol=0.005,
        hints=(
            "Distances along the two axes add, so their means do.",
            "The axis of 16 is a ring: the distances are 0, 1, 2, ..., 8, ..., 2, 1.",
            "The axis of 8 is a line: average |i − j| over all 64 pairs.",
        ),
        mistakes=(
            Mistake(lambda: 2.0 + 4.0, "The axis of 8 does not wrap on v5e.", slip="ring-for-line"),
            Mistake(lambda: 2.625 + 255 / 48, "The axis of 16 wraps on v5e.", slip="line-for-ring"),
            Mistake(128 / 127, "That leaves out the pairs of a chip with itself, which count here."),
        ),
    ),
    Check(
        key="tpus.checkpoint-time",
        title="A checkpoint leaves the slice",
        answer=lambda: _CHECKPOINT / 256 / (chips.V5E.dcn_bytes_per_s or 0),
        unit="s",
        difficulty=2,
        hints=(
            "What does one host have to send, and over which link is it slowest?",
            "Two links of 100 Gbit/s are 25 gigabytes a second, for eight chips.",
        ),
        mistakes=(
            Mistake(
                lambda: _CHECKPOINT / 256 / (chips.V5E.pcie_bytes_per_s or 1),
                "That is PCIe alone. The network beyond the host is slower.",
            ),
            Mistake(0.5, "Two cards of 100 Gbit/s are 25 GB/s out of a host; that is with twice as much."),
            Mistake(32.0, "That is one host sending all of it; there are 32 hosts, which send at once."),
        ),
    ),
    Check(
        key="tpus.pcie-width",
        title="Everything over PCIe",
        answer=lambda: 1.25 * _PCIE,
        difficulty=3,
        hints=(
            "Intensity grows with the batch towards a limit. Let B go to infinity.",
            "The limit is D · F / (D + F), with F = 4D. It has to reach the ridge of PCIe.",
        ),
        mistakes=(
            Mistake(
                lambda: _PCIE,
                "That is the batch if only the weights moved. Activations cross PCIe too.",
                slip="factor-left-out",
            ),
            Mistake(
                lambda: 0.8 * _PCIE,
                "The limit of the intensity is 0.8 D, so D is the ridge divided by 0.8.",
                slip="inverted-ratio",
            ),
            Mistake(lambda: 2 * _PCIE, "That is for a square W; here F = 4D."),
        ),
        right=(
            "Right: below this width no batch, however large, keeps the chip busy. Check every "
            "assumption against the answer it gave."
        ),
    ),
    Check(
        key="tpus.to-one-chip",
        title="Everything to one chip",
        answer=_corner,
        unit="s",
        rel_tol=0.005,
        difficulty=3,
        hints=(
            (
                "How long does each stage take alone: PCIe of all chips, the links into the corner, "
                "HBM, the arithmetic?"
            ),
            (
                "A corner of a slice without wraps has two links, and all but a sixty-fourth of the "
                "array come in by them."
            ),
        ),
        mistakes=(
            Mistake(_from_hosts, "PCIe works on all 64 chips at once. Another stage takes longer."),
            Mistake(2.0, "Both links of the corner bring bytes in."),
            Mistake(0.5, "The corner has two links: no axis of an 8 × 8 slice wraps."),
            Mistake(64 / 63, "What lies with the corner itself crosses no link.", slip="fraction-left-out"),
            Mistake(1 / 0.9, "That is at 90% of the documented rate of a link."),
        ),
    ),
    Check(
        key="tpus.work-to-data",
        title="The work goes to the data",
        answer=lambda: _corner() / _from_hosts(),
        difficulty=3,
        hints=(
            "What has to cross the links now, and how many bytes is it?",
            "Every chip reads its own part from its host. Which stage is the slowest now?",
        ),
        mistakes=(
            Mistake(lambda: _from_hosts() / _corner(), "That is the inverse."),
            Mistake(64.0, "HBM and arithmetic are shared by 64 chips now, but neither is the slowest."),
            Mistake(
                lambda: _corner() / (_ARRAY / _CORNER.hbm_bytes_per_s),
                "Each chip reads only its own part from HBM. Which stage is the slowest now?",
            ),
        ),
        right="Right: two megabytes travel from chip to chip in place of sixteen gigabytes.",
    ),
)
