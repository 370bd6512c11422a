"""What does a compiled TPU program say? Its words, and what the real compiler said of some programs.

`layout` and `line` read the text; `lines`, `cycles` and `bundles` are records of the compiler named by
`RECORDED`: `tools.recorded` makes them again, and tests of the laboratory hold them beside it. All
of it runs where no compiler is: in a browser. Chapter: Profiling.
"""

from scalingbook_lib.machines.chips import Source

RECORDED = Source(
    text="libtpu 0.0.51 under JAX 0.12.0, compiling for slices that are not there", as_of="2026-11-21"
)
"""The compiler whose words and estimates stand here."""
