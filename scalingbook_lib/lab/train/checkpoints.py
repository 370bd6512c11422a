"""What must be on disk so that a killed run loses nothing, whatever mesh it goes on with?

`Checkpoints(folder)` keeps states by Orbax: each device writes the blocks that it holds, a checkpoint counts
once it is whole, and a state is read back into the blocks of the mesh that asks. The step is part of the
state and the data depend on the step alone, so nothing else is kept. Chapter: Training.
"""

from pathlib import Path
from typing import Any

import orbax.checkpoint as ocp

from scalingbook_lib.lab.train.trainer import State, Trainer


class Checkpoints:
    """The last few states of a run in a folder (on a pod, one that all hosts see)."""

    def __init__(self, folder: str | Path, *, keep: int = 2) -> None:
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, create=True)
        self._manager = ocp.CheckpointManager(Path(folder).absolute(), options=options)

    def save(self, state: State) -> None:
        """Copy a state from the devices, and write it while they go on."""
        self._manager.save(int(state["step"]), args=ocp.args.StandardSave(state))  # pyright: ignore

    def latest(self) -> int | None:
        """The step of the last whole checkpoint."""
        return self._manager.latest_step()

    def restore(self, trainer: Trainer) -> State | None:
        """The last whole state, split as this trainer's mesh wants it; None where there is none."""
        if (step := self.latest()) is None:
            return None
        # Orbax reads into the shardings that it is given: the mesh of before need not be the mesh of now
        wanted: Any = ocp.args.StandardRestore(trainer.structs)  # pyright: ignore
        return dict(self._manager.restore(step, args=wanted))

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *error: object) -> None:
        """Wait until all is written."""
        self._manager.close()
