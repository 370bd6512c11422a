"""Makes the ten mysteries: a profile, logs, tables, a script and compiled programs with one fault each.

`python -m tools.mysteries` writes all of them to `data/mysteries`, or only those that are named, as in
`python -m tools.mysteries ranks.csv`. The programs need JAX and, two of them, the TPU compiler; all ten
take about five minutes. With `--healthy` before the names, it writes the same files without their faults to
`tests/book/healthy_mysteries`. In `looks.toml` stand the commands and calls that find each fault, at most
five for each mystery; a test runs them on both. Chapter: Profiling (`chapters/profiling_mysteries.md`).
"""

from tools.environment import ROOT

FOLDER = ROOT / "data" / "mysteries"
HEALTHY = ROOT / "tests" / "book" / "healthy_mysteries"
LOOKS = ROOT / "tools" / "mysteries" / "looks.toml"
