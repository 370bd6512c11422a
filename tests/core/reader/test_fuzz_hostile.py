"""A check judges any object or says that it cannot, whatever the object raises or claims."""

import array
import functools
import itertools
import json
import sys
import unittest.mock
from dataclasses import replace

import numpy as np
import pytest

from scalingbook_book.chapters import checks
from scalingbook_book.chapters.checks import Check
from scalingbook_book.reader.checks.given import Unparsable
from scalingbook_book.reader.checks.programs import SOLVED, CollectiveCount, ProgramVerdict, right
from scalingbook_lib import notation, units

ASKS = {"here.1": {}, "here.2": {"all-gather X": 64}}
KINDS = (
    Check(key="one", title="", answer=lambda: 1.0, unit="s"),
    Check(key="zero", title="", answer=lambda: 0.0),
    Check(key="choice", title="", answer=lambda: "b", choices=("a", "b")),
    Check(key="array", title="", answer=lambda: "A[I_X, J]", kind="notation"),
    *(Check(key=key, title="", answer=lambda a=a: right(a), kind="program") for key, a in ASKS.items()),
)
SECOND = {c.key: replace(c, answer=functools.cache(c.answer)) for c in checks.catalog().values()}
SPECIAL = ("float", "index", "int", "complex", "eq", "hash", "bool", "str", "repr", "format", "len", "iter",
           "next", "getitem", "contains", "array", "call", "getattr", "getattribute", "class", "mul", "rmul",
           "buffer")  # fmt: skip
METHODS = (*(f"__{name}__" for name in SPECIAL), "item", "strip", "casefold", "canonical")
FIELDS = ("__class__", "__dict__", "key", "dims", "moves", "value", "unit")


class Mute(Unparsable):
    def __str__(self):
        raise RuntimeError("boo")


def raising(self, *args, error=RuntimeError):
    raise error("boo")


def again(self, *args):
    return again(self, *args)


ERRORS = (RuntimeError, Unparsable, Mute, MemoryError, OverflowError, StopIteration, AttributeError, KeyError)
LIES = (10**5000, "1 s", b"1", 2, 1 + 0j, None, object(), itertools.count(), ProgramVerdict, str)
DEEDS = (
    again,
    *(functools.partialmethod(raising, error=error) for error in ERRORS),
    *(lambda self, *args, lie=lie: lie for lie in LIES),
)


def hostile():
    """An object of every base, for every method and every deed."""
    for base, name, deed in itertools.product(
        (object, str, ProgramVerdict, notation.Array), METHODS + FIELDS, DEEDS
    ):
        what = property(deed) if name in FIELDS and not isinstance(deed, functools.partialmethod) else deed
        made = type("Hostile", (base,), {name: what})
        yield str.__new__(made, "zz") if base is str else object.__new__(made)


def judged(check, given):
    """The outcome; where the check raises, not even the object's name may be asked for."""
    try:
        return check(given)
    except Exception as error:
        raised = type(error).__name__
    return pytest.fail(f"{check.key} raises {raised}", pytrace=False)


@pytest.mark.parametrize("check", KINDS, ids=lambda check: check.key)
def test_no_object_makes_a_check_raise_or_is_right(check):
    for given in hostile():
        outcome = judged(check, given)
        assert outcome.status in ("wrong", "unread", "open")
        assert type(outcome.message) is str
        assert outcome.message


class Evil:
    __float__ = __eq__ = __str__ = __repr__ = __getattribute__ = __hash__ = raising


class Named(type):
    __name__ = property(raising)


NO_NUMBERS = (
    *(1 + 0j, np.complex128(1), np.complex64(1), np.array(1 + 0j), np.array([1 + 0j])),
    *(np.bool_(True), np.array([True]), np.array([1.0, 1.0]), np.timedelta64(1, "s"), [1.0]),
    *(np.timedelta64(1, "ns"), np.datetime64(0, "ns"), np.ma.masked, np.ma.array([0.0], mask=[True])),
    *(b"1", np.array(b"1"), bytearray(b"1"), memoryview(b"1"), array.array("b", b"1")),
    *(units.Quantity(value, "s") for value in (True, 1 + 0j, Evil())),
    *(object.__new__(kind) for kind in (ProgramVerdict, notation.Array, units.Quantity)),
    *(Evil(), Named("", (), {})(), units.Quantity(1, Evil()), unittest.mock.Mock()),
)


@pytest.mark.parametrize("place", range(len(NO_NUMBERS)))
def test_what_is_no_number_is_refused_by_every_check_of_the_book(place):
    for check in (*KINDS, *SECOND.values()):
        outcome = judged(check, NO_NUMBERS[place])
        assert (outcome.status, outcome.ok) == ("unread", False), (check.key, outcome)


@pytest.mark.parametrize(
    "given", [np.float32(1), np.int64(1), np.array([[1.0]]), np.float64(1), np.str_("1 s"), 1]
)
def test_numbers_of_other_libraries_are_read(given):
    assert KINDS[0](given).ok


def test_an_interrupt_and_a_broken_exercise_come_through():
    class Endless:
        def __float__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KINDS[0](Endless())
    with pytest.raises(ZeroDivisionError):
        Check(key="broken", title="", answer=lambda: 1 / 0)(1.0)


class Loops:
    def item(self):
        while True:
            pass

    __float__ = __index__ = item


class Asks:
    def __getattr__(self, name):
        return [yet for yet in itertools.count() if yet < 0]


@pytest.mark.parametrize("kind", [Loops, Asks])  # pytest would ask an object for its name, without an end
def test_an_object_whose_own_code_loops_is_stopped(kind):
    before = sys.gettrace()
    told = KINDS[0](kind())
    assert (told.status, "does not end" in told.message) == ("unread", True)
    assert sys.gettrace() is before


@pytest.mark.parametrize("endless", ["moves", "also", "asked"])
def test_an_endless_verdict_is_refused(endless):
    check = next(check for check in KINDS if check.key == "here.2")
    fields = {"asked": check.answer().moves, "moves": check.answer().moves} | {
        endless: itertools.repeat(CollectiveCount("all-gather", "X", 64))
    }
    assert check(ProgramVerdict(key=check.key, **fields)).status == "unread"


PROGRAMS = [check for check in (*KINDS, *SECOND.values()) if check.kind == "program"]


@pytest.mark.parametrize("check", PROGRAMS, ids=lambda check: check.key)
def test_only_a_judges_verdict_on_this_exercise_is_taken(check, monkeypatch):
    monkeypatch.setattr(checks, "find", lambda key: check)
    asked = check.answer().moves
    for given in (
        SOLVED,
        ProgramVerdict(),
        ProgramVerdict(key=check.key),
        ProgramVerdict(asked=asked, moves=asked),
        right({}),
    ):
        assert check(given).status == "unread"
    assert check(ProgramVerdict(key=check.key, asked=asked, moves=asked)).ok
    assert (
        check(ProgramVerdict(key=check.key, asked=asked, moves=(CollectiveCount(Evil(), "X", 1),))).status
        == "unread"
    )
    assert json.loads(checks.judge_json(check.key, SOLVED))["ok"]


def test_any_hint_number_returns_a_hint():
    for n in (0, 9, "1", None, 1.5, [], -1):
        assert KINDS[0].hint(n).n == 0
        assert SECOND["intro.compute-time"].hint(n).n == 0
