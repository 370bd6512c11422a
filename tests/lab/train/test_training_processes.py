"""Two processes of four devices each, joined over loopback, train as one device does."""

import contextlib
import os
import socket
import subprocess
import sys

import pytest
from ways import TOLERANCE, alone

from scalingbook_lab.train import run as train
from scalingbook_lab.train.checkpoints import Checkpoints
from scalingbook_lab.train.trainer import SMALL, Trainer

STEPS = 6


@contextlib.contextmanager
def port():
    """A free port, kept open so that no other process gets it while the listener shares it."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # as gRPC sets it
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A run of FSDP over two processes and TP within them, until both end: JAX waits for no dead process."""
    folder = tmp_path_factory.mktemp("two")
    command = [sys.executable, "-m", "scalingbook_lab.train", "--mesh", "X4 Y2", "--folder", str(folder)]
    command += ["--steps", str(STEPS), "--every", "3", "--simulate", "4", "--processes", "2"]
    without = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    outs = [folder / f"process{i}.txt" for i in range(2)]
    with contextlib.ExitStack() as stack:
        command += ["--address", f"127.0.0.1:{stack.enter_context(port())}"]
        both = []
        for i, out in enumerate(outs):
            to = stack.enter_context(out.open("w"))
            both.append(subprocess.Popen([*command, "--process", str(i)], stdout=to, stderr=to, env=without))
            stack.callback(both[-1].wait)
            stack.callback(both[-1].kill)
        codes = [one.wait() for one in both]
    if codes != [0, 0]:
        pytest.fail(f"{codes}\n" + "\n".join(out.read_text()[-2000:] for out in outs))
    return folder


def test_two_processes_learn_what_one_device_learns(two):
    told = train.losses(two)
    assert [step for step, _ in told] == list(range(STEPS))
    assert [loss for _, loss in told] == pytest.approx(alone(SMALL)[:STEPS], rel=TOLERANCE)


def test_one_process_resumes_from_a_checkpoint_of_two(two):
    trainer = Trainer(SMALL, {"C": 2, "Y": 4})
    with Checkpoints(two / "checkpoints") as kept:
        state = kept.restore(trainer)
    assert state is not None
    assert int(state["step"]) == STEPS
    resumed = trainer.train(2, state)
    assert resumed.losses == pytest.approx(alone(SMALL)[STEPS : STEPS + 2], rel=TOLERANCE)
