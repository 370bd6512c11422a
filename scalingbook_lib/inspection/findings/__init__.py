"""What a reviewer would say about a compiled program, as rules over its kernels, transfers and memory.

A rule is a function of an `InspectedProgram` that yields findings. `findings(program)` runs all of them and
puts the most expensive first.
"""

from scalingbook_lib.inspection.findings import compute, memory, traffic, waiting
from scalingbook_lib.inspection.findings.finding import Finding, Section
from scalingbook_lib.inspection.program import InspectedProgram

RULES = (*traffic.RULES, *waiting.RULES, *compute.RULES, *memory.RULES)

__all__ = ["RULES", "Finding", "Section", "findings"]


# What these rules say of a transfer is the consequence of what a more specific rule says of it.
GENERAL = ("exposed communication", "latency-bound collectives")


def findings(program: InspectedProgram) -> tuple[Finding, ...]:
    """Every finding about a program, the most expensive first.

    A transfer that a specific rule explains, such as an AllGather in a loop, is not also said to be exposed.
    """
    found = [one for rule in RULES for one in rule(program)]
    kept = [one for one in found if not (one.rule in GENERAL and _explained(one, found))]
    return tuple(sorted(kept, key=lambda one: -one.severity))


def _explained(one: Finding, found: list[Finding]) -> bool:
    """Whether a more specific finding is about the same transfers."""
    later = GENERAL[GENERAL.index(one.rule) + 1 :]
    specific = [f for f in found if f.rule not in GENERAL or f.rule in later]
    covered = {place for f in specific for place in f.places}
    return set(one.places) <= covered
