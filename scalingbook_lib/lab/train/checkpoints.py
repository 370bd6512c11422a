"""What must be on disk so that a killed run loses nothing, whatever mesh it goes on with?

`Checkpoints(folder)` keeps states by Orbax: each device writes the blocks that it holds, a checkpoint counts
once it is whole, and a state is read back into the blocks of the mesh that asks. The step is part of the
state and the data depend on the step alone, so nothing else is kept. Chapter: Training.
"""

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils

from scalingbook_lib.lab.train.trainer import State, Trainer


class DamagedError(RuntimeError):
    """No checkpoint of a folder can be read."""


class Checkpoints:
    """The last few states of a run in a folder (on a pod, one that all hosts see)."""

    def __init__(self, folder: str | Path, *, keep: int = 2) -> None:
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, create=True)
        self._folder = Path(folder).absolute()
        self._manager = ocp.CheckpointManager(self._folder, options=options)

    def save(self, state: State) -> None:
        """Copy a state from the devices, and write it while they go on."""
        self._manager.save(int(state["step"]), args=ocp.args.StandardSave(state))  # pyright: ignore

    def latest(self) -> int | None:
        """The step of the last whole checkpoint."""
        return self._manager.latest_step()

    def restore(self, trainer: Trainer) -> State | None:
        """The last state that can be read, split as this trainer's mesh wants it; None where there is none.

        What is newer than it is damaged: that is said, and set aside, since a step is written only once.
        """
        steps = sorted(self._manager.all_steps(), reverse=True)
        broken: list[int] = []
        why = ""
        with _closed_loops_forgiven():
            for step in steps:
                state, why = _read(self._folder, step, trainer)
                if state is not None:
                    self._set_aside(broken, step)
                    return state
                broken.append(step)
        if steps:
            raise DamagedError(
                f"{self._folder}: none of the checkpoints of steps {', '.join(map(str, steps))} can be read "
                f"({why}); give the model that wrote them, or another folder"
            )
        return None

    def _set_aside(self, steps: list[int], whole: int) -> None:
        for step in steps if jax.process_index() == 0 else ():
            aside = self._folder / f"{step}.damaged"
            shutil.rmtree(aside, ignore_errors=True)  # of an earlier time
            (self._folder / str(step)).rename(aside)
            what = f"the checkpoint of step {step} cannot be read, and is now {aside}"
            print(f"{what}: the run goes on from step {whole}", file=sys.stderr, flush=True)
        if steps:
            _agreed(True)  # nobody looks before all are moved
            self._manager.reload()

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *error: object) -> None:
        """Wait until all is written."""
        self._manager.close()


def _read(folder: Path, step: int, trainer: Trainer) -> tuple[State | None, str]:
    """A state where every process could read its blocks; or else why this one could not."""
    # Orbax reads into the shardings that it is given: the mesh of before need not be the mesh of now
    wanted: Any = ocp.args.StandardRestore(trainer.structs)  # pyright: ignore
    me = jax.process_index()  # a reader alone: who fails would leave the others waiting for it
    alone = ocp.options.MultiprocessingOptions(
        primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"read{me}"
    )
    handler = ocp.StandardCheckpointHandler(multiprocessing_options=alone)
    try:
        with ocp.Checkpointer(handler, multiprocessing_options=alone) as reader:  # pyright: ignore
            state, why = dict(reader.restore(folder / str(step) / "default", args=wanted)), ""
    except Exception as error:  # Orbax raises what its layers do: of JSON, of TensorStore, bare Exceptions
        state, why = None, f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return (state, why) if _agreed(state is not None) else (None, why or "by another process")


def _agreed(mine: bool) -> bool:
    """Is it so for every process?"""
    return mine if jax.process_count() == 1 else bool(multihost_utils.process_allgather(np.array(mine)).all())


@contextlib.contextmanager
def _closed_loops_forgiven() -> Iterator[None]:
    """Reads that end after another has failed find their loop closed, and each would print its stack."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, stack: Any) -> None:
        if str(error) != "Event loop is closed":
            before(kind, error, stack)

    sys.excepthook = hook
    try:
        yield
    finally:
        sys.excepthook = before
