"""How are the rows of a family written down? A line for each run, or one for many that differ in P and G.

Columns of a family's rows: the number of its id, the kind, model, chip, chips, split, weights, and words:
P= G= S= B= requests= seqs= toks= (at most in a step), tok= tokens/s, s= seconds, ms= of a step. A split is
written like tp4.pp2. `sweep` writes one line for a model on its chips at several (P, G): the number of the
first id, model, chip, chips, split, weights, and tokens/s in the order of the family's `shapes`, a dash where
the table has none. Chapter: Inference.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scalingbook_lib.evidence.measured.inference_runs import shapes
from scalingbook_lib.evidence.measured.inference_runs.run import InferenceRun
from scalingbook_lib.machines.chips import Source

_PART = re.compile(r"([a-z]+)([0-9]+)")
_PRINTED = ("tok", "s", "ms")
type Words = dict[str, Any]
type Printed = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Runs of one source: its engine, the type of its caches, what is common to all, and the rows.

    `shapes` are pairs of P and G with the requests of each, for `sweep`. `head`: the type of the unembedding
    where it is not that of the weights. `note`: what was assumed or recalled, not read.
    """

    name: str
    engine: str
    source: str
    url: str
    kv: str
    rows: str = ""
    sweep: str = ""
    shapes: tuple[tuple[int, int, int], ...] = ()
    head: str | None = None
    note: str = ""

    def runs(self) -> Iterator[InferenceRun]:
        """Every row, read."""
        for line in filter(None, self.rows.strip().split("\n")):
            yield self._row(*line.split())
        for line in filter(None, self.sweep.strip().split("\n")):
            yield from self._swept(*line.split())

    def _row(self, number: str, kind: str, *words: str) -> InferenceRun:
        fixed, told = words[:5], dict(word.split("=") for word in words[5:])
        printed = tuple((name, told.pop(name)) for name in _PRINTED if name in told)
        return self._run(number, kind, fixed, {name: int(value) for name, value in told.items()}, printed)

    def _swept(self, first: str, *words: str) -> Iterator[InferenceRun]:
        number = int(first)
        for (P, G, requests), rate in zip(self.shapes, words[5:], strict=True):
            if rate != "-":
                told = {"P": P, "G": G, "requests": requests}
                yield self._run(f"{number:04}", "serving", words[:5], told, (("tok", rate),))
                number += 1

    def _run(
        self, number: str, kind: str, fixed: tuple[str, ...], told: Words, printed: Printed
    ) -> InferenceRun:
        model, chip, chips, split, weights = fixed
        ways = {name: int(value) for name, value in _PART.findall(split)}
        return InferenceRun(
            id=f"inf-{number}", family=self.name, kind=kind, engine=self.engine, model=shapes.model(model),
            chip=shapes.chip(chip), chips=int(chips), tp=ways.get("tp", 1), pp=ways.get("pp", 1),
            weights=shapes.TYPES[weights], compute=shapes.COMPUTES[weights],
            head=shapes.TYPES[self.head or weights], kv=shapes.TYPES[self.kv], P=told.get("P", 0),
            G=told.get("G", 0), S=told.get("S"), B=told.get("B"), requests=told.get("requests"),
            most_sequences=told.get("seqs"), most_tokens=told.get("toks"), printed=printed,
            source=Source(text=self.source, as_of="2026-11-21", url=self.url), note=self.note,
        )  # fmt: skip
