"""What is kept of compiled programs is what the compiler says, and serves for no other program."""

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lib.lab.compiler import aot
from scalingbook_lib.notation import Mesh
from tests.lab import remembered as kept_programs
from tests.lab.remembered import digest

pytestmark = pytest.mark.usefixtures("tpu")
ON = {"topology": "v5e:2x2", "mesh": Mesh(X=4), "B": 4096, "D": 4096}


def product(x, w):
    return jnp.tanh(x @ w)


def compiled(F):
    return aot.compile(product, "A[B_X, D]", "W[D, F]", out="C[B_X, F]", **ON, F=F)


def test_it_is_what_the_compiler_says_and_another_program_is_compiled(remembered, monkeypatch, tmp_path):
    table = {}
    monkeypatch.setattr(kept_programs, "kept", lambda: table)
    monkeypatch.setattr(kept_programs, "TABLE", tmp_path / "remembered.json")
    monkeypatch.setenv("REMEMBER", "1")
    remembered(ON["topology"])
    asked, again, other = compiled(8192), compiled(8192), compiled(4096)
    assert asked.text
    assert (again.text, again.memory) == ("", asked.memory)
    assert other.text
    assert other.memory != asked.memory
    assert len(table) == 2


def test_the_same_program_for_another_slice_is_another():
    lowered = jax.jit(jnp.tanh).lower(jnp.ones(8))
    assert digest(lowered, "v5e:2x2") == digest(jax.jit(jnp.tanh).lower(jnp.ones(8)), "v5e:2x2")
    assert digest(lowered, "v5e:2x2") != digest(lowered, "v5p:2x2x1")
