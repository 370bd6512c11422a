"""What does a cost need to know of the machine? Its mesh axes, the torus axes under them, and the chip."""

from scalingbook_lib.machines import Axis, Chip, SliceMesh
from scalingbook_lib.units import Told


class Rings(Told):
    """A mesh that nobody need sell: each of its axes is a ring of its own (or any `Axis`), to think with."""

    __slots__ = ("_axes", "chip")

    def __init__(self, chip: Chip, /, **axes: int | Axis) -> None:
        self.chip = chip
        self._axes = {
            name: a if isinstance(a, Axis) else Axis(a, True, chip.link_bytes_per_s, chip.hop_s)
            for name, a in axes.items()
        }

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each mesh axis, in order."""
        return {name: axis.size for name, axis in self._axes.items()}

    def axes(self, names: str) -> tuple[Axis, ...]:
        """The ring under each of these mesh axes."""
        return tuple(self._axes[name] for name in names)

    def __str__(self) -> str:
        shapes = (f"{'ring' if a.wrapped else 'line'} {name} of {a.size}" for name, a in self._axes.items())
        return f"{self.chip.name}: {', '.join(shapes)}"


type DeviceMesh = SliceMesh | Rings
"""Chips joined by named mesh axes."""
