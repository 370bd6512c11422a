"""Every type and refusal that the explorers of the chapter on JAX can show is JAX's own."""

import itertools

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from scalingbook_book.chapters.jax.explorers.calculator import split
from scalingbook_book.chapters.jax.explorers.types import NOT_GIVEN, SPECS, operands
from scalingbook_lab.compiler import sharding
from scalingbook_lib.notation import Mesh
from scalingbook_lib.notation.types import rules
from scalingbook_lib.notation.types import spec as jax_spec
from scalingbook_lib.notation.types.operands import MESH

I, J, K = 64, 128, 256
RUNS = {
    "A + B": lambda a, b, out: a + b,
    "A * B": lambda a, b, out: a * b,
    "jnp.tanh(A)": lambda a, b, out: jnp.tanh(a),
    "A.T": lambda a, b, out: a.T,
    "A.sum(0)": lambda a, b, out: a.sum(0),
    "A.sum(1)": lambda a, b, out: a.sum(1),
    "A[0]": lambda a, b, out: a[0],
    "A.reshape(-1)": lambda a, b, out: a.reshape(-1),
    "jnp.cumsum(A, 0)": lambda a, b, out: jnp.cumsum(a, 0),
    rules.RESHARD: lambda a, b, out: jax.reshard(a, out),
    rules.PRODUCT: lambda a, b, out: a @ b if out is None else jnp.dot(a, b, out_sharding=out),
}


@pytest.fixture(scope="module")
def abstract():
    """An abstract mesh of eight devices."""
    if tuple(map(int, jax.__version__.split(".")[:2])) < (0, 12):
        pytest.skip(f"JAX {jax.__version__} words its refusals otherwise; the rules are those of 0.12")
    explicit = (AxisType.Explicit,) * 2
    return jax.sharding.AbstractMesh(MESH.shape, MESH.axes, axis_types=explicit)


def cases():
    """Every operation with every choice of its operands."""
    for operation in rules.RULES:
        seconds = SPECS if operation in rules.BINARY else SPECS[:1]
        outs = {rules.PRODUCT: (NOT_GIVEN, *SPECS), rules.RESHARD: SPECS}.get(operation, (NOT_GIVEN,))
        yield from itertools.product([operation], SPECS, seconds, outs)


def spec(text):
    return eval(text, {"P": PartitionSpec})


def test_every_operation_can_be_run():
    assert set(RUNS) == set(rules.RULES)


def test_every_type_and_every_refusal_is_what_jax_says(abstract):
    def struct(shape, text):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(abstract, spec(text)))

    wrong = []
    with jax.sharding.use_abstract_mesh(abstract):
        for operation, a, b, out in cases():
            o = operands(operation, a=a, b=b, out=out, I=I, J=J, K=K)
            other = struct((J, K) if operation == rules.PRODUCT else (I, J), b)
            says = _says(RUNS[operation], struct((I, J), a), other, None if out == NOT_GIVEN else spec(out))
            found = rules.answer(operation, o)
            told = o.typed(found.array) if found.array else found.words
            if told != says:
                wrong.append((operation, a, b, out, told, says))
    assert not wrong


def _says(run, a, b, out):
    try:
        return str(jax.make_jaxpr(lambda a, b: run(a, b, out))(a, b).out_avals[0])
    except Exception as refusal:  # a ShardingTypeError, or a ValueError where JAX has no rule
        return str(refusal)


@pytest.mark.parametrize("text", SPECS)
def test_a_spec_is_read_and_written_as_jax_does(text):
    array = jax_spec.read(text, 2, MESH)
    assert sharding.spec(array) == spec(text)
    assert jax_spec.spec(array) == text


@pytest.mark.parametrize(
    ("text", "shape"),
    [("P(('X', 'Y'))", (16, 4)), ("P(('Y', 'X'))", (16, 4)), ("P('Y', 'X')", (8, 4)),
     ("P(None, 'X')", (3, 4)), ("P()", (5,)), ("P(None, 'Y', 'X')", (2, 4, 6))],
)  # fmt: skip
def test_every_device_holds_the_predicted_shard(text, shape):
    s = split(text, ", ".join(map(str, shape)), 2, 4)
    mesh = jax.sharding.Mesh(
        sharding.mesh(Mesh(X=2, Y=4)).devices, ("X", "Y"), axis_types=(AxisType.Explicit,) * 2
    )
    x = jax.device_put(jnp.zeros(shape, jnp.bfloat16), NamedSharding(mesh, spec(text)))
    blocks = s.array.blocks(s.mesh, **s.sizes)
    for shard, block in zip(x.addressable_shards, blocks.values(), strict=True):
        spans = [index.indices(n)[:2] for index, n in zip(shard.index, shape, strict=True)]
        assert spans == [(b.start, b.stop) for b in block]
    with jax.set_mesh(mesh):
        assert str(jax.typeof(x)) == jax_spec.typed(s.array, shape)


@pytest.mark.parametrize("text", ["P('X', 'X')", "P(('X', 'Y'), 'X')", "P('Z')", "P('X', None, None)",
                                  "P('X', unreduced={'X'})", "P(unreduced={'Z'})"])  # fmt: skip
def test_jax_refuses_what_the_library_refuses(text):
    mesh = sharding.mesh(Mesh(X=2, Y=4))
    with pytest.raises(ValueError, match="P"):
        split(text, "8, 8", 2, 4)
    with pytest.raises(Exception, match=r"[Aa]xis|axes|Length|[Dd]uplicate"):  # some are no ValueError
        jax.device_put(jnp.zeros((8, 8)), NamedSharding(mesh, spec(text)))


@pytest.mark.parametrize("shape", [(9, 8), (8, 6)])
def test_uneven_shards_are_refused_by_library_and_jax(shape):
    mesh = sharding.mesh(Mesh(X=2, Y=4))
    with pytest.raises(ValueError, match="uneven"):
        split("P('X', 'Y')", ", ".join(map(str, shape)), 2, 4)
    with pytest.raises(ValueError, match="evenly"):
        jax.device_put(jnp.zeros(shape), NamedSharding(mesh, PartitionSpec("X", "Y")))
