"""Reads the #SBATCH lines of a script: the nodes and the GPUs that Slurm allocates, and its variables.

>>> allocation = read("#SBATCH --nodes=16\\n#SBATCH --gres=gpu:h100:8\\n")
>>> allocation.nodes, allocation.gpus_per_node, dict(allocation.variables())["SLURM_JOB_NUM_NODES"]
(16, 8, '16')
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(r"(?m)^[ \t]*#SBATCH[ \t]+(.*)$")
_OPTIONS = {
    "nodes": r"(?:--nodes[= ]|-N[ =]?)(\d{1,6})(?!\d|-)",
    "tasks_per_node": r"--ntasks-per-node[= ](\d{1,6})",
    "tasks": r"(?:--ntasks[= ]|-n[ =]?)(\d{1,7})",
    "gpus_per_node": r"(?:--gpus-per-node[= ](?:[\w.-]+:)?|--gres[= ]gpu:(?:[\w.-]+:)?)(\d{1,4})",
    "gpus": r"(?:--gpus[= ]|-G[ =]?)(?:[\w.-]+:)?(\d{1,6})",
}


@dataclass(frozen=True, slots=True)
class SlurmAllocation:
    """What the #SBATCH lines ask for; None where they do not say, and `line` is that of the last of them."""

    nodes: int | None = None
    tasks_per_node: int | None = None
    tasks: int | None = None
    gpus_per_node: int | None = None
    gpus: int | None = None
    line: int = 0

    @property
    def each(self) -> int | None:
        """The GPUs of a node, or else its tasks, as a task of training has one GPU."""
        if self.gpus and self.nodes and not self.gpus_per_node and self.gpus % self.nodes == 0:
            return self.gpus // self.nodes
        return self.gpus_per_node or self.tasks_per_node

    def variables(self) -> Iterator[tuple[str, str]]:
        """The environment variables that Slurm sets accordingly."""
        tasks = self.tasks
        if tasks is None and self.nodes and self.tasks_per_node:
            tasks = self.nodes * self.tasks_per_node
        named = {
            "SLURM_NNODES": self.nodes,
            "SLURM_JOB_NUM_NODES": self.nodes,
            "SLURM_NTASKS_PER_NODE": self.tasks_per_node,
            "SLURM_NTASKS": tasks,
            "SLURM_NPROCS": tasks,
            "SLURM_GPUS_PER_NODE": self.gpus_per_node,
            "SLURM_GPUS_ON_NODE": self.each if self.gpus_per_node or self.gpus else None,
            "SLURM_GPUS": self.gpus,
        }
        yield from ((name, str(value)) for name, value in named.items() if value is not None)


NONE = SlurmAllocation()


def read(text: str) -> SlurmAllocation:
    """The allocation of a script; of an option that stands twice, the last one counts."""
    found: dict[str, int] = {}
    for match in _LINE.finditer(text):
        for name, pattern in _OPTIONS.items():
            if option := re.match(pattern, match[1]):
                found[name] = int(option[1])
                found["line"] = text.count("\n", 0, match.start()) + 1
    return SlurmAllocation(**found)
