"""JAX reads from each launcher's environment: first host, number of processes, and index of this one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

HERE = Path(__file__).parents[1]
SLURM = {  # two nodes of eight tasks, the second node's fourth task
    "SLURM_JOB_ID": "4097", "SLURM_STEP_NODELIST": "gpu[07-08]", "SLURM_STEP_NUM_NODES": "2",
    "SLURM_NTASKS": "16", "SLURM_PROCID": "11", "SLURM_LOCALID": "3",
}  # fmt: skip
ONE_A_NODE = SLURM | {"SLURM_NTASKS": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "0"}
GKE = {
    "TPU_WORKER_ID": "2", "TPU_WORKER_HOSTNAMES": ",".join(f"train-slice-0-{i}.train" for i in range(4)),
    "TPU_SKIP_MDS_QUERY": "true",
}  # fmt: skip
SLICES = {
    "MEGASCALE_NUM_SLICES": "2",
    "MEGASCALE_SLICE_ID": "1",
    "MEGASCALE_COORDINATOR_ADDRESS": "first:8080",
}
POD = {
    "agent-worker-number": "3",
    "worker-network-endpoints": ",".join(f"unknown:unknown:10.0.0.{i}" for i in (5, 6, 7, 8)),
}
MPI = {
    "OMPI_MCA_orte_hnp_uri": "8192.0;tcp://10.0.0.1:34911", "OMPI_COMM_WORLD_SIZE": "16",
    "OMPI_COMM_WORLD_RANK": "11", "OMPI_COMM_WORLD_LOCAL_RANK": "3",
}  # fmt: skip
KUBERNETES = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "1"}
HALF = ["gpu07:9876", 2, 1, None]
SAID = ["train-0.train:9876", 2, 1, None]

PORT = 8482 if jax.__version_info__ >= (0, 8) else 8476  # where process 0 listens on TPU hosts

CASES = {  # what is set, what is given, the metadata: what JAX makes of it
    "Slurm, a process for each GPU": ({"env": SLURM}, ["gpu07:61441", 16, 11, [3]]),
    "Slurm, a process for each node": ({"env": ONE_A_NODE}, ["gpu07:61441", 2, 1, [0]]),
    "Slurm, all said but the devices": ({"env": ONE_A_NODE, "given": HALF}, [*HALF[:3], [0]]),
    "Slurm outside srun": ({"env": {"SLURM_JOB_ID": "4097"}}, [None, None, None, None]),
    "another port": ({"env": SLURM | {"JAX_COORDINATOR_PORT": "9876"}}, ["gpu07:9876", 16, 11, [3]]),
    "Cloud TPU": ({"env": {}, "metadata": POD}, [f"10.0.0.5:{PORT}", 4, 3, None]),
    "GKE, one slice": ({"env": GKE, "metadata": {}}, [f"train-slice-0-0.train:{PORT}", 4, 2, None]),
    "GKE, two slices": ({"env": GKE | SLICES, "metadata": {}}, [f"first:{PORT}", 8, 6, None]),
    "Open MPI 4": ({"env": MPI}, ["10.0.0.1:61442", 16, 11, [3]]),
    "Kubernetes, all said": ({"env": KUBERNETES, "given": SAID}, SAID),
    "nothing set": ({"env": {}}, [None, None, None, None]),
}  # fmt: skip

NEWER = ("Slurm outside srun", "another port")


@pytest.fixture(scope="module")
def found():
    """All answers, from one process."""
    others = ("SLURM_", "OMPI_", "TPU_", "MEGASCALE_", "KUBERNETES_", "JAX_", "JOB_COMPLETION_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(others) and "proxy" not in k.lower()}
    asked = json.dumps([case for case, _ in CASES.values()])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", HERE / "detecting.py"], input=asked, env=env, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(CASES, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_jax_detects_the_cluster(case, found):
    if case in NEWER and jax.__version_info__ < (0, 8):
        pytest.skip("JAX 0.7 takes every Slurm job for a step of srun, and knows no JAX_COORDINATOR_PORT")
    assert found[case] == CASES[case][1]
