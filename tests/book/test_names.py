"""No notebook, script or page asks a package index for a name that nobody has published: the book's."""

import re
import subprocess
import tomllib

import pytest

from tools.environment import ROOT

ELSEWHERE = {"jax-metal", "transformers", "uv", "xprof"}  # of their owners; the lock has no need of them
INSTALLS = re.compile(
    r"(?:pip3?|uv)[\"', ]+(?:install|add)\b(?:[\"', ]+--?[\w-]+(?:[ =](?:\S*/\S*|\d[\d.]*))?)*"
    r"[\"', ]+(?P<name>[A-Za-z][\w-]*)(?![\w./]*/)(?=[\s\[=<>~!\"'`;,.]|$)"
)
OURS = re.compile(r"scalingbook[-_]?\w*(?P<asks>\s*(?:\[[\w, ]*\]\s*)?[=<>~!]=|\[[a-z, ]+\]['\"`\s])")
VARIABLES = {"asked", "home", "python", "release", "sys", "str"}


def published():
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    return ELSEWHERE | {package["name"] for package in lock["package"] if "registry" in package["source"]}


def asked(text):
    """What a text's commands install by name first, and the book's own name as a requirement."""
    names = {found["name"] for found in INSTALLS.finditer(text.replace('\\"', '"'))}
    return names - VARIABLES | {found.group().strip() for found in OURS.finditer(text)}


def texts():
    """Every text that is committed, by its name."""
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = (
        name
        for name in told.stdout.split("\0")[:-1]
        if not name.endswith((".gz", ".png", ".lock", "test_names.py"))
    )
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names if (ROOT / name).is_file()}


def test_every_name_that_is_installed_is_published_by_its_owners():
    known, found = published(), {name: asked(text) for name, text in texts().items()}
    assert {name: bad for name, names in found.items() if (bad := names - known)} == {}
    assert found["jobs/tpu_pod.sh"] == {"uv", "jax"}, "it reads scripts"
    assert found["chapters/profiling_by_hand.ipynb"] == {"xprof"}, "and notebooks"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("pip install --quiet scalingbook-lib", "scalingbook-lib"),
        (
            'pip = [sys.executable, "-m", "pip", "install", "--no-deps", "scalingbook-lib==0.1.0"]',
            "scalingbook-lib==",
        ),
        ('needs = {"scalingbook_lib": ["--no-deps", "scalingbook-lib==0.1.0"]}', "scalingbook-lib=="),
        ("write pip install 'scalingbook-lib[cli]'", "scalingbook-lib"),
        ("!pip install -U somebodys-name", "somebodys-name"),
        ('    "!pip install \\"somebodys-name>=2\\"\\n",', "somebodys-name"),
    ],
)
def test_package_names_are_found_in_any_install_command(text, name):
    assert name in asked(text)
    assert not asked(text) <= published()


@pytest.mark.parametrize(
    "text",
    ["pip install .", "pip install '.[cli]'", 'RUN pip install --no-cache-dir "/book[lab]"',
     "import scalingbook_lib", 'release = "scalingbook-lib @ git+https://somewhere/book@v1"'],
)  # fmt: skip
def test_installs_from_files_name_no_package(text):
    assert asked(text) == set()
