"""Figure of the rows per expert that keep the matrix unit busy when one kernel multiplies for all experts."""

from scalingbook_book.reader.explorers.view import Chart, Curve, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import EXPERTS, IDLE, MATH, MEMORY
from scalingbook_lib import roofline, rules
from scalingbook_lib.evidence import resources
from scalingbook_lib.machines.chips import H200
from scalingbook_lib.units import BF16, dtype, percent

SHOWN = (("bf16", 32, 7168, 2048, EXPERTS), ("bf16", 16, 2048, 768, MEMORY), ("fp8", 32, 7168, 2048, MATH))


def reached(kind: str, name: str, experts: int, D: int, F: int) -> dict[int, float]:
    """The fraction of peak that a measured matmul [D, F] reached on an H200, by rows per expert.

    `kind` is "grouped", or "dense": one matmul of as many rows with one matrix. Of several measurements the
    best counts.
    """
    rate, matrices = H200.flops_per_s(dtype(name)), experts if kind == "grouped" else 1
    found: dict[int, float] = {}
    for row in resources.rows("own_grouped"):
        same = (row["what"], row["dtype"], int(row["experts"]), int(row["K"]), int(row["N"]))
        if same == (kind, name, matrices, D, F):
            rows = int(row["rows_of_each"]) * matrices
            share = 2 * rows * D * F / float(row["microseconds"]) * 1e6 / rate
            found[rows // experts] = max(share, found.get(rows // experts, 0.0))
    return found


def grouped() -> Figure:
    """How many rows per expert does a grouped matmul need to get close to the peak?"""
    kind = SHOWN[0][:4]
    even = rules.matmul_critical_batch(*kind[2:], H200)
    large = reached("grouped", *kind)
    few, many = (percent(large[n]) for n in (128, 1024))
    return Figure(
        key="transformers.grouped",
        alt="Fraction of peak over the rows per expert, from 64 to 8,192, as measured on an H200. Two "
        "curves in bf16 rise to two thirds of the peak, the curve of 32 experts of 7,168 by 2,048 "
        "at 256 rows, that of 16 experts of 2,048 by 768 only at 2,048. fp8 rises to three fifths, "
        "with a dip at 256 rows. The roofline is above them and turns at the critical batch, "
        f"{even:.0f} rows.",
        caption="Fraction of peak attained by grouped matmuls, against the rows per expert. With 128 rows "
        f"per expert, about half of the critical batch of {even:.0f}, 32 large experts reach {few} of the "
        f"peak in bf16; with 1,024 rows per expert, they reach {many}. "
        "(H200, PyTorch 2.11; fractions of each data type's peak.)",
        parts=lambda _: [_chart(even)],
    )


def _chart(even: float) -> Chart:
    curves = []
    for name, E, D, F, color in SHOWN:
        found = reached("grouped", name, E, D, F)
        curves.append(Curve(f"{D:,} × {F:,}, {name}", list(found), [100 * x for x in found.values()], color))
    rows = [64, 128, even, 8192]
    bounds = [roofline.matmul(n, 7168, 2048, H200, BF16) for n in rows]
    roof = [100 * b.flops / H200.bf16_flops_per_s / b.lower_s for b in bounds]
    return Chart(
        Scale("rows per expert", "", "pow2", high=8192),
        Scale("fraction of peak", "%", low=0, high=110),
        (
            Curve("roofline, 7,168 × 2,048, bf16", rows, roof, IDLE, dashed=True),
            RefLine("critical batch", even),
            *curves,
        ),
    )
