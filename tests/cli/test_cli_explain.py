"""A derivation can be worked out by hand: the numbers that it prints give the value that it prints."""

import ast
import operator
import re

import pytest

from scalingbook_lib import models

WORKED = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
MACHINES = ["v5p:4x4x8", "v5e:4x8", "v5e:16x16", "v6e:2x4", "tpu7x:2x2x1", "h100", "h100:1024", "h100:32768",
            "gb200:576", "mi300x", "mi300x:64"]  # fmt: skip
KINDS = ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"]


def worked_out(numbers):
    """The value of '2 · 64 · 8,192 / (3 + 4)'; None for words."""
    plain = re.sub(r"(?<=[0-9]),(?=[0-9]{3})", "", numbers).replace("·", "*")
    try:
        return _value(ast.parse(plain, mode="eval").body)
    except (SyntaxError, TypeError):
        return None


def _value(node):
    match node:
        case ast.Constant(value=int() | float()):
            return node.value
        case ast.BinOp():
            return WORKED[type(node.op)](_value(node.left), _value(node.right))
        case ast.Call(func=ast.Name(id="max")):
            return max(map(_value, node.args))
    raise TypeError(node)


def test_the_reader_of_derivations_reads():
    assert worked_out("2 · 64 · 8,192 / (3 + 1)") == 2 * 64 * 8192 / 4
    assert worked_out("max(1.5e-5, 2,048)") == 2048
    assert worked_out("80 layers × 8,192 positions") is None


def steps(ask, line, *more):
    """Every step of a derivation, those in numbers checked."""
    found = ask(f"{line} --explain --json", *more).values["derivation"]
    for step in found:
        value = worked_out(step["numbers"])
        if value is not None:
            assert value == pytest.approx(step["value"], rel=1e-4), step
    return {step["name"]: step for step in found}


@pytest.mark.parametrize("name", [model.name for model in models.CATALOG])
def test_parameters_are_worked_out_part_by_part(ask, name):
    model = models.find(name)
    found = steps(ask, "model --tokens 1T --batch 2", name)
    for part, n in model.by_part.items():
        assert worked_out(found[f"parameters, {part}"]["numbers"]) == n
    assert worked_out(found["P"]["numbers"]) == model.params
    assert len(found) > 10


def test_a_plain_model_is_derived_in_the_book_s_letters(ask):
    found = steps(ask, "model llama-3-8b")
    assert (
        found["parameters, attention"]["formula"]
        == "D · N · H · L + D · K · H · L + D · K · H · L + N · H · D · L"
    )
    assert found["parameters, mlp"]["formula"] == "D · F · L + D · F · L + F · D · L"
    assert found["parameters, embedding"]["formula"] == "V · D"
    assert found["KV cache, full layers"]["formula"] == "2 · L · K · H · positions · B · bytes"


@pytest.mark.parametrize("line", [
    "--matmul 64x8192x8192", "--matmul 3x5x7 --weights fp4 --out fp32",
    "--flops 1T --bytes 1G", "--flops 1T --bytes 0", "--flops 0 --bytes 1",
])  # fmt: skip
def test_a_roofline_is_worked_out_line_by_line(ask, line):
    found = steps(ask, f"roofline v5e {line}")
    unworked = [name for name, step in found.items() if worked_out(step["numbers"]) is None]
    assert unworked == (["intensity"] if "--bytes 0" in line else [])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("which", KINDS)
@pytest.mark.parametrize("nbytes", ["0", "1000", "3GiB"])
def test_the_bytes_of_a_collective_are_worked_out_on_every_level(ask, which, machine, nbytes):
    found = steps(ask, f"collective {which} {nbytes} {machine}")
    assert all(worked_out(step["numbers"]) is not None for name, step in found.items() if name != "T_hops")
    if ":" in machine and "x" in machine.rpartition(":")[2]:
        assert worked_out(found["T_hops"]["numbers"]) is not None


def test_sums_in_the_switch_are_worked_out_too(ask):
    found = steps(ask, "collective all-reduce 1G h100:1024 --in-switch")
    assert found["T_NVLink"]["formula"] == "M · (r + 1) / (r · b · W)"
    assert found["T_leaf"]["formula"] == "2 · M · (r - b) / (r · b · W)"


def test_one_chip_alone_has_nothing_to_derive(ask):
    assert steps(ask, "collective all-gather 1G h100:1") == {}


@pytest.mark.parametrize("line", [
    "llama-3-70b v5p:16x16x16 --batch 2048 --tp 4 --fsdp 1024 --remat full --tokens 15T",
    "llama-3.1-405b h100:16384 --batch 2048 --tp 8 --pp 16 --fsdp 128",
])  # fmt: skip
def test_a_step_is_the_sum_of_its_terms(ask, line):
    found = steps(ask, f"plan {line} --as-written")
    for name in ("T", "MFU", "HFU", "memory per chip"):
        assert worked_out(found[name]["numbers"]) is not None
    assert sum(name.startswith("T, ") for name in found) >= 7


@pytest.mark.parametrize(
    "line", ["llama-3-70b v5e:4x4 --tp 16 --weights int8", "llama-3-8b h100:1 --policy chunked"]
)
def test_serving_is_derived_down_to_the_price(ask, line):
    found = steps(ask, f"serve {line} --as-written")
    for name in (
        "T_step",
        "memory per chip",
        "output tokens per second of a replica",
        "USD per million output tokens",
    ):
        assert worked_out(found[name]["numbers"]) == pytest.approx(found[name]["value"], rel=1e-4)


def test_people_get_the_formula_the_numbers_and_the_result(ask):
    told = ask("roofline v5e --matmul 64x8192x8192 --explain").out
    assert "FLOPs = 2 · B · D · F\n  = 2 · 64 · 8,192 · 8,192\n  = 8.59 GFLOPs\n" in told
    assert "T_math = FLOPs / C\n  = 8,589,934,592 / 1.97e14\n  = 43.6 µs\n" in told
    assert "Derivation" not in ask("roofline v5e --matmul 64x8192x8192").out


def test_what_has_no_end_is_said_in_words(ask):
    small = ask("roofline v5e --matmul 64x480x480 --explain").out
    still = ask("roofline v5e --flops 1T --bytes 0 --explain").out
    assert "at no batch size" in small
    assert "infinite" in still
    assert not re.search(r"\binf\b", small + still)
