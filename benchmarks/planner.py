"""Measure how long a search for the best plan takes: `python -m benchmarks.planner`.

The question is Llama 3.1 405B on 16,384 H100s with 16.8 million tokens per step. The benchmark runs the full
search in CPython and in Pyodide (under Node, which has Chromium's engine). It alternates llm-analysis with
our search on the same question, narrowed to what llm-analysis supports. Searches of other sizes show how the
cost grows with the number of legal plans. Times are CPU times, so the load of the machine matters little.
--keep writes results/planner.json.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import kept
from scalingbook_lib import models, planner
from scalingbook_lib.machines import chips, clusters
from web import vendor

HERE = Path(__file__).parent
PEER = ("llm-analysis==0.2.2", "fire==0.7.1", "termcolor==3.2.0")  # without its Hugging Face downloads
ENVIRONMENT = vendor.ROOT / "_build" / "llm-analysis"
ROUNDS, FRESH, LIMIT_MS, BROWSER_LIMIT_MS, LIMIT_GROWTH = 9, 20, 1000, 2000, 1.5

MODEL, BATCH, T = models.find("Llama 3.1 405B"), 2048, 8192
H100 = clusters.Cluster.of(chips.H100, 16384)
NARROW = {
    "fixed": {"cp": 1, "dp": 1, "schedule": "1f1b"},
    "tried": {"zero": (0, 1, 2, 3), "remat": ("none", "selective", "full")},
    "every": True,
}
FIRST = "from benchmarks.planner import search_ms; print(search_ms()[0])"
PYODIDE = """
import { loadPyodide } from "%s/pyodide.mjs";
const python = await loadPyodide();
python.FS.mkdirTree("/library");
python.mountNodeFS("/library", "%s");
python.runPython(`
import sys
sys.path.insert(0, "/library")
from scalingbook_lib import models, planner
from scalingbook_lib.machines import chips, clusters
model, machine = models.find("Llama 3.1 405B"), clusters.Cluster.of(chips.H100, 16384)
`);
const ms = [];
for (let i = 0; i < %d; i++) {
  const since = process.threadCpuUsage();
  python.runPython("planner.plans(model, machine, batch=2048, T=8192).judged");
  const took = process.threadCpuUsage(since);
  ms.push((took.user + took.system) / 1000);
}
console.log(JSON.stringify({ ms, python: python.runPython("sys.version.split()[0]") }));
"""


def search_ms(machine=H100, batch: int = BATCH, **asked) -> tuple[float, planner.Ranking]:
    """Run one search; return its CPU milliseconds and its result."""
    since = time.process_time()
    found = planner.plans(MODEL, machine, batch=batch, T=T, **asked)
    return 1e3 * (time.process_time() - since), found


def ours() -> dict:
    """Run the full search repeatedly, and the first search in as many processes."""
    times = [search_ms() for _ in range(ROUNDS + 1)]
    found = times[0][1]
    first = [float(_output([sys.executable, "-c", FIRST])) for _ in range(FRESH)]
    counts = {"spreads": found.spreads, "legal": found.legal, "judged": found.judged, "pruned": found.pruned}
    return {"first": _summary(first), **_summary([ms for ms, _ in times[1:]]), **counts}


def _output(run: list[str]) -> str:
    return subprocess.run(run, capture_output=True, text=True, check=True, cwd=vendor.ROOT).stdout


def peer() -> dict:
    """Alternate llm-analysis with our search on the same question."""
    python = _environment()
    theirs, mine, told = [], [], {}
    for _ in range(3):
        run = [str(python), str(HERE / "llm_analysis_peer.py"), "1"]
        told = json.loads(_output(run))
        theirs += [1e3 * s for s in told["seconds"]]
        mine += [search_ms(**NARROW)[0] for _ in range(3)]
    found = search_ms(**NARROW)[1]
    each, our_each = min(theirs) / told["judged"], min(mine) / found.judged
    return {
        "peer": PEER[0],
        "peer_ms": _summary(theirs),
        "ours_ms": _summary(mine),
        "peer_judged": told["judged"],
        "ours_judged": found.judged,
        "times_as_fast": round(min(theirs) / min(mine), 1),
        "times_as_fast_a_plan": round(each / our_each, 1),
    }


def _environment() -> Path:
    """Return the peer's own environment: its pins conflict with ours."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        uv = [sys.executable, "-m", "uv"] if _has_uv() else ["uv"]
        subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(ENVIRONMENT)], check=True)
        subprocess.run([*uv, "pip", "install", "-q", "--no-deps", "--python", str(python), *PEER], check=True)
    return python


def _has_uv() -> bool:
    return (
        subprocess.run([sys.executable, "-m", "uv", "-V"], capture_output=True, check=False).returncode == 0
    )


def growth() -> dict:
    """Return microseconds per legal plan, from small searches to large ones."""
    rows = []
    for n in (256, 1024, 4096, 16384, 32768):
        machine = clusters.Cluster.of(chips.H100, n)
        times = [search_ms(machine, batch=n // 8) for _ in range(3)]
        legal = max(times[0][1].legal, 1)
        ms = min(ms for ms, _ in times)
        rows.append(
            {"chips": n, "legal": legal, "ms": round(ms, 1), "us_a_spread": round(1e3 * ms / legal, 1)}
        )
    return {"rows": rows}


def browser() -> dict:
    """Run the full search in the page's own Python."""
    code = PYODIDE % (vendor.package("pyodide").as_posix(), vendor.ROOT.as_posix(), ROUNDS + 1)
    run = [vendor.node(), "--input-type=module", "-e", code]
    told = json.loads(_output(run).splitlines()[-1])
    return {"python": told["python"], "first": _summary(told["ms"][:1]), **_summary(told["ms"][1:])}


def _summary(times: list[float]) -> dict[str, float]:
    return {"least_ms": round(min(times), 1), "median_ms": round(statistics.median(times), 1)}


def measure() -> dict:
    """Measure everything in one run."""
    return {
        **kept.circumstances(),
        "search": ours(),
        "pyodide": browser(),
        "peer": peer(),
        "growth": growth()["rows"],
    }


def tell(found: dict) -> None:
    """Print the results as tables."""
    s, b, p = found["search"], found["pyodide"], found["peer"]
    print(f"\n{found['date']}, {found['device']}, Python {found['python']}, load {found['load']}")
    print(f"\n{s['judged']:,} plans judged, {s['legal']:,} legal spreads, {s['pruned']:,} pruned")
    for name, times in (("CPython", s), (f"Pyodide {b['python']}", b)):
        print(f"{name:16}{times['least_ms']:>8} ms at least, {times['median_ms']} in the median; the first "
              f"time {times['first']['least_ms']} and {times['first']['median_ms']}")  # fmt: skip
    for name, who in (("peer", p["peer"]), ("ours", "the same question to us")):
        print(f"{who}: {p[name + '_judged']:,} plans in {p[name + '_ms']['least_ms']} ms")
    print(f"{p['times_as_fast']} times as fast, {p['times_as_fast_a_plan']} times a plan")
    print(f"\n{'chips':>8}{'legal':>9}{'ms':>9}{'µs a spread':>13}")
    for row in found["growth"]:
        print(f"{row['chips']:>8,}{row['legal']:>9,}{row['ms']:>9}{row['us_a_spread']:>13}")
    kept.verdicts(targets(found))


def targets(found: dict) -> list[tuple[bool, str]]:
    """Return each target as whether it is met, and its description."""
    rows = [row for row in found["growth"] if row["legal"] >= 1000]
    worst = max(later["us_a_spread"] / rows[0]["us_a_spread"] for later in rows)
    return [
        (
            found["search"]["first"]["median_ms"] <= LIMIT_MS,
            f"at most {LIMIT_MS} ms in CPython, the first search of a process too: "
            f"{found['search']['first']['median_ms']}",
        ),
        (
            found["pyodide"]["median_ms"] <= BROWSER_LIMIT_MS,
            f"at most {BROWSER_LIMIT_MS} ms in Pyodide: {found['pyodide']['median_ms']}",
        ),
        (
            worst <= LIMIT_GROWTH,
            f"close to linear in legal spreads: {worst:.2f} times the smallest's time a spread",
        ),
        (found["peer"]["times_as_fast"] >= 1, f"{found['peer']['times_as_fast']} times as fast as {PEER[0]}"),
    ]


if __name__ == "__main__":
    kept.main("planner", __doc__, measure, tell)
