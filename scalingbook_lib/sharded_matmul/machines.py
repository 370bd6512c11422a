"""Which machine do the explorers of sharded products run on? A mesh X by Y, wired by the chip's own rule."""

from functools import lru_cache

from scalingbook_lib.collectives.resharding import Rings
from scalingbook_lib.machines import chips


@lru_cache(maxsize=256)
def machine(chip: str, **sizes: int) -> Rings:
    """Every mesh axis is one torus axis: a ring where this generation closes an axis of that size."""
    on = chips.find(chip)
    return Rings(on, **{name: on.axis(size) for name, size in sizes.items()})


def shapes(mesh: Rings) -> str:
    """'ring X of 16, line Y of 4'; axes of one chip are left out."""
    axes = [(name, mesh.axes(name)[0]) for name, size in mesh.sizes.items() if size > 1]
    return (
        ", ".join(f"{'ring' if a.wrapped else 'line'} {name} of {a.size}" for name, a in axes) or "one chip"
    )
