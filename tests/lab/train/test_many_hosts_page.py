"""Every command of the page on many hosts is accepted by the trainer, and its output is as printed."""

import math
import re
import shlex
from pathlib import Path

import jax
import pytest
from test_hosts_detected import CASES, GKE, ONE_A_NODE, SLICES, SLURM

from scalingbook_lab import hosts
from scalingbook_lab.train import run as train
from scalingbook_lab.train.trainer import SMALL, Trainer
from scalingbook_lib.notation import Mesh

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "many-hosts.md").read_text()
FLAT = " ".join(PAGE.split())
LINES = re.findall(r"^python -m scalingbook_lab\.(?:train|hosts) (.*)$", PAGE, re.MULTILINE)
JOBS = {path.name for path in (ROOT / "jobs").iterdir()}


def block(language, number=0):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[number]


@pytest.mark.parametrize("line", LINES)
def test_the_trainer_reads_the_command_line(line):
    asked = train.arguments().parse_args(shlex.split(line))
    trainer = Trainer(
        SMALL, Mesh.parse(asked.mesh), batch=asked.batch, T=asked.T, microbatches=asked.microbatches
    )
    chips = math.prod(trainer.mesh.sizes.values())
    assert not asked.simulate or chips == asked.simulate * asked.processes
    assert 0 <= asked.process < asked.processes


def test_there_are_lines_for_one_process_for_two_and_for_a_pod():
    assert len(LINES) == 7
    assert sum("--pod" in line for line in LINES) == 1
    assert sum("--process " in line for line in LINES) == 4


def test_every_job_file_is_there_and_shown():
    linked = set(re.findall(r"\]\(jobs/([\w.]+)\)", PAGE))
    assert linked == JOBS
    assert set(re.findall(r"jobs/([\w.]+\.\w+)", PAGE)) <= JOBS
    assert set(re.findall(r"^.*sh jobs/(\w+\.sh)$", PAGE, re.MULTILINE)) == {"by_hand.sh", "tpu_pod.sh"}


def test_the_pages_output_is_that_of_hosts():
    one, two, *rest = block("text").splitlines()
    program, jax_is = "d338bc17ffb0", "0.12.0"
    found = hosts.Hosts(
        tuple(hosts.Host(i, "laptop", 4, "cpu", jax_is, program) for i in range(2)), {"X": 2, "Y": 1}
    )
    assert str(found).splitlines() == [one, two, *rest]


def test_the_pages_code_for_local_rows_is_the_tested_code():
    assert block("python") in (Path(__file__).parents[1] / "local_rows.py").read_text()


def test_the_page_on_slurm_and_multislice_agrees_with_jax():
    at, processes, process, devices = CASES["Slurm, a process for each GPU"][1]
    for said in (f"`{at}`", f"process {process} of {processes}, takes GPU {devices[0]}"):
        assert said in FLAT
    assert all(
        f"`{name}={SLURM[name]}`" in PAGE for name in ("SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")
    )
    assert f"job {SLURM['SLURM_JOB_ID']} on `{SLURM['SLURM_STEP_NODELIST']}`" in FLAT
    assert CASES["Slurm, all said but the devices"][1][3] == [0]
    assert (GKE["TPU_WORKER_ID"], SLICES["MEGASCALE_SLICE_ID"]) == ("2", "1")
    _, processes, process, _ = CASES["GKE, two slices"][1]
    assert f"host 2 of the second slice is process {process} of {processes}" in FLAT


def test_refusals_are_jaxs_errors():
    from jax._src import distributed

    jax.devices()  # JAX has started
    for quoted, start in {
        "distributed.initialize() must be called before any JAX calls": jax.distributed.initialize,
        "coordinator_address should be defined": distributed.State().initialize,
    }.items():
        assert f"`{quoted}`" in PAGE
        with pytest.raises((RuntimeError, ValueError), match=re.escape(quoted)):
            start()


def test_explicit_local_devices_are_respected(monkeypatch):
    from jax._src import clusters, distributed

    name, value = re.search(r"^export (\w+)=(\S+)$", PAGE, re.MULTILINE).groups()
    monkeypatch.setenv(name, value)
    for slurm in ONE_A_NODE.items():
        monkeypatch.setenv(*slurm)
    seen = []
    detect = clusters.ClusterEnv.auto_detect_unset_distributed_params
    found = staticmethod(lambda *given: seen.append(detect(*given)) or (None,) * 4)  # and then it ends
    monkeypatch.setattr(clusters.ClusterEnv, "auto_detect_unset_distributed_params", found)
    with pytest.raises(ValueError, match="coordinator_address"):
        distributed.State().initialize()
    assert seen[0][1:] == (2, 1, [*range(8)])
