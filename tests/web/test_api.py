"""The API reference: docstrings become reStructuredText, name their chapters, and cover the public core."""

import importlib
import re
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.core import publish_doctree

from scalingbook_lib import roofline, training
from tools.environment import ROOT
from web import pages, site
from web.extension import api

AUTOMODULE = re.compile(r"^\.\. automodule:: (\S+)$", re.MULTILINE)
MODULES = sorted(path.stem for path in (ROOT / "api").glob("*.md"))


def converted(text, what="module", obj=None):
    lines = text.split("\n")
    api.read_docstring(SimpleNamespace(), what, "", obj, None, lines)
    return "\n".join(lines)


def described(name):
    """The modules that a page of the reference describes."""
    return AUTOMODULE.findall((ROOT / "api" / f"{name}.md").read_text(encoding="utf-8"))


def test_the_reference_has_the_modules_of_its_first_page_and_no_other():
    listed = re.findall(r"^\| `scalingbook_lib\.(\w+)` \|", (ROOT / "api.md").read_text(), re.MULTILINE)
    assert sorted(listed) == MODULES
    for name in MODULES:
        assert described(name)[0] == f"scalingbook_lib.{name}"


def test_the_reference_has_every_module_of_the_library_that_the_readme_lists():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    library = re.search(r"^scalingbook_lib/ .*\n((?:  .*\n)+)", readme, re.MULTILINE)
    assert library
    listed = re.findall(r"^  (\w+)(?:/|\.py) ", library[1], re.MULTILINE)
    assert sorted(listed) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_a_docstring_and_most_a_chapter(name):
    found = []
    for module in map(importlib.import_module, described(name)):
        names = getattr(module, "__all__", None) or [one for one in vars(module) if not one.startswith("_")]
        found += [getattr(module, one) for one in names]
    code = [
        one for one in found if callable(one) and getattr(one, "__module__", "").startswith("scalingbook_lib")
    ]
    assert code
    assert [one.__name__ for one in code if hasattr(one, "__name__") and not one.__doc__] == []


def test_special_characters_outside_code_are_escaped():
    assert converted("X[B, D_X] and a*b, `W[D_X, F]`.") == r"X[B, D\_X] and a\*b, `W[D_X, F]`."
    assert converted("A chain `one\ntwo_` ends.") == "A chain `one\ntwo\\_` ends."


def test_an_indented_formula_becomes_a_literal_block_and_a_list_starts_after_a_blank_line():
    assert converted("The time:\n\n    time = ideal_s * 2\n\nand") == (
        "The time:\n\n::\n\n    time = ideal_s * 2\n\nand"
    )
    assert converted("Two:\n- one_\n  more\n- two") == "Two:\n\n- one\\_\n  more\n- two"
    assert converted(">>> f(a_*2)\n'x_'") == ">>> f(a_*2)\n'x_'"


def test_pythons_own_words_on_a_named_tuple_are_left_out():
    assert converted("Alias for field number 0", what="attribute") == ""


def test_chapters_become_links_even_across_lines():
    assert (
        converted("Times. Chapter:\nRooflines.") == "Times. Chapter: :doc:`Rooflines </chapters/rooflines>`."
    )
    told = converted("Chapters: Training; JAX.")
    assert told == ("Chapters: :doc:`Training </chapters/training>`; :doc:`JAX </chapters/jax>`.")
    assert converted("Chapter: Nowhere.") == "Chapter: Nowhere."


def test_a_function_names_the_chapter_of_its_module():
    assert "</chapters/rooflines>" in converted("A matmul.", "function", roofline.matmul)
    assert "</chapters/training>" in converted("A step.", "function", training.step)
    assert converted("Bytes.", "function", len) == "Bytes."


class Namespace:
    """An application that can be the key of a cache."""


def site_with(*names):
    """The parts of a Sphinx application that linking needs, with these objects in the reference."""
    objects = {
        f"scalingbook_lib.{name}": SimpleNamespace(
            docname=f"api/{name.partition('.')[0]}",
            node_id=f"scalingbook_lib.{name}",
            objtype="class" if name.endswith("Plan") else "function",
            aliased=False,
        )
        for name in names
    }
    env = SimpleNamespace(domaindata={"py": {"objects": objects, "modules": {}}})
    builder = SimpleNamespace(get_relative_uri=lambda page, other: f"../{other}.html")
    app = Namespace()
    app.env, app.builder = env, builder
    return app


def test_a_chapter_links_the_functions_that_its_docstrings_or_modules_name():
    app = site_with("roofline.matmul", "training.step", "training.Plan", "profiles.load", "units.si")
    tree = publish_doctree("Title\n=====\n\nText.\n", settings_overrides={"doctitle_xform": False})
    api.list_functions(app, tree, "chapters/training")
    section = tree[0][-1]
    assert (section[0].astext(), section["ids"]) == (api.HEADING, [api.ANCHOR])
    links = {one.astext(): one["refuri"] for one in section.findall(nodes.reference)}
    assert links == {"training.step": "../api/training.html#scalingbook_lib.training.step"}
    assert api.derived(app)["chapters/profiling"] == {"profiles": ["load"]}
    assert "matmul" in api.derived(app)["chapters/rooflines"]["roofline"]


def test_nothing_is_listed_in_a_site_without_the_reference_or_on_other_pages():
    for app, page in ((site_with(), "chapters/training"), (site_with("training.step"), "api")):
        tree = publish_doctree("Title\n=====\n", settings_overrides={"doctitle_xform": False})
        before = tree.pformat()
        api.list_functions(app, tree, page)
        assert tree.pformat() == before


def test_every_chapter_that_a_docstring_names_exists():
    unknown = {
        " ".join(name.split())
        for path in (ROOT / "scalingbook_lib").rglob("*.py")
        for told in api._TOLD.findall(path.read_text(encoding="utf-8"))
        for name in told.split(";")
    } - api.titles().keys()
    assert unknown == set()


def test_the_contents_gain_the_pages_only_where_they_are_asked_for(tmp_path):
    assert pages._contents(ROOT, tmp_path, api=False) == ROOT / "_toc.yml"
    more = pages._contents(ROOT, tmp_path, api=True).read_text(encoding="utf-8")
    own = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    added = [line for line in more.splitlines() if line not in own.splitlines()]
    assert added == [f"          - file: api/{name}" for name in MODULES]
    (tmp_path / "_toc.yml").write_text("root: index\n")
    with pytest.raises(SystemExit, match="has no page"):
        pages._contents(tmp_path, tmp_path, api=True)


def test_a_site_with_the_reference_starts_from_scratch(tmp_path):
    site._start(tmp_path, ROOT, api=False)
    (tmp_path / "unfinished").unlink()
    (tmp_path / "kept").touch()
    site._start(tmp_path, ROOT, api=False)
    assert (tmp_path / "kept").exists()
    (tmp_path / "unfinished").unlink()
    site._start(tmp_path, ROOT, api=True)
    assert not (tmp_path / "kept").exists()
