"""A function has every stage, and a named scope is found in each of them."""

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lab.compiler import compile_process, llo, stack
from scalingbook_lib.hlo import listings
from scalingbook_lib.notation import Mesh

SIZES = {"B": 256, "D": 256, "F": 512}
scale = 2.0

STAGES = ("jaxpr", "StableHLO", "HLO", "optimized HLO", "schedule", "LLO")


def doubled(x):
    return x * scale


def mlp(x, w, v):
    with jax.named_scope("up"):
        h = jnp.tanh(doubled(x) @ w)
    with jax.named_scope("down"):
        return h @ v


@pytest.fixture(scope="module")
def one(tpu):
    return stack.of(mlp, "X[B, D]", "W[D, F]", "V[F, D]", llo=True, **SIZES)


@pytest.fixture(scope="module")
def split(tpu):
    arrays = "X[B, D]", "W[D, F_X]", "V[F_X, D]"
    return stack.of(mlp, *arrays, out="Y[B, D]", topology="v5e:2x2", mesh=Mesh(X=4), **SIZES)


def test_a_stack_has_every_stage(one, split):
    assert tuple(s.name for s in one.stages) == STAGES
    assert tuple(s.name for s in split.stages) == STAGES[:-1]
    assert one.scopes == ("up", "down")


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("scope", ["up", "down"])
def test_a_scope_is_found_in_every_stage(one, name, scope):
    assert one[name].of(scope)


def test_each_stage_shows_the_operations_of_its_language(split):
    up = {stage.name: "\n".join(stage.of("up")) for stage in split.stages}
    assert "tanh" in up["jaxpr"]
    assert "stablehlo.tanh" in up["StableHLO"]
    assert "dot(" in up["HLO"]
    assert "convolution(" in up["optimized HLO"]
    down = {stage.name: "\n".join(stage.of("down")) for stage in split.stages}
    assert "all-reduce(" in down["optimized HLO"]
    assert "all-reduce X" in down["schedule"]


def test_no_stage_shows_a_path_of_this_machine(one):
    assert not any(__file__ in stage.text or "test_stack" in stage.text for stage in one.stages)
    assert not any("backend_config" in line for line in one["optimized HLO"].lines)


def test_an_excerpt_shows_the_stages_side_by_side(split):
    shown = split.excerpt("up", limit=3)._repr_mimebundle_()
    assert shown["text/html"].count("<pre") == len(split.stages)
    assert shown["text/plain"].startswith("jaxpr:\n")
    assert " more" in shown["text/plain"]
    with pytest.raises(ValueError, match="there are: up, down"):
        split.excerpt("middle")
    with pytest.raises(ValueError, match="no stage 'asm'"):
        split["asm"]


def test_bundles_are_counted_by_unit(one):
    (kernel,) = one.bundles
    assert len(kernel.lines) == len(kernel.used) == len(one["LLO"].lines)
    assert len(kernel.capacity) == len(kernel.slots)
    assert 0.3 < kernel.utilization("MATMUL") <= 1
    assert kernel.idle("MATMUL") < len(kernel.used)
    assert kernel.containing("vmatmul")
    assert "MATMUL" in str(kernel)
    with pytest.raises(ValueError, match="the slots are MATMUL"):
        kernel.utilization("GPU")


def test_a_products_kernel_keeps_the_mxu_busier_than_any_other_unit(one):
    (kernel,) = one.bundles
    assert max(kernel.slots, key=kernel.utilization) == "MATMUL"


def test_a_function_is_packed_with_the_values_that_it_names():
    offset = 3

    def within(x, *, by=1):
        return doubled(x) + offset + by + jnp.float32(0)

    unpacked = compile_process.unpack(compile_process.pack(within))
    assert unpacked(5) == within(5) == 14
    assert unpacked(5, by=2) == 15


def test_functions_that_cannot_be_packed_are_refused():
    handle = open(__file__)  # noqa: SIM115
    with pytest.raises(TypeError, match="handle cannot be taken to another process"):
        compile_process.pack(lambda x: (handle, x))
    handle.close()
    with pytest.raises(TypeError, match="is not written in Python"):
        compile_process.pack(len)


def test_a_second_process_that_fails_says_why(tpu):
    def wrong(x):
        return x @ jnp.ones((3, 3))

    with pytest.raises(RuntimeError, match="the second process could not compile it"):
        llo.dump(wrong, ("X[B, D]",), {"topology": "v5e:1x1", **SIZES})


def test_all_lines_of_an_equation_have_its_scope():
    closed = jax.jit(mlp).trace(*[jnp.ones((2, 2))] * 3).jaxpr
    written = list(listings.jaxpr(closed))
    assert sum(source == "up" for _, source in written) > 3
    assert not any("# [" in line for line, _ in written)


def test_a_jaxpr_has_no_colors_in_a_notebook(monkeypatch):
    from jax._src import pretty_printer

    monkeypatch.setattr(pretty_printer, "CAN_USE_COLOR", True)
    with jax.named_scope("up"):
        written = list(listings.jaxpr(jax.make_jaxpr(jnp.tanh)(1.0)))
    assert not any("\x1b" in line + source for line, source in written)
