"""A run that is killed at a random step goes on, on another mesh, as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from ways import TOLERANCE

from scalingbook_lib.lab import train
from scalingbook_lib.lab.checkpoints import Checkpoints
from scalingbook_lib.lab.training import SMALL, Trainer

STEPS = 24
PATIENCE_S = 180


def started(folder, mesh, *more):
    """The trainer in a process of its own, a checkpoint after every second step."""
    command = [sys.executable, "-m", "scalingbook_lib.lab.train", "--mesh", mesh, "--folder", str(folder)]
    return subprocess.Popen([*command, "--steps", str(STEPS), "--every", "2", *more])


def killed(running, folder, *, at):
    """Kill it without warning once it has told the loss of step `at`."""
    until = time.monotonic() + PATIENCE_S
    while not (folder / "losses.txt").exists() or len(train.losses(folder)) <= at:
        assert running.poll() is None, f"the trainer ended by itself with {running.returncode}"
        assert time.monotonic() < until, f"step {at} did not come in {PATIENCE_S} s"
        time.sleep(0.005)
    os.kill(running.pid, signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no way to kill without warning here")
def test_killed_at_a_random_step_it_goes_on_on_another_mesh(tmp_path):
    at = random.randrange(3, STEPS - 6)
    killed(started(tmp_path, "X4 Y2", "--simulate", "8"), tmp_path, at=at)
    told = dict(train.losses(tmp_path))
    with Checkpoints(tmp_path / "checkpoints") as kept:
        other = Trainer(SMALL, {"P": 2, "C": 2, "X": 2}, microbatches=2)
        state = kept.restore(other)
        assert state is not None, f"killed at step {at}, and no checkpoint was whole"
        resumed = other.train(STEPS - int(state["step"]), state)
    assert at - 5 <= resumed.first <= max(told) + 1, f"killed at step {at}, resumed at {resumed.first}"

    alone = Trainer(SMALL, {"X": 1}).train(STEPS).losses
    curve = [told[step] for step in range(resumed.first)] + list(resumed.losses)
    assert curve == pytest.approx(alone, rel=TOLERANCE), f"killed at step {at}"
    again = [step for step in told if step >= resumed.first]  # told before the kill, and done again
    assert [told[step] for step in again] == pytest.approx([curve[step] for step in again], rel=TOLERANCE)


def test_a_state_comes_back_bit_for_bit_on_another_mesh(tmp_path):
    before = Trainer(SMALL, {"X": 8}).start()
    with Checkpoints(tmp_path) as kept:
        kept.save(before)
    with Checkpoints(tmp_path) as kept:
        after = kept.restore(Trainer(SMALL, {"P": 2, "Y": 4}))
    assert after is not None
    assert jax.tree.all(jax.tree.map(lambda a, b: np.array_equal(a, b), before, after))
    assert after["weights"]["up"].sharding.spec == jax.P("P", ("X", "Z", "C"), "Y")


def test_an_empty_folder_has_no_state(tmp_path):
    with Checkpoints(tmp_path) as kept:
        assert kept.restore(Trainer(SMALL, {"X": 8})) is None
