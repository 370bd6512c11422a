"""How are the rows of a family written down? A line for each run, as short as it can be.

Columns: the last number of its id, model, chip, chips, precision, T, batch, microbatch, split, remat, and
what the source prints: s= seconds a step, tok= tokens/s a chip, tf= TFLOP/s a chip, mfu=, mem= GiB a chip at
most. "-" is what it does not say. The split is written like fsdp8.tp4.pp4.v5.zero1: v5 are chunks, v0 a
number that the source does not say; a missing way is 1, a missing zero 3. by= is a convention of counting
and as= a variant, for this row alone. Chapter: Training.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scalingbook_lib.evidence.measured.training_runs import shapes
from scalingbook_lib.evidence.measured.training_runs.run import TrainingRun
from scalingbook_lib.machines.chips import Source
from scalingbook_lib.units import dtype

_PART = re.compile(r"([a-z]+)([0-9]+)")
_WAYS = ("tp", "pp", "cp", "ep", "fsdp", "dp", "dcn")


@dataclass(frozen=True, kw_only=True)
class Family:
    """Runs of one source: how it counts FLOPs (None: it does not say), and the rows.

    `coarse`: its tokens/s are whole samples/s, so that FLOP/s say more. `peaks`: TFLOP/s by chip that its MFU
    is a share of, where they are not the documented ones. `note`: what was assumed or recalled, not read.
    """

    name: str
    source: str
    url: str
    convention: str | None
    rows: str
    coarse: bool = False
    peaks: tuple[tuple[str, float], ...] = ()
    note: str = ""

    def runs(self) -> Iterator[TrainingRun]:
        """Every row, read."""
        url = self.url if self.url.startswith("https:") else f"https://github.com/{self.url}"
        source = Source(text=self.source, as_of="2026-11-21", url=url)
        for line in self.rows.strip().split("\n"):
            yield self._run(source, *line.split())

    def _run(
        self, source: Source, number: str, key: str, chip: str, chips: str, precision: str, T: str,
        batch: str, microbatch: str, split: str, remat: str, *words: str,
    ) -> TrainingRun:  # fmt: skip
        printed = dict(word.split("=") for word in words)
        convention = printed.pop("by", self.convention or "-").replace("_", " ")
        variant = printed.pop("as", "").replace("_", " ")
        ways = {name: int(value) for name, value in _PART.findall(split)}
        slug = f"{self.name}-{shapes.SLUGS.get(chip, chip.lower())}-{chips}-{precision}-{number}"
        return TrainingRun(
            id=slug.replace(".", "-"), family=self.name, model=shapes.model(key, int(T)),
            chip=shapes.chip(chip), chips=int(chips), precision=precision, T=int(T), batch=int(batch),
            microbatch=None if microbatch == "-" else int(microbatch), chunks=ways.get("v", 1) or None,
            **{name: ways.get(name, 1) for name in _WAYS}, zero=ways.get("zero", 3),
            remat=None if remat == "-" else remat,
            convention=None if convention == "-" else convention, printed=tuple(printed.items()),
            coarse=self.coarse, peak_flops_per_s=self._peak(chip, precision), source=source, variant=variant,
            note=self.note,
        )  # fmt: skip

    def _peak(self, chip: str, precision: str) -> float:
        """What the source takes as the peak of that type."""
        own = dict(self.peaks).get(f"{chip} {precision}")
        known = {"mxfp8": "fp8", "nvfp4": "fp4"}
        return own * 1e12 if own else shapes.chip(chip).flops_per_s(dtype(known.get(precision, precision)))
