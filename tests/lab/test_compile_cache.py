"""The compile cache returns what the TPU compiler returns, for the same program and for no other."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl

from scalingbook_lab.compiler import aot
from scalingbook_lib import hlo
from scalingbook_lib.notation import Mesh
from tests.lab.compiler import test_cases as cases
from tools.compiled import compile_cache
from tools.compiled.compile_cache import CachedExecutable, digest, normalize

pytestmark = pytest.mark.usefixtures("tpu")
QUICK = (  # the stored programs that compile fastest, in half a second to a second
    "A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]",
    "A[I_X, J_Y] · B[J, K] -> C[I_X, K]",
    "A[I_X, J] · B[J_X, K_Y] -> C[I_X, K_Y]",
    "A[I_XY, J] · B[J, K_Y] -> C[I_XY, K]",
)
SLICE = {"topology": "v5e:2x2", "mesh": Mesh(X=4), "B": 4096}


def product(x, w):
    return jnp.tanh(x @ w)


def compiled(F, D=4096):
    return aot.compile(product, "A[B_X, D]", "W[D, F_X]", out="C[B_X, F]", **SLICE, F=F, D=D)


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """An empty cache that records every program."""
    compile_cache._table.cache_clear()
    monkeypatch.setattr(compile_cache, "TABLE", tmp_path / "table.txt")
    monkeypatch.setattr(compile_cache, "MIN_COMPILE_S", 0)
    monkeypatch.setenv("COMPILE_CACHE", "record")
    yield tmp_path / "table.txt"
    compile_cache._table.cache_clear()


def test_only_programs_that_are_not_cached_are_compiled(empty):
    first = compiled(8192)
    compile_cache._table.cache_clear()
    again, other = compiled(8192), compiled(4096)
    assert isinstance(again.compiled, CachedExecutable)
    assert not isinstance(other.compiled, CachedExecutable)
    assert (again.memory, again.flops, again.cycles) == (first.memory, first.flops, first.cycles)
    assert again.collectives == first.collectives == hlo.collectives(again.compiled, Mesh(X=4))
    assert again.compiled.cost_analysis() == first.compiled.cost_analysis()
    assert again.compiled.input_shardings == first.compiled.input_shardings, "compiled on demand"
    assert other.memory != first.memory
    assert len(empty.read_text().splitlines()) == 2


def test_an_out_of_memory_error_is_stored_and_raised_again(empty):
    with pytest.raises(aot.DoesNotFit) as first:
        compiled(2**18, 2**17)
    compile_cache._table.cache_clear()
    with pytest.raises(aot.DoesNotFit) as again:
        compiled(2**18, 2**17)
    assert str(again.value) == str(first.value)
    assert len(empty.read_text().splitlines()) == 1


def test_only_the_mode_compare_finds_an_entry_that_the_compiler_contradicts(empty, monkeypatch):
    compiled(8192)
    key = empty.read_text().split()[0]
    compile_cache._table.cache_clear()
    entry = compile_cache.lookup(key)
    assert entry
    compile_cache.store(key, entry | {"text": entry["text"].replace("tanh", "sinh")})
    compile_cache._table.cache_clear()
    monkeypatch.delenv("COMPILE_CACHE")
    assert "sinh" in compiled(8192).text
    monkeypatch.setenv("COMPILE_CACHE", "compare")
    with pytest.raises(AssertionError, match="differs from entry"):
        compiled(8192)


@pytest.mark.parametrize("text", QUICK)
def test_the_compiler_agrees_with_the_cache_on_quick_programs(monkeypatch, text):
    """Every run compiles these and compares them; COMPILE_CACHE=compare does it for all programs."""
    if not aot.as_printed():
        pytest.skip("the cache holds the results of the locked compiler")
    keys = []
    monkeypatch.setattr(compile_cache, "digest", lambda *inputs: keys.append(digest(*inputs)) or keys[-1])
    monkeypatch.setenv("COMPILE_CACHE", "compare")
    program = cases.of_product(aot.compile, text, "tpu")
    assert not isinstance(program.compiled, CachedExecutable)
    assert [bool(compile_cache.lookup(key)) for key in keys] == [True], "stored, hence compared"


def test_an_unknown_mode_is_an_error(monkeypatch):
    monkeypatch.setenv("COMPILE_CACHE", "all")
    with pytest.raises(ValueError, match="read, compare, record"):
        compile_cache.mode()


def test_no_entry_has_a_path_or_a_location():
    for key in compile_cache._table():
        entry = compile_cache.lookup(key) or {}
        text = entry.get("text", entry.get("refused", ""))
        assert normalize(text) == text
        assert not [place for place in ("/site-packages/", "FileNames", "ipykernel", ".py") if place in text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("constant({2}), metadata={stack_frame_id=43}", "constant({2})"),
        (
            'add(a, b), metadata={op_name="jit(f)/add" stack_frame_id=7}',
            'add(a, b), metadata={op_name="jit(f)/add"}',
        ),
        (
            'add(a, b), metadata={stack_frame_id=7 op_name="f"}, x={}',
            'add(a, b), metadata={op_name="f"}, x={}',
        ),
        (
            'add(a), metadata={op_name="a{b}\\" stack_frame_id=1" source_file="/x.py" source_line=3}, y=1',
            'add(a), metadata={op_name="a{b}\\" stack_frame_id=1"}, y=1',
        ),
        ("add(a), metadata={source_line=3 source_end_column=4}, y=1", "add(a), y=1"),
        ("add(a), metadata={profile_type={1} stack_frame_id=2}", "add(a), metadata={profile_type={1}}"),
        ('Operator: op_name="f" source_file="/home/x.py" source_line=3\n', 'Operator: op_name="f"\n'),
        ('FileNames\n1 "/home/x.py"\n\nStackFrames\n1 {file=1}\n\nENTRY', "ENTRY"),
    ],
)
def test_normalized_text_keeps_the_names_of_operations_and_no_location(text, expected):
    assert normalize(text) == expected


def test_the_digest_depends_on_the_devices_the_options_and_the_names():
    def lowered(topology, order=1, fn=jnp.tanh):
        devices = aot.mesh_for(topology, {"X": 4}).devices.flatten()[::order]
        mesh = jax.sharding.Mesh(devices, "X")
        split = jax.sharding.NamedSharding(mesh, jax.P("X"))
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


SOURCE = """
def double(x_ref, o_ref):
    o_ref[...] = 2 * x_ref[...]

def kernel(x):
    return pl.pallas_call(double, out_shape=x)(x)

def scatter(x):
    return x.at[jnp.arange(3)].add(x[:3])

def loop(x):
    return jax.lax.fori_loop(0, 3, lambda i, y: jnp.tanh(y) * i, x)
"""


@pytest.mark.parametrize("name", ["scatter", "loop", "kernel"])
def test_neither_the_digest_nor_the_entry_depends_on_where_the_code_is(name):
    def lowered(path, first_line):
        scope: dict[str, Any] = {"pl": pl, "jax": jax, "jnp": jnp}
        exec(compile("\n" * first_line + SOURCE, path, "exec"), scope)
        (device,) = aot.mesh_for("v5e:1x1", {"X": 1}).devices.flatten()
        x = jax.ShapeDtypeStruct((256, 256), jnp.float32, sharding=jax.sharding.SingleDeviceSharding(device))
        return jax.jit(scope[name]).lower(x)

    here, there = lowered("/home/me/one.py", 0), lowered("/tmp/a (copy)/another.py", 40)
    assert here.as_text(debug_info=True) != there.as_text(debug_info=True)
    assert digest(here) == digest(there)
    entries = [compile_cache._entry(compile_cache._result(one, {})) for one in (here, there)]
    assert entries[0] == entries[1]
