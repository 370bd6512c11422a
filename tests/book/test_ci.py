"""Where CI looks, a skipped test is a failed one."""

import os
import shutil
import subprocess
import sys

import pytest

from tools.environment import ROOT

SKIPS = {
    "test_in_a_test.py": "import pytest\ndef test_it(): pytest.skip('no device')\n",
    "test_by_a_mark.py": "import pytest\n@pytest.mark.skip(reason='no device')\ndef test_it(): pass\n",
    "test_a_module.py": "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass\n",
    "test_nothing_to_try.py": "import pytest\n@pytest.mark.parametrize('x', [])\ndef test_it(x): pass\n",
    "test_expected_to_fail.py": "import pytest\n@pytest.mark.xfail\ndef test_it(): assert False\n",
}


@pytest.mark.parametrize(
    ("ci", "closing"), [("true", "1 failed, 1 xfailed, 3 errors"), ("", "4 skipped, 1 xfailed")]
)
def test_a_skip_is_a_failure_in_ci_and_only_there(tmp_path, ci, closing):
    shutil.copy(ROOT / "conftest.py", tmp_path)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    for name, text in SKIPS.items():
        (tmp_path / name).write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
    ]
    environment = os.environ | {"CI": ci, "TEST_SCOPE": "all"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert closing in done.stdout.splitlines()[-1], done.stdout
    assert done.stdout.count("in CI a skip is a failure") >= (4 if ci else 0)
