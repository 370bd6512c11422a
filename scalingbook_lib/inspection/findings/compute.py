"""Findings about kernels: recomputation, padding, relayouts, precision, scores in HBM, calls to the host."""

import re
from collections.abc import Iterator

from scalingbook_lib.hlo import walk
from scalingbook_lib.inspection.findings.finding import (
    COLUMNS,
    COPIES,
    PRECISION,
    REMAT,
    SCORES,
    SMELLS,
    UNEVEN,
    Finding,
)
from scalingbook_lib.inspection.program import InspectedProgram, PlacedKernel
from scalingbook_lib.inspection.steps import parts
from scalingbook_lib.inspection.work import is_recomputed
from scalingbook_lib.units import percent, si

MUCH_RECOMPUTED = 0.15  # of all FLOPs
MUCH_PADDING = 1.05  # FLOPs with padding over those without
LEAST_SHARE = 0.02  # of a run
MUCH_COPIED = 0.05  # of a run
WIDE, SCORE_DIMS, SCORE_SIDE = ("f32", "f64"), 4, 512
HOST = re.compile(r"callback|xla_ffi_python|xla_python|SendToHost|RecvFromHost|HostExecute", re.I)
HOST_OPCODES = ("infeed", "outfeed")


def recomputed(program: InspectedProgram) -> Iterator[Finding]:
    """Matmuls that are computed twice because of activation checkpointing."""
    work = program.work
    share = work.recomputed / work.flops if work.flops else 0.0
    if share < MUCH_RECOMPUTED:
        return
    again = [
        k
        for k in program.kernels
        if k.kernel.flops and any(is_recomputed(i) for i, _ in parts(program.module, k.kernel))
    ]
    seconds = sum(k.seconds for k in again)
    limit, peak = program.hardware.hbm_bytes, program.memory.peak
    room = f"; {percent(1 - peak / limit)} of the memory is free" if limit and peak < limit else ""
    yield Finding(
        rule="recomputed",
        message=f"{percent(share)} of the FLOPs ({si(work.recomputed, 'FLOPs')}) are recomputed in "
        "the backward "
        f"pass{room}",
        advice="Save more activations, as in jax.checkpoint(f, "
        "policy=jax.checkpoint_policies.dots_saveable), "
        "or checkpoint fewer layers",
        section=REMAT,
        severity=seconds / program.run_s if program.run_s else share,
        saved_s=seconds,
        places=tuple(k.kernel.name for k in again),
        lines=_lines(again),
    )


def padded_matmuls(program: InspectedProgram) -> Iterator[Finding]:
    """Matmuls whose dimensions do not fill the matrix units."""
    padded = [(k, shape) for k, shape in program.matmul_shapes if shape.factor >= MUCH_PADDING]
    seconds = sum(k.seconds * (1 - 1 / shape.factor) for k, shape in padded)
    flops = sum(k.runs * k.kernel.flops * (shape.factor - 1) for k, shape in padded)
    share = seconds / program.run_s if program.run_s else flops / max(program.work.flops + flops, 1)
    if not padded or share < LEAST_SHARE:
        return
    _, shape = max(padded, key=lambda one: one[0].runs * one[0].kernel.flops * (one[1].factor - 1))
    yield Finding(
        rule="padded matmuls",
        message=f"A matmul of {shape} is padded ({shape.padding}): {percent(shape.factor - 1)} more "
        "FLOPs than "
        f"the model needs" + (f"; {len(padded)} matmuls are padded" if len(padded) > 1 else ""),
        advice="Choose sizes that stay multiples of 128 (256 on v6e and TPU7x) after sharding, or "
        "shard another "
        "dimension",
        section=COLUMNS,
        severity=share,
        saved_s=seconds,
        places=tuple(k.kernel.name for k, _ in padded),
        lines=_lines([k for k, _ in padded]),
    )


def uneven_shards(program: InspectedProgram) -> Iterator[Finding]:
    """Arrays that the partitioner pads because a dimension does not divide by the size of a mesh axis."""
    if program.source.devices < 2:
        return
    found: dict[tuple[int, int], str] = {}
    for visit in walk.visits(program.module):
        i = visit.instruction
        if i.opcode != "pad" or not i.shapes or i.quoted("op_name").rpartition("/")[2] == "pad":
            continue
        before = [shape for operand in visit.computation.operands(i)[:1] for shape in operand.shapes[:1]]
        for old, new in zip(before[0].dims if before else (), i.shapes[0].dims, strict=False):
            # whole shards are equal: their number times their size is the smallest multiple above the size
            if old < new and _is_even(new, program) and not _is_even(old, program):
                found.setdefault((old, new), program.source.line_of(i))
    for (old, new), line in [*found.items()][:1]:
        yield Finding(
            rule="uneven shards",
            message=f"A dimension of {old:,} is padded to {new:,}, because {old:,} is not divisible by the "
            f"size of the mesh axis that shards it: {percent(new / old - 1)} more work and bytes",
            advice="Choose a size that the axis divides, or shard another dimension",
            section=UNEVEN,
            severity=LEAST_SHARE + (new / old - 1) / 2,
            lines=(line,) if line else (),
        )


def _is_even(n: int, program: InspectedProgram) -> bool:
    """Whether an axis of the mesh divides a size."""
    sizes = program.source.mesh or {"X": program.source.devices}
    return any(n % size == 0 for size in sizes.values() if size > 1)


def relayouts(program: InspectedProgram) -> Iterator[Finding]:
    """Kernels that only copy or transpose."""
    copies = [k for k in program.kernels if k.kernel.kind == "copy"]
    seconds = sum(k.seconds for k in copies)
    share = seconds / program.run_s if program.run_s else 0.0
    if share < MUCH_COPIED:
        return
    slowest = max(copies, key=lambda k: k.seconds)
    shape = slowest.kernel.instruction.shapes[0]
    yield Finding(
        rule="relayout copies",
        message=f"{_only_copy(len(copies))}: {si(seconds, 's')}, {percent(share)} of the step; "
        f"the slowest writes {shape}",
        advice="Store arrays in the order in which matmuls read them, or let one einsum do the transpose",
        section=COPIES,
        severity=share,
        saved_s=seconds,
        places=tuple(k.kernel.name for k in copies),
        lines=_lines(copies),
    )


def _only_copy(kernels: int) -> str:
    return (
        "1 kernel only copies or transposes" if kernels == 1 else f"{kernels} kernels only copy or transpose"
    )


def wide_matmuls(program: InspectedProgram) -> Iterator[Finding]:
    """Matmuls of fp32 operands."""
    if program.source.platform == "cpu":  # XLA:CPU multiplies bf16 in fp32
        return
    wide = [k for k in program.kernels if k.kernel.flops and k.kernel.dtype in WIDE]
    flops = sum(k.runs * k.kernel.flops for k in wide)
    share = flops / program.work.flops if program.work.flops else 0.0
    if share < 0.1:
        return
    seconds = sum(k.seconds for k in wide) / 2
    yield Finding(
        rule="fp32 matmuls",
        message=f"{percent(share)} of the FLOPs multiply fp32 operands, which take twice the bytes of "
        "bf16 and "
        "no fewer passes of the matrix units",
        advice="Convert both operands to bf16 and keep the sum in fp32: preferred_element_type=jnp.float32",
        section=PRECISION,
        severity=min(seconds / program.run_s, 1.0) if program.run_s else share / 2,
        saved_s=seconds,
        places=tuple(k.kernel.name for k in wide),
        lines=_lines(wide),
    )


def scores_in_hbm(program: InspectedProgram) -> Iterator[Finding]:
    """Attention scores that are written to HBM and read again."""
    found = [k for k in program.kernels if _writes_scores(program, k)]
    nbytes = sum(k.runs * k.kernel.nbytes for k in found)
    if not found:
        return
    bandwidth = program.hardware.hbm_bytes_per_s
    seconds = nbytes / bandwidth if bandwidth else 0.0
    share = seconds / program.run_s if program.run_s else LEAST_SHARE
    if share < LEAST_SHARE:
        return
    shape = max((s for k in found for s in k.kernel.instruction.shapes), key=lambda s: s.nbytes)
    yield Finding(
        rule="scores in HBM",
        message=f"Attention scores ({shape}) go through HBM: {si(nbytes, 'B')} per run",
        advice="Use a kernel that keeps them on the chip, as FlashAttention "
        "(jax.nn.dot_product_attention or a "
        "Pallas kernel)",
        section=SCORES,
        severity=share,
        saved_s=seconds,
        places=tuple(k.kernel.name for k in found),
        lines=_lines(found),
    )


def _writes_scores(program: InspectedProgram, k: PlacedKernel) -> bool:
    """Whether a kernel exponentiates an array with two long last dimensions and a batch of heads."""
    large = [s for s in k.kernel.instruction.shapes if len(s.dims) >= SCORE_DIMS]
    long = any(min(sorted(shape.dims)[-2:]) >= SCORE_SIDE and shape.nbytes >= 2**22 for shape in large)
    return long and any(i.opcode == "exponential" for i, _ in parts(program.module, k.kernel))


def host_calls(program: InspectedProgram) -> Iterator[Finding]:
    """Calls to Python on the host, for which a device waits."""
    calls = [
        visit
        for visit in walk.visits(program.module)
        if visit.instruction.opcode in HOST_OPCODES
        or (visit.instruction.opcode == "send" and "is_host_transfer=true" in visit.instruction.attributes)
        or (
            visit.instruction.opcode.startswith("custom-call")
            and HOST.search(visit.instruction.quoted("custom_call_target"))
        )
    ]
    if not calls:
        return
    runs = sum(1 if visit.times is None else visit.times for visit in calls)
    lines = dict.fromkeys(filter(None, (program.source.line_of(v.instruction) for v in calls)))
    yield Finding(
        rule="calls to the host",
        message=f"The program calls the host {'once' if runs == 1 else f'{runs:,} times'} per run, as "
        "jax.debug.print and "
        "pure_callback do, and may wait for it",
        advice="Return the values from the step and print them later, or call the host less often",
        section=SMELLS,
        severity=0.2,
        places=tuple(v.instruction.name for v in calls),
        lines=tuple(lines),
    )


def _lines(kernels: list[PlacedKernel]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(k.line for k in sorted(kernels, key=lambda k: -k.seconds) if k.line))


RULES = (
    recomputed,
    padded_matmuls,
    uneven_shards,
    relayouts,
    wide_matmuls,
    scores_in_hbm,
    host_calls,
)
