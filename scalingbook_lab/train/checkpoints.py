"""Save the trainer's state, and restore it on whatever mesh the run resumes.

`Checkpoints(folder)` saves states with Orbax. Each device writes its shards, a checkpoint is valid only once
it is complete, and a state is restored into the shards of the mesh that requests it. The step is part of the
state and the data depend on the step alone, so nothing else has to be saved. Chapter: Training.
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

from scalingbook_lab.train.trainer import State, Trainer


class DamagedError(RuntimeError):
    """Raised when no checkpoint of a folder can be read."""


class Checkpoints:
    """The last `keep` states of a run in a folder (on a pod, one that all hosts share)."""

    def __init__(self, folder: str | Path, *, keep: int = 2) -> None:
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, create=True)
        self._folder = Path(folder).absolute()
        self._manager = ocp.CheckpointManager(self._folder, options=options)

    def save(self, state: State) -> None:
        """Copy a state from the devices, and write it while training continues."""
        self._manager.save(int(state["step"]), args=ocp.args.StandardSave(state))  # pyright: ignore

    def latest(self) -> int | None:
        """Return the step of the last complete checkpoint, or None if there is none."""
        return self._manager.latest_step()

    def restore(self, trainer: Trainer) -> State | None:
        """Return the last readable state on this trainer's mesh, or None if there is no checkpoint.

        Newer checkpoints that are damaged are reported and set aside, because a step is written only once.
        Raises DamagedError if no checkpoint can be read.
        """
        steps = sorted(self._manager.all_steps(), reverse=True)
        broken: list[int] = []
        why = ""
        with _ignore_closed_loops():
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

    def _set_aside(self, steps: list[int], resumed: int) -> None:
        """Rename the damaged checkpoints of these steps."""
        for step in steps if jax.process_index() == 0 else ():
            renamed = self._folder / f"{step}.damaged"
            shutil.rmtree(renamed, ignore_errors=True)  # left over from an earlier restore
            (self._folder / str(step)).rename(renamed)
            what = f"the checkpoint of step {step} cannot be read, and is now {renamed}"
            print(f"{what}: the run resumes from step {resumed}", file=sys.stderr, flush=True)
        if steps:
            _all_processes(True)  # wait until all are renamed before any process looks
            self._manager.reload()

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *error: object) -> None:
        """Wait until everything is written."""
        self._manager.close()


def _read(folder: Path, step: int, trainer: Trainer) -> tuple[State | None, str]:
    """Return the state if every process could read its shards, otherwise None and this process's reason."""
    # Orbax restores into the given shardings, so the mesh may differ from that of the saved state
    wanted: Any = ocp.args.StandardRestore(trainer.structs)  # pyright: ignore
    me = jax.process_index()  # each process reads alone, because a failing one would leave the others waiting
    alone = ocp.options.MultiprocessingOptions(
        primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"read{me}"
    )
    handler = ocp.StandardCheckpointHandler(multiprocessing_options=alone)
    try:
        with ocp.Checkpointer(handler, multiprocessing_options=alone) as reader:  # pyright: ignore
            state, why = dict(reader.restore(folder / str(step) / "default", args=wanted)), ""
    except Exception as error:  # Orbax passes on errors of JSON and TensorStore, and bare Exceptions
        state, why = None, f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return (state, why) if _all_processes(state is not None) else (None, why or "by another process")


def _all_processes(here: bool) -> bool:
    """Return whether `here` is true on every process."""
    return here if jax.process_count() == 1 else bool(multihost_utils.process_allgather(np.array(here)).all())


@contextlib.contextmanager
def _ignore_closed_loops() -> Iterator[None]:
    """Silence reads that end after another has failed: they find the event loop closed and print a stack
    trace.
    """
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, stack: Any) -> None:
        if str(error) != "Event loop is closed":
            before(kind, error, stack)

    sys.excepthook = hook
    try:
        yield
    finally:
        sys.excepthook = before
