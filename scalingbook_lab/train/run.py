"""Runs the trainer in one process, in several, or on a pod.

`python -m scalingbook_lab.train --mesh "X4 Y2" --steps 30 --folder run --simulate 8` trains, saves a
checkpoint every few steps and resumes from the last one, on whatever mesh it is given. On a TPU pod the same
line with `--pod` instead of `--simulate` runs on every host. Chapter: Training.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scalingbook_lab import devices
from scalingbook_lab.train import host_failures
from scalingbook_lib.notation import Mesh

if TYPE_CHECKING:
    from scalingbook_lab.train.trainer import Trainer


def main(argv: Sequence[str] | None = None) -> None:
    """Train as the command line specifies."""
    args = arguments().parse_args(argv)
    train(join(args), args.folder, steps=args.steps, every=args.every)


def arguments() -> argparse.ArgumentParser:
    """Return the command-line parser."""
    parser = argparse.ArgumentParser(prog="scalingbook_lab.train", description=__doc__)
    parser.add_argument("--mesh", default="X1", help="such as 'X4 Y2'; axes P R X Z C Y")
    parser.add_argument("--folder", type=Path, required=True, help="for checkpoints and losses")
    for name, default in {"steps": 30, "every": 5, "batch": 16, "T": 64, "microbatches": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--experts", action="store_true", help="the small model with experts")
    parser.add_argument(
        "--simulate", type=int, default=0, help="the number of simulated devices in this process, on the CPU"
    )
    parser.add_argument("--pod", action="store_true", help="one process per host; the platform joins them")
    parser.add_argument("--address", help="host:port of process 0, where the platform does not provide it")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0, help="the index of this process")
    return parser


def join(args: argparse.Namespace) -> "Trainer":
    """Join the other processes and find the devices, which must come first; then return the trainer."""
    devices.prepare()
    import jax

    if args.simulate:
        jax.config.update("jax_num_cpu_devices", args.simulate)
    if args.pod:
        jax.distributed.initialize()
    elif args.processes > 1:
        jax.distributed.initialize(args.address, num_processes=args.processes, process_id=args.process)
    from scalingbook_lab.train import (
        trainer,  # imported late, because its module uses JAX, which starts the devices
    )

    model = trainer.SMALL_MOE if args.experts else trainer.SMALL
    sizes = {"batch": args.batch, "T": args.T, "microbatches": args.microbatches}
    return trainer.Trainer(model, Mesh.parse(args.mesh), **sizes)


def train(trainer: "Trainer", folder: Path, *, steps: int, every: int) -> None:
    """Resume from the last checkpoint and train up to step `steps`.

    Process 0 writes each loss as soon as it is known.
    """
    import jax

    from scalingbook_lab.train.checkpoints import Checkpoints

    folder.mkdir(parents=True, exist_ok=True)
    if jax.process_count() > 1:
        host_failures.watch(folder)
    # the step is part of the state, and the data depend on the step alone, so nothing else is restored
    with Checkpoints(folder / "checkpoints") as checkpoints:
        state = checkpoints.restore(trainer) or trainer.start()
        for step in range(int(state["step"]), steps):
            state, loss = trainer.step(state, trainer.data(step))
            # one line per step, flushed at once, so that a killed run loses none
            if jax.process_index() == 0:
                with (folder / "losses.txt").open("a") as log:
                    print(step, float(loss), file=log)
            if (step + 1) % every == 0 or step + 1 == steps:
                checkpoints.save(state)


def losses(folder: Path) -> list[tuple[int, float]]:
    """Return every (step, loss) that a run wrote, in order; steps repeated after a failure appear twice."""
    lines = (folder / "losses.txt").read_text().splitlines()
    return [(int(step), float(loss)) for step, loss in (line.split() for line in lines)]
