"""Ceilings of GPU kernels: the cycles that one SM spends per tile in each unit, and which unit limits it.

A tile of the output stays on an SM while slices of both operands stream past it, one stage of `depth`
columns at a time. The Tensor Cores multiply a stage in 2mnk / FLOPs-per-cycle; meanwhile its bytes have to
arrive from L2, be read from shared memory, and be requested early enough. `attention_tile` counts the same
for one block of FlashAttention. Chapter: Kernels on GPUs.

>>> from scalingbook_lib.machines import chips
>>> print(matmul_tile(chips.B200, 128, 256, stages=4))
L2 limits tiles of 128 × 256 on B200 to 80% of the peak: 512 cycles of math, 384 of SMEM, 643 of L2, ...
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.machines.occupancy import REGISTER_BYTES, KernelError, registers_per_sm, smem_per_block
from scalingbook_lib.machines.sm import SmRates, sm_rates
from scalingbook_lib.units import BF16, KiB, Result, count, percent, require_min

LOAD_LATENCY_S = 600e-9  # from the request to the last byte of a stage, under load
MMA_COLUMNS, MMA_DEPTH = 256, 16  # of one instruction: the most columns, and the depth in bf16
TMEM_ROWS = 128  # of an SM, with 4 bytes in each column


def _slowest(cycles_by: Mapping[str, float]) -> str:
    """The unit that takes the most cycles, the first one in a tie."""
    return max(cycles_by, key=lambda name: cycles_by[name])


def _listed(cycles_by: Mapping[str, float]) -> str:
    """The cycles of every unit: '512 cycles of math, 384 of SMEM, ...'."""
    terms = ", ".join(f"{count(round(cycles))} of {name}" for name, cycles in cycles_by.items())
    return terms.replace(" of ", " cycles of ", 1)


@dataclass(frozen=True, slots=True)
class MatmulTile(Result):
    """One stage of a tiled matmul on an SM, or on a pair of SMs that share a tile.

    `cycles_by` has the cycles per stage of 'math' (Tensor Cores), 'SMEM' (operands read by them), 'L2' (bytes
    loaded), and 'latency' (the wait for a stage, divided by the stages in flight).
    """

    rates: SmRates
    rows: int
    columns: int
    stages: int
    sms: int
    cycles_by: Mapping[str, float]
    stage_bytes: int  # of one stage in the shared memory of one SM
    l2_intensity: float  # FLOPs per byte loaded from L2
    accumulators: int  # fp32 numbers per SM

    @property
    def bound(self) -> str:
        """What takes the most cycles: 'math', 'SMEM', 'L2' or 'latency'."""
        return _slowest(self.cycles_by)

    @property
    def ceiling(self) -> float:
        """The largest fraction of the Tensor Cores' peak, at the same clock."""
        return self.cycles_by["math"] / self.cycles_by[self.bound]

    @property
    def smem_bytes(self) -> int:
        """The shared memory of all stages on one SM."""
        return self.stages * self.stage_bytes

    @property
    def stages_needed(self) -> int:
        """The fewest stages in flight with which latency limits nothing: ceil(period of one stage / pace)."""
        pace = max(cycles for name, cycles in self.cycles_by.items() if name != "latency")
        return ceil(self.cycles_by["latency"] * self.stages / pace)

    def __str__(self) -> str:
        who = {"math": "The peak itself", "latency": "Latency"}.get(self.bound, self.bound)
        return (
            f"{who} limits tiles of {self.rows} × {self.columns} on {self.rates.chip.name} to "
            f"{percent(self.ceiling)} of the peak: {_listed(self.cycles_by)}"
        )


def matmul_tile(
    chip: Chip,
    rows: int,
    columns: int,
    *,
    depth: int = 64,
    stages: int = 1,
    blocks: int = 1,
    sms: int = 1,
    output_bytes: int = 0,
    latency_s: float = LOAD_LATENCY_S,
) -> MatmulTile:
    """A tile of `rows` × `columns` of a bf16 matmul, `stages` deep, with `blocks` such blocks on an SM.

    With `sms=2`, two SMs share the tile: each has half of the rows and loads half of the columns' operand.
    On Hopper multicast copies the other half into both; on Blackwell one instruction reads both halves where
    they are. `output_bytes` of shared memory are kept for the result. The loads of all stages in flight
    overlap, so a stage can be replaced every (latency + math) / (stages · blocks) cycles. Writes into shared
    memory and the epilogue are not counted. Raises a KernelError if a block does not fit an SM.
    """
    rates = sm_rates(chip)
    require_min(1, rows=rows, columns=columns, depth=depth, stages=stages, blocks=blocks)
    if sms not in (1, 2) or rows % sms:
        raise KernelError(f"a tile is shared by 1 or 2 SMs that divide its rows, not by {sms}")
    own = rows // sms  # rows of one SM
    paired = sms == 2 and chip.tmem_bytes_per_core is not None  # one instruction for both
    held = columns // 2 if paired else columns
    stage_bytes = int(BF16.bytes * depth * (own + held))
    _fits(chip, stage_bytes * stages + output_bytes, own, columns)
    math = 2 * own * columns * depth / rates.tensor_flops
    loaded = BF16.bytes * depth * (own + columns / sms)
    issued = ceil(own / rates.mma_rows) * ceil(columns / MMA_COLUMNS) * depth / MMA_DEPTH
    each = BF16.bytes * MMA_DEPTH * (min(own, rates.mma_rows) + min(held, MMA_COLUMNS))
    cycles = {
        "math": math,
        "SMEM": issued * each / rates.smem_bytes,
        "L2": loaded / rates.l2_bytes,
        "latency": (latency_s * rates.clock_hz + math) / (stages * blocks),
    }
    return MatmulTile(
        rates=rates,
        rows=rows,
        columns=columns,
        stages=stages,
        sms=sms,
        cycles_by=cycles,
        stage_bytes=stage_bytes,
        l2_intensity=math * rates.tensor_flops / loaded,
        accumulators=own * columns,
    )


def _fits(chip: Chip, smem_bytes: int, rows: int, columns: int) -> None:
    most = smem_per_block(chip)
    if smem_bytes > most:
        raise KernelError(
            f"this block needs {smem_bytes / KiB:.4g} KiB of shared memory, but a block has at most "
            f"{most // KiB} KiB: use fewer stages or a smaller tile"
        )
    if chip.tmem_bytes_per_core is None:
        registers = registers_per_sm(chip)
        if rows * columns >= registers:
            raise KernelError(
                f"the accumulators of {rows} × {columns} take all {registers:,} registers of an SM: "
                "use fewer rows or columns"
            )
    elif (needed := ceil(rows / TMEM_ROWS) * columns) > (held := tmem_columns(chip)):
        raise KernelError(
            f"the accumulators of {rows} × {columns} need {needed} columns of TMEM, but an SM has {held}: "
            "use fewer rows or columns"
        )


def tmem_columns(chip: Chip) -> int:
    """The columns of an SM's TMEM, each of 128 rows of 4 bytes."""
    return int(chip.tmem_bytes_per_core or 0) // (REGISTER_BYTES * TMEM_ROWS)


def wave_efficiency(tiles: int, workers: int) -> float:
    """The fraction of the workers' time that equal tiles use: tiles / (waves · workers)."""
    require_min(1, tiles=tiles, workers=workers)
    return tiles / (ceil(tiles / workers) * workers)


@dataclass(frozen=True, slots=True)
class Schedules(Result):
    """The time of equal tiles under a static and a dynamic schedule, in tile times, if some SMs are taken."""

    static: int
    dynamic: int

    @property
    def gain(self) -> float:
        """How many times as fast the dynamic schedule is."""
        return self.static / self.dynamic

    def __str__(self) -> str:
        return f"static schedule: {self.static} tile times; dynamic schedule: {self.dynamic}"


def persistent_schedules(tiles: int, sms: int, taken: int = 0) -> Schedules:
    """`tiles` equal tiles on `sms` SMs, `taken` of which another kernel occupies until the end.

    A static persistent kernel starts one worker per SM and gives each an equal list of tiles. Workers without
    an SM start only when others have finished their lists. With cluster launch control, the workers that run
    take one tile after another until none is left.
    """
    require_min(1, tiles=tiles, sms=sms, free=sms - taken)
    require_min(0, taken=taken)
    free = sms - taken
    workers = min(tiles, sms)
    lists = [tiles // workers + (k < tiles % workers) for k in range(workers)]  # longest first
    ends = [0] * free
    for length in lists:
        k = min(range(free), key=ends.__getitem__)
        ends[k] += length
    return Schedules(static=max(ends), dynamic=ceil(tiles / free))


def strip_intensity(rows: int, columns: int, *, down: int, across: int, tiles: int) -> float:
    """FLOPs per byte from HBM of `tiles` tiles that run at once and read each strip once, in bf16.

    They fill a part of the output that is `across` tiles wide, row by row, for at most `down` rows of tiles.
    """
    require_min(1, rows=rows, columns=columns, down=down, across=across, tiles=tiles)
    if tiles > down * across:
        raise ValueError(f"{tiles} tiles do not fit {down} × {across}; write at most {down * across}")
    strips = ceil(tiles / across) * rows + min(tiles, across) * columns
    return 2 * tiles * rows * columns / (BF16.bytes * strips)


@dataclass(frozen=True, slots=True)
class AttentionTile(Result):
    """Cycles of one SM for a block of queries against a block of keys, by unit, and the ceilings they set."""

    rates: SmRates
    math_cycles: float
    smem_cycles: float
    exponential_cycles: float

    @property
    def cycles_by(self) -> dict[str, float]:
        """The cycles by unit: 'math', 'SMEM' and 'exponentials'."""
        return {"math": self.math_cycles, "SMEM": self.smem_cycles, "exponentials": self.exponential_cycles}

    @property
    def bound(self) -> str:
        """The unit that takes the most cycles; 'math' in a tie."""
        return _slowest(self.cycles_by)

    @property
    def ceiling(self) -> float:
        """The largest fraction of the peak if all three units overlap."""
        return self.math_cycles / self.cycles_by[self.bound]

    @property
    def serial_ceiling(self) -> float:
        """The largest fraction of the peak if the softmax waits for the matmuls and they for it."""
        return self.math_cycles / (self.math_cycles + self.exponential_cycles)

    def __str__(self) -> str:
        return f"{self.rates.chip.name}: {_listed(self.cycles_by)}"


def attention_tile(
    chip: Chip, *, queries: int = 128, keys: int = 128, head: int = 128, emulated: float = 0.0
) -> AttentionTile:
    """The forward pass of FlashAttention for one block, as FlashAttention-4 counts it (arXiv 2603.05451).

    Two matmuls take 4 · queries · keys · head FLOPs, and each score needs one exponential, of which the
    fraction `emulated` is computed by the CUDA cores instead. From shared memory come the queries, keys and
    values, once per instruction; scores and weights stay in registers or TMEM.
    """
    require_min(1, queries=queries, keys=keys, head=head)
    if not 0 <= emulated <= 1:
        raise ValueError(f"emulated={emulated:g} is not a fraction; write a number from 0 to 1")
    rates = sm_rates(chip)
    instructions = ceil(queries / rates.mma_rows)
    read = BF16.bytes * head * (queries + 2 * keys * instructions)
    return AttentionTile(
        rates=rates,
        math_cycles=4 * queries * keys * head / rates.tensor_flops,
        smem_cycles=read / rates.smem_bytes,
        exponential_cycles=(1 - emulated) * queries * keys / rates.exponentials,
    )
