"""What is one published run of inference? Model, chips, how they were split, the work, and the tokens/s.

Chapter: Inference.
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chips import Chip, Source
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import DType, Told, si

KINDS = {
    "serving": "requests come and go in one batch, as many at once as fit or as are allowed: output tokens/s",
    "batch": "B prompts together, then G tokens of each: output tokens/s, the prompts' time included",
    "prefill": "B prompts of P tokens, nothing generated: prompt tokens/s",
    "decode": "a step of B sequences, each a token: output tokens/s",
}
"""What was measured, by the kind of a run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InferenceRun(Told):
    """One row of `inference_runs.csv`: tp · pp chips hold one copy of the model.

    P prompt tokens and G generated tokens of a request, both as means; a step of "decode" has S tokens a
    sequence in its cache. None where the source does not say, or it does not apply: `B` sequences at once,
    `requests` in all, and what the engine was told: at most `most_sequences` and `most_tokens` in a step.
    `weights` are those of the layers as they are stored, scales counted, `compute` the type of their
    products, `head` that of the unembedding. `tokens_per_s` is of all chips together.
    """

    id: str
    family: str
    kind: str
    engine: str
    model: Transformer
    chip: Chip
    chips: int
    tp: int
    pp: int
    weights: DType
    compute: DType
    head: DType
    kv: DType
    P: int
    G: int
    S: int | None
    B: int | None
    requests: int | None
    most_sequences: int | None
    most_tokens: int | None
    printed: tuple[tuple[str, str], ...]  # what the source prints: ("tok", "104.9"), ("s", "0.29")
    source: Source
    note: str = ""  # what was assumed or recalled, not read

    @property
    def tokens_per_s(self) -> float:
        """The rate, the one convention for all: as printed, or from the time of all that was done."""
        printed = dict(self.printed)
        if "tok" in printed:
            return float(printed["tok"])
        if "ms" in printed:
            return (self.B or 1) / float(printed["ms"]) * 1e3
        return (self.B or 1) * (self.P if self.kind == "prefill" else self.G) / float(printed["s"])

    @property
    def tokens_per_s_per_chip(self) -> float:
        """The rate of one chip."""
        return self.tokens_per_s / self.chips

    @property
    def experts(self) -> bool:
        """Whether the model has experts."""
        return self.model.experts is not None

    @property
    def key(self) -> tuple[str, str]:
        """The line of a table of efficiencies that it belongs to: its chip, and the type of its weights."""
        return self.chip.name, self.weights.name

    def __str__(self) -> str:
        split = " ".join(f"{name} {ways}" for name, ways in (("tp", self.tp), ("pp", self.pp)) if ways > 1)
        work = {
            "serving": f"requests of {self.P:,} + {self.G:,} tokens",
            "batch": f"{self.B} × {self.P:,} + {self.G:,} tokens",
            "prefill": f"{self.B} × {self.P:,} tokens of prompt",
            "decode": f"steps of {self.B} at {self.S or 0:,} tokens",
        }[self.kind]
        return (
            f"{self.model.name} on {self.chips} {self.chip.name}, {self.weights}"
            f"{', ' + split if split else ''}, {work}: {si(self.tokens_per_s, 'tokens/s')}"
        )
