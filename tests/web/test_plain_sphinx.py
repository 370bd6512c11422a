"""The book's options for Sphinx alone are those that Jupyter Book makes from the same file."""

import subprocess
import sys
from pathlib import Path

import yaml
from jupyter_book.config import get_final_config

from tools.environment import ROOT
from web import plain_sphinx

TOLD = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
OWN = {"extensions", "external_toc_path", "exclude_patterns", "html_theme_options", "nitpicky", "project"}


def test_options_agree_with_those_of_jupyter_book():
    theirs, _ = get_final_config(
        user_yaml=ROOT / "_config.yml", sourcedir=ROOT, cli_config={"latex_individualpages": False}
    )
    ours = plain_sphinx.config(TOLD, ROOT / "_toc.yml")
    different = {name for name in ours.keys() & theirs.keys() - OWN if ours[name] != theirs[name]}
    assert different == set()
    assert set(TOLD["exclude_patterns"]) <= set(ours["exclude_patterns"])
    assert {"sphinx_book_theme", "myst_nb", "web.extension"} <= set(ours["extensions"])
    assert not any("jupyter" in name or "thebe" in name for name in ours["extensions"])
    theme = ours["html_theme_options"]
    assert {name: theme[name] for name in TOLD["sphinx"]["config"]["html_theme_options"]} == (
        TOLD["sphinx"]["config"]["html_theme_options"]
    )


def test_the_tool_imports_nothing_of_jupyter_book():
    code = "import sys; from web import plain_sphinx; sys.exit('jupyter_book' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_requirements_name_sphinx_without_an_upper_bound(capsys):
    assert plain_sphinx.main(["--requirements"]) == 0
    told = capsys.readouterr().out.split()
    assert "sphinx>=8" in told
    assert not any("<" in one or "jupyter-book" in one for one in told)


def test_a_small_book_builds_on_sphinx_alone(tmp_path: Path):
    for name in ("_config.yml", "references.bib"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: first\n")
    (tmp_path / "first.md").write_text("# First\n\nTwo is $1+1$.\n")
    code = (
        "import sys; from pathlib import Path; from web import plain_sphinx;"
        "sys.exit(plain_sphinx.build(Path(sys.argv[1]) / 'out', Path(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert 'class="katex"' in (tmp_path / "out" / "html" / "first.html").read_text(encoding="utf-8")
