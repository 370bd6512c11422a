"""For random products, shardings and meshes, every strategy gives each device the requested block."""

import itertools

import pytest
from data_mover import Machine
from test_sharded_matmul import carry_out, left, right, truth

from scalingbook_lib.collectives.resharding import Rings, reshard
from scalingbook_lib.machines import chips
from scalingbook_lib.notation import Array, Dim, Product
from scalingbook_lib.sharded_matmul import solve
from tests.core import repeatable

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

MESHES = [{"X": 2}, {"X": 3}, {"X": 2, "Y": 2}, {"X": 2, "Y": 3}, {"X": 1, "Y": 2}, {"X": 2, "Y": 2, "Z": 2}]
SETTINGS = repeatable.examples(60)


@st.composite
def sharded(draw, name, dims, mesh, partial=True):
    """An array of these dimensions: every axis of the mesh splits one of them, or sums, or does nothing."""
    places = [*dims, "sum", None] if partial else [*dims, None]
    role = {axis: draw(st.sampled_from(places)) for axis in draw(st.permutations(list(mesh)))}
    axes = {dim: [axis for axis in role if role[axis] == dim] for dim in (*dims, "sum")}
    return Array(name, tuple(Dim(dim, tuple(axes[dim])) for dim in dims), tuple(axes["sum"]))


@SETTINGS
@hypothesis.given(st.data())
def test_every_strategy_of_a_random_product_computes_it(data):
    mesh = data.draw(st.sampled_from(MESHES[:5]))
    batch = data.draw(st.booleans())
    names = (
        [("N", "I", "J"), ("N", "J", "K"), ("N", "I", "K")] if batch else [("I", "J"), ("J", "K"), ("I", "K")]
    )
    a, b, c = (data.draw(sharded(x, dims, mesh, x != "C")) for x, dims in zip("ABC", names, strict=True))
    extents = dict.fromkeys("NIJK", 6 if 3 in mesh.values() else 4)
    product, machine = Product(a, b, c), Machine(mesh, extents)
    found = solve(product, Rings(chips.V5P, **mesh), {n: extents[n] for n in product.names})
    whole = truth(machine, product)
    for strategy in data.draw(st.permutations(list(found.strategies)))[:4]:
        got = carry_out(machine, strategy, product, machine.place(a, left), machine.place(b, right))
        for device, block in machine.blocks(product.c).items():
            assert got[device] == {i: whole[i] for i in block}, strategy


@SETTINGS
@hypothesis.given(st.data())
def test_every_path_between_random_shardings_moves_the_right_blocks(data):
    mesh = data.draw(st.sampled_from(MESHES))
    before = data.draw(sharded("A", ("I", "J"), mesh))
    after = data.draw(sharded("A", ("I", "J"), mesh, partial=False))
    extents = dict.fromkeys("IJ", 12 if 3 in mesh.values() else 8)
    machine = Machine(mesh, extents)
    found = reshard(before, after, Rings(chips.V5P, **mesh), extents)
    for way in itertools.chain([found.best], found.rejected):
        got = machine.run(way.moves, machine.place(before, left))
        for device, block in machine.blocks(after).items():
            assert got[device] == {i: left(i) for i in block}, way
