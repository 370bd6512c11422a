"""How many chip-hours did whole training runs take, and how often did they stop? Published totals.

The rows of `data/training_gpu_hours.csv`, which count restarts and everything else, and of
`data/interruptions.csv`; a test holds them to these files, where each source stands. Chapter: Training.
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chips import CATALOGUE, Chip
from scalingbook_lib.models import arithmetic
from scalingbook_lib.models.arithmetic import Utilization
from scalingbook_lib.units import Told, count, si


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun(Told):
    """A model trained to its end: parameters that serve a token, tokens, and hours of all chips together.

    `chips` is None where several numbers were in use, or none is published.
    """

    name: str
    params: float
    tokens: float
    chip: Chip
    chips: int | None
    chip_hours: float

    @property
    def utilization(self) -> Utilization:
        """6 · P · tokens over what the chips could have done in those hours, in 16 bits."""
        return arithmetic.mfu(6 * self.params * self.tokens, self.chip_hours * 3600, self.chip)

    @property
    def days(self) -> float | None:
        """How long it took, where the number of chips is known."""
        return self.chip_hours / self.chips / 24 if self.chips else None

    def __str__(self) -> str:
        long = f", {si(self.days)} days on {self.chips:,}" if self.days else ""
        return (
            f"{self.name}: {count(self.tokens)} tokens in {count(self.chip_hours)} hours of {self.chip.name}"
            f"{long}; {self.utilization}"
        )


def _run(name: str, params: float, tokens: float, chip: str, chips: int | None, hours: float) -> WholeRun:
    return WholeRun(
        name=name, params=params, tokens=tokens, chip=CATALOGUE[chip], chips=chips, chip_hours=hours
    )


WHOLE_RUNS = (
    _run("LLaMA-7B", 6_738_415_616, 1e12, "A100", None, 82432),
    _run("LLaMA-13B", 13_015_864_320, 1e12, "A100", None, 135168),
    _run("LLaMA-65B", 65_285_660_672, 1.4e12, "A100", 2048, 1022362),
    _run("Llama-2-7B", 6_738_415_616, 2e12, "A100", None, 184320),
    _run("Llama-2-34B", 34_000_000_000, 2e12, "A100", None, 1038336),
    _run("Llama-3.1-405B", 405_853_388_800, 1.56e13, "H100", 16384, 30840000),
    _run("Llama-3.1-70B", 70_553_706_496, 1.5e13, "H100", None, 7e6),
    _run("Llama-3.1-8B", 8_030_261_248, 1.5e13, "H100", None, 1460000),
    _run("Pythia-70M", 70_426_624, 299_892_736_000, "A100", 32, 510),
    _run("Pythia-410M", 405_334_016, 299_892_736_000, "A100", 32, 2540),
    _run("Pythia-1.4B", 1_414_647_808, 299_892_736_000, "A100", 64, 7120),
    _run("Pythia-6.9B", 6_856_253_440, 299_892_736_000, "A100", 128, 33500),
    _run("BLOOM-176B", 176_247_271_424, 3.66e11, "A100", 384, 1082990),
    _run("PaLM-540B", 540_350_000_000, 7.8e11, "TPU v4", 6144, 8404992),
    _run("Gopher-280B", 280_000_000_000, 3e11, "TPU v3", 4096, 3768320),
    _run("MPT-7B", 6_700_000_000, 1e12, "A100", 440, 100320),
    _run("BloombergGPT-50B", 50_600_000_000, 5.69e11, "A100", 512, 651264),
    _run("GLM-130B", 130_000_000_000, 4e11, "A100", 768, 1105920),
)
"""Every row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops(Told):
    """How often a run of that many chips was interrupted within so many days."""

    name: str
    chip: Chip
    chips: int
    days: float
    planned: int
    unexpected: int

    @property
    def between_s(self) -> float:
        """From one unexpected interruption to the next, on average."""
        return self.days * 86400 / self.unexpected

    @property
    def chip_years(self) -> float:
        """The same for each chip, as if every interruption were the fault of one."""
        return self.between_s * self.chips / (365.25 * 86400)

    def __str__(self) -> str:
        return (
            f"{self.name} on {self.chips:,} {self.chip.name}: {self.unexpected} unexpected interruptions in "
            f"{self.days:g} days, one every {self.between_s / 3600:.1f} hours"
        )


LLAMA3_STOPS = Stops(
    name="Llama-3.1-405B", chip=CATALOGUE["H100"], chips=16384, days=54, planned=47, unexpected=419
)
"""The one row."""
