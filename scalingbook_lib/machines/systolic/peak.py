"""How many FLOPs/s can a chip do, counted from its cells and its clock?"""

from dataclasses import dataclass

from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import Told, si


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak(Told):
    """Cores, the matrix units of each, cells of a unit and the clock: one multiply-add a cell and cycle.

    `arrays_per_unit` is 1 up to v5p. From v6e on the datasheet's FLOPs/s are twice what the documented
    units give (v6e: two of 256 x 256 at 1.75 GHz make 459 of its 918 TFLOPs/s), so each must count as two
    arrays, or each cell do two multiply-adds a cycle. Nobody documents which; 2 covers both.
    """

    cores: int
    units: int
    side: int
    clock_hz: float
    arrays_per_unit: int = 1

    def __post_init__(self) -> None:
        if min(self.cores, self.units, self.side, self.clock_hz, self.arrays_per_unit) <= 0:
            raise ValueError(
                f"{self.cores} cores of {self.units} units of side {self.side} at {self.clock_hz} Hz "
                "compute nothing; write positive numbers"
            )

    @property
    def cells(self) -> int:
        """All cells of the chip."""
        return self.cores * self.units * self.arrays_per_unit * self.side**2

    @property
    def flops_per_cycle(self) -> int:
        """A multiply and an add in every cell."""
        return 2 * self.cells

    @property
    def flops_per_s(self) -> float:
        """What the chip can do in a second."""
        return self.flops_per_cycle * self.clock_hz

    def unexplained(self, datasheet_flops_per_s: float) -> float:
        """The datasheet's figure over this one: 1 where counting explains it, 2 for v6e's units."""
        return datasheet_flops_per_s / self.flops_per_s

    def __str__(self) -> str:
        twice = f" ({self.arrays_per_unit} arrays each)" if self.arrays_per_unit > 1 else ""
        return (
            f"{self.cores} core{'s' * (self.cores > 1)} x {self.units} unit{'s' * (self.units > 1)}{twice} "
            f"of {self.side} x {self.side} cells at {si(self.clock_hz, 'Hz')}: "
            f"{si(self.flops_per_s, 'FLOPs/s')}"
        )


def peak(cores: int, units: int, side: int, clock_hz: float, *, arrays_per_unit: int = 1) -> Peak:
    """cores · units of each · 2 side² · clock."""
    return Peak(cores=cores, units=units, side=side, clock_hz=clock_hz, arrays_per_unit=arrays_per_unit)


def peak_of(chip: Chip, *, clock_hz: float | None = None, arrays_per_unit: int = 1) -> Peak:
    """The peak of a chip of the catalogue, counted from its documented units, side and clock.

    From v6e on no clock is documented: give one, 1.75 GHz for v6e.
    """
    clock = clock_hz or chip.clock_hz
    if not (chip.cores and chip.matrix_units and chip.matrix_side):
        raise ValueError(
            f"{chip.name} has no documented number of cores, matrix units or side of one; "
            "write them to peak(cores, units, side, clock_hz)"
        )
    if not clock:
        raise ValueError(f"{chip.name} has no documented clock; give one, as in clock_hz=1.75e9")
    units = chip.matrix_units // chip.cores
    return peak(chip.cores, units, chip.matrix_side, clock, arrays_per_unit=arrays_per_unit)
