"""A benchmark record of the reader's own device, and the efficiencies that follow from it.

`scalingbook_lab.devices.survey` writes the record; `plan` and `serve` use it instead of published
efficiencies. What it does not measure (links between devices, software overheads between kernels) keeps its
published value. Chapter: Conclusions.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from math import log, prod
from pathlib import Path
from statistics import median
from typing import Any

from scalingbook_lib import calibrated, git_lfs
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.evidence import kernel_fit
from scalingbook_lib.evidence.reading import chip as reading
from scalingbook_lib.evidence.reading.cells import UnpredictedRow
from scalingbook_lib.inference.efficiency import ServingEfficiency as Serving
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip, Source
from scalingbook_lib.roofline.attained import Attending
from scalingbook_lib.training.efficiency import TrainingEfficiency as Training
from scalingbook_lib.units import DType, GiB, Result, dtype, percent, si

PRODUCT, COPY, PROMPT, TOKEN = "product", "copy", "attention of a prompt", "attention of a token"
HALF_CHIP_DEVICES = {chips.TPU7X.name: chips.HALF_TPU7X}
"""Chips of which JAX counts each core as a device."""
_SIZE_LETTERS = {PRODUCT: "BDF", COPY: "n", PROMPT: "BTNKH", TOKEN: "BTNKH"}


@dataclass(frozen=True, kw_only=True, slots=True)
class TimedOperation(Result):
    """One operation on the device: its kind, its sizes in elements, measured and predicted seconds."""

    what: str
    dtype: str
    sizes: tuple[int, ...]
    seconds: float
    predicted_s: float

    @property
    def ratio(self) -> float:
        """Measured over predicted time."""
        return self.seconds / self.predicted_s

    def __str__(self) -> str:
        letters = _SIZE_LETTERS.get(self.what, "nN")
        sizes = ", ".join(f"{letter}={size:,}" for letter, size in zip(letters, self.sizes, strict=True))
        times = f"{si(self.seconds, 's')} measured, {si(self.predicted_s, 's')} predicted"
        return f"{self.what}, {self.dtype}, {sizes}: {times}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceBenchmark(Result):
    """All measurements on one machine; `chip` is its name in the catalog, "" if it has none."""

    device: str
    chip: str
    count: int
    jax: str
    date: str
    rows: tuple[TimedOperation, ...]
    memory_bytes: float = 16 * GiB

    def json(self) -> str:
        """The record as JSON text, one line per measurement."""
        head = {name: value for name, value in asdict(self).items() if name != "rows"}
        rows = ",\n".join(f"  {json.dumps(asdict(row))}" for row in self.rows)
        return f'{json.dumps(head)[:-1]}, "rows": [\n{rows}\n]}}\n'

    @classmethod
    def read(cls, path: Path) -> "DeviceBenchmark":
        """The record in a file; raises a ValueError that says what is wrong with it."""
        try:
            content = path.read_text(encoding="utf-8")
            if git_lfs.is_pointer(content):
                raise ValueError(git_lfs.refusal("it"))
            found = json.loads(content)
            rows = tuple(TimedOperation(**row | {"sizes": tuple(row["sizes"])}) for row in found.pop("rows"))
            return cls(**found, rows=rows)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} is no record of `scalingbook measure`: {error}") from None

    def device_chip(self, chip: Chip) -> Chip:
        """The chip, or the half of it that JAX calls a device.

        Raises a ValueError if the record is of a different chip.
        """
        device = HALF_CHIP_DEVICES.get(chip.name, chip)
        if (self.chip or self.device) not in (chip.name, device.name):
            raise ValueError(
                f"this record is of {self.chip or self.device}, and the machine has {chip.name}; "
                "measure there, or write calibrated"
            )
        return device if self.chip == device.name else chip

    def shares_of_peak(self, chip: Chip) -> dict[str, Any]:
        """The measured shares of documented peaks; half a chip reaches the same shares as a whole one."""
        on = self.device_chip(chip)
        of = {what: [row for row in self.rows if row.what == what] for what in _SIZE_LETTERS}
        products = self.fitted_products(chip)
        attention = [Attending(*row.sizes).prompt_flops / row.seconds for row in of[PROMPT]]
        copied = map(_copy_bytes_per_s, of[COPY])
        return {
            "matmul": min(products["flops"], 1.0),
            "weights": min(products["hbm"], 1.0),
            "attention": min(max(attention, default=on.bf16_flops_per_s) / on.bf16_flops_per_s, 1.0),
            "memory": min(max(copied, default=on.hbm_bytes_per_s) / on.hbm_bytes_per_s, 1.0),
        }

    def fitted_products(self, chip: Chip) -> Values:
        """The values of `roofline.attained.Products`, fitted to the measured matmuls."""
        on, rows = self.device_chip(chip), [row for row in self.rows if row.what == PRODUCT]
        return kernel_fit.fit_products(
            [kernel_fit.MeasuredMatmul(on, self._dtype(row), *row.sizes, seconds=row.seconds) for row in rows]
        )

    def _dtype(self, row: TimedOperation) -> DType:
        """The dtype of a row; on a device without documented rates, the dtype of its only rate."""
        return dtype(row.dtype) if self.chip else replace(dtype(row.dtype), name="bf16")

    def as_chip(self) -> Chip:
        """The device as a chip, if the catalog lacks it: its peaks are its own best measured rates."""
        done = [2.0 * prod(row.sizes) / row.seconds for row in self.rows if row.what == PRODUCT]
        read = max(map(_copy_bytes_per_s, (row for row in self.rows if row.what == COPY)), default=1.0)
        told = Source(text="scalingbook measure", as_of=self.date, url="")
        return Chip(
            name=self.device,
            vendor="",
            bf16_flops_per_s=max(done, default=1.0),
            hbm_bytes=self.memory_bytes,
            hbm_bytes_per_s=read,
            link_bytes_per_s=read,
            links=1,
            link_achieved_fraction=1.0,
            chips_per_host=1,
            sources=dict.fromkeys((one.name for one in fields(Chip)), told),
        )

    def training(self, chip: Chip, precision: str = "bf16") -> Training:
        """The published training efficiency, with the shares that were measured here replaced."""
        found = self.shares_of_peak(chip)
        del found["weights"]  # training reads weights within its matmuls
        return replace(calibrated.training(chip, precision), name=self._name, head=found["matmul"], **found)

    def serving(self, chip: Chip, compute: DType) -> Serving:
        """The published serving efficiency, with the shares that were measured here replaced."""
        found = self.shares_of_peak(chip)
        also = {"head": found["matmul"], "head_weights": found["weights"]}
        return replace(calibrated.serving(chip, compute), name=self._name, **found, **also)

    @property
    def _name(self) -> str:
        return f"measured on {self.device}, {self.date}"

    def __str__(self) -> str:
        off = median(abs(log(row.ratio)) for row in self.rows) if self.rows else 0.0
        what = f"{self.device}, {self.date}, JAX {self.jax}: {len(self.rows)} operations"
        return f"{what}, off their predictions by {percent(off)} in the median"


def _copy_bytes_per_s(row: TimedOperation) -> float:
    """The bytes per second of a copy; each byte is read and written."""
    return 2 * row.sizes[0] * dtype(row.dtype).bytes / row.seconds


def chip_of_device(kind: str) -> Chip | None:
    """The chip that JAX calls `kind` ('TPU v5 lite', 'NVIDIA H200'), or None if it is not known."""
    if kind == "TPU v5":
        return chips.V5P
    try:
        chip = reading.chip(kind)
    except UnpredictedRow:
        return None
    return HALF_CHIP_DEVICES.get(chip.name, chip)
