"""The README names every room of the library, and no other."""

import re

from tools.environment import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
LIBRARY = ROOT / "scalingbook_lib"
A_ROOM_A_CHAPTER = "chapters/"


def told():
    """The rooms of the annotated tree, each with what is said of it."""
    block = README.split("```text\nscalingbook_lib/\n")[1].split("```")[0]
    rooms, above = {}, ""
    for indent, name, what in re.findall(r"^( +)(\S+) +(\S.*)$", block, re.MULTILINE):
        above = name if len(indent) == 2 else above
        rooms[name if len(indent) == 2 else above + name] = what
    return rooms


def found():
    """The rooms that there are, two floors deep."""
    folders = [p for pattern in ("*/", "*/*/") for p in LIBRARY.glob(pattern) if any(p.glob("*.py"))]
    names = {f"{p.relative_to(LIBRARY).as_posix()}/" for p in folders} | {"units.py"}
    return {n for n in names if n == A_ROOM_A_CHAPTER or not n.startswith(A_ROOM_A_CHAPTER)}


def test_the_tree_names_every_room():
    assert told().keys() == found()


def test_every_folder_of_the_repository_is_named():  # but what `make release` fills
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith((".", "_"))}
    assert {name for name in folders if f"`{name}/`" not in README} <= {"scalingbook_lib", "dist"}


def test_the_code_of_the_readme_runs():
    for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(compile("from scalingbook_lib.chapters import checks\n" + code, "README", "exec"), {})
