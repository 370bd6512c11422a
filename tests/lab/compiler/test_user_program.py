"""Compiles functions of Python files and StableHLO modules ahead of time, as `scalingbook inspect` does."""

import gzip

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_lab.compiler import stablehlo, user_program
from scalingbook_lab.compiler.user_program import ProgramError
from scalingbook_lib import inspection
from scalingbook_lib.inspection import source
from tests.lab import faulty_programs
from tools.environment import ROOT

TRAIN = ROOT / "data" / "programs" / "train.py"
MESH = {"data": 4, "model": 2}
FILE = """
import jax, jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P

mesh_axes = {"data": 4, "model": 2}
ON = AbstractMesh((4, 2), ("data", "model"))

def step(x, w):
    return x @ w

step_args = (
    jax.ShapeDtypeStruct((64, 128), jnp.float32, sharding=NamedSharding(ON, P("data", "model"))),
    jax.ShapeDtypeStruct((128, 64), jnp.float32, sharding=NamedSharding(ON, P("model", None))),
)

def fails(x):
    return x @ jnp.ones((7, 7))

jitted = jax.jit(lambda x: 2 * x, donate_argnums=0)
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path / "mine.py"


@pytest.mark.usefixtures("tpu")
def test_the_program_on_the_page_is_what_its_file_compiles_to():
    user = user_program.load(f"{TRAIN}:step")
    compiled = source.read(source.with_notes(user_program.compile_user(user, slice_name="v5p:4x4x4")))
    stored = source.read(gzip.decompress((TRAIN.parent / "train_step.hlo.gz").read_bytes()).decode())
    assert (compiled.mesh, compiled.memory) == (stored.mesh, stored.memory)
    assert compiled.arguments == stored.arguments
    new, old = map(inspection.inspect, (compiled, stored))
    assert [one.rule for one in new.findings] == [one.rule for one in old.findings]
    assert new.program.run_s == pytest.approx(old.program.run_s)


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize("rule", ["padded matmuls", "reduced, then sliced"])
def test_a_stored_program_is_what_its_function_compiles_to(rule):
    for program, faulty in zip(faulty_programs.PROGRAMS[rule], (True, False), strict=True):
        found = inspection.inspect(faulty_programs.compiled(program)).findings
        assert (rule in {one.rule for one in found}) == faulty


def test_shardings_of_an_abstract_mesh_are_moved_to_this_machines_devices(file):
    user = user_program.load(f"{file}:step")
    compiled = user_program.compile_user(user)
    assert compiled.mesh == MESH
    assert [a.replicated for a in compiled.arguments] == [(), ("data",)]
    found = inspection.inspect(compiled)
    assert [(t.collective.kind, t.collective.axes) for t in found.program.transfers] == [
        ("all-reduce", "model")
    ]


def test_arguments_may_be_written_as_text_and_a_jitted_function_keeps_its_donation(file):
    user = user_program.load(f"{file}:jitted")
    compiled = user_program.compile_user(user, arguments="f32[64@data,128@model]")
    assert compiled.arguments[0].shard == (16, 64)
    assert compiled.memory
    assert compiled.memory.aliased == compiled.memory.outputs == 16 * 64 * 4


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("fails", "f32[64,64]", r"mine.py:17 raises TypeError"),
        ("step", "f32[64@rows,8] f32[8,8]", "write its size, then @ and one of the mesh axes data, model"),
        ("step", "f99[64,8]", "'f99' is not a data type"),
        ("step", "f32[64,8] and more", "cannot be read from 'and more' on"),
        ("jitted", "", r"define jitted_args\(mesh\)"),
    ],
)
def test_what_cannot_be_compiled_names_the_argument_or_the_line(file, name, arguments, told):
    user = user_program.load(f"{file}:{name}")
    with pytest.raises(ProgramError, match=told):
        user_program.compile_user(user, arguments=arguments)


def test_a_stablehlo_module_is_compiled_for_the_devices_of_its_mesh():
    on = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = jax.ShapeDtypeStruct(
        (64, 128), jnp.float32, sharding=NamedSharding(on, PartitionSpec("data", "model"))
    )
    text = jax.jit(lambda x: x.sum(1)).lower(x).as_text()
    found = stablehlo.compile_module(text)
    assert found.mesh == MESH
    assert found.arguments[0].shard == (16, 64)
    assert found.arguments[0].replicated == ()
    transfers = inspection.inspect(found).program.transfers
    assert [(t.collective.kind, t.collective.axes) for t in transfers] == [("all-reduce", "model")]
    with pytest.raises(ProgramError, match="cannot be parsed"):
        stablehlo.compile_module("module @f { nonsense }")


def test_a_compiled_program_of_jax_is_inspected_in_a_notebook():
    on = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.ShapeDtypeStruct((64, 128), jnp.float32, sharding=NamedSharding(on, PartitionSpec("data")))
    compiled = jax.jit(lambda x: x.sum(0)).lower(x).compile()
    report = inspection.inspect(compiled)
    assert dict(report.program.source.mesh) == {"data": 8}
    assert not report.program.memory.estimated
    assert [t.collective.kind for t in report.program.transfers] == ["all-reduce"]
