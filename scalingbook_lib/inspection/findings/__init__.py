"""What a reviewer would say about a compiled program, as rules over its kernels, transfers and memory.

A rule is a function of an `InspectedProgram` that yields findings. `findings(program)` runs all of them and
puts the most expensive first.
"""

from scalingbook_lib.inspection.findings import compute, memory, transfers
from scalingbook_lib.inspection.findings.finding import Finding, Section
from scalingbook_lib.inspection.program import InspectedProgram

RULES = (*transfers.RULES, *compute.RULES, *memory.RULES)

__all__ = ["RULES", "Finding", "Section", "findings"]


def findings(program: InspectedProgram) -> tuple[Finding, ...]:
    """Every finding about a program, the most expensive first."""
    found = [one for rule in RULES for one in rule(program)]
    return tuple(sorted(found, key=lambda one: -one.severity))
