"""Speculative decoding on a server: what drafts, how it is spread, and what it costs beside the model.

Chapter: Inference.
"""

from dataclasses import dataclass, replace

from scalingbook_lib.inference.case import ServingCase, case
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.shape import ServingShape, shape
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import Result


@dataclass(frozen=True, kw_only=True, slots=True)
class Drafting(Result):
    """Speculative decoding: every decode step verifies `tokens` drafted tokens of each sequence.

    `acceptance_length` is the mean number of tokens that a step yields per sequence, including the model's
    own token: 1 if nothing is accepted, `tokens` + 1 if everything is. `cost` is the time of one drafted
    token over that of a plain decode step, about 1/L for a head of one layer (MTP, EAGLE). A draft `model`
    has no `cost`: its decode step is priced for the batch and the context of each layout, on the chips of
    one stage. They also hold its weights and its KV cache, in the dtypes of the layout. Its own prefill, and
    the memory of a head, are not counted.

    Raises a ValueError if the acceptance length is impossible, or for a draft model with a cost.
    """

    line = "tokens", "acceptance_length", "cost"
    tokens: int = 0
    acceptance_length: float = 1.0
    cost: float = 0.0
    model: Transformer | None = None

    def __post_init__(self) -> None:
        if self.model and self.cost:
            raise ValueError(
                f"a cost of {self.cost:g} and the draft model {self.model.name}: a draft model costs as much "
                "as its own decode step; write one of the two"
            )
        if self.tokens < 0 or self.cost < 0 or not 1 <= self.acceptance_length <= self.tokens + 1:
            raise ValueError(
                f"{self.tokens} drafted tokens with an acceptance length of {self.acceptance_length:g} and a "
                f"cost of {self.cost:g}: write an acceptance length from 1 to {self.tokens + 1}, and a cost "
                "of at least 0"
            )

    def check(self, model: Transformer) -> None:
        """Raise a ValueError if the draft model has another vocabulary than the model that verifies."""
        if self.model and self.model.V != model.V:
            raise ValueError(
                f"the draft model {self.model.name} has a vocabulary of {self.model.V:,} tokens, and "
                f"{model.name} one of {model.V:,}; drafted tokens are verified by their index, so write a "
                "draft model with the same vocabulary"
            )

    def layout(self, layout: Layout) -> Layout:
        """How the draft model is spread beside a model in `layout`.

        It runs on the chips of one stage, with as much of their tensor parallelism as its heads allow.
        """
        assert self.model
        whole = {"rows": 1, "pp": 1, "ep": 1, "redundant_experts": 0, "attention_dp": 1}
        fewer = (n for n in range(min(layout.tp, self.model.N or 1), 0, -1) if layout.tp % n == 0)
        cp = 1 if self.model.state_elements else layout.cp
        return replace(layout, tp=next(fewer), cp=cp, kv_batch=1, kv_sequence=1, **whole)

    def case(self, on: ServingCase) -> ServingCase:
        """What drafts: the draft model on the same machine, or the model itself, of which it is a part."""
        if self.model is None:
            return on
        return case(self.model, on.machine, self.layout(on.layout), on.efficiency)

    def shape(self, layout: Layout) -> ServingShape | None:
        """The share of a draft model that a chip holds beside a model in `layout`; None without one."""
        return shape(self.model, self.layout(layout)) if self.model else None

    @property
    def drafts(self) -> float:
        """The decode steps of what drafts (`case`) before each verification."""
        return float(self.tokens) if self.model else self.tokens * self.cost


PLAIN = Drafting()
