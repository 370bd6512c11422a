"""The check of one exercise: compare an answer with the library's, and diagnose the mistake.

The library computes the right answer. No message ever contains it, and no input can make a check raise:
errors from foreign objects are caught in one place.
"""

import csv
import functools
import io
import math
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

from scalingbook_book.reader.checks import diagnosis, programs
from scalingbook_book.reader.checks import given as reading
from scalingbook_book.reader.checks.given import Unparsable
from scalingbook_book.reader.checks.programs import ProgramVerdict
from scalingbook_lib import notation
from scalingbook_lib.units import Result

Status = Literal["right", "wrong", "unread", "open"]
Kind = Literal["number", "choice", "notation", "program"]
_SIGNS = {"right": "✓", "wrong": "✗", "unread": "?", "open": "…"}


@dataclass(frozen=True, slots=True)
class Outcome(Result):
    """The outcome of a check: whether the answer is right, and a sentence that says so.

    For a program with a wrong result, `picture` shows the devices as text and `drawing` shows them as HTML.
    """

    ok: bool
    message: str
    status: Status
    slips: tuple[str, ...] = ()  # the names of the slips that the message mentions
    picture: str = ""
    drawing: str = ""

    def __str__(self) -> str:
        return f"{_SIGNS[self.status]} {self.message}\n{self.picture}".rstrip()

    def _repr_html_(self) -> str | None:
        return f"<p>{_SIGNS[self.status]} {escape(self.message)}</p>{self.drawing}" if self.drawing else None


ACCEPTED = Outcome(True, "Noted. Your function was judged in the notebook.", "right")  # a page's own answer


@dataclass(frozen=True, slots=True)
class Hint(Result):
    """One of an exercise's hints, which range from the gentlest to the most explicit."""

    n: int
    of: int
    text: str

    def __str__(self) -> str:
        return f"Hint {self.n} of {self.of}: {self.text}" if self.n else self.text


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong answer whose cause is known.

    `wrong_answer` is the result of the mistake: a multiple of the right answer for a number, a function that
    computes the wrong value, the text of a wrong choice or notation, or a program's verdict. `message` is the
    sentence that the reader gets.
    """

    wrong_answer: float | str | Callable[[], float | str | ProgramVerdict]
    message: str
    slip: str = ""  # its name, if other exercises have the same slip

    def value(self, answer: Any) -> Any:
        """Return the answer of a reader who makes this mistake when the right answer is `answer`."""
        if callable(self.wrong_answer):
            return self.wrong_answer()
        return self.wrong_answer if isinstance(self.wrong_answer, str) else self.wrong_answer * answer


@dataclass(frozen=True, kw_only=True)
class Check(Result):
    """One exercise: its answer, its tolerance, its hints and its known mistakes.

    A choice has `choices`. A check of `kind="notation"` has an answer such as "C[I_X, K]{U_Y}". A check of
    `kind="program"` asks for a function, and its answer is the verdict of `code_exercises.judge` on a correct
    one. Any other check asks for a number in base units of `unit`. `chips` is the number of chips of a slice,
    so that a per-chip answer to a per-slice question can be recognized.
    """

    key: str
    title: str
    answer: Callable[[], Any]
    unit: str = ""
    rel_tol: float = 0.02
    abs_tol: float = 0.0
    choices: tuple[str, ...] = ()
    kind: Kind = "number"
    chips: int | None = None
    difficulty: int = 1
    hints: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    right: str = "Right."

    def __post_init__(self) -> None:
        if self.choices:
            object.__setattr__(self, "kind", "choice")
        if self.difficulty not in (1, 2, 3):
            raise ValueError(f"{self.key}: difficulty {self.difficulty} is none of 1, 2, 3")

    @property
    def stem(self) -> str:
        """The chapter to which the exercise belongs."""
        return self.key.partition(".")[0]

    @property
    def words(self) -> frozenset[str]:
        """The words of the exercise, which may follow a number as the name of the counted thing."""
        return frozenset(re.findall("[a-z]{3,}", " ".join((self.unit, self.title, *self.hints)).lower()))

    def __str__(self) -> str:
        number = f"a number in {self.unit}" if self.unit else "a plain number"
        asks = {
            "choice": f"one of {', '.join(self.choices)}",
            "notation": "an array, as in A[I_X, J]",
            "program": "the judge's verdict on your function",
        }
        return f"{self.key}, {self.title}: answer with {asks.get(self.kind, number)}"

    def __call__(self, given: Any) -> Outcome:
        """Return the outcome for any given object; errors of foreign objects become a message."""
        try:
            return _judged(self, str.__str__(given) if isinstance(given, str) else given)
        except Exception as error:  # a foreign object may raise anything; an interrupt still propagates
            if type(error) is Unparsable:
                return _outcome("unread", str(error))
            self.answer()  # raises if the exercise itself is broken
            return _outcome("unread", f"This answer cannot be read. {self}.")

    def hint(self, n: int = 1) -> Hint:
        """Return the n-th hint, counted from 1; for another n, return a sentence with the number of hints."""
        of = len(self.hints)
        none = f"There are {of} hints: hint(1) to hint({of})." if of else "There is no hint for this one."
        return next((Hint(k, of, text) for k, text in enumerate(self.hints, 1) if k == n), Hint(0, of, none))


def _outcome(status: Status, message: str) -> Outcome:
    return Outcome(status == "right", message, status)


def _judged(check: Check, given: Any) -> Outcome:
    if reading.unanswered(given):
        return _outcome("open", f"{check.key}: not answered yet. Put your answer where the three dots are.")
    return (_program if check.kind == "program" else _compared)(check, given)


def _compared(check: Check, given: Any) -> Outcome:
    """Compare a number, a choice or an array with the answer and with every known mistake."""
    read, target, same, missed = _KINDS[check.kind]
    value, answer = reading.bounded(read, check, given), target(check.answer())
    if same(value, answer, check):
        return _outcome("right", check.right)
    found = missed(value, answer, check)
    for mistake in check.mistakes:
        if same(value, target(mistake.value(answer)), check):
            return Outcome(False, mistake.message, "wrong", (mistake.slip,) if mistake.slip else found.slips)
    return Outcome(False, found.message, "wrong", found.slips)


def _likely(value: float, answer: float, check: Check) -> diagnosis.Diagnosis:
    unit = reading.canonical(check.unit).unit
    return diagnosis.likely(value, answer, unit, tol=check.rel_tol, chips=check.chips, known=known(check.key))


@functools.cache
def _known() -> dict[str, diagnosis.Known]:
    """Return the facts and slips of every exercise, as written by `tools/slips.py`."""
    table = pkgutil.get_data("scalingbook_book.chapters", "slips.csv") or b""  # also from a page's archive
    rows = csv.DictReader(io.StringIO(table.decode()))
    return {row["exercise"]: _facts_and_slips(row["facts"], row["slips"]) for row in rows}


def _facts_and_slips(facts: str, slips: str) -> diagnosis.Known:
    split = (slip.partition(":") for slip in slips.split())
    return diagnosis.Known(
        frozenset(facts.split()),
        tuple((name, tuple(map(float, factors.split(",")))) for name, _, factors in split),
    )


def known(key: str) -> diagnosis.Known:
    """Return the facts and slips that the diagnosis of an exercise may use; empty if none are known."""
    return _known().get(key, diagnosis.NOTHING)


def _is_close(value: float, target: float, check: Check) -> bool:
    return math.isclose(value, target, rel_tol=max(check.rel_tol, 1e-12), abs_tol=check.abs_tol)


def _chosen(choices: tuple[str, ...], given: Any) -> str:
    """Return the choice that is meant: written out, by a usual alias, or by its letter.

    Raises Unparsable if the text matches no choice.
    """
    text = _bare(given) if isinstance(given, str) else ""
    by_letter = {chr(ord("a") + place): choice for place, choice in enumerate(choices)}
    written_out = {_bare(choice): choice for choice in choices}
    if chosen := (by_letter | written_out).get(text) or _spelled_otherwise(choices, text):
        return chosen
    raise Unparsable(f"Choose one of these: {'; '.join(choices)}.")


def _bare(text: str) -> str:
    return text.strip().strip(" ().").casefold().replace(" %", "%")


_SYNONYMS = {  # the names of collectives in programs, and the usual letters of a kind of parallelism
    "psum": "allreduce", "psumscatter": "reducescatter", "ppermute": "collectivepermute",
    "permute": "collectivepermute", "a2a": "alltoall",
    "tp": "tensor", "dp": "data", "cp": "context", "pp": "pipeline", "ep": "expert",
}  # fmt: skip


def _spelled_otherwise(choices: tuple[str, ...], text: str) -> str | None:
    """Return the only choice that differs in nothing but spelling, or None.

    Examples are `x@v`, `ReduceScatter`, `jax.lax.psum_scatter`, `TP` and `tensor parallelism`.
    """

    def joined(written: str) -> str:
        word = _bare(written).removeprefix("jax.").removeprefix("lax.")
        letters = re.sub(r"[\s_-]+", "", word).removesuffix("parallelism").removesuffix("parallel")
        return _SYNONYMS.get(letters, letters)

    same = [choice for choice in choices if joined(choice) == joined(text)] if joined(text) else []
    return same[0] if len(same) == 1 else None


def _array(given: Any) -> notation.Array:
    if type(given) is notation.Array:
        given = given.canonical()
    if not isinstance(given, str) or len(given) > 200:
        raise Unparsable("Write the array as text in the book's notation, as in 'A[I_X, J]'.")
    try:
        return notation.parse(given)
    except notation.NotationError as error:
        raise Unparsable(str(error)) from None


def _same(array: notation.Array, answer: notation.Array, check: Check) -> bool:
    return array.dims == answer.dims and set(array.partial) == set(answer.partial)


def _difference(array: notation.Array, answer: notation.Array, check: Check) -> diagnosis.Diagnosis:
    """Say where two arrays differ, without saying what would be right."""
    if [d.name for d in array.dims] != [d.name for d in answer.dims]:
        says = "The dimensions are not those of the result. Name them in the order that the question gives."
        return diagnosis.Diagnosis(says, ("wrong-dimension",))
    if set(array.partial) != set(answer.partial):
        more = (
            "a sum is still pending"
            if set(answer.partial) - set(array.partial)
            else "that sum is already complete"
        )
        return diagnosis.Diagnosis(f"Look at the partial sums {{U_…}} again: {more}.", ("partial-sum",))
    wrong = [d.name for d, e in zip(array.dims, answer.dims, strict=True) if d.axes != e.axes]
    if all(sorted(d.axes) == sorted(e.axes) for d, e in zip(array.dims, answer.dims, strict=True)):
        says = f"The axes of {wrong[0]} are right, but their order is not: the first one varies slowest."
        return diagnosis.Diagnosis(says, ("axis-order",))
    says = f"The dimensions are right, but the mesh axes that shard {' and '.join(wrong)} are not."
    return diagnosis.Diagnosis(says, ("wrong-axis",))


def _program(check: Check, given: Any) -> Outcome:
    verdict = _verdict(check, given)
    if verdict.wrong:
        return _refused(verdict)
    for mistake in check.mistakes:
        if programs.same(verdict.moves, mistake.value(None).moves):
            return _outcome("wrong", mistake.message)
    judged = replace(verdict, asked=check.answer().moves)
    return _outcome("right", check.right) if judged.ok else _refused(judged)


def _refused(verdict: ProgramVerdict) -> Outcome:
    """Return the outcome for a program that the judge rejects, with the picture of the devices."""
    shown = {"picture": str(verdict.picture), "drawing": str(verdict.drawing)}
    return replace(_outcome("wrong", f"{_sentence(verdict.sentence)}."), **shown)


def _verdict(check: Check, given: Any) -> ProgramVerdict:
    # the judge's sentence names what was asked for, and ends in values
    if (
        type(given) is not ProgramVerdict
        or [type(x) for x in (given.asked, given.moves, given.also)] != [tuple] * 3
    ):
        raise Unparsable(
            "This exercise needs the judge's verdict on your function: pass `task(your_function)`."
        )
    if given.key != check.key:
        raise Unparsable(f"That is the judge's verdict on {given.key or 'no exercise'}; this is {check.key}.")
    return given


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# For each kind: how an answer is read, how the right answer and the mistakes are converted, when two answers
# are equal, and what is said about an answer that is neither right nor a known mistake.
_KINDS: dict[Kind, tuple[Callable[..., Any], ...]] = {
    "number": (
        lambda check, given: reading.number(given, check.unit, check.words),
        float,
        _is_close,
        _likely,
    ),
    "choice": (
        lambda check, given: _chosen(check.choices, given),
        str,
        lambda chosen, choice, check: chosen == choice,
        lambda *_: diagnosis.Diagnosis("No. Work out both sides and compare them.", ("wrong-option",)),
    ),
    "notation": (
        lambda check, given: _array(given),
        lambda text: notation.parse(str(text)),
        _same,
        _difference,
    ),
}
