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
    "--matmul", "shape", type=parameter_types.SHAPE, help="The matmul X[B, D] · W[D, F], as in 64x8192x8192."
)
@click.option("--flops", type=parameter_types.FLOPS, help="FLOPs of any operation; needs --bytes.")
@click.option(
    "--bytes",
    "nbytes",
    type=parameter_types.BYTES,
    help="Bytes that it moves to and from HBM; needs --flops.",
)
@parameter_types.option_with_default(
    "--dtype", parameter_types.DTYPE, BF16.name, "The dtype of the operands and of the matmul."
)
@click.option("--weights", type=parameter_types.DTYPE, help="The dtype of the stored W, if not --dtype.")
@click.option("--out", type=parameter_types.DTYPE, help="The dtype of the stored result, if not --dtype.")
@click.option(
    "--compute",
    type=parameter_types.MATRIX_DTYPE,
    help="The dtype in which the matrix unit multiplies, if not --dtype.",
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
    """Compute the time of one operation on one CHIP, and what limits it."""
    if (shape is None) == (flops is None and nbytes is None) or (flops is None) != (nbytes is None):
        raise ValueError("write either --matmul BxDxF, or both --flops and --bytes")
    if shape is None and (weights or out):
        raise ValueError("--weights and --out are for --matmul; --bytes already counts all traffic")
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
        summary=_told(line, chip),
        tables=(_table(line, given),),
        values={"chip": chip.name} | given | _values(line),
        steps=(*count, *times(line)),
    )


def _told(line: roofline.Roofline, chip: Chip) -> str:
    """'Memory-bound on TPU v5e: at most 26% of the peak (compute 43.6 µs, memory 166 µs)'."""
    terms = f"compute {si(line.math_s, 's')}, memory {si(line.memory_s, 's')}"
    most = f"at most {percent(line.attained_fraction)} of the peak"
    return f"{line.bound.capitalize()} on {chip.name}: {most} ({terms})"


def _table(line: roofline.Roofline, given: dict[str, float]) -> TextTable:
    attainable = f"{percent(line.attained_fraction)} of the peak"
    rows = [
        (
            "compute",
            format_value(line.flops, "FLOPs"),
            si(line.flops_per_s, "FLOPs/s"),
            si(line.math_s, "s"),
        ),
        ("memory", si(line.bytes, "B"), si(line.bytes_per_s, "B/s"), si(line.memory_s, "s")),
        (
            "arithmetic intensity",
            format_value(line.intensity, "FLOPs/B"),
            f"ridge point {si(line.ridge)} FLOPs/B",
            "",
        ),
        ("total with full overlap", "", "", si(line.lower_s, "s")),
        ("total without overlap", "", "", si(line.upper_s, "s")),
        ("attainable", attainable, si(line.attained_flops_per_s, "FLOPs/s"), ""),
    ]
    if batch := given.get("break_even_batch_tokens"):
        rows.append(
            (
                "compute-bound",
                f"above B = {si(batch)}" if batch < float("inf") else "at no batch size",
                "",
                "",
            )
        )
    return TextTable("", ("", "amount", "rate", "time"), tuple(rows))


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
    intensity = f"{flops} / {nbytes}" if line.bytes else "no bytes move"
    yield DerivationLine("T_math", "FLOPs / C", f"{flops} / {C}", line.math_s, "s")
    yield DerivationLine("T_memory", "bytes / W_hbm", f"{nbytes} / {W}", line.memory_s, "s")
    yield DerivationLine("intensity", "FLOPs / bytes", intensity, line.intensity, "FLOPs/B")
    yield DerivationLine("ridge", "C / W_hbm", f"{C} / {W}", line.ridge, "FLOPs/B")
    yield DerivationLine(
        "T, full overlap", "max(T_math, T_memory)", f"max({math}, {memory})", line.lower_s, "s"
    )
    yield DerivationLine("T, no overlap", "T_math + T_memory", f"{math} + {memory}", line.upper_s, "s")
