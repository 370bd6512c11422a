"""Inspects compiled programs and profiles as a reviewer would: what a run costs, and what to change.

`inspect(compiled)` reads a program of JAX, or the text of one, without JAX. Its report prints as three lines,
findings with the section of the book that explains them, and tables; its `values` are everything as plain
values. `profile(path)` does the same for a profile. Chapter: Profiling.

>>> text = '''HloModule small, num_partitions=8
... ENTRY %main (p: bf16[1024,512]) -> bf16[4096,512] {
...   %p = bf16[1024,512] parameter(0)
...   ROOT %r = bf16[4096,512] all-gather(%p), replica_groups=[2,4]<=[8], dimensions={0}
... }'''
>>> report = inspect(text, machine="v5e:2x4")
>>> print(report.summary[0])
small on TPU v5e 2x4, X2 Y4: estimated 65.9 µs per run, 100% exposed communication
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scalingbook_lib import hlo, models
from scalingbook_lib.hlo.module import HloModule
from scalingbook_lib.inspection import mesh_inference, source
from scalingbook_lib.inspection.comparison import ReportComparison, compare
from scalingbook_lib.inspection.findings import Finding, Section
from scalingbook_lib.inspection.hardware import Hardware
from scalingbook_lib.inspection.limits import Limits
from scalingbook_lib.inspection.profile_files import profile
from scalingbook_lib.inspection.profile_report import ProfileReport
from scalingbook_lib.inspection.program import InspectedProgram
from scalingbook_lib.inspection.report import ProgramReport
from scalingbook_lib.inspection.source import MemoryUse, ProgramSource
from scalingbook_lib.inspection.work import Need, need
from scalingbook_lib.machines import Machine, machine_names
from scalingbook_lib.models import Transformer
from scalingbook_lib.notation import format_sizes

__all__ = [
    "Finding",
    "InspectedProgram",
    "Limits",
    "Need",
    "ProfileReport",
    "ProgramReport",
    "ProgramSource",
    "ReportComparison",
    "Section",
    "compare",
    "inspect",
    "mesh_inference",
    "profile",
    "read_source",
]


def inspect(
    program: Any,
    *,
    machine: Machine | str | None = None,
    mesh: Any = None,
    model: Transformer | str | None = None,
    tokens: int | None = None,
    sequence: int = 8192,
    training: bool = True,
    limits: Limits | None = None,
) -> ProgramReport:
    """The report on a compiled program: `inspect(jax.jit(f).lower(x).compile(), machine="v5p:4x4x4")`.

    `program` is a compiled program of JAX, a program of `compiler.aot`, the text of one, or a ProgramSource.
    Without `machine` there are no times. The mesh is that of the program; for a text without one it is
    inferred from the groups of the collectives. `model` and `tokens` (of one run, over all devices) give the
    FLOPs that are needed. Raises an HloError if the text is not a compiled program, and a ValueError for
    options that do not fit it.
    """
    found = read_source(program, mesh=mesh)
    named = machine if machine is not None else found.machine or None
    hardware = Hardware(
        machine=machine_names.read(named).machine if isinstance(named, str) else named, sizes=found.mesh
    )
    notes = found.notes
    if hardware.machine is not None and not hardware.laid and found.devices > 1:
        notes = (
            *notes,
            f"the mesh {format_sizes(found.mesh)} does not fit {hardware.machine.name}, so that "
            "transfers have "
            "no times",
        )
    if tokens is not None and model is None:
        raise ValueError("tokens are those of a model; name it too, as in --model llama-3-8b --tokens 4Mi")
    if model is not None and tokens is None:
        raise ValueError("a model's need depends on the tokens of a run; write them, as in --tokens 4Mi")
    needed = None
    if model is not None and tokens is not None:
        known = models.find(model) if isinstance(model, str) else model
        needed = need(known, tokens, sequence, found.devices, training=training)
    program_ = InspectedProgram(source=replace(found, notes=notes), hardware=hardware, need=needed)
    return ProgramReport(program=program_, limits=limits or Limits())


def read_source(program: Any, *, mesh: Any = None) -> ProgramSource:
    """What is known about a program: its text, and its mesh, memory and arguments if they are stated.

    Raises an HloError if the text is not a compiled program, or if the mesh has another number of devices.
    """
    found = program if isinstance(program, ProgramSource) else source.read(_text_of(program))
    if not isinstance(program, str | ProgramSource):
        found = replace(found, memory=_memory_of(program), mesh=found.mesh or _mesh_of(program))
        chip, target = getattr(program, "chip", None), getattr(program, "target", "")
        if chip is not None and not found.machine:  # a program of compiler.aot, "TPU v5e 2x4"
            found = replace(found, machine=f"{chip.name.removeprefix('TPU ')}:{target.rpartition(' ')[2]}")
    sizes = hlo.sizes_of(mesh) if mesh is not None else dict(found.mesh)
    notes = found.notes
    if not sizes:
        sizes = mesh_inference.infer(found.module, found.devices)
        if found.devices > 1:
            notes = (
                *notes,
                f"the mesh {format_sizes(sizes)} is inferred from the groups of the collectives; "
                "name the axes with --mesh",
            )
    if (note := _conditionals(found.module)) and note not in notes:
        notes = (*notes, note)
    _check(found, sizes)
    return replace(found, mesh=sizes, notes=notes)


def _conditionals(module: hlo.HloModule) -> str:
    """Which branch of a conditional counts; "" for a program without one."""
    computations = module.computations.values()
    count = sum(i.opcode == "conditional" for each in computations for i in each.instructions.values())
    which = "the conditional" if count == 1 else f"each of the {count} conditionals"
    rule = "the branch that moves most between devices, or else computes most, is counted"
    return f"of {which}, {rule}" if count else ""


def _check(found: ProgramSource, sizes: Mapping[str, int]) -> None:
    """Raise an HloError if a mesh does not have the program's number of devices."""
    total = 1
    for size in sizes.values():
        total *= size
    if found.devices > 1 and total != found.devices:
        raise hlo.HloError(
            f"the mesh {format_sizes(sizes)} has {total:,} devices, but the program was compiled for "
            f"{found.devices:,}; name its own axes"
        )


def _text_of(program: Any) -> str:
    """The text of a compiled program."""
    if isinstance(program, str):
        return program
    if isinstance(program, HloModule):
        raise hlo.HloError("a parsed module has lost its text; give the text itself")
    return program.as_text() if hasattr(program, "as_text") else program.text


def _mesh_of(program: Any) -> dict[str, int]:
    try:
        return hlo.sizes_of(hlo.mesh_of(program))
    except hlo.HloError:
        return {}


def _memory_of(program: Any) -> MemoryUse | None:
    """The memory that XLA reports for a compiled program; None if it reports none."""
    compiled = getattr(program, "compiled", program)
    told = compiled.memory_analysis() if hasattr(compiled, "memory_analysis") else None
    if told is None:
        return None
    return MemoryUse(
        arguments=told.argument_size_in_bytes,
        outputs=told.output_size_in_bytes,
        aliased=told.alias_size_in_bytes,
        temporaries=told.temp_size_in_bytes,
    )
