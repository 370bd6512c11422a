"""Four scheduling policies of an inference server, and the blocks of its KV cache. Chapter: Inference."""

from dataclasses import dataclass

from scalingbook_lib.serving.requests import ServingError
from scalingbook_lib.units import Result, count, si


def _positive(**given: int) -> None:
    for name, value in given.items():
        if not (isinstance(value, int) and value >= 1):
            raise ServingError(f"{name} = {value}: write a whole number of at least 1")


@dataclass(frozen=True, slots=True)
class Static(Result):
    """Static batching: up to `batch` prompts are prefilled together and run until the longest is done.

    A finished sequence keeps its row and costs as much as the others until the batch ends.
    """

    batch: int

    def __post_init__(self) -> None:
        _positive(batch=self.batch)

    def __str__(self) -> str:
        return f"static batches of up to {count(self.batch)}"


@dataclass(frozen=True, slots=True)
class Continuous(Result):
    """Prefill-prioritized continuous batching: a waiting prompt takes a free slot at the next step boundary.

    Up to `prompts` prompts are prefilled in one step, during which no sequence decodes.
    """

    slots: int
    prompts: int = 1

    def __post_init__(self) -> None:
        _positive(slots=self.slots, prompts=self.prompts)

    def __str__(self) -> str:
        return f"continuous batching in {count(self.slots)} slots, prefill-prioritized"


@dataclass(frozen=True, slots=True)
class Chunked(Result):
    """Chunked prefill: every step decodes all sequences and fills its `budget` tokens with chunks of prompts.

    Raises a ServingError if the budget leaves no token for prompts when all slots decode.
    """

    slots: int
    budget: int

    def __post_init__(self) -> None:
        _positive(slots=self.slots, budget=self.budget)
        if self.budget <= self.slots:
            raise ServingError(
                f"budget = {self.budget} tokens for {self.slots} slots leaves none for prompts; "
                f"write a budget of more than {self.slots}"
            )

    def __str__(self) -> str:
        return (
            f"continuous batching in {count(self.slots)} slots, chunked prefill in steps of "
            f"{count(self.budget)} tokens"
        )


@dataclass(frozen=True, slots=True)
class Disaggregated(Result):
    """Disaggregated serving: `prefill` servers process one prompt at a time, `decode` servers generate.

    The KV cache is transferred between them at `transfer_s` seconds per token; transfers do not contend. Each
    decode server has `slots` slots, and the one with the fewest sequences takes the next.
    """

    prefill: int
    decode: int
    slots: int
    transfer_s: float = 0.0

    def __post_init__(self) -> None:
        _positive(prefill=self.prefill, decode=self.decode, slots=self.slots)
        if not 0 <= self.transfer_s < float("inf"):
            raise ServingError(f"transfer_s = {self.transfer_s}: write seconds per token, at least 0")

    def __str__(self) -> str:
        moved = f", {si(self.transfer_s, 's')} per token of KV transfer" if self.transfer_s else ""
        return (
            f"{count(self.prefill)} prefill and {count(self.decode)} decode servers of {count(self.slots)} "
            f"slots{moved}"
        )


type Policy = Static | Continuous | Chunked | Disaggregated


@dataclass(frozen=True, slots=True)
class PagedCache(Result):
    """A KV cache of `count` blocks of `size` tokens, which are allocated as sequences grow.

    A new sequence is admitted only if a fraction `spare` of all blocks stays free for running sequences (or
    none is running). With `Disaggregated`, every decode server has `count` blocks, and so does each prefill
    server.
    """

    count: int
    size: int = 16
    spare: float = 0.01

    def __post_init__(self) -> None:
        _positive(count=self.count, size=self.size)
        if not 0 <= self.spare < 1:
            raise ServingError(f"spare = {self.spare}: write a fraction of the blocks, from 0 to below 1")

    def needed_for(self, tokens: int) -> int:
        """The number of blocks for `tokens` tokens of one sequence."""
        return -(-tokens // self.size)  # rounded up: sequences do not share a partly filled block

    def __str__(self) -> str:
        return f"{count(self.count)} blocks of {count(self.size)} tokens"


@dataclass(frozen=True, slots=True)
class HostMemory(Result):
    """A second tier for cached prefixes: `count` blocks in host memory, loaded at `token_s` s per token.

    Every cached prefix is also written to host memory, in the background, so it should have more blocks than
    the cache of the chips. Loading overlaps with the prefill of the rest of the prompt, layer by layer.
    """

    count: int
    token_s: float = 0.0

    def __post_init__(self) -> None:
        _positive(count=self.count)
        if not 0 <= self.token_s < float("inf"):
            raise ServingError(f"token_s = {self.token_s}: write seconds per token, at least 0")

    def load_s(self, tokens: int) -> float:
        """The seconds that it takes to load so many tokens."""
        return tokens * self.token_s

    def __str__(self) -> str:
        return f"{count(self.count)} blocks of host memory, {si(self.token_s, 's')} to load a token"
