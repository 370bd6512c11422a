"""The trials of the tests do what they say: a mutant is one mistake, and a state outlives a kill."""

import ast

import pytest

from tools.trust import again, given, mutants, mutate
from tools.trust.state import State


@pytest.mark.parametrize(
    ("code", "mistakes"),
    [
        ("a < b", ["a <= b"]),
        ("a in b or c", ["a in b and c", "a not in b or c"]),
        ("a * b + 2", ["a * b - 2", "a / b + 2", "a * b + 3"]),
        ("x = min(a, 0.5)", ["x = max(a, 0.5)", "x = min(a, 1.0)"]),
        ("x = not True", ["x = bool(True)", "x = not False"]),
        ("a -= b", ["a += b"]),
        ("def f(a: 'int | None' = 0) -> 'int | str':\n    return a", [
            "def f(a: 'int | None'=0) -> 'int | str':\n    return None",
            "def f(a: 'int | None'=1) -> 'int | str':\n    return a"]),
        ("@cache(maxsize=1)\ndef f():\n    return", []),
        ("zip(a, b, strict=True)", []),
    ],
)  # fmt: skip
def test_each_mutant_is_one_mistake(tmp_path, code, mistakes):
    (tmp_path / "m.py").write_text(code)
    path = str(tmp_path / "m.py")
    every = [mutants.Mutant(path, "", site, 1, "") for site in range(len(mistakes))]
    assert len(list(mutants.sites(mutants.parsed(tmp_path / "m.py")))) == len(mistakes)
    assert sorted(ast.unparse(one.tree(changed=True)) for one in every) == sorted(mistakes)


def test_the_order_of_mutants_follows_from_the_seed():
    first, second, other = (mutants.every(seed, "/units.py") for seed in (0, 0, 1))
    assert first == second != other
    assert set(first) == set(other)


def test_a_mutant_takes_the_place_of_its_function_in_a_process_of_its_own():
    one = next(m for m in mutants.every(0, "/units.py") if m.change == "return None")
    assert mutate.forked(lambda: 5 if mutate.put(one) else 6) == 5
    constant = next(m for m in mutants.every(0, "lib/units.py") if m.line < 60 and "->" in m.change)
    assert mutate.anew(constant, ["tests/trust/test_trials.py::test_a_state_outlives_a_kill"]) == mutate.HELD


def test_a_state_outlives_a_kill(tmp_path):
    state = State("trial", tmp_path)
    state.keep("one", "held")
    state.keep("zwei ü", "failed\nbadly")
    with state.path.open("a", encoding="utf-8") as file:
        file.write('["three", "he')
    again_read = State("trial", tmp_path)
    assert again_read.known == {"one": "held", "zwei ü": "failed\nbadly"}
    again_read.keep("three", "held")
    assert len(State("trial", tmp_path).known) == 3


def test_a_failure_under_load_is_told_and_the_order_follows_from_the_seed(tmp_path):
    file = tmp_path / "test_order.py"
    file.write_text("told = []\n" + "".join(f"def test_{n}(): told.append({n})\n" for n in range(9)))
    file.write_text(file.read_text() + "def test_z(): assert told == sorted(told) and len(told) == 9\n")
    assert "test_z" in again.run(str(file), "0")


@pytest.mark.parametrize("seed", range(200))
def test_every_product_that_an_attack_draws_is_valid(seed):
    pick = given.Random(seed)
    assert given.notation.parse_product(given.product(pick))
