"""What is kept of compiled programs is what the compiler says, and serves for no other program."""

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lib.lab.compiler import aot, hlo
from scalingbook_lib.notation import Mesh
from tools.compiled import remembered
from tools.compiled.remembered import Said, digest

pytestmark = pytest.mark.usefixtures("tpu")
ON = {"topology": "v5e:2x2", "mesh": Mesh(X=4), "B": 4096}


def product(x, w):
    return jnp.tanh(x @ w)


def compiled(F, D=4096):
    return aot.compile(product, "A[B_X, D]", "W[D, F_X]", out="C[B_X, F]", **ON, F=F, D=D)


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """A table of its own, into which everything goes that is asked."""
    remembered._kept.cache_clear()
    monkeypatch.setattr(remembered, "TABLE", tmp_path / "table.txt")
    monkeypatch.setattr(remembered, "LEAST_S", 0)
    monkeypatch.setenv("REMEMBER", "1")
    monkeypatch.setenv("ASK", "")
    yield tmp_path / "table.txt"
    remembered._kept.cache_clear()


def test_it_is_what_the_compiler_says_and_another_program_is_compiled(empty):
    asked = compiled(8192)
    remembered._kept.cache_clear()
    again, other = compiled(8192), compiled(4096)
    assert isinstance(again.compiled, Said)
    assert not isinstance(other.compiled, Said)
    assert (again.memory, again.flops, again.cycles) == (asked.memory, asked.flops, asked.cycles)
    assert again.collectives == asked.collectives == hlo.collectives(again.compiled, Mesh(X=4))
    assert again.compiled.cost_analysis() == asked.compiled.cost_analysis()
    assert again.compiled.input_shardings == asked.compiled.input_shardings, "compiled after all"
    assert other.memory != asked.memory
    assert len(empty.read_text().splitlines()) == 2


def test_what_does_not_fit_is_refused_as_it_was(empty):
    with pytest.raises(aot.DoesNotFit) as asked:
        compiled(2**18, 2**17)
    remembered._kept.cache_clear()
    with pytest.raises(aot.DoesNotFit) as again:
        compiled(2**18, 2**17)
    assert str(again.value) == str(asked.value)
    assert len(empty.read_text().splitlines()) == 1


def test_what_the_compiler_does_not_say_is_found_when_its_turn_comes(empty, monkeypatch):
    compiled(8192)
    key, packed = empty.read_text().split()
    said = remembered._read(packed)
    empty.unlink()
    remembered._keep(key, said | {"text": said["text"].replace("tanh", "sinh")})
    remembered._kept.cache_clear()
    compiled(8192)
    monkeypatch.setenv("ASK", key[0])
    with pytest.raises(AssertionError, match="something else"):
        compiled(8192)


def test_no_path_of_a_machine_is_kept():
    for line in remembered._kept().values():
        text = str(remembered._read(line))
        assert not [place for place in ("/site-packages/", "FileNames", "ipykernel", ".py") if place in text]


def test_the_same_program_for_another_slice_in_another_order_or_with_other_names_is_another():
    def lowered(topology, order=1, fn=jnp.tanh):
        devices = aot.mesh_for(topology, {"X": 4}).devices.flatten()[::order]
        on = jax.sharding.Mesh(devices, "X")
        split = jax.sharding.NamedSharding(on, jax.P("X"))
        return jax.jit(fn).lower(jax.ShapeDtypeStruct((8,), jnp.float32, sharding=split))

    def scoped(name):
        def within(x):
            with jax.named_scope(name):
                return jnp.tanh(x)

        return digest(lowered("v5e:2x2", fn=within))

    one = digest(lowered("v5e:2x2"))
    assert one == digest(lowered("v5e:2x2"))
    assert one not in (digest(lowered("v5p:2x2x1")), digest(lowered("v5e:2x2", -1)))
    assert scoped("scores") == scoped("scores") != scoped("values")
    assert one != digest(lowered("v5e:2x2"), {"xla_tpu_scoped_vmem_limit_kib": 1024})
