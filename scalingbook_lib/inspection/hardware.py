"""The machine for which a program is inspected: the rates of one device, and the links of mesh axes.

Without a machine there are no times, and everything that a program's text states is still counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from scalingbook_lib.collectives import Network
from scalingbook_lib.inspection.steps import KernelStep
from scalingbook_lib.machines import Chip, Machine, chips
from scalingbook_lib.units import DTYPES, DType
from scalingbook_lib.units import dtype as find_dtype

CORE_DEVICES = (chips.V2, chips.V3, chips.TPU7X)  # each device is one of a chip's two cores
_TYPES = {"f16": "fp16", "f32": "bf16", "s8": "int8", "u8": "int8", "s4": "int4", "f64": "bf16"}


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The devices of a mesh: those of a machine, or unknown ones if `machine` is None."""

    machine: Machine | None
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def chip(self) -> Chip | None:
        """The chip of the machine; None if it is unknown."""
        return self.machine.chip if self.machine else None

    @property
    def cores(self) -> int:
        """The number of devices on a chip: 2 if each core of a chip is a device of its own."""
        return 2 if self.chip in CORE_DEVICES else 1

    @property
    def hbm_bytes(self) -> float | None:
        """The memory of one device."""
        return self.chip.hbm_bytes / self.cores if self.chip else None

    @property
    def hbm_bytes_per_s(self) -> float | None:
        """The memory bandwidth of one device."""
        return self.chip.hbm_bytes_per_s / self.cores if self.chip else None

    def flops_per_s(self, dtype: str) -> float | None:
        """The documented matmul rate of one device for operands of XLA's type `dtype`.

        fp32 operands take the rate of bf16, the type in which a TPU multiplies them by default.
        """
        if self.chip is None:
            return None
        return self.chip.flops_per_s(_dtype(dtype, self.chip)) / self.cores

    def roofline_s(self, kernel: KernelStep) -> float:
        """The shortest time of one run of a kernel; 0 if the machine is unknown."""
        rate, bandwidth = self.flops_per_s(kernel.dtype), self.hbm_bytes_per_s
        if not rate or not bandwidth:
            return 0.0
        return max(kernel.flops / rate, kernel.nbytes / bandwidth)

    def kernel_s(self, kernel: KernelStep) -> float:
        """The compiler's estimate of one run of a kernel, or its roofline where there is none."""
        if kernel.cycles and self.chip and self.chip.clock_hz:
            return kernel.cycles / self.chip.clock_hz
        return self.roofline_s(kernel)

    @cached_property
    def _mesh(self) -> Any:
        """The mesh laid over the machine; None if it does not fit."""
        if self.machine is None:
            return None
        sizes = {name: size for name, size in self.sizes.items() if size > 1}
        if self.cores == 2 and sizes:  # the cores of a chip share its links: the last axis has both
            last = [*sizes][-1]
            sizes[last] = max(sizes[last] // 2, 1)
            sizes = {name: size for name, size in sizes.items() if size > 1}
        # a cluster's innermost axis comes first, and a mesh's last axis is its innermost
        if self.chip is not None and self.chip.torus is None:
            sizes = dict(reversed(sizes.items()))
        try:
            return self.machine.mesh(**sizes) if sizes else None
        except (ValueError, TypeError):
            return None

    @property
    def laid(self) -> bool:
        """Whether the mesh fits the machine, so that transfers have times."""
        return self._mesh is not None

    def networks(self, axes: Iterable[str]) -> tuple[Network, ...]:
        """The links under these mesh axes; none if the machine is unknown or does not have them."""
        if self._mesh is None:
            return ()
        try:
            return tuple(self._mesh.axes([name for name in axes if name in self._mesh.sizes]))
        except ValueError:
            return ()


def _dtype(name: str, chip: Chip) -> DType:
    """The library's type for XLA's, or bf16 if the chip has no rate for it."""
    wanted = _TYPES.get(name, "fp8_e4m3" if name.startswith("f8") else name)
    known = chip.rates()
    if wanted.startswith("fp8") and "fp8" in known:
        return find_dtype("fp8_e4m3")
    if wanted in known and wanted in DTYPES:
        return find_dtype(wanted)
    return find_dtype("bf16" if "bf16" in known else "fp16")
