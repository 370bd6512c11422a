"""The core is whole without the command line, and the script says what it lacks in one sentence."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCKED = "import sys; sys.modules['click'] = sys.modules['rich'] = None; "


def run(program):
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + program], capture_output=True, text=True, check=False
    )


def test_the_library_needs_no_command_line():
    done = run("from scalingbook_lib.machines import chips; print(chips.find('v5e').name)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "TPU v5e\n", "")


def test_the_script_says_which_extra_to_install():
    done = run("import runpy; runpy.run_module('scalingbook_cli', run_name='__main__')")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "run pip install click rich" in done.stderr
