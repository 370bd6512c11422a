"""The command `scalingbook roofline`: whether an operation on one chip is compute-bound or memory-bound."""

from collections.abc import Iterator

import click

from scalingbook_cli import parameter_types
from scalingbook_cli.answer import (
    Answer,
    DerivationLine,
    TextTable,
    answer_command,
    fields_of,
    figure,
    format_value,
    product,
)
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.rules import element_bytes
from scalingbook_lib.units import BF16, DType, percent, si

type Shape = tuple[int, int, int]
type Sizes = tuple[float, float, float]


@click.command("roofline", short_help="The time of one operation on one chip, and what limits it.")
@click.argument("chip", type=parameter_types.CHIP)
@click.option(
    "--matmul", "shape", type=parameter_types.SHAPE, help="The product X[B, D] · W[D, F], as in 64x8192x8192."
)
@click.option("--flops", type=parameter_types.FLOPS, help="Any operation: its FLOPs, with --bytes.")
@click.option(
    "--bytes", "nbytes", type=parameter_types.BYTES, help="Any operation: the bytes it moves to and from HBM."
)
@parameter_types.option_with_default(
    "--dtype", parameter_types.DTYPE, BF16.name, "The type of the operands, and of the arithmetic."
)
@click.option("--weights", type=parameter_types.DTYPE, help="How W is stored, where not in --dtype.")
@click.option("--out", type=parameter_types.DTYPE, help="How the product is stored, where not in --dtype.")
@click.option(
    "--compute",
    type=parameter_types.MATRIX_DTYPE,
    help="What the matrix unit computes in, where not in --dtype.",
)
@parameter_types.chip_options
@answer_command
def command(
    *,
    chip: Chip,
    shape: Shape | None,
    flops: float | None,
    nbytes: float | None,
    dtype: DType,
    weights: DType | None,
    out: DType | None,
    compute: DType | None,
) -> Answer:
    """The time of one operation on one CHIP, and what limits it."""
    if (shape is None) == (flops is None and nbytes is None) or (flops is None) != (nbytes is None):
        raise ValueError("write either --matmul BxDxF, or both --flops and --bytes")
    if shape is None and (weights or out):
        raise ValueError("--weights and --out are for --matmul; --bytes counts all that moves")
    if shape is None:
        return _answer(roofline.operation(flops or 0, nbytes or 0, chip, dtype, maths=compute), chip, {}, ())
    B, D, F = shape
    line = roofline.matmul(B, D, F, chip, dtype, weights=weights, out=out, maths=compute)
    batch = rules.matmul_critical_batch(D, F, chip, dtype, weights=weights, out=out, maths=compute)
    given = {"B": B, "D": D, "F": F, "break_even_batch_tokens": batch}
    return _answer(line, chip, given, counted(line, shape, element_bytes(dtype, weights, out)))


def counted(line: roofline.Roofline, shape: Sizes, widths: Sizes) -> tuple[DerivationLine, ...]:
    """The lines for FLOPs and bytes of X[B, D] · W[D, F]; `widths` are bytes per element of X, W and out."""
    (B, D, F), (a, w, o) = shape, widths
    moved = f"{product(a, B, D)} + {product(w, D, F)} + {product(o, B, F)}"
    return (
        DerivationLine("FLOPs", "2 · B · D · F", product(2, B, D, F), line.flops, "FLOPs"),
        DerivationLine("bytes", "a · B · D + w · D · F + o · B · F", moved, line.bytes, "B"),
    )


def _answer(
    line: roofline.Roofline, chip: Chip, given: dict[str, float], count: tuple[DerivationLine, ...]
) -> Answer:
    return Answer(
        summary=f"{chip.name}: {line}",
        tables=(_table(line, given),),
        values={"chip": chip.name} | given | _values(line),
        steps=(*count, *times(line)),
    )


def _table(line: roofline.Roofline, given: dict[str, float]) -> TextTable:
    at_best = f"{percent(line.attained_fraction)} of the peak"
    rows = [
        (
            "compute",
            format_value(line.flops, "FLOPs"),
            si(line.flops_per_s, "FLOPs/s"),
            si(line.math_s, "s"),
        ),
        ("memory", si(line.bytes, "B"), si(line.bytes_per_s, "B/s"), si(line.memory_s, "s")),
        ("intensity", format_value(line.intensity, "FLOPs/B"), f"ridge {si(line.ridge)} FLOPs/B", ""),
        ("everything overlaps", "", "", si(line.lower_s, "s")),
        ("nothing overlaps", "", "", si(line.upper_s, "s")),
        ("at best", at_best, si(line.attained_flops_per_s, "FLOPs/s"), ""),
    ]
    if batch := given.get("break_even_batch_tokens"):
        rows.append(
            (
                "compute-bound above",
                f"B = {si(batch)}" if batch < float("inf") else "no batch is enough",
                "",
                "",
            )
        )
    return TextTable("", ("", "how much", "rate", "time"), tuple(rows))


def _values(line: roofline.Roofline) -> dict[str, object]:
    return {
        **fields_of(line, "flops", "bytes", "flops_per_s", "bytes_per_s"),
        **fields_of(line, "math_s", "memory_s", "lower_s", "upper_s"),
        "intensity_flops_per_byte": line.intensity,
        "ridge_flops_per_byte": line.ridge,
        **fields_of(line, "bound", "attained_flops_per_s", "attained_fraction"),
    }


def times(line: roofline.Roofline) -> Iterator[DerivationLine]:
    """The lines for both times, intensity, ridge point, and the total with and without overlap."""
    C, W = figure(line.flops_per_s), figure(line.bytes_per_s)
    flops, nbytes = figure(line.flops), figure(line.bytes)
    math, memory = figure(line.math_s), figure(line.memory_s)
    intensity = f"{flops} / {nbytes}" if line.bytes else "nothing moves"
    yield DerivationLine("T_math", "FLOPs / C", f"{flops} / {C}", line.math_s, "s")
    yield DerivationLine("T_memory", "bytes / W_hbm", f"{nbytes} / {W}", line.memory_s, "s")
    yield DerivationLine("intensity", "FLOPs / bytes", intensity, line.intensity, "FLOPs/B")
    yield DerivationLine("ridge", "C / W_hbm", f"{C} / {W}", line.ridge, "FLOPs/B")
    yield DerivationLine(
        "T, everything overlaps", "max(T_math, T_memory)", f"max({math}, {memory})", line.lower_s, "s"
    )
    yield DerivationLine("T, nothing overlaps", "T_math + T_memory", f"{math} + {memory}", line.upper_s, "s")
