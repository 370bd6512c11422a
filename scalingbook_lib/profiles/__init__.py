"""Reads, stores and compares profiles: which operation ran on which device, when, and for how long.

The module needs no JAX. `load` opens a stored trace, `xplane.read` a profiler's file; `expected` derives a
trace from a compiled program. A `Trace` prints as a table, `trace.breakdown` splits its time, and
`against(trace, chip)` compares every operation with its roofline. Chapter: Profiling.

>>> trace = load("serial-before")
>>> print(trace.breakdown)
of 20.4 ms a run, 4.78 ms compute, 12.6 ms communicate (12.6 ms of it exposed), 3.08 ms idle
>>> trace.collectives
{'all-reduce over X of 1.05 MB': 12.0}
"""

from scalingbook_lib.profiles.attained import TraceRoofline, against
from scalingbook_lib.profiles.expected import expected
from scalingbook_lib.profiles.files import load, names, save
from scalingbook_lib.profiles.intervals import Breakdown, Event
from scalingbook_lib.profiles.trace import HostEvent, Op, OperationRow, Trace
from scalingbook_lib.profiles.viewers import Viewer, chrome, perfetto, xprof

__all__ = [
    "Breakdown",
    "Event",
    "HostEvent",
    "Op",
    "OperationRow",
    "Trace",
    "TraceRoofline",
    "Viewer",
    "against",
    "chrome",
    "expected",
    "load",
    "names",
    "perfetto",
    "save",
    "xprof",
]
