"""Checks of the exercises on kernels: bytes from L2, stages, schedules, and exponentials."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.occupancy import smem_per_block
from scalingbook_lib.roofline import gpu_kernels as kernels
from scalingbook_lib.units import BF16, KiB

_SIDE, _ROWS, _COLUMNS = 4096, 128, 256
_PAIR = kernels.matmul_tile(chips.B200, 256, 256, sms=2)
_SLOW_S = 1e-6


def _loaded(rows: float = _ROWS, columns: float = _COLUMNS) -> float:
    """Bytes that all tiles load; `rows` and `columns` of operands per tile."""
    tiles = (_SIDE // _ROWS) * (_SIDE // _COLUMNS)
    return tiles * (rows + columns) * _SIDE * BF16.bytes


def _stages(stage_bytes: float = _PAIR.stage_bytes, kept: float = 16 * KiB) -> float:
    return (smem_per_block(chips.B200) - kept) // stage_bytes


def _needed(latency_s: float = _SLOW_S) -> int:
    return kernels.matmul_tile(chips.B200, 256, 256, sms=2, latency_s=latency_s).stages_needed


def _narrow(*, head: int = 64, emulated: float = 0.25) -> kernels.AttentionTile:
    return kernels.attention_tile(chips.B200, head=head, emulated=emulated)


KERNELS = (
    Check(
        key="gpus.l2-traffic",
        title="Bytes that a matmul loads through L2",
        answer=_loaded,
        unit="B",
        rel_tol=0.01,
        hints=(
            "How many tiles are there, and how many elements of both operands does one tile load?",
            "Each tile loads a strip of 128 rows and a strip of 256 columns, both 4,096 long.",
        ),
        mistakes=(
            Mistake(
                lambda: 2 * _SIDE**2 * BF16.bytes,
                "These are both matrices, once. Every tile loads its own strips, so elements are loaded "
                "many times.",
            ),
            Mistake(
                lambda: _loaded(columns=0), "This is only one of the two operands.", slip="term-left-out"
            ),
            Mistake(
                lambda: _loaded(columns=_COLUMNS / 2),
                "This is with multicast over a pair of SMs, which share the strip of 256 columns.",
            ),
            Mistake(0.5, "An element in bf16 takes two bytes."),
        ),
        right="Right: 24 times the bytes of the two matrices.",
    ),
    Check(
        key="gpus.pair-stages",
        title="Stages that fit into shared memory",
        answer=_stages,
        hints=(
            "How many bytes of each operand does one SM store for a stage?",
            "With 2-SM MMA, an SM stores 128 rows of the left operand and 128 columns of the right one.",
        ),
        mistakes=(
            Mistake(
                lambda: _stages(48 * KiB),
                "With 2-SM MMA, each SM stores only half of the right operand.",
            ),
            Mistake(lambda: _stages(kept=0), "The two buffers for the result need memory as well."),
            Mistake(
                lambda: _stages(kept=64 * KiB),
                "This is with room for the whole result of an SM. Two buffers of 8 KiB are enough.",
            ),
        ),
        right="Right. The kernel of the page had five, because it first stored its whole result.",
    ),
    Check(
        key="gpus.deeper-pipeline",
        title="Stages for a slower memory",
        answer=lambda: float(_needed()),
        difficulty=2,
        hints=(
            "How many cycles does a load take, and how many does one stage take to multiply?",
            "A buffer is occupied while it is loaded and while it is multiplied. Round up.",
        ),
        mistakes=(
            Mistake(
                lambda: _needed() - 1,
                "A buffer is also occupied while its stage is being multiplied. Add those cycles.",
            ),
            Mistake(
                lambda: _SLOW_S * _PAIR.rates.clock_hz,
                "This is the latency in cycles. How many stages are multiplied in that time?",
            ),
        ),
        right="Right: the bytes in flight have to grow with the latency.",
    ),
    Check(
        key="gpus.static-schedule",
        title="Static and dynamic schedules",
        answer=lambda: kernels.persistent_schedules(592, 148, 20).gain,
        difficulty=2,
        hints=(
            "How many tiles are on the list of each worker, and when do the last 20 workers start?",
            "With cluster launch control, 128 SMs share the 592 tiles. How many rounds do they need?",
        ),
        mistakes=(
            Mistake(
                lambda: 148 / 128,
                "This is the ratio of the SMs. The static schedule loses more than that, because its last "
                "workers start late.",
            ),
            Mistake(
                lambda: 1 / kernels.persistent_schedules(592, 148, 20).gain,
                "This is the inverse: the time of the dynamic schedule over that of the static one.",
            ),
            Mistake(
                lambda: 4 / 5,
                "The static schedule takes longer than four tiles: 20 workers have not started yet.",
            ),
        ),
        right="Right: one part in seven of the SMs is taken, but the static schedule needs 60% more time.",
    ),
    Check(
        key="gpus.narrow-heads",
        title="Ceiling of attention with narrow heads",
        answer=lambda: _narrow().ceiling,
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "How many cycles do the matmuls take, and how many do the remaining exponentials take?",
            "The matmuls take 512 cycles, half as many as with heads of 128.",
        ),
        mistakes=(
            Mistake(lambda: _narrow(emulated=0).ceiling, "A quarter of the exponentials are elsewhere."),
            Mistake(
                lambda: _narrow().serial_ceiling,
                "This is without overlap. If both units work at the same time, the longer time counts.",
            ),
            Mistake(
                lambda: 0.75,
                "This is the fraction of exponentials that remain. Compare their cycles with those of the "
                "matmuls.",
            ),
        ),
        right="Right: emulation helps, but for narrow heads it is not enough.",
    ),
)
