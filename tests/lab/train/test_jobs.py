"""The job files are well-formed, and start the trainer on a mesh of the number of chips that they request."""

import math
import os
import re
import shlex
import subprocess
import tempfile
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml

from scalingbook_lab.train import run as train
from scalingbook_lab.train.trainer import SMALL, Trainer
from scalingbook_lib.notation import Mesh

ROOT = Path(__file__).parents[3]
JOBS = ROOT / "jobs"
SCRIPTS = sorted([*JOBS.glob("*.sh"), *JOBS.glob("*.sbatch")])
STARTED = re.compile(r"-m scalingbook_lab\.(\w+) (.*)")


STUB = """#!/bin/sh
number=100 CALLS=${{CALLS:?}}
until mkdir "$CALLS/$number" 2>/dev/null; do number=$((number + 1)); done
printf "%s\\0" {name} "$@" >"$CALLS/$number/words"
"""


@pytest.fixture
def start(tmp_path):
    """Run a script with stand-ins for python, srun and gcloud that record how they were called."""
    for name in ("python", "srun", "gcloud", "git"):
        executable(tmp_path / name, STUB.format(name=name))

    def run(*command, fails=False, **env):
        executable(tmp_path / "hostname", f"#!/bin/sh\necho {env.pop('host', 'here')}\n")
        calls = Path(tempfile.mkdtemp(prefix="calls", dir=tmp_path))
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": "/home/me", "CALLS": str(calls), **env}
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        assert bool(done.returncode) == fails, done.stderr
        if fails:
            return done.stderr
        return [(call / "words").read_text().split("\0")[:-1] for call in sorted(calls.iterdir())]

    return run


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


def asked(words):
    """The arguments of a trainer call; its model must fit the mesh."""
    module, given = STARTED.search(shlex.join(words)).groups()
    assert module in ("train", "hosts")
    found = train.arguments().parse_args(shlex.split(given))
    Trainer(SMALL, Mesh.parse(found.mesh), batch=found.batch, T=found.T)
    return found


def chips(mesh):
    return math.prod(Mesh.parse(mesh).sizes.values())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_the_job_script_is_valid_shell(script):
    subprocess.run(["sh", "-n", script], check=True)
    assert len(script.read_text().splitlines()) <= 35


def test_the_laptop_script_starts_two_processes_of_one_mesh(start):
    both = sorted((asked(call) for call in start("sh", "jobs/laptop.sh")), key=lambda one: one.process)
    assert [one.process for one in both] == [0, 1]
    assert {(one.address, one.processes, one.simulate) for one in both} == {("127.0.0.1:9876", 2, 4)}
    assert chips(both[0].mesh) == 2 * 4


@pytest.mark.parametrize(("host", "process"), [("alpha", 0), ("gamma", 2)])
def test_the_manual_script_finds_the_process_index_by_host_name(start, host, process):
    (call,) = start("sh", "jobs/by_hand.sh", host=host, HOSTS="alpha beta gamma", MESH="X4 Y3")
    found = train.arguments().parse_args(call[call.index("-m") + 2 :])
    assert (found.address, found.processes, found.process) == ("alpha:9876", 3, process)


def test_an_unlisted_host_is_an_error(start):
    said = start("sh", "jobs/by_hand.sh", fails=True, host="delta", HOSTS="alpha beta")
    assert "delta, which is not in HOSTS" in said
    assert "HOSTS" in start("sh", "jobs/by_hand.sh", fails=True)


def test_a_pod_script_copies_the_code_to_all_hosts_and_starts_one_command(start):
    calls = start("sh", "jobs/tpu_pod.sh", NAME="book", ZONE="us-west4-a")
    assert [call[0] for call in calls] == ["git", "gcloud", "gcloud", "gcloud"]
    assert all("--worker=all" in call for call in calls[1:])
    found = asked(shlex.split(calls[-1][-1]))
    assert found.pod
    assert chips(found.mesh) == 16
    assert asked(shlex.split(start("sh", "jobs/tpu_pod.sh", NAME="b", ZONE="z", RUN="hosts")[-1][-1])).pod


def test_slurm_has_a_process_for_each_gpu_and_they_fill_the_mesh(start):
    text = (JOBS / "slurm.sbatch").read_text()
    has = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", text, re.MULTILINE))
    assert has["ntasks-per-node"] == has["gpus-per-node"]
    assert not re.search(r"^#SBATCH.*(gpus-per-task|gpu-bind)", text, re.MULTILINE)
    (call,) = start("bash", "jobs/slurm.sbatch")
    found = asked(call)
    assert call[0] == "srun"
    assert found.pod
    assert chips(found.mesh) == int(has["nodes"]) * int(has["gpus-per-node"])
    assert has.keys() >= {"time"}


def documents(name):
    return list(yaml.safe_load_all((JOBS / name).read_text()))


def container(pod):
    (one,) = pod["containers"]
    mounts = {mount["name"] for mount in one["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
    return one


def test_the_jobset_has_a_pod_for_each_host_of_its_topology():
    (jobset,) = documents("tpu_jobset.yaml")
    (slices,) = jobset["spec"]["replicatedJobs"]
    job = slices["template"]["spec"]
    pod = job["template"]["spec"]
    one = container(pod)
    torus = pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"]
    of_all = math.prod(map(int, torus.split("x"))) * slices["replicas"]
    assert job["completions"] == job["parallelism"]
    assert job["completions"] * one["resources"]["limits"]["google.com/tpu"] == of_all
    assert (job["completionMode"], job["backoffLimit"], pod["restartPolicy"]) == ("Indexed", 0, "Never")
    found = asked([*one["command"], *one["args"]])
    assert found.pod
    assert chips(found.mesh) == of_all


def test_the_gpu_jobs_first_pod_is_the_one_that_all_look_for():
    service, job = documents("gpu_job.yaml")
    name, spec = job["metadata"]["name"], job["spec"]
    pod = spec["template"]["spec"]
    one = container(pod)
    (line,) = one["args"]
    subprocess.run(["sh", "-n", "-c", line], check=True)
    found = asked(shlex.split(line.replace("$JOB_COMPLETION_INDEX", "1")))
    assert found.address.split(":")[0] == f"{name}-0.{service['metadata']['name']}"
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": name}
    assert service["spec"]["clusterIP"] == "None"
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == found.processes
    assert chips(found.mesh) == found.processes * one["resources"]["limits"]["nvidia.com/gpu"]


def test_the_image_installs_what_there_is():
    text = (JOBS / "Dockerfile").read_text()
    extras = metadata("jax").get_all("Provides-Extra")
    assert {"tpu", "cuda13"} <= set(extras)
    assert set(re.findall(r"JAX=(\w+)", text)) == {"tpu", "cuda13"}
    for path in re.search(r"COPY (.*) /book/\n", text).group(1).split():
        assert (ROOT / path).is_file()
    assert 'requires-python = ">=3.12"' in (ROOT / "pyproject.toml").read_text()
    assert "FROM python:3.12-slim" in text
