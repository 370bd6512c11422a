"""Recorded output of the TPU compiler, and parsers for its HLO text.

`layout` and `line` parse HLO; `lines`, `cycles` and `bundles` are records of the compiler `RECORDED`, which
`tools.recorded` makes again and tests compare. None of it needs a compiler, so it runs in a browser. Chapter:
Profiling.
"""

from scalingbook_lib.machines.chips import Source

RECORDED = Source(
    text="libtpu 0.0.51 under JAX 0.12.0, compiling for slices that are not there", as_of="2026-11-21"
)
"""The compiler whose output and estimates are recorded."""
