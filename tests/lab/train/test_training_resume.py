"""A run that is killed at a random step resumes on another mesh with the same losses."""

import functools
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from ways import TOLERANCE

from scalingbook_lab.train import run as train
from scalingbook_lab.train.checkpoints import Checkpoints, DamagedError
from scalingbook_lab.train.trainer import SMALL, SMALL_MOE, Trainer

HERE = Path(__file__).parents[1]
STEPS, EVERY = 24, 2
LINES = 10  # about as many lines run in one step


@functools.cache
def other():
    """Another mesh than that of the killed run."""
    return Trainer(SMALL, {"P": 2, "C": 2, "X": 2}, microbatches=2)


@functools.cache
def alone():
    """The losses of one device without interruption."""
    return Trainer(SMALL, {"X": 1}).train(STEPS).losses


def killed(folder, *, at, line):
    """Train in another process until it is killed; the step of the last complete checkpoint."""
    command = [sys.executable, str(HERE / "killed.py"), str(at), str(line), "--folder", str(folder)]
    command += ["--mesh", "X4 Y2", "--simulate", "8", "--steps", str(STEPS), "--every", str(EVERY)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, f"the trainer ended by itself:\n{done.stdout[-3000:]}"
    return int((folder / "whole.txt").read_text())


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no way to kill without warning here")
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_run_resumes_on_another_mesh(seed, tmp_path):
    draw = random.Random(seed)
    at, line = draw.randrange(3, STEPS - 6), draw.randrange(LINES)
    whole = killed(tmp_path, at=at, line=line)
    told = dict(train.losses(tmp_path))
    with Checkpoints(tmp_path / "checkpoints") as kept:
        state = kept.restore(other())
        assert state is not None, f"killed at step {at}, and no checkpoint was whole"
        resumed = other().train(STEPS - int(state["step"]), state)
    where = f"killed at line {line} of step {at} with {whole} steps kept, resumed at {resumed.first}"
    assert at - 1 <= max(told) < STEPS - 2, where
    assert max(told) - 2 * EVERY < whole <= resumed.first <= max(told) + 1, where

    curve = [told[step] for step in range(resumed.first)] + list(resumed.losses)
    assert curve == pytest.approx(alone(), rel=TOLERANCE), where
    again = [step for step in told if step >= resumed.first]  # told before the kill, and done again
    assert [told[step] for step in again] == pytest.approx([curve[step] for step in again], rel=TOLERANCE)


def test_a_state_is_restored_exactly_on_another_mesh(tmp_path):
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


@pytest.fixture(scope="module")
def two_kept(tmp_path_factory):
    """The checkpoints of steps 0 and 1, and the trainer that resumes from them."""
    folder, trainer = tmp_path_factory.mktemp("kept"), Trainer(SMALL, {"X": 1})
    with Checkpoints(folder) as kept:
        kept.save(trainer.start())
        kept.save(trainer.train(1).state)
    return folder, trainer


def largest(folder):
    return max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


def described(folder):
    return folder / "default" / "_METADATA"


@pytest.mark.parametrize("which", [largest, described])
def test_a_truncated_checkpoint_is_set_aside_and_the_previous_one_restored(which, two_kept, tmp_path, capfd):
    trainer, folder = two_kept[1], tmp_path / "kept"
    shutil.copytree(two_kept[0], folder)
    damaged = which(folder / "1")
    os.truncate(damaged, damaged.stat().st_size // 2)
    with Checkpoints(folder) as kept:
        state = kept.restore(trainer)
        assert state is not None
        assert int(state["step"]) == 0
        kept.save(trainer.train(1, state).state)  # the step that was damaged can be written again
    with Checkpoints(folder) as kept:
        assert kept.latest() == 1
        assert int(kept.restore(trainer)["step"]) == 1
    told = capfd.readouterr().err
    assert "the checkpoint of step 1 cannot be read" in told
    assert "the run resumes from step 0" in told
    assert "Traceback" not in told


def test_checkpoints_of_another_model_are_refused_and_left_where_they_are(two_kept):
    folder, _ = two_kept
    with Checkpoints(folder) as kept, pytest.raises(DamagedError, match=r"none of .* steps 1, 0 .*give the"):
        kept.restore(Trainer(SMALL_MOE, {"X": 1}))
    assert {"0", "1"} <= {path.name for path in folder.iterdir()}
