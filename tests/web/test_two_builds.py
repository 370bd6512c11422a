"""Tests of concurrent builds and of builds that cannot be written."""

import subprocess
import sys

import pytest

pytest.importorskip("sphinx", reason="the site's layer is not set up")
from tools.environment import ROOT
from web import site
from web.build_lock import build_lock

OTHER = (
    "import sys; from pathlib import Path; from web.build_lock import build_lock\n"
    "with build_lock(Path(sys.argv[1])): pass"
)


def test_a_second_build_waits_for_the_first(tmp_path, monkeypatch):
    def meanwhile(source, target, **options):
        command = [sys.executable, "-c", OTHER, target]
        other = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        assert other.stderr.readline() == f"site: waiting for another that writes into {target}\n"
        return other

    monkeypatch.setattr(site, "_build", meanwhile)
    other = site.build(target=tmp_path)
    assert (other.communicate(timeout=60)[1], other.returncode) == ("", 0)


@pytest.mark.parametrize("folder", ["a book", "書籍 übung"])
def test_a_failed_copy_is_reported_and_leaves_the_last_build(tmp_path, folder):
    target = tmp_path / folder
    for name in ("made", "html"):
        (target / name).mkdir(parents=True)
    (target / "made" / "page.html").symlink_to("nowhere")  # stands for a disk that is full
    with (
        pytest.raises(SystemExit, match=r"^the site: .*No such file.*; what was published stays") as said,
        build_lock(target),
    ):
        site.publish(target / "made", target)
    assert "\n" not in str(said.value)
    assert {path.name for path in target.iterdir()} == {"made", "html", "lock"}
