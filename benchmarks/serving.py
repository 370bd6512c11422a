"""Measure how long it takes to simulate a serving queue: `python -m benchmarks.serving`.

It measures simulated output tokens per second of CPU time for each policy, with four constant costs and with
Llama 3 8B on eight v5e. It runs 200 requests, as in a page that answers every slider move, in CPython and in
Pyodide (under Node, which has Chromium's engine). It runs the same loop in SimPy on the same requests, which
must finish at the same time. Queues of other lengths show how the cost grows. --keep writes
results/serving.json.
"""

import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict

from benchmarks import kept
from benchmarks.planner import HERE, _has_uv
from scalingbook_lib import inference, models, serving
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.slices import Slice
from web import vendor

PEER = "simpy==4.1.2"
ENVIRONMENT = vendor.ROOT / "_build" / "simpy"
ROUNDS, LIMIT_TOKENS_PER_S, LIMIT_MS = 7, 1e6, 10
SLOTS = 64
POLICIES = {
    "static": serving.Static(SLOTS),
    "continuous": serving.Continuous(SLOTS),
    "chunked": serving.Chunked(SLOTS, 512),
    "disaggregated": serving.Disaggregated(1, 2, SLOTS, 1e-6),
}
BLOCKS = serving.PagedCache(6000)
PYODIDE = """
import { loadPyodide } from "%s/pyodide.mjs";
const python = await loadPyodide();
python.FS.mkdirTree("/library");
python.mountNodeFS("/library", "%s");
python.runPython(`
import sys
sys.path.insert(0, "/library")
from scalingbook_lib import serving
requests = serving.poisson(10, 200, prompt=serving.lognormal(500), output=serving.geometric(200), seed=1)
policy = serving.Continuous(64)
costs, blocks = serving.Affine(), serving.Blocks(6000)
`);
const ms = [];
for (let i = 0; i < %d; i++) {
  const since = process.threadCpuUsage();
  python.runPython("serving.simulate(requests, costs, policy, blocks=blocks).tokens");
  const took = process.threadCpuUsage(since);
  ms.push((took.user + took.system) / 1000);
}
console.log(JSON.stringify({ ms, python: python.runPython("sys.version.split()[0]") }));
"""


def queue(count: int, output: int = 200) -> tuple[serving.Request, ...]:
    """Return 2,000 tokens per second, in responses of `output` tokens on average to prompts of 500."""
    lengths = {"prompt": serving.lognormal(500), "output": serving.geometric(output)}
    return serving.poisson(2000 / output, count, **lengths, seed=1)


def costs() -> dict:
    """Return four constant costs, and the costs of a model on chips."""
    eight = Slice.of(chips.V5E, "2x4")
    model = inference.case(models.find("Llama 3 8B"), eight, inference.Layout(tp=8))
    return {"constants": serving.Affine(), "model": model}


def played(requests, cost, policy, rounds: int = ROUNDS, **more) -> tuple[list[float], serving.ServingRun]:
    """Return CPU milliseconds for each round, and the run."""
    times, run = [], None
    for _ in range(rounds):
        since = time.process_time()
        run = serving.simulate(requests, cost, policy, **more)
        times.append(1e3 * (time.process_time() - since))
    return times, run


def policies() -> list[dict]:
    """Measure every policy and cost: 2,000 requests for the rate, 200 for the delay at a slider."""
    rows = []
    for name, policy in POLICIES.items():
        for kind, cost in costs().items():
            times, run = played(queue(2000), cost, policy, blocks=BLOCKS)
            live, _ = played(queue(200), cost, policy, blocks=BLOCKS)
            rate = run.tokens / statistics.median(times) * 1e3
            row = {"policy": name, "costs": kind, "tokens": run.tokens, **summary(times)}
            rows.append({**row, "tokens_per_s": round(rate), "live_ms": round(statistics.median(live), 2)})
    return rows


def growth() -> list[dict]:
    """Return microseconds per request, from short queues to long ones."""
    rows = []
    for count in (200, 2000, 20_000, 100_000):
        times, run = played(queue(count), serving.Affine(), POLICIES["continuous"], rounds=3, blocks=BLOCKS)
        each = 1e3 * min(times) / count
        rows.append({"requests": count, "tokens": run.tokens, "us_a_request": round(each, 1)})
    return rows


def peer(output: int) -> dict:
    """Run SimPy and our loop on the same requests at the same costs; both must finish at the same time."""
    requests, cost = queue(2000, output), serving.Affine()
    rows = [[r.arrival_s, r.prompt, r.output] for r in requests]
    asked = {"rows": rows, "slots": SLOTS, "cost": asdict(cost), "rounds": 3}
    run = [str(_environment()), str(HERE / "simpy_peer.py")]
    answer = subprocess.run(run, input=json.dumps(asked), capture_output=True, text=True, check=True).stdout
    theirs = json.loads(answer)
    mine, our_run = played(requests, cost, POLICIES["continuous"])
    assert theirs["tokens"] == our_run.tokens
    assert abs(theirs["end_s"] - our_run.end_s) < 1e-6 * our_run.end_s
    return {
        "peer": PEER,
        "output": output,
        "peer_ms": summary(theirs["ms"]),
        "ours_ms": summary(mine),
        "peer_tokens_per_s": round(theirs["tokens"] / min(theirs["ms"]) * 1e3),
        "times_as_fast": round(min(theirs["ms"]) / min(mine), 1),
    }


def _environment():
    """Return the peer's own environment."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        uv = [sys.executable, "-m", "uv"] if _has_uv() else ["uv"]
        subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(ENVIRONMENT)], check=True)
        subprocess.run([*uv, "pip", "install", "-q", "--python", str(python), PEER], check=True)
    return python


def browser() -> dict:
    """Run 200 requests in the page's own Python."""
    code = PYODIDE % (vendor.package("pyodide").as_posix(), vendor.ROOT.as_posix(), ROUNDS + 1)
    run = [vendor.node(), "--input-type=module", "-e", code]
    told = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    return {"python": told["python"], "first_ms": round(told["ms"][0], 1), **summary(told["ms"][1:])}


def summary(times: list[float]) -> dict[str, float]:
    return {"least_ms": round(min(times), 2), "median_ms": round(statistics.median(times), 2)}


def measure() -> dict:
    """Measure everything in one run."""
    return {
        **kept.circumstances(),
        "policies": policies(),
        "pyodide": browser(),
        "peers": [peer(output) for output in (200, 2000)],
        "growth": growth(),
    }


def tell(found: dict) -> None:
    """Print the results as tables."""
    print(f"\n{found['date']}, {found['device']}, Python {found['python']}, load {found['load']}")
    print(f"\n{'policy':<15}{'costs':<11}{'M tokens/s':>11}{'ms for 200':>12}")
    for row in found["policies"]:
        rate = row["tokens_per_s"] / 1e6
        print(f"{row['policy']:<15}{row['costs']:<11}{rate:>11.1f}{row['live_ms']:>12}")
    b = found["pyodide"]
    print(f"\nPyodide {b['python']}: 200 requests in {b['median_ms']} ms, {b['first_ms']} the first time")
    for p in found["peers"]:
        theirs, ours = p["peer_ms"]["least_ms"], p["ours_ms"]["least_ms"]
        print(f"{p['peer']}: 2,000 answers of {p['output']} tokens in {theirs} ms, ours in {ours}")
    print(f"\n{'requests':>9}{'tokens':>12}{'µs each':>9}")
    for row in found["growth"]:
        print(f"{row['requests']:>9,}{row['tokens']:>12,}{row['us_a_request']:>9}")
    kept.verdicts(targets(found))


def targets(found: dict) -> list[tuple[bool, str]]:
    """Return each target as whether it is met, and its description."""
    slowest = min(row["tokens_per_s"] for row in found["policies"])
    longest = max(row["live_ms"] for row in found["policies"])
    each = [row["us_a_request"] for row in found["growth"]]
    faster = [p["times_as_fast"] for p in found["peers"]]
    return [
        (slowest >= LIMIT_TOKENS_PER_S, f"at least 1 M simulated tokens/s: {slowest / 1e6:.1f} M"),
        (longest <= LIMIT_MS, f"200 requests in at most {LIMIT_MS} ms in CPython: {longest}"),
        (each[-1] <= 1.5 * each[1], f"a request of 100,000 in {each[-1] / each[1]:.2f} times one of 2,000"),
        (min(faster) >= 1, f"{faster[0]} and {faster[1]} times as fast as the loop in {PEER}"),
    ]


if __name__ == "__main__":
    kept.main("serving", __doc__, measure, tell)
