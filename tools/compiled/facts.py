"""Get the TPU compiler's results for each program, for `data/compiled_programs.json`.

For most training programs, compilation is stopped after buffer assignment: generating kernels takes ten times
as long and changes no matmul, collective or byte. Serving programs, and those in `TO_THE_END`, are compiled
fully for the compiler's cycle estimates. `python -m tools.record programs` compiles all of them again.
`python -m tools.compiled.facts NAME ...` compiles those whose names start with NAME or, without a name, those
that are not recorded yet.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from scalingbook_lab.compiler import aot, memory
from scalingbook_lib import hlo
from scalingbook_lib.hlo import cost, not_counted
from tools import record
from tools.compiled.case import Case, Moved, over
from tools.compiled.others import held
from tools.environment import ROOT

TABLE = record.path_of("programs")
ASSIGNED = "after_optimizations-buffer-assignment.txt"
READ = "after_optimizations_after_buffer_assignment.txt"  # the last dump file that is needed
KERNELS = "after_codegen.txt"  # has the cycle estimates
TO_THE_END: tuple[str, ...] = (
    "train: one chip, full checkpointing",
    "train: one TPU7x chip, FSDP over its two devices",
    "train: DP",
    "train: FSDP, MHA, no gate",
    "train: FSDP, bf16 optimizer state",
    "train: FSDP on TPU7x",
    "train: HSDP",
    "train: TP",
    "train: TP on TPU7x",
    "train: FSDP and TP",
    "train: MoE, FSDP without EP",
    "train: 64 chips, HSDP and TP",
    "train: 4,096 chips, DP, FSDP and TP",
    "train explicitly: FSDP",
)
NAMED = "jit_step", "jit_local"  # names of the step's program; small helper programs are compiled first


@dataclass(frozen=True, kw_only=True)
class Facts:
    """One device's matmul FLOPs, bytes held, cycles (0 if unknown), collectives, and what is not counted.

    `collectives` has, by kind and axes, how often it runs and the bytes that a device receives in total.
    """

    name: str
    topology: str
    flops: int
    held: int
    cycles: int
    collectives: Mapping[str, tuple[int, float]]
    not_counted: str

    @property
    def moved(self) -> Moved:
        """The bytes received, by collective."""
        found: Moved = {}
        for key, (_, nbytes) in self.collectives.items():
            name = over(*key.split(" "))
            found[name] = found.get(name, 0.0) + nbytes
        return found


@cache
def recorded() -> dict[str, Facts]:
    """Return the recorded results, by name."""
    return {row["name"]: Facts(**row) for row in json.loads(TABLE.read_text())} if TABLE.exists() else {}


def ask(case: Case, *, cycles: bool = False) -> Facts:
    """Compile one program; with `cycles`, prefill and some training programs fully."""
    if case.phase == "decode":
        return whole(case)
    return early(case, KERNELS if cycles and (case.phase != "train" or case.name in TO_THE_END) else READ)


def whole(case: Case) -> Facts:
    """Return the results of a full compilation."""
    found = case.compiled()
    if isinstance(found, aot.Program):
        return facts(case, found.text, found.memory.needed)
    return facts(case, found.as_text(), memory.memory(found, None).needed)


def early(case: Case, last: str, most_s: float = 900) -> Facts:
    """Return the results from the dump of a compilation that is stopped once the last file is written."""
    code = f"from tools.compiled.cases import cases; cases()[{case.name!r}].compiled()"
    with tempfile.TemporaryDirectory() as folder:
        given = {"XLA_FLAGS": f"--xla_dump_to={folder} --xla_dump_hlo_as_text", "JAX_PLATFORMS": "cpu"}
        said = Path(folder) / "said.txt"
        with said.open("w") as errors:
            child = subprocess.Popen(
                [sys.executable, "-c", code], env=os.environ | given, cwd=ROOT, stderr=errors
            )
            until, done = time.monotonic() + most_s, []
            try:
                while time.monotonic() < until and not (done := _written(folder, last)):
                    if child.poll() is not None:
                        raise RuntimeError(f"{case.name}: {said.read_text()[-2000:]}")
                    time.sleep(0.2)
                time.sleep(1)  # the file exists, but may not be complete yet
                texts = {
                    name: done[0].with_name(done[0].name.replace(last, name)) for name in (READ, ASSIGNED)
                }
                found = facts(case, texts[READ].read_text(), held(texts[ASSIGNED].read_text()))
                return replace(found, cycles=cost.cycles(cost.fusions(done[0].read_text())))
            finally:
                child.kill()
                child.wait()


def _written(folder: str, last: str) -> list[Path]:
    """Return the dump files of the step, if they exist yet."""
    return [path for path in Path(folder).glob(f"*{last}") if any(name in path.name for name in NAMED)]


def facts(case: Case, text: str, nbytes: int) -> Facts:
    """Return the results in the text of a program."""
    found: dict[str, tuple[int, float]] = {}
    for row in hlo.collectives(text, case.sizes):
        key, times = f"{row.kind} {row.axes}", row.times or 1
        before = found.get(key, (0, 0.0))
        found[key] = before[0] + times, before[1] + times * row.received_bytes
    return Facts(
        name=case.name,
        topology=case.topology,
        flops=cost.matmul_flops(text),
        held=nbytes,
        cycles=cost.cycles(cost.fusions(text)),
        collectives=found,
        not_counted="; ".join(one.message for one in not_counted.not_counted(text)),
    )


def rows(names: Sequence[str] = ("",)) -> Iterator[dict[str, Any]]:
    """Yield the record; missing programs, and those whose names start with one of `names`, are compiled
    again.
    """
    from tools.compiled.cases import cases

    for name, case in cases().items():
        known = recorded().get(name)
        asked = ask(case, cycles=True) if known is None or name.startswith(tuple(names)) else known
        yield asdict(asked)


if __name__ == "__main__":
    TABLE.write_text(record.lines(rows(sys.argv[1:])))
