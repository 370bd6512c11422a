"""Two processes report themselves, provide the rows that they read, and one survives the other's death."""

import contextlib
import dataclasses
import inspect
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from test_training_processes import port

from scalingbook_lab import hosts
from scalingbook_lab.train import host_failures
from scalingbook_lab.train import run as train
from scalingbook_lab.train.checkpoints import Checkpoints
from scalingbook_lab.train.trainer import SMALL, Trainer

HERE = Path(__file__).parents[1]
WITHOUT_PROXIES = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}


def said_by_hand(i, port):
    """Flags and environment of process i of two, given explicitly."""
    return ["--processes", "2", "--address", f"127.0.0.1:{port}", "--process", str(i)], {}


def set_by_slurm(i, port):
    """The same, set by srun and read by JAX."""
    return ["--pod"], {
        "SLURM_JOB_ID": "1", "SLURM_STEP_NODELIST": "127.0.0.1", "SLURM_NTASKS": "2",
        "SLURM_PROCID": str(i), "SLURM_LOCALID": str(i), "JAX_COORDINATOR_PORT": str(port),
    }  # fmt: skip


@contextlib.contextmanager
def both(folder, *what, mesh="X2 Y4", launcher=said_by_hand):
    """Two processes over loopback that write reports to files; none outlives the test."""
    words = [sys.executable, *what, "--mesh", mesh, "--folder", str(folder), "--simulate", "4"]
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(port())
        started = []
        for i in range(2):
            flags, env = launcher(i, at)
            to = stack.enter_context((folder / f"process{i}.txt").open("w"))
            one = subprocess.Popen([*words, *flags], stdout=to, stderr=to, env=WITHOUT_PROXIES | env)
            started.append(one)
            stack.callback(one.wait)
            stack.callback(one.kill)
        yield started


def test_two_that_srun_started_hand_in_their_rows_and_say_whether_they_run_one_program(tmp_path):
    with both(tmp_path, str(HERE / "local_rows.py"), launcher=set_by_slurm) as started:
        codes = [one.wait() for one in started]  # JAX itself gives up where one of them has died
    assert codes == [0, 0], (tmp_path / "process0.txt").read_text()
    said = (tmp_path / "said0.txt").read_text().splitlines()
    programs = [
        re.fullmatch(r"process \d on .*: 4 devices \(cpu\), JAX \S+, program (\S+)", s) for s in said[:2]
    ]
    assert programs[0].group(1) == programs[1].group(1)
    assert said[2:4] == ["X meets 2 processes; Y stays in one", "all run the same program"]
    assert said[-1] == "NOT all run the same program: do not start"


def test_hosts_with_different_programs_are_refused(monkeypatch, capsys, tmp_path):
    here = ["--folder", str(tmp_path), "--mesh", "X2 Y2"]
    hosts.main(here)
    assert "Y stays in one\nall run the same program" in capsys.readouterr().out
    one = hosts.Host(0, "alpha", 4, "cpu", "0.12.0", "d338bc17ffb0")
    two = dataclasses.replace(one, process=1, name="beta", jax="0.11.0")
    monkeypatch.setattr(hosts, "gather_hosts", lambda trainer: hosts.Hosts((one, two), {"X": 2}))
    with pytest.raises(SystemExit):
        hosts.main(here)
    assert "NOT all run the same program" in capsys.readouterr().out


def steps_done(folder):
    with contextlib.suppress(FileNotFoundError, ValueError):
        return len(train.losses(folder))
    return 0


def test_when_one_process_dies_the_others_end_and_a_complete_checkpoint_is_left(tmp_path):
    what = ("-m", "scalingbook_lab.train", "--steps", "10000", "--every", "2")  # more than it gets to
    with both(tmp_path, *what, mesh="X8") as started:
        while steps_done(tmp_path) < 5:
            assert started[0].poll() is None, (tmp_path / "process0.txt").read_text()
            time.sleep(0.1)
        started[0].kill()
        assert started[1].wait() == -signal.SIGABRT, (tmp_path / "process1.txt").read_text()
    while "same command" not in (said := (tmp_path / "process1.txt").read_text()):
        assert host_failures.FATAL not in said, said
        time.sleep(0.1)
    died = rf"^process 0 \({re.escape(platform.node())}\) died .* resume from step \d+$"
    assert re.search(died, said, re.MULTILINE)
    assert "stack trace" not in said
    with Checkpoints(tmp_path / "checkpoints") as kept:
        assert (kept.latest() or 0) >= 2


@pytest.mark.parametrize(
    ("task", "gone"),
    [("1\n", "process 1 (beta)"), ("1\n2\n", "process 1 (beta) and process 2"),
     ("/job:jax_worker/replica:0/task:1\n", "process 1 (beta)")],
)  # fmt: skip
def test_the_stack_of_a_lost_host_becomes_one_sentence(task, gone, tmp_path):
    (tmp_path / host_failures.HOSTS).write_text("alpha\nbeta\n")
    said = f"""step 3
E1124 00:29:55.774418   12458 coordination_service.cc:1518] [16] Use error polling to propagate:
The following tasks are unhealthy (stopped sending heartbeats):
{task}The tasks have crashed. Check the task logs for an earlier error
F1124 00:29:55.775192   12469 client.h:86] Terminating process because the JAX {host_failures.FATAL}.
*** Check failure stack trace: ***
    @     0x7f4cf82f81b4  absl::lts_20260526::log_internal::LogMessage::SendToLog()
"""
    first, sentence = host_failures.filtered(said.splitlines(keepends=True), tmp_path)
    assert first == "step 3\n"
    assert sentence.startswith(f"{gone} died")
    assert sentence.endswith("they start from step 0, since no checkpoint was complete\n")


def test_other_output_is_passed_on_unchanged(tmp_path):
    said = ["Traceback\n", "E1124 00:29:55.774418   12 coordination_service.cc:1518] slow\n", "ValueError\n"]
    assert "".join(host_failures.filtered(said, tmp_path)) == "".join(said)


def test_how_long_jax_waits_is_what_the_page_says():
    takes = inspect.signature(jax.distributed.initialize).parameters
    assert takes["initialization_timeout"].default == 300
    assert takes["heartbeat_timeout_seconds"].default == 100


def owned(*shape, by):
    """A mesh of devices, each of which belongs to a process."""
    devices = np.array([SimpleNamespace(process_index=i) for i in by], object).reshape(shape)
    return SimpleNamespace(devices=devices, axis_names=("X", "Y", "Z")[: len(shape)])


def test_an_axis_crosses_hosts_where_its_lines_span_several_processes():
    assert hosts.crossing(owned(2, 4, by=[0, 0, 0, 0, 1, 1, 1, 1])) == {"X": 2, "Y": 1}
    assert hosts.crossing(owned(4, 2, by=[0, 1, 2, 3, 0, 1, 2, 3])) == {"X": 2, "Y": 2}
    assert hosts.crossing(owned(1, 8, by=[0] * 8)) == {"Y": 1}
    assert hosts.format_crossing({"X": 2, "Y": 1}) == "X meets 2 processes; Y stays in one"
    assert hosts.format_crossing({}) == "one device"


@pytest.mark.parametrize(
    ("topology", "mesh", "crossing"),
    [
        ("v5e:4x4", {"X": 4, "Y": 4}, {"X": 2, "Y": 2}),
        ("v4:2x2x4", {"X": 4, "Y": 4}, {"X": 1, "Y": 4}),
    ],
)
def test_axes_cross_hosts_where_the_tiles_of_hosts_end(topology, mesh, crossing):
    from scalingbook_lab.compiler import aot

    if not aot.available():
        pytest.skip(aot.why_not())
    assert hosts.crossing(aot.mesh_for(topology, mesh)) == crossing


def test_fingerprints_differ_where_programs_differ():
    one = hosts.fingerprint(Trainer(SMALL, {"X": 2}))
    assert one == hosts.fingerprint(Trainer(SMALL, {"X": 2}))
    assert one != hosts.fingerprint(Trainer(SMALL, {"X": 2}, rate=1e-3))
