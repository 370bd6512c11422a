"""Random meshes, axes and arrays: what is written is parsed back unchanged."""

import itertools
import math

import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from scalingbook_lab.compiler import sharding  # noqa: E402
from scalingbook_lib.hlo import replica_groups  # noqa: E402
from scalingbook_lib.notation import Array, Dim  # noqa: E402
from tests.core import repeatable  # noqa: E402

MESHES = st.dictionaries(st.sampled_from("XYZ"), st.integers(2, 4), min_size=1)


def groups_along(sizes, axes):
    """The groups along some axes, first one slowest, by an independent computation."""
    names = list(sizes)
    number = {at: n for n, at in enumerate(itertools.product(*map(range, sizes.values())))}
    rest = [name for name in names if name not in axes]
    rows = []
    for fixed in itertools.product(*(range(sizes[name]) for name in rest)):
        row = []
        for moving in itertools.product(*(range(sizes[name]) for name in axes)):
            at = dict(zip(rest, fixed, strict=True)) | dict(zip(axes, moving, strict=True))
            row.append(number[tuple(at[name] for name in names)])
        rows.append(tuple(row))
    return rows


def written(sizes, axes):
    """The same groups in the three forms of XLA."""
    names, lengths = list(sizes), list(sizes.values())
    lists = ",".join("{" + ",".join(map(str, g)) + "}" for g in groups_along(sizes, axes))
    order = [names.index(n) for n in names if n not in axes] + [names.index(n) for n in axes]
    n, length = math.prod(lengths), math.prod(sizes[a] for a in axes)
    iota = f"[{n // length},{length}]<=[{','.join(map(str, lengths))}]T({','.join(map(str, order))})"
    mesh = ",".join(f"'{name}'={size}" for name, size in sizes.items())
    return f"{{{lists}}}", iota, f"mesh[{mesh}] {{{','.join(repr(a) for a in axes)}}}"


@st.composite
def meshes_and_axes(draw):
    sizes = draw(MESHES)
    axes = draw(st.permutations(list(sizes)))
    return sizes, axes[: draw(st.integers(1, len(axes)))]


@repeatable.examples(300)
@given(meshes_and_axes(), st.sampled_from(range(3)))
def test_the_axes_of_any_group_are_recovered(drawn, form):
    sizes, axes = drawn
    read = replica_groups.read(f"replica_groups={written(sizes, axes)[form]}, x=1", math.prod(sizes.values()))
    assert read == groups_along(sizes, axes)
    assert replica_groups.axes_of(read, sizes) == "".join(axes)


@st.composite
def arrays(draw):
    axes = list(draw(st.permutations("XYZW")))
    dims = []
    for name in "IJK"[: draw(st.integers(1, 3))]:
        take = draw(st.integers(0, min(2, len(axes))))
        dims.append(Dim(name, tuple(axes[:take])))
        axes = axes[take:]
    return Array("A", tuple(dims))


@repeatable.examples(300)
@given(arrays())
def test_notation_converts_to_jax_and_back(array):
    assert sharding.array_of(sharding.spec(array), array.names) == array


@repeatable.examples(300)
@given(meshes_and_axes(), st.integers(1, 3))
def test_a_rotation_of_an_axis_is_read_as_its_shift(drawn, step):
    sizes, axes = drawn
    (axis,) = axes[:1]
    moves = [
        (ring[k], ring[(k + step) % len(ring)])
        for ring in groups_along(sizes, [axis])
        for k in range(len(ring))
    ]
    found, shift = replica_groups.shift_of(moves, sizes)
    if step % sizes[axis]:
        assert found == axis
        assert (shift - step) % sizes[axis] == 0
    else:
        assert found is None
