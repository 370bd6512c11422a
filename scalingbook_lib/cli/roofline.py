"""Is one operation on one chip limited by arithmetic or by memory? `scalingbook roofline`."""

import click

from scalingbook_lib import roofline
from scalingbook_lib.cli import kinds
from scalingbook_lib.cli.answer import Answer, Step, Table
from scalingbook_lib.cli.answering import answering
from scalingbook_lib.cli.numbers import figure, product, told
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.roofline import Roofline
from scalingbook_lib.units import BF16, DType, percent, si

type Shape = tuple[int, int, int]


@click.command("roofline", short_help="The time of one operation on one chip, and what limits it.")
@click.argument("chip", type=kinds.CHIP)
@click.option(
    "--matmul", "shape", type=kinds.SHAPE, help="The product X[B, D] · W[D, F], as in 64x8192x8192."
)
@click.option("--flops", type=kinds.FLOPS, help="Any operation: its FLOPs, with --bytes.")
@click.option(
    "--bytes", "nbytes", type=kinds.BYTES, help="Any operation: the bytes it moves to and from HBM."
)
@click.option("--dtype", type=kinds.DTYPE, default=BF16.name, show_default=True,
              help="The type of the operands, and of the arithmetic.")  # fmt: skip
@click.option("--weights", type=kinds.DTYPE, help="How W is stored, where not in --dtype.")
@click.option("--out", type=kinds.DTYPE, help="How the product is stored, where not in --dtype.")
@click.option("--compute", type=kinds.DTYPE, help="What the matrix unit computes in, where not in --dtype.")
@answering
def command(
    chip: Chip, shape: Shape | None, flops: float | None, nbytes: float | None, dtype: DType,
    weights: DType | None, out: DType | None, compute: DType | None,
) -> Answer:  # fmt: skip
    """The time of one operation on one CHIP, and what limits it."""
    if (shape is None) == (flops is None and nbytes is None) or (flops is None) != (nbytes is None):
        raise ValueError("write either --matmul BxDxF, or both --flops and --bytes")
    if shape is None and (weights or out):
        raise ValueError("--weights and --out are for --matmul; --bytes counts all that moves")
    if shape is None:
        return _answer(roofline.operation(flops or 0, nbytes or 0, chip, dtype, maths=compute), chip, {}, ())
    line = roofline.matmul(*shape, chip, dtype, weights=weights, out=out, maths=compute)
    stored = tuple(kind.bytes for kind in (dtype, weights or dtype, out or dtype))
    _, D, F = shape
    batch = roofline.break_even_batch(D, F, chip, dtype, weights=weights, out=out, maths=compute)
    given = dict(zip("BDF", shape, strict=True)) | {"break_even_batch_tokens": batch}
    return _answer(line, chip, given, _counted(line, shape, stored))


def _answer(line: Roofline, chip: Chip, given: dict[str, float], counted: tuple[Step, ...]) -> Answer:
    return Answer(
        told=f"{chip.name}: {line}",
        tables=(_table(line, given),),
        values={"chip": chip.name} | given | _values(line),
        steps=(*counted, *_times(line)),
    )


def _table(line: Roofline, given: dict[str, float]) -> Table:
    rows = [
        ("arithmetic", told(line.flops, "FLOPs"), si(line.flops_per_s, "FLOPs/s"), si(line.math_s, "s")),
        ("memory", si(line.bytes, "B"), si(line.bytes_per_s, "B/s"), si(line.memory_s, "s")),
        ("intensity", f"{si(line.intensity)} FLOPs/B", f"ridge {si(line.ridge)} FLOPs/B", ""),
        ("everything overlaps", "", "", si(line.lower_s, "s")),
        ("nothing overlaps", "", "", si(line.upper_s, "s")),
        (
            "at best",
            f"{percent(line.attained_fraction)} of the peak",
            si(line.attained_flops_per_s, "FLOPs/s"),
            "",
        ),
    ]
    if "break_even_batch_tokens" in given:
        rows.append(("compute-bound above", f"B = {si(given['break_even_batch_tokens'])}", "", ""))
    return Table("", ("", "how much", "rate", "time"), tuple(rows))


def _values(line: Roofline) -> dict[str, object]:
    return {
        "flops": line.flops, "bytes": line.bytes,
        "flops_per_s": line.flops_per_s, "bytes_per_s": line.bytes_per_s,
        "math_s": line.math_s, "memory_s": line.memory_s, "lower_s": line.lower_s, "upper_s": line.upper_s,
        "intensity_flops_per_byte": line.intensity, "ridge_flops_per_byte": line.ridge,
        "bound": line.bound, "attained_flops_per_s": line.attained_flops_per_s,
        "attained_fraction": line.attained_fraction,
    }  # fmt: skip


def _counted(line: Roofline, shape: Shape, stored: tuple[float, ...]) -> tuple[Step, ...]:
    """The FLOPs and the bytes of a product."""
    (B, D, F), (a, w, o) = shape, stored
    moved = f"{product(a, B, D)} + {product(w, D, F)} + {product(o, B, F)}"
    return (
        Step(
            name="FLOPs", formula="2 · B · D · F", numbers=product(2, B, D, F), value=line.flops, unit="FLOPs"
        ),
        Step(
            name="bytes",
            formula="a · B · D + w · D · F + o · B · F",
            numbers=moved,
            value=line.bytes,
            unit="B",
        ),
    )


def _times(line: Roofline) -> tuple[Step, ...]:
    C, W = figure(line.flops_per_s), figure(line.bytes_per_s)
    math, memory = figure(line.math_s), figure(line.memory_s)
    return (
        Step(name="T_math", formula="FLOPs / C", numbers=f"{figure(line.flops)} / {C}",
             value=line.math_s, unit="s"),
        Step(name="T_memory", formula="bytes / W_hbm", numbers=f"{figure(line.bytes)} / {W}",
             value=line.memory_s, unit="s"),
        Step(name="intensity", formula="FLOPs / bytes", value=line.intensity, unit="FLOPs/B",
             numbers=f"{figure(line.flops)} / {figure(line.bytes)}" if line.bytes else "nothing moves"),
        Step(name="ridge", formula="C / W_hbm", numbers=f"{C} / {W}", value=line.ridge, unit="FLOPs/B"),
        Step(name="T, everything overlaps", formula="max(T_math, T_memory)", numbers=f"max({math}, {memory})",
             value=line.lower_s, unit="s"),
        Step(name="T, nothing overlaps", formula="T_math + T_memory", numbers=f"{math} + {memory}",
             value=line.upper_s, unit="s"),
    )  # fmt: skip
