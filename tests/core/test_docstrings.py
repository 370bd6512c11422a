"""Each example of a docstring prints what stands below it, every room has one, and class names are unique."""

import doctest
import functools
import importlib
import pkgutil
from collections import Counter

import scalingbook_book
import scalingbook_lib

NEED_MORE = ("show", "code_exercises", "profile_timeline")  # than the standard library
ROOMS = (
    "notation", "machines", "models", "roofline", "collectives", "sharded_matmul", "steps", "training",
    "inference", "hlo", "profiles", "serving", "planner", "reader", "chapters",
)  # fmt: skip
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@functools.cache
def core():
    """Every module of the core, by its name below its package."""
    found = (
        module.name
        for package in (scalingbook_lib, scalingbook_book)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    )
    names = [name for name in found if name.split(".")[1] not in NEED_MORE]
    return {name.partition(".")[2]: importlib.import_module(name) for name in names}


def test_every_example_prints_what_stands_below_it():
    finder, runner, said = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=FLAGS), []
    for name, module in core().items():
        for test in finder.find(module, name):
            runner.run(test, out=said.append)
    assert runner.failures == 0, "\n".join(said)
    assert runner.tries >= 50, "it finds the examples"


def test_every_room_shows_how_it_is_used():
    finder = doctest.DocTestFinder()
    told = ((name.split(".")[0], finder.find(module, name)) for name, module in core().items())
    assert {room for room, tests in told if any(test.examples for test in tests)} >= set(ROOMS)


def test_every_public_class_of_the_library_has_a_name_of_its_own():
    found = {
        (thing.__name__, thing.__module__)
        for module in core().values()
        for thing in vars(module).values()
        if isinstance(thing, type) and thing.__module__.startswith("scalingbook_lib.")
    }
    counts = Counter(name for name, _ in found if not name.startswith("_"))
    assert {name for name, count in counts.items() if count > 1} == set()
    assert counts["Transformer"] == 1, "it finds the classes"
