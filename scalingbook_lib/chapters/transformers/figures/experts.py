"""From how many rows does each expert keep the matrix unit busy? One kernel multiplies for all of them."""

from scalingbook_lib import roofline
from scalingbook_lib.evidence import resources
from scalingbook_lib.machines.chips import H200
from scalingbook_lib.reader.explorers.view import Chart, Curve, RefLine, Scale
from scalingbook_lib.reader.figures.figure import Figure
from scalingbook_lib.reader.figures.shapes import EXPERTS, IDLE, MATH, MEMORY
from scalingbook_lib.units import BF16, dtype, percent

SHOWN = (("bf16", 32, 7168, 2048, EXPERTS), ("bf16", 16, 2048, 768, MEMORY), ("fp8", 32, 7168, 2048, MATH))


def reached(kind: str, name: str, experts: int, D: int, F: int) -> dict[int, float]:
    """By the rows of each expert, the share of the peak that a measured product [D, F] had on an H200.

    `kind` is "grouped", or "dense": one product of the rows of all experts together.
    """
    rate = H200.flops_per_s(dtype(name))
    of_each = {"grouped": (str(experts), 1), "dense": ("1", experts)}[kind]
    found: dict[int, float] = {}
    for row in resources.rows("own_grouped"):
        same = (row["what"], row["dtype"], row["experts"], int(row["K"]), int(row["N"]))
        if same == (kind, name, of_each[0], D, F):
            rows = int(row["rows_of_each"])
            flops = 2 * rows * D * F * (experts if kind == "grouped" else 1)
            found.setdefault(rows // of_each[1], flops / float(row["microseconds"]) * 1e6 / rate)
    return found


def grouped() -> Figure:
    """From how many rows of each expert is the product of all as fast as one of as many rows?"""
    ridge = H200.bf16_flops_per_s / H200.hbm_bytes_per_s
    large = reached("grouped", *SHOWN[0][:4])
    dense = reached("dense", *SHOWN[0][:4])
    few, many = (percent(large[n] / dense[n]) for n in (128, 1024))
    return Figure(
        key="transformers.grouped",
        alt="Share of the peak over the rows of each expert, from 64 to 8,192, as measured on an H200. Two curves in bf16 rise to two thirds of the peak, that of experts "
        "7,168 by 2,048 by 512 rows, that of experts 2,048 by 768 later; fp8 rises to three fifths. The roofline is above them and turns near a line at the ridge, "
        f"{ridge:.0f} rows.",
        caption=f"With 128 rows each, fewer than the ridge's {ridge:.0f}, 32 large experts reach {few} of the rate of one product of all rows, with 1,024 rows {many}. (H200, PyTorch 2.11; shares of each type's peak.)",
        parts=lambda _: [_chart(ridge)],
    )


def _chart(ridge: float) -> Chart:
    curves = []
    for name, E, D, F, color in SHOWN:
        found = reached("grouped", name, E, D, F)
        label = f"{D:,} × {F:,}, {name}"
        curves.append(Curve(label, list(found), [100 * share for share in found.values()], color))
    rows = [64 * 2**k for k in range(8)]
    bound = [roofline.matmul(n, 7168, 2048, H200, BF16) for n in rows]
    roof = [
        200 * n * 7168 * 2048 / H200.bf16_flops_per_s / b.lower_s for n, b in zip(rows, bound, strict=True)
    ]
    return Chart(
        Scale("rows of each expert", "", "pow2", high=8192),
        Scale("share of the peak", "%", low=0, high=110),
        (
            Curve("roofline, 7,168 × 2,048, bf16", rows, roof, IDLE, dashed=True),
            RefLine("ridge", ridge),
            *curves,
        ),
    )
