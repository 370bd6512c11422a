"""Findings about memory: replicated state, arguments that are not donated, padding, a peak near the limit."""

import math
import re
from collections.abc import Iterable, Iterator

from scalingbook_lib.hlo import walk
from scalingbook_lib.hlo.module import Instruction
from scalingbook_lib.inspection.findings import dataflow
from scalingbook_lib.inspection.findings.finding import (
    DONATION,
    FSDP,
    PEAK_MEMORY,
    TILES,
    Finding,
    axes_in_words,
)
from scalingbook_lib.inspection.memory import aliases, padded_bytes
from scalingbook_lib.inspection.program import InspectedProgram
from scalingbook_lib.inspection.source import Argument
from scalingbook_lib.units import binary, percent

LEAST_BYTES = 2**20
LEAST_SHARE = 0.02  # of the peak
MOST_FULL = 0.92  # of a device's memory: above, fragmentation and a second program may not fit
OPTIMIZER = re.compile(
    r"\bopt|optim|moment|adam|\bmu\b|\bnu\b|\['[mv]'\]|\.[mv]\b|exp_avg|master|slot|accum|ema\b", re.I
)

# Arguments that a program other than a training step replaces: activations are not among them.
STATE = re.compile(r"cache|state|param|\bkv\b|weights", re.I)
# Kernels whose result is a new value of an operand, if they do not multiply it.
_UPDATING = ("fusion", "add", "subtract", "multiply", "dynamic-update-slice", "scatter", "select", "convert")


def replicated_state(program: InspectedProgram) -> Iterator[Finding]:
    """Optimizer state or weights that a training step updates, replicated on a mesh axis."""
    replicated = [a for a in program.arguments if a.replicated]
    sizes = program.source.mesh
    for what, chosen, advice in (
        ("optimizer state", True, "Shard it over that axis (ZeRO-1): every device updates its own shard"),
        ("weights", False, "Shard them over that axis (FSDP), if they or their gradients limit memory"),
    ):
        groups: dict[tuple[str, ...], list[Argument]] = {}
        for a in replicated:
            axes = tuple(axis for axis in a.replicated or () if sizes.get(axis, 1) > 1)
            if bool(OPTIMIZER.search(a.name)) == chosen and axes and _is_state(program, a):
                groups.setdefault(axes, []).append(a)
        for axes, group in groups.items():
            nbytes, n = sum(a.nbytes for a in group), math.prod(sizes[axis] for axis in axes)
            saved = nbytes * (1 - 1 / n)
            if _negligible(program, saved):
                continue
            # a step that shards its weights has no reason to replicate its optimizer state
            severity = 0.5 * saved / program.memory.peak * (1.0 if chosen else 0.5)
            yield Finding(
                rule="replicated state",
                message=f"{binary(nbytes)} of {what} ({_listed(group)}) is replicated over "
                f"{axes_in_words(axes)}, on {n} devices",
                advice=f"{advice}, which takes {binary(nbytes / n)} on each",
                section=FSDP,
                severity=severity,
                saved_bytes=saved,
                places=tuple(a.name for a in group),
            )


def _is_state(program: InspectedProgram, a: Argument) -> bool:
    """Whether an argument is state of a training step: it returns a new value, or is optimizer state by name.

    A step that shards the gradients of a replicated optimizer state returns a new value of another shape.
    """
    if not program.is_training:
        return False
    return bool(OPTIMIZER.search(a.name)) or any(_name(p) == a.name for p, _ in updates(program))


def updates(program: InspectedProgram) -> list[tuple[Instruction, int]]:
    """The arguments of which the program returns a new value, each with the number of the output.

    The new value has the type of the argument, and is computed from it element by element or in a loop: a
    gradient has the type of its weights, but is not computed from them in this way.
    """
    entry = program.module.entry
    outputs = entry.root.operands if entry.root.opcode == "tuple" else (entry.root.name,)
    found = []
    for k, name in enumerate(outputs):
        for parameter in _sources(program, name):
            if parameter.shapes and parameter.shapes[0] in entry.root.shapes[k : k + 1]:
                found.append((parameter, k))
                break
    return found


def _sources(program: InspectedProgram, name: str) -> Iterator[Instruction]:
    """The parameters from which a value is computed by one kernel, or by a loop that carries it."""
    entry = program.module.entry
    value = walk.resolve(entry, name)
    if value is None or value.opcode == "parameter":
        return
    operands = value.operands
    if value.opcode not in (*_UPDATING, "get-tuple-element"):
        return
    if value.opcode == "get-tuple-element":
        whole = entry.instructions.get(value.operands[0])
        if whole is None:
            return
        operands = whole.operands
        if whole.opcode == "while":
            state = entry.instructions.get(whole.operands[0])
            index = re.search(r"index=(\d+)", value.attributes)
            operands = state.operands[int(index[1]) :][:1] if state is not None and index else ()
    for operand in operands:
        source = dataflow.origin(program.module, entry, operand)
        if source is not None and source.opcode == "parameter" and not _is_multiplied(program, value, source):
            yield source


def _is_multiplied(program: InspectedProgram, value: Instruction, source: Instruction) -> bool:
    """Whether the kernel that makes a value multiplies an argument as a matrix."""
    entry = program.module.entry
    kernel = value
    if value.opcode == "get-tuple-element":
        kernel = entry.instructions.get(value.operands[0], value)
    places = [
        n for n, name in enumerate(kernel.operands) if dataflow.origin(program.module, entry, name) == source
    ]
    return any(dataflow.feeds_matmul(program.module, kernel, n) for n in places)


def not_donated(program: InspectedProgram) -> Iterator[Finding]:
    """New values of arguments that could reuse their memory, if the arguments were donated."""
    donated = aliases(program.module.header)
    free = [p for p, k in updates(program) if k not in donated and _number(p) not in donated.values()]
    pairs = [p for p in free if program.is_training or STATE.search(_name(p))]
    saved = sum(p.shapes[0].nbytes for p in pairs)
    if not pairs or _negligible(program, saved):
        return
    names = {a.name: a for a in program.arguments}
    group = [names[name] for p in pairs if (name := _name(p)) in names]
    told = f" ({_listed(group)})" if group else ""
    yield Finding(
        rule="not donated",
        message=f"The program returns updated values for {binary(saved)} of arguments{told} that are not "
        "donated, so the old and the new values are in memory at the same time",
        advice="Donate the arguments that the caller does not use again: jax.jit(step, donate_argnums=0)",
        section=DONATION,
        severity=0.5 * saved / program.memory.peak,
        saved_bytes=saved,
        places=tuple(map(_name, pairs)),
    )


def padded_arrays(program: InspectedProgram) -> Iterator[Finding]:
    """Arrays whose tiles hold much padding."""
    if program.source.platform != "tpu":
        return
    found: list[tuple[str, float, float]] = []
    for i in program.module.entry.instructions.values():
        if i.opcode not in ("parameter", "fusion", "copy", "convolution", "all-gather"):
            continue
        for array in re.findall(r"[a-z]\w*\[[\d,]+\]\{[^}]*\}", i.type):
            if "S(" in array:
                continue
            padded, plain = padded_bytes(array), _plain_bytes(i, array)
            if padded > 1.25 * plain:
                found.append((array.partition("{")[0], padded, plain))
    wasted = sum(padded - plain for _, padded, plain in found)
    if not found or _negligible(program, wasted):
        return
    array, padded, plain = max(found, key=lambda one: one[1] - one[2])
    yield Finding(
        rule="padded arrays",
        message=f"{array} takes {binary(padded)} instead of {binary(plain)}, because its last "
        "dimensions do not "
        f"fill tiles of 8 × 128; padding of all such arrays takes {binary(wasted)}",
        advice="Make the last dimension a multiple of 128, or move a small dimension to the front",
        section=TILES,
        severity=0.5 * wasted / max(program.memory.peak, 1.0),
        saved_bytes=wasted,
    )


def nearly_full(program: InspectedProgram) -> Iterator[Finding]:
    """A peak close to the memory of a device, or above it."""
    limit = program.hardware.hbm_bytes
    if not limit or program.memory.peak < MOST_FULL * limit:
        return
    terms = program.memory.terms
    most = max(terms, key=lambda name: terms[name])
    share = program.memory.peak / limit
    yield Finding(
        rule="memory nearly full",
        message=f"The peak of {binary(program.memory.peak)} is {percent(share)} of a device's "
        f"{binary(limit)}; "
        f"{binary(terms[most])} are {most}",
        advice={
            "arguments": "Shard the arguments over more devices",
            "outputs": "Donate arguments, so that outputs reuse their memory",
            "temporaries": "Recompute more (jax.checkpoint), or run smaller microbatches",
        }[most],
        section=PEAK_MEMORY,
        severity=min(share - MOST_FULL + 0.25, 1.0),
    )


def _negligible(program: InspectedProgram, nbytes: float) -> bool:
    return nbytes < max(LEAST_BYTES, LEAST_SHARE * program.memory.peak)


def _parameters(program: InspectedProgram) -> list[Instruction]:
    return [i for i in program.module.entry.instructions.values() if i.opcode == "parameter"]


def _number(parameter: Instruction) -> int:
    return int(parameter.operands[0])


def _name(parameter: Instruction) -> str:
    return parameter.quoted("op_name").replace("\\'", "'") or parameter.name


def _plain_bytes(i: Instruction, array: str) -> float:
    """The bytes of an array of an instruction's type without padding."""
    return next((shape.nbytes for shape in i.shapes if array.startswith(str(shape))), 0.0)


def _listed(group: Iterable[Argument]) -> str:
    """The first names of a group: "state['mu'], state['nu'] and 6 more"."""
    names = [a.name for a in group]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


RULES = (replicated_state, not_donated, padded_arrays, nearly_full)
