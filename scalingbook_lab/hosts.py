"""Check that all hosts run the same program, and report which mesh axes cross host boundaries.

`python -m scalingbook_lab.hosts` takes the trainer's arguments, joins the same processes, trains nothing, and
has process 0 print one line per process. Run it first on every new cluster: it finishes in seconds, and it
fails with an error in cases where two processes would have deadlocked. Chapter: Training.
"""

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scalingbook_lab.train import run
from scalingbook_lib.units import Result
from scalingbook_lib.words import pluralize

if TYPE_CHECKING:
    from scalingbook_lab.train.trainer import Trainer

BYTES = 512  # maximum length of one process's JSON record


@dataclass(frozen=True, slots=True)
class Host(Result):
    """One process: its host, devices and JAX version. `program` is a fingerprint of its training step."""

    process: int
    name: str
    devices: int
    kind: str
    jax: str
    program: str

    def __str__(self) -> str:
        devices = f"{pluralize(self.devices, 'device')} ({self.kind})"
        return f"process {self.process} on {self.name}: {devices}, JAX {self.jax}, program {self.program}"


@dataclass(frozen=True, slots=True)
class Hosts(Result):
    """All processes, and the number of them that each mesh axis spans."""

    hosts: tuple[Host, ...]
    crossing: dict[str, int]

    @property
    def same(self) -> bool:
        """Whether all processes run the same program with the same version of JAX."""
        return len({(host.jax, host.program) for host in self.hosts}) == 1

    def __str__(self) -> str:
        agreement = "all run the same program" if self.same else "NOT all run the same program: do not start"
        return "\n".join([*map(str, self.hosts), format_crossing(self.crossing), agreement])


def format_crossing(crossing: dict[str, int]) -> str:
    """Return in words which axes span several processes and which stay within one."""
    parts = [
        f"{axis} meets {n} processes" if n > 1 else f"{axis} stays in one" for axis, n in crossing.items()
    ]
    return "; ".join(parts) or "one device"


def crossing(mesh: Any) -> dict[str, int]:
    """Return the largest number of processes that a line of devices along each axis spans.

    Axes of size 1 are left out. `mesh` is a JAX mesh: of this machine's devices, of a pod's, or of a slice
    that only the compiler knows.
    """
    owner = np.vectorize(lambda device: device.process_index, otypes=[int])(mesh.devices)
    return {
        axis: max(len(set(line)) for line in np.moveaxis(owner, k, -1).reshape(-1, owner.shape[k]).tolist())
        for k, axis in enumerate(mesh.axis_names)
        if owner.shape[k] > 1
    }


def fingerprint(trainer: "Trainer") -> str:
    """Return twelve hexadecimal digits of a hash of the training step's StableHLO."""
    import jax

    text = jax.jit(trainer.spread).lower(trainer.structs, trainer.tokens).as_text()
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def here(trainer: "Trainer") -> Host:
    """Return the record of this process."""
    import jax

    local = jax.local_devices()
    kind = local[0].device_kind
    return Host(jax.process_index(), platform.node(), len(local), kind, jax.__version__, fingerprint(trainer))


def gather_hosts(trainer: "Trainer") -> Hosts:
    """Return all processes. This is a collective call, so every process must make it."""
    from jax.experimental import multihost_utils

    encoded = json.dumps(asdict(here(trainer))).encode().ljust(BYTES)
    rows = multihost_utils.process_allgather(np.frombuffer(encoded, np.uint8)).reshape(-1, BYTES)
    hosts = tuple(Host(**json.loads(bytes(row))) for row in np.asarray(rows))
    return Hosts(hosts, crossing(trainer.devices))


def main(argv: Sequence[str] | None = None) -> None:
    """Join as the trainer would, and print one line per process. Raises SystemExit if programs differ."""
    found = gather_hosts(run.join(run.arguments().parse_args(argv)))
    import jax

    if jax.process_index() == 0:
        print(found, flush=True)
    if not found.same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
