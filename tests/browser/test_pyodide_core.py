"""The core's tests pass inside Pyodide, one case of each: a page's numbers are the library's.

That is Python 3.14 in WebAssembly. pytest and what it needs are pure Python, and are carried in from this
environment: nothing is downloaded.
"""

import base64
import importlib.util
import json
import re
import subprocess
from pathlib import Path

from tools import wheel
from tools.testing.scope import DURATIONS
from web import vendor

PYTEST = ("_pytest", "pytest", "pluggy", "iniconfig", "packaging", "pygments")
CORE = vendor.ROOT / "tests" / "core"
SCRIPT = Path(__file__).with_name("core.mjs")


def _core():
    """The tests of the core, without those of chapters: a browser tries what is on each page."""
    return (path for path in CORE.rglob("*.py") if not path.is_relative_to(CORE / "chapters"))


def carried():
    """pytest, the library and its tests, as texts by path."""
    files = {name: text.decode() for name, text in wheel.core().items()}
    for name in PYTEST:
        folder = Path(importlib.util.find_spec(name).origin).parent
        for path in folder.rglob("*.py"):
            files[f"site/{name}/{path.relative_to(folder).as_posix()}"] = path.read_text(encoding="utf-8")
    data, tools = vendor.ROOT / "data", vendor.ROOT / "tools"
    scope = (tools / "testing" / "scope.py", *(tools / at for at in ("__init__.py", "environment.py")))
    tables = (
        *data.glob("*.csv"),
        *data.glob("own_survey*.json"),
        *data.glob("traces/*.json"),
        data / "hf_configs.json",
        data / "model_oracle.json",
        *data.glob("vectors/*.json"),
    )
    for path in (*scope, DURATIONS, *_core(), *CORE.rglob("*.txt"), *CORE.rglob("*.json"), *tables):
        # these need hypothesis, processes, a table beside them, and binary files
        if not path.name.startswith(("test_fuzz_", "test_cli_", "test_wrong_answers", "test_xplane_h100")):
            files[path.relative_to(vendor.ROOT).as_posix()] = path.read_text(encoding="utf-8")
    files["site/py.py"] = Path(importlib.util.find_spec("py").origin).read_text(encoding="utf-8")
    files["pytest.ini"] = "[pytest]\n"
    return files


def packed():
    """Compressed programs and profiles that tests read, in base64 by path."""
    paths = (*CORE.rglob("*.gz"), *(vendor.ROOT / "data" / "programs").glob("*.gz"))
    return {p.relative_to(vendor.ROOT).as_posix(): base64.b64encode(p.read_bytes()).decode() for p in paths}


def test_the_core_passes_its_tests_in_pyodide():
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--capture=sys", "tests/core"]
    arguments += [
        "--deselect",
        "tests/core/profiles/test_traces.py::test_an_installed_xprof_is_started_and_stopped",
    ]
    question = json.dumps({"files": carried(), "packed": packed(), "arguments": arguments})
    pyodide = vendor.package("pyodide") / "pyodide.mjs"
    done = subprocess.run(
        [vendor.node(), str(SCRIPT), str(pyodide)],
        input=question, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    told = re.search(r"(\d+) passed", done.stdout)
    assert told, done.stdout[-2000:]
    assert int(told[1]) > 1000, "too few tests ran"
