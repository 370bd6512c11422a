"""The matmul FLOPs of a program beside those that its model needs: recomputation and tile padding."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scalingbook_lib.hlo import cost
from scalingbook_lib.hlo.module import Computation, Instruction, dtype_bytes
from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.units import Result, percent, si

RECOMPUTED = "rematted_computation"  # JAX's name for what jax.checkpoint computes again
LANES, SUBLANES, SUBLANE_BYTES = 128, 8, 32  # a TPU's tile is 8 × 128 words of 4 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulShape(Result):
    """A matmul's rows, contracted size and columns, and the same as a TPU pads them."""

    rows: int
    contracted: int
    columns: int
    padded_rows: int
    padded_contracted: int
    padded_columns: int

    @property
    def factor(self) -> float:
        """The FLOPs with padding over those without."""
        padded = self.padded_rows * self.padded_contracted * self.padded_columns
        return padded / (self.rows * self.contracted * self.columns)

    @property
    def padding(self) -> str:
        """The sizes that are padded: 'columns from 129 to 256'."""
        pairs = (
            ("rows", self.rows, self.padded_rows),
            ("contracted dimension", self.contracted, self.padded_contracted),
            ("columns", self.columns, self.padded_columns),
        )
        return ", ".join(f"{name} from {n:,} to {padded:,}" for name, n, padded in pairs if padded > n)

    def __str__(self) -> str:
        return f"{self.rows:,} × {self.contracted:,} × {self.columns:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need(Result):
    """The FLOPs that a model needs for its tokens, in all and on one device."""

    model: str
    tokens: int
    sequence: int
    training: bool
    flops: float
    devices: int

    @property
    def device_flops(self) -> float:
        """The share of one device."""
        return self.flops / self.devices

    def __str__(self) -> str:
        what = "a training step" if self.training else "a forward pass"
        return f"{self.model} needs {si(self.flops, 'FLOPs')} for {what} of {self.tokens:,} tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulWork(Result):
    """The matmul FLOPs of one device in one run.

    `recomputed` are those that `jax.checkpoint` computes again; `padded` are multiplied with padding in
    addition to `flops`, if the compiler is that of a TPU. `at_least` means that kernels hide some FLOPs.
    """

    flops: int
    recomputed: int
    padded: float
    at_least: bool
    need: Need | None = None

    @property
    def useful_share(self) -> float | None:
        """The needed FLOPs over those of the program; None if the need is unknown."""
        return self.need.device_flops / self.flops if self.need and self.flops else None

    def __str__(self) -> str:
        again = f", {percent(self.recomputed / self.flops)} of them recomputed" if self.recomputed else ""
        return f"{'≥ ' * self.at_least}{si(self.flops, 'FLOPs')} of matmuls per device{again}"


def need(model: Transformer, tokens: int, sequence: int, devices: int, *, training: bool = True) -> Need:
    """The FLOPs that a model needs for `tokens` tokens of a step, in sequences of `sequence`."""
    T = min(sequence, tokens)
    counted = arithmetic.flops(model, tokens / T, T, causal=False, training=training)
    return Need(
        model=model.name,
        tokens=tokens,
        sequence=T,
        training=training,
        flops=float(counted.total),
        devices=devices,
    )


def is_recomputed(i: Instruction) -> bool:
    """Whether an instruction computes again what the forward pass computed."""
    return RECOMPUTED in i.quoted("op_name") or bool(re.search(r"\.remat\d*(\.|$)", i.name))


def matmul_shape(computation: Computation, i: Instruction, side: int) -> MatmulShape | None:
    """The shape of a matmul of a TPU's program, padded to tiles and to matrix units of that side.

    None for other instructions, and for a matmul of which the text does not show the dimensions.
    """
    operands = [shape for operand in computation.operands(i)[:2] for shape in operand.shapes[:1]]
    sizes = _sizes(computation, i, [shape.dims for shape in operands]) if len(operands) == 2 else None
    if sizes is None or min(sizes) < 1:
        return None
    rows, contracted, columns = sizes
    # rows fill sublanes, which hold several narrow numbers; the other two sizes fill the matrix unit
    per_tile = max(SUBLANES, int(SUBLANE_BYTES / max(dtype_bytes(operands[0].dtype), 1)))
    return MatmulShape(
        rows=rows,
        contracted=contracted,
        columns=columns,
        padded_rows=_up(rows, min(per_tile, SUBLANES if rows < per_tile else per_tile)),
        padded_contracted=_up(contracted, side),
        padded_columns=_up(columns, side),
    )


def _sizes(
    computation: Computation, i: Instruction, dims: list[tuple[int, ...]]
) -> tuple[int, int, int] | None:
    """Rows, contracted size and columns of a convolution or a dot."""
    left, right = dims
    if i.opcode == "convolution":
        labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", i.attributes)
        if labels is None:
            return None
        columns, contracted = right[labels[2].index("o")], right[labels[2].index("i")]
        flops = cost.flops_of(computation, i)
        return max(flops // (2 * columns * contracted), 1), contracted, columns
    if i.opcode == "dot" and (summed := cost.CONTRACTED.search(i.attributes)):
        contracted = 1
        for k in re.findall(r"\d+", summed[1]):
            contracted *= left[int(k)]
        columns = right[-1] if right else 1
        flops = cost.flops_of(computation, i)
        return max(flops // (2 * columns * contracted), 1), contracted, columns
    return None


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def contracted_parts(
    parts: Iterator[tuple[Instruction, Computation]],
) -> Iterator[tuple[Instruction, Computation]]:
    """The matmuls among a kernel's parts."""
    return ((i, where) for i, where in parts if i.opcode in cost.MATMULS)
