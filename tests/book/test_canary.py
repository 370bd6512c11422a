"""What a runtime has is compared with what the isolated runs pin."""

import pytest

from tools import canary

PINNED = canary.versions(canary.PINS.read_text(encoding="utf-8")) | canary.OTHER_PINS
FREEZE = "\n".join(f"{name}=={version}" for name, version in PINNED.items())


@pytest.fixture
def freeze(tmp_path):
    def write(text):
        path = tmp_path / "freeze.txt"
        path.write_text(text)
        return [str(path)]

    return write


def test_equal_versions_differ_in_nothing(freeze, capsys):
    assert {"jax", "numpy", "ipywidgets", "ipython"} <= PINNED.keys()
    assert canary.main(freeze(f"{FREEZE}\ntorch==2.9.0\n")) == 0
    assert capsys.readouterr().out == "The runtime has every pinned version.\n"


def test_a_newer_jax_and_a_missing_package_are_printed(freeze, capsys):
    changed = FREEZE.replace(f"jax=={PINNED['jax']}", "JAX==0.9.1").replace("ipywidgets==", "other==")
    assert canary.main(freeze(f"{changed}\nAnyIO==1.0\n")) == 1
    told = capsys.readouterr().out
    assert f"jax: {PINNED['jax']} expected, 0.9.1 there" in told
    assert f"ipywidgets: {PINNED['ipywidgets']} expected, absent there" in told
    assert told.index("tools/colab.in:") < told.index("tools/colab.txt:") < told.index("anyio")


def test_a_difference_in_what_follows_is_no_failure(freeze):
    assert canary.main(freeze(f"{FREEZE}\nanyio==1.0\n")) == 0


def test_wheels_from_a_folder_are_read():
    text = (
        "jax @ file:///content/jax-0.7.2-py3-none-any.whl#sha256=1\nnumpy[extra] == 2.1.3 ; x\n# torch==1\n"
    )
    assert canary.versions(text) == {"jax": "0.7.2", "numpy": "2.1.3"}


@pytest.mark.parametrize("text", ["", "Package Version\njax 0.7.2\n"])
def test_a_file_that_is_no_freeze_is_refused(freeze, text):
    with pytest.raises(SystemExit, match=r"jax==0\.7\.2"):
        canary.main(freeze(text))
    with pytest.raises(SystemExit, match="write one file"):
        canary.main([])
    with pytest.raises(SystemExit, match="is no file"):
        canary.main(["/nowhere/freeze.txt"])
