"""Two processes of four devices each, joined over loopback, train as one device does."""

import contextlib
import os
import socket
import subprocess
import sys

import pytest
from ways import TOLERANCE, alone

from scalingbook_lib.lab import train
from scalingbook_lib.lab.checkpoints import Checkpoints
from scalingbook_lib.lab.training import SMALL, Trainer

STEPS, PATIENCE_S, TRIES = 6, 240, 3


def free_port():
    """A port that nobody has now; somebody may before it is used, and then another is tried."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ran(folder, mesh):
    """Both processes to their end; what they wrote where one of them failed."""
    folder.mkdir()
    command = [sys.executable, "-m", "scalingbook_lib.lab.train", "--mesh", mesh, "--folder", str(folder)]
    command += ["--steps", str(STEPS), "--every", "3", "--simulate", "4", "--processes", "2"]
    command += ["--address", f"127.0.0.1:{free_port()}"]
    without = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    outs = [folder / f"process{i}.txt" for i in range(2)]
    with contextlib.ExitStack() as stack:
        both = []
        for i, out in enumerate(outs):
            to = stack.enter_context(out.open("w"))
            both.append(subprocess.Popen([*command, "--process", str(i)], stdout=to, stderr=to, env=without))
            stack.callback(both[-1].kill)
        for one in both:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(PATIENCE_S)
        codes = [one.poll() for one in both]
    return "" if codes == [0, 0] else f"{codes}\n" + "\n".join(out.read_text()[-2000:] for out in outs)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A run of FSDP over both processes and TP within them."""
    failed = ""
    for attempt in range(TRIES):
        folder = tmp_path_factory.mktemp("run") / "two"
        if not (failed := ran(folder, "X4 Y2")):
            return folder
        if "in use" not in failed.lower() and attempt:
            break
    pytest.fail(failed)


def test_two_processes_learn_what_one_device_learns(two):
    told = train.losses(two)
    assert [step for step, _ in told] == list(range(STEPS))
    assert [loss for _, loss in told] == pytest.approx(alone(SMALL)[:STEPS], rel=TOLERANCE)


def test_what_two_processes_kept_one_goes_on_with(two):
    trainer = Trainer(SMALL, {"C": 2, "Y": 4})
    with Checkpoints(two / "checkpoints") as kept:
        state = kept.restore(trainer)
    assert state is not None
    assert int(state["step"]) == STEPS
    resumed = trainer.train(2, state)
    assert resumed.losses == pytest.approx(alone(SMALL)[STEPS : STEPS + 2], rel=TOLERANCE)
