"""Reads XLA's compiled programs from their text: collectives, FLOPs, schedule, memory. It needs no JAX.

`collectives(program, mesh)` lists what a program communicates, and `compare(prediction, program)` explains
how that differs from a prediction. `schedule`, `cost`, `buffers`, `bundles` and `listings` read the rest.
Chapter: Profiling.

>>> text = '''HloModule small
... ENTRY %main (p: bf16[1024,512]) -> bf16[4096,512] {
...   %p = bf16[1024,512] parameter(0)
...   ROOT %r = bf16[4096,512] all-gather(%p), replica_groups=[2,4]<=[8], dimensions={0}
... }'''
>>> print(collectives(text, {"X": 2, "Y": 4}))
collective  axes  array         received  times
all-gather  Y     bf16 4.19 MB   3.15 MB      1
>>> compare({"all-gather Y": 2 * 4096 * 512}, text, {"X": 2, "Y": 4}).agrees
True
"""

from scalingbook_lib.hlo.comparison import ComparisonLine, ProgramComparison, compare
from scalingbook_lib.hlo.compiled_collectives import Collectives, CompiledCollective, collectives
from scalingbook_lib.hlo.mesh import mesh_of, sizes_of
from scalingbook_lib.hlo.module import HloError, HloModule, parse
from scalingbook_lib.hlo.not_counted import NotCounted
from scalingbook_lib.hlo.out_of_memory import DoesNotFit, HbmAllocation

__all__ = [
    "Collectives",
    "ComparisonLine",
    "CompiledCollective",
    "DoesNotFit",
    "HbmAllocation",
    "HloError",
    "HloModule",
    "NotCounted",
    "ProgramComparison",
    "collectives",
    "compare",
    "mesh_of",
    "parse",
    "sizes_of",
]
