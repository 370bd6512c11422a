"""The ratios of a chip: FLOPs per byte of its memory, and per byte that it receives from other chips.

Chapters: Rooflines; Training.
"""

from typing import TypedDict, Unpack

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import BF16, DType


def ridge_point(flops_per_s: float, bytes_per_s: float) -> float:
    """R = C / W in FLOPs/byte, the intensity at which compute and transfer take equally long.

    Derived in Rooflines (williams2009roofline).
    """
    return flops_per_s / bytes_per_s


def ridge(chip: Chip, dtype: DType = BF16, bytes_per_s: float | None = None) -> float:
    """R = C / W_hbm of the matrix unit in FLOPs/byte; with `bytes_per_s`, against another memory or link."""
    return ridge_point(chip.flops_per_s(dtype), bytes_per_s or chip.hbm_bytes_per_s)


class Over(TypedDict, total=False):
    """The links that a collective uses.

    They are `axes` torus axes at once, rings unless `wrapped` is False, at `links` of their documented rate
    (the scaling book's numbers are for 0.9), or any others, given by the bytes/s of one chip.
    """

    axes: int
    wrapped: bool
    links: float
    bytes_per_s: float


def network_bytes_per_s(chip: Chip, **over: Unpack[Over]) -> float:
    """W, the bytes/s that one chip receives during a long collective: n_ax W_ici on a torus.

    A GPU has no torus. Its gradients are reduced inside the host first, so that every NIC carries one share
    of them: all NICs of the host count together, as long as NVLink is faster.
    """
    if rate := over.get("bytes_per_s"):
        return rate
    if chip.torus is None:
        over_cards = (chip.dcn_bytes_per_s or 0) * chip.chips_per_host
        return min(over_cards, chip.links * chip.link_bytes_per_s) * over.get("links", 1.0)
    axes = over.get("axes", 1)
    if not 1 <= axes <= chip.torus.dims:
        raise ValueError(f"{chip.name} has {chip.torus.dims} torus axes, not {axes}")
    # a ring delivers data over both of a chip's links: W_ici = 2 W_1
    return axes * chip.axis(2, wrapped=over.get("wrapped", True)).bytes_per_s * over.get("links", 1.0)


def network_ridge(chip: Chip, dtype: DType = BF16, **over: Unpack[Over]) -> float:
    """r / n_ax = C / (n_ax W_ici) in FLOPs per byte that a chip receives: 2,295 on v5p, 765 on three axes.

    Derived in Training.
    """
    return ridge_point(chip.flops_per_s(dtype), network_bytes_per_s(chip, **over))
