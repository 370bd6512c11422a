"""How does the same trainer run here, in several processes, and on a pod?

`python -m scalingbook_lib.lab.train --mesh "X4 Y2" --steps 30 --folder run --simulate 8` trains, keeps a
checkpoint every few steps and goes on from the last one, on whatever mesh it is given. On a TPU pod the same
line without `--simulate` and with `--pod` runs on every host. Chapter: Training.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scalingbook_lib.lab import devices
from scalingbook_lib.lab.train import lost
from scalingbook_lib.notation import Mesh

if TYPE_CHECKING:
    from scalingbook_lib.lab.train.trainer import Trainer


def main(given: Sequence[str] | None = None) -> None:
    """Train as the command line says."""
    asked = arguments().parse_args(given)
    train(joined(asked), asked.folder, steps=asked.steps, every=asked.every)


def arguments() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="scalingbook_lib.lab.train", description=__doc__)
    parser.add_argument("--mesh", default="X1", help="such as 'X4 Y2'; axes P R X Z C Y")
    parser.add_argument("--folder", type=Path, required=True, help="for checkpoints and losses")
    for name, default in {"steps": 30, "every": 5, "batch": 16, "T": 64, "microbatches": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--experts", action="store_true", help="the small model with experts")
    parser.add_argument("--simulate", type=int, default=0, help="so many devices in this process, on the CPU")
    parser.add_argument("--pod", action="store_true", help="one process a host; the platform joins them")
    parser.add_argument("--address", help="of process 0, host:port, where no platform knows it")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0, help="which of them this one is")
    return parser


def joined(asked: argparse.Namespace) -> "Trainer":
    """Find the other processes and the devices, which must come before all else; then the trainer on them."""
    devices.prepare()
    import jax

    if asked.simulate:
        jax.config.update("jax_num_cpu_devices", asked.simulate)
    if asked.pod:
        jax.distributed.initialize()
    elif asked.processes > 1:
        jax.distributed.initialize(asked.address, num_processes=asked.processes, process_id=asked.process)
    from scalingbook_lib.lab.train import trainer  # only now: its module uses JAX, which starts the devices

    model = trainer.SMALL_MOE if asked.experts else trainer.SMALL
    sizes = {"batch": asked.batch, "T": asked.T, "microbatches": asked.microbatches}
    return trainer.Trainer(model, Mesh.parse(asked.mesh), **sizes)


def train(trainer: "Trainer", folder: Path, *, steps: int, every: int) -> None:
    """Go on from the last checkpoint to step `steps`; process 0 writes each loss as soon as it is known."""
    import jax

    from scalingbook_lib.lab.train.checkpoints import Checkpoints

    folder.mkdir(parents=True, exist_ok=True)
    if jax.process_count() > 1:
        lost.watch(folder)
    # the step is part of the state, and the data depend on the step alone: nothing else has to be restored
    with Checkpoints(folder / "checkpoints") as kept:
        state = kept.restore(trainer) or trainer.start()
        for step in range(int(state["step"]), steps):
            state, loss = trainer.step(state, trainer.data(step))
            # a line for each step, written at once: what a killed run had told is not lost
            if jax.process_index() == 0:
                with (folder / "losses.txt").open("a") as told:
                    print(step, float(loss), file=told)
            if (step + 1) % every == 0 or step + 1 == steps:
                kept.save(state)


def losses(folder: Path) -> list[tuple[int, float]]:
    """Every loss that a run told, in order; steps done again after a kill stand there twice."""
    lines = (folder / "losses.txt").read_text().splitlines()
    return [(int(step), float(loss)) for step, loss in (line.split() for line in lines)]
