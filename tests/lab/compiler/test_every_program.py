"""Programs in other styles: a second, simpler reader finds the same collectives, and the rest is listed."""

import re
from collections import Counter
from functools import cache

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_lab.compiler import aot, slices
from scalingbook_lib import hlo
from scalingbook_lib.notation import Mesh

pytestmark = pytest.mark.usefixtures("tpu")
KINDS = "all-gather|reduce-scatter|all-reduce|all-to-all|collective-permute"
LAYERS = 8
GENERATIONS = ("v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1")


def layers(weights, x):
    """The gradient of eight layers whose weights are gathered one by one, as under FSDP."""

    def loss(weights):
        step = jax.checkpoint(lambda x, w: (jnp.tanh(x @ w), None))
        return (lax.scan(step, x, weights)[0].astype(jnp.float32) ** 2).mean()

    return jax.grad(loss)(weights)


@cache
def fsdp(topology):
    n = slices.topology(topology).devices.size
    D = 4096 if topology.startswith("v6e") else 2048  # so large that pieces are turned by permutes, too
    return aot.compile(
        layers,
        "W[L, D_X, F]",
        "A[B_X, D]",
        out="W[L, D_X, F]",
        topology=topology,
        mesh=Mesh(X=n),
        L=LAYERS,
        D=D,
        F=D,
        B=D // 4 * n,
    )


@pytest.mark.parametrize("topology", GENERATIONS)
def test_a_second_reader_finds_the_same_collectives(topology):
    """The second reader knows only lines and names: which computation
    calls which, with each loop over all layers.
    """
    program = fsdp(topology)
    found = program.collectives.counts()
    assert {kind: found[kind] for kind in ("all-gather", "reduce-scatter")} == {
        "all-gather": 2 * LAYERS,
        "reduce-scatter": LAYERS,
    }
    assert plain_counts(program.text) == found


def plain_counts(text):
    """How often each kind runs, by opcode; an all-reduce in a
    computation that libtpu names a scatter is one.
    """
    lines, here = {}, ""
    for line in re.sub(r'\n(?="|\}[},])', "", text).splitlines():
        if (head := re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line)) is not None:
            here = "ENTRY" if head[1] else head[2]
            lines[here] = []
        elif " = " in line and here:
            lines[here].append(line)

    def total(name):
        found = Counter()
        for line in lines[name]:
            if kind := re.search(rf" ({KINDS})(-start)?\(", line):
                found["reduce-scatter" if "all-reduce-scatter" in name else kind[1]] += 1
            for called in re.findall(r"(?:calls|body|to_apply|called_computations)=\{?%([\w.\-]+)", line):
                for kind, n in total(called).items():
                    found[kind] += n * (LAYERS if " while(" in line else 1)
        return found

    return dict(total("ENTRY"))


def test_sparse_core_collectives_are_asynchronous():
    assert all(c.overlapped for c in fsdp("tpu7x:2x2x1").collectives)


@pytest.fixture(scope="module")
def named():
    """A JAX mesh over a slice, with axis names as in most code."""
    devices = slices.topology("v5e:2x4").devices.reshape(2, 4)
    return jax.sharding.Mesh(devices, ("data", "model"))


def struct(mesh, shape, *spec, **memory):
    where = NamedSharding(mesh, PartitionSpec(*spec), **memory)
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=where)


def block(x, w, v):
    return jnp.tanh(x @ w) @ v


@pytest.mark.parametrize("names", [("data", "model"), ("x", "y"), ("DP", "TP")])
def test_axes_of_a_mesh_may_have_names_of_several_letters(names):
    data, model = names
    mesh = jax.sharding.Mesh(slices.topology("v5e:2x4").devices.reshape(2, 4), names)
    program = aot.compile(
        block,
        struct(mesh, (1024, 1024), data, None),
        struct(mesh, (1024, 4096), None, model),
        struct(mesh, (4096, 1024), model, None),
    )
    assert program.mesh == mesh
    assert program.collectives.over_axes() == {f"all-reduce {model}": 1}
    assert f"{model}{'=' * (len(model) > 1)}4: " in str(program)
    nbytes = program.collectives[0].nbytes
    assert hlo.compare({f"all-reduce {model}": nbytes}, program).agrees
    wrong = hlo.compare({f"all-gather {data}": nbytes}, program)
    assert f"all-reduce over {model}" in str(wrong)
    assert f"all-gather over {data}" in str(wrong)


def test_shardings_convert_to_notation(named):
    program = aot.compile(
        block,
        "A[I_data, D]",
        "W[D, F_model]",
        "V[F_model, D]",
        out="C[I_{data,model}, D]",
        mesh=named,
        I=1024,
        D=1024,
        F=4096,
    )
    assert program.collectives.over_axes() == {"reduce-scatter model": 1}


def test_a_permute_over_a_named_axis_is_found(named):
    def turned(x):
        return lax.ppermute(x, "model", [(i, (i + 1) % 4) for i in range(4)])

    spec = PartitionSpec("data", "model")
    fn = jax.shard_map(turned, mesh=named, in_specs=spec, out_specs=spec)
    (found,) = aot.compile(fn, struct(named, (1024, 1024), *spec)).collectives
    assert (found.kind, found.over, found.devices) == ("collective-permute", "model +1", 4)


def test_a_mesh_and_another_topology_are_refused(named):
    with pytest.raises(slices.SliceError, match="leave out one"):
        aot.compile(jnp.tanh, struct(named, (8, 8)), topology="v5e:2x2")


def test_host_memory_is_reported_separately(named):
    def fetched(x, w):
        return x @ jax.device_put(w, jax.memory.Space.Device)

    waiting = struct(named, (1024, 1024), memory_kind="pinned_host")
    memory = aot.compile(fetched, struct(named, (1024, 1024), "data"), waiting).memory
    assert memory.host == 2 * 1024**2
    assert "2 MiB in the host's memory" in str(memory)
    assert memory.arguments == 2 * 512 * 1024


def test_a_fused_reduce_scatter_of_gradients_is_recognized():
    def gradients(x, w, v):
        return jax.grad(lambda p: (block(x, *p).astype(jnp.float32) ** 2).mean())((w, v))

    program = aot.compile(
        gradients,
        "A[B_X, D]",
        "W[D_X, F]",
        "V[F_X, D]",
        out=("W[D_X, F]", "V[F_X, D]"),
        topology="v5e:2x4",
        mesh=Mesh(X=8),
        B=4096,
        D=512,
        F=1024,
    )
    assert program.collectives == {"all-gather": 2, "reduce-scatter": 1}
    assert program.collectives.nbytes()["reduce-scatter X"] == 2 * 2 * 512 * 1024


def test_ragged_shards_are_sent_once():
    mesh = aot.mesh_for("v5e:2x2", Mesh(X=4))
    spec = PartitionSpec("X")

    def sent(x, out, *places):
        return lax.ragged_all_to_all(x, out, *places, axis_name="X")

    fn = jax.shard_map(sent, mesh=mesh, in_specs=(spec,) * 6, out_specs=spec, check_vma=False)
    rows = struct(mesh, (4096, 1024), "X")
    places = jax.ShapeDtypeStruct((16,), jnp.int32, sharding=NamedSharding(mesh, spec))
    assert aot.compile(fn, rows, rows, *[places] * 4).collectives.nbytes() == {
        "ragged-all-to-all X": 2 * 4096 * 1024
    }
