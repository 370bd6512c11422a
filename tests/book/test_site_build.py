"""Tests of the site build: interrupted builds, pruned styles, the table of contents, and page data."""

import json
import shutil
import subprocess
from types import SimpleNamespace

import nbformat
import pytest

pytest.importorskip("sphinx", reason="the site's layer is not set up")
from scalingbook_book.chapters.checks import Check
from scalingbook_book.reader.checks.programs import SOLVED, right
from scalingbook_lib import __version__
from tools import first_cell, wheel
from tools.exercises import Exercise
from web import site, vendor
from web.extension import contents, exercises, page, page_data, scripts, stylesheet
from web.extension.contents import Entry


def folder(path, text):
    path.mkdir(parents=True)
    (path / "index.html").write_text(text)
    return path


def test_a_finished_build_replaces_the_last_one(tmp_path):
    folder(tmp_path / "html", "old")
    site.publish(folder(tmp_path / "made", "new"), tmp_path)
    assert (tmp_path / "html" / "index.html").read_text() == "new"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["html", "made"]


def test_an_interruption_between_the_renames_is_repaired(tmp_path):
    folder(tmp_path / "html.old", "old")  # html itself is gone: the second rename never came
    site.mend(tmp_path)
    assert (tmp_path / "html" / "index.html").read_text() == "old"


def test_an_interrupted_copy_leaves_the_last_build(tmp_path):
    folder(tmp_path / "html", "old")
    folder(tmp_path / "html.new", "hal")
    site.mend(tmp_path)
    assert (tmp_path / "html" / "index.html").read_text() == "old"
    site.publish(folder(tmp_path / "made", "new"), tmp_path)
    assert (tmp_path / "html" / "index.html").read_text() == "new"


@pytest.mark.parametrize("mark", ["unfinished", "machinery"])
def test_an_unfinished_build_or_changed_tools_start_from_scratch(tmp_path, mark):
    work = tmp_path / "work"
    site._start(work, vendor.ROOT)
    (work / "unfinished").unlink()
    (work / "half.html").write_text("hal")
    site._start(work, vendor.ROOT)
    assert (work / "half.html").exists(), "a finished build is built upon"
    (work / "unfinished").unlink()
    (work / mark).write_text("something else")
    site._start(work, vendor.ROOT)
    assert not (work / "half.html").exists()


RULES = """/* a { } */ .used { color: red } .gone, .used > .also { top: 0 } .gone { left: 0 }
@media (max-width: 9px) { .gone { a: b } } @media print { .used:not(.gone) { a: "}" } }
@font-face { font-family: X; src: url(x.woff2) } #id.used { a: b } #other { a: b }
html[data-x=".gone"] { a: b }"""


def test_only_css_rules_that_can_match_are_kept():
    kept = stylesheet.prune(RULES, {"used", "also", "id"})
    assert kept.replace("\n", "") == (
        ".used{color: red}.used > .also{top: 0}"
        '@media print{.used:not(.gone){a: "}"}}'
        '@font-face{font-family: X; src: url(x.woff2)}#id.used{a: b}html[data-x=".gone"]{a: b}'
    )


def test_only_css_properties_in_use_are_kept():
    css = ':root{--a: 1;--b:var(--c);--c:"; --x: }";--d:url(e)} p{top: var( --b, 2)} q{--f:1;left:0}'
    assert stylesheet.referred(css, "fill='var(--a)'") == (
        ':root{--a: 1;--b:var(--c);--c:"; --x: }";} p{top: var( --b, 2)} q{left:0}'
    )
    assert stylesheet.referred(":root{--a:var(--b);--b:0}", "") == ":root{}"


def test_names_come_from_classes_ids_and_scripts():
    assert stylesheet.names_in_html("""<a class="b c-d" id='e'>""") == {"b", "c-d", "e"}
    assert "ex-wide" in stylesheet.names_in_source("root.querySelector('.ex-wide')")


PARTS = [
    ("A & B", (Entry("a", "On <a>", (Entry("a/below", "Below", ()),)), Entry("b", "B", (), "2"))),
    ("", (Entry("c", "C", ()),)),
]


def test_the_contents_mark_a_page_and_open_its_branch():
    drawn = contents.drawn(PARTS, "a/below", lambda page: f"{page}.html")
    assert '<span class="caption-text">A &amp; B</span>' in drawn
    assert (
        '<li class="toctree-l1 current active has-children"><a class="reference internal" href="a.html">'
        in drawn
    )
    assert '<details open="open"><summary aria-label="Pages below On &lt;a&gt;">' in drawn
    assert (
        '<li class="toctree-l2 current active"><a class="current reference internal" href="a/below.html">'
        in drawn
    )
    numbered = '<span class="toc-number">2</span> <span class="toc-title">B</span>'
    assert f'<li class="toctree-l1"><a class="reference internal" href="b.html">{numbered}</a></li>' in drawn
    assert drawn.endswith(
        '<ul class="nav bd-sidenav">\n<li class="toctree-l1">'
        + '<a class="reference internal" href="c.html"><span class="toc-title">C</span></a></li>\n</ul>\n'
    )


def test_the_contents_beside_another_page_are_closed():
    drawn = contents.drawn(PARTS, "elsewhere", lambda page: f"../{page}.html")
    assert "current" not in drawn
    assert "open=" not in drawn
    assert drawn.count("<a ") == 4


def test_page_data_is_merged_and_dropped():
    env, other = SimpleNamespace(), SimpleNamespace()
    page_data.page_data(env, "numbers")["a"] = 1
    page_data.page_data(other, "numbers").update(a=0, b=2)
    page_data.page_data(other, "places")["b"] = 3
    page_data.merge(None, env, ["b"], other)
    assert page_data.page_data(env, "numbers") == {"a": 1, "b": 2}, "a was read here"
    assert page_data.page_data(env, "places") == {"b": 3}
    page_data.forget(None, env, "b")
    assert (page_data.page_data(env, "numbers"), page_data.page_data(env, "places")) == ({"a": 1}, {})


def test_an_answer_is_cached(tmp_path, monkeypatch):
    monkeypatch.setattr(vendor, "STORE", tmp_path)
    answers = iter(["first", "second", "never"])
    asked = [vendor.cached(question, lambda: next(answers)) for question in (b"a", b"b", b"a")]
    assert asked == ["first", "second", "first"]


def test_vendored_packages_are_pinned_with_integrity_hashes():
    lock = json.loads((vendor.HERE / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert len(packages) > 3
    assert [
        name for name, entry in packages.items() if not entry.get("integrity", "").startswith("sha512-")
    ] == []


def test_the_lock_names_a_tool_for_every_platform():
    # npm ci fails wherever a registry knows of a platform's package that the lock does not
    lock = json.loads((vendor.HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    wanted = {name for entry in lock.values() for name in entry.get("optionalDependencies", {})}
    assert len(wanted) > 20
    assert {name for name in wanted if f"node_modules/{name}" not in lock} == set()


def test_modules_are_bundled_after_their_imports(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "a.mjs").write_text('import { b } from "../b.mjs";\nexport const a = b + 1;\n')
    (tmp_path / "b.mjs").write_text("/** A number.\n * @type {number} */\nexport const b = 1;\n")
    entry = tmp_path / "live.mjs"
    outside = 'import { read } from "./progress.mjs";\n'
    entry.write_text(f'import {{ a }} from "./part/a.mjs";\n{outside}// why\nexport const c = a;\n')
    (tmp_path / "progress.mjs").write_text("export const read = 0;\n")
    assert scripts.joined(entry) == f"const b = 1;\nconst a = b + 1;\n{outside}export const c = a;\n"
    (tmp_path / "b.mjs").write_text("export const b = 1;\nfunction c() {}\n")
    with pytest.raises(SystemExit, match="declare c"):
        scripts.joined(entry)


def test_editing_a_chapter_rebuilds_it_and_no_other(tmp_path):
    book = tmp_path / "book"
    book.mkdir()
    for name in ("_config.yml", "references.bib"):
        shutil.copy(vendor.ROOT / name, book)
    others = ["edited", "other", *(f"other-{number}" for number in range(4))]  # from six on, all cores read
    listed = "".join(f"- file: {name}\n" for name in others)
    (book / "_toc.yml").write_text(f"format: jb-book\nroot: first\nchapters:\n{listed}")
    for name in ("first", *others):
        (book / f"{name}.md").write_text(f"# Page {name}\n\nText.\n")
    site.build(book, tmp_path / "out")
    made = tmp_path / "out" / "work" / "_build" / "html"
    before = {path.name: path.stat().st_mtime_ns for path in made.glob("*.html")}
    (book / "edited.md").write_text("# Page edited\n\nNew text.\n")
    site.build(book, tmp_path / "out")
    rebuilt = {name for name, time_ns in before.items() if (made / name).stat().st_mtime_ns != time_ns}
    assert "edited.html" in rebuilt
    assert "other.html" not in rebuilt
    assert "New text." in (tmp_path / "out" / "html" / "edited.html").read_text(encoding="utf-8")


REPOSITORY = "https://github.com/someone/book"
OPENS = {
    "Colab": f"https://colab.research.google.com/github/someone/book/blob/v{__version__}/chapters/sums.ipynb",
    "Kaggle": f"https://kaggle.com/kernels/welcome?src={REPOSITORY}/blob/v{__version__}/chapters/sums.ipynb",
    "source": f"{REPOSITORY}/blob/v{__version__}/chapters/sums.ipynb",
}


def opened(made):
    return {told for told, address in OPENS.items() if f'href="{address}"' in made}


def test_a_page_opens_the_released_notebook_where_a_repository_is_configured(executed, tmp_path):
    config = (vendor.ROOT / "_config.yml").read_text()
    (executed / "_config.yml").write_text(config.replace('  url: ""', f'  url: "{REPOSITORY}"'))
    (executed / "_toc.yml").write_text("format: jb-book\nroot: chapters/sums\n")
    shutil.copy(vendor.ROOT / "references.bib", executed)
    site.build(executed, tmp_path / "out")
    made = (tmp_path / "out" / "html" / "chapters" / "sums.html").read_text(encoding="utf-8")
    assert opened(made) == set(OPENS)
    assert "four" in made
    assert "importlib" not in made, "the cell that sets up is for notebooks"


@pytest.mark.parametrize(
    ("repository", "shown"),
    [
        (REPOSITORY, ["Colab", "Kaggle", "source"]),
        ("https://gitlab.com/someone/book", ["source"]),  # neither opens notebooks from elsewhere than GitHub
        ("", []),
    ],
)
def test_only_available_launch_links_are_offered(repository, shown):
    offered = page.places(repository, "chapters/sums.ipynb")
    assert len(offered) == len(shown)
    assert all(word in told for word, told in zip(shown, offered, strict=True))
    assert page.places(repository, "") == {}, "a page that was made from no notebook"


@pytest.mark.parametrize(
    ("remote", "found"),
    [
        ("git@github.com:someone/book.git", REPOSITORY),
        ("https://github.com/someone/book", REPOSITORY),
        ("https://token@github.com/someone/book", ""),
        ("/srv/book.git", ""),
    ],
)
def test_a_git_remote_on_github_is_a_repository_too(tmp_path, remote, found):
    for command in (["init", "--quiet"], ["remote", "add", "origin", remote]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    assert page._remote(tmp_path) == found


@pytest.mark.parametrize("config", [None, 'repository:\n  url: ""\n', f"repository:\n  url: {REPOSITORY}\n"])
def test_a_notebook_asks_for_the_release_where_a_repository_is_configured(tmp_path, config):
    if config is not None:
        (tmp_path / "_config.yml").write_text(config)
    asked = f'"scalingbook-lib @ git+{REPOSITORY}@v{__version__}"' in first_cell.source(tmp_path)
    assert asked == (REPOSITORY in (config or ""))
    assert first_cell.NOWHERE in first_cell.source(tmp_path)
    compile(first_cell.source(tmp_path), "cell", "exec")


def test_a_page_offers_its_notebook_with_the_library_inside(executed, tmp_path):
    (executed / "_toc.yml").write_text("format: jb-book\nroot: chapters/sums\n")
    shutil.copy(vendor.ROOT / "references.bib", executed)
    shutil.copy(vendor.ROOT / "_config.yml", executed)
    made = site.build(executed, tmp_path / "out")
    written = (made / "chapters" / "sums.html").read_text(encoding="utf-8")
    assert 'href="../notebooks/chapters/sums.ipynb" download' in written
    assert opened(written) == set(), "no repository is configured"
    committed = nbformat.read(executed / "chapters" / "sums.ipynb", as_version=4)
    given = nbformat.read(made / "notebooks" / "chapters" / "sums.ipynb", as_version=4)
    assert given.cells[1:] == committed.cells[1:]
    assert given.cells[0].source == first_cell.carrying(wheel.carried())
    assert given.metadata["edition"]["version"] == __version__
    assert not (made / "_sources").exists(), "a copy without the library"


PROGRAM = Check(
    key="sums.two-halves", title="A sum", kind="program", answer=lambda: right({}), hints=("Add.",)
)
ASKED = Exercise("sums.two-halves", 1, "A sum", "Add them.", (), "mine = ...  # a function", ())


def test_a_function_exercise_has_no_input_field():
    box = exercises.form(ASKED, PROGRAM, "../solutions/sums.html#a-sum")
    assert 'type="text"' not in box
    assert f'<input type="radio" name="answer" value="{SOLVED}">' in box
    assert "Hint 1 of 1" in box
    assert "Worked solution" in box
    assert not PROGRAM(SOLVED).ok, "the box says so, and no notebook"
