"""In which order does a server work? Four policies and what a cache is cut into. Chapter: Inference."""

from dataclasses import dataclass

from scalingbook_lib.serving.requests import ServingError
from scalingbook_lib.units import Result, count, si


def _positive(**given: int) -> None:
    for name, value in given.items():
        if not (isinstance(value, int) and value >= 1):
            raise ServingError(f"{name} = {value}: write a whole number from 1 on")


@dataclass(frozen=True, slots=True)
class Static(Result):
    """Whoever waits, up to `batch` sequences, is prefilled together; the next batch when the longest is done.

    A sequence that is done keeps its row: it costs what the others cost until the batch ends.
    """

    batch: int

    def __post_init__(self) -> None:
        _positive(batch=self.batch)

    def __str__(self) -> str:
        return f"static batches of up to {count(self.batch)}"


@dataclass(frozen=True, slots=True)
class Continuous(Result):
    """A waiting prompt takes a free slot at the boundary of a step; its prefill holds up all decoding.

    Up to `prompts` of them are prefilled in one pass.
    """

    slots: int
    prompts: int = 1

    def __post_init__(self) -> None:
        _positive(slots=self.slots, prompts=self.prompts)

    def __str__(self) -> str:
        return f"continuous batching in {count(self.slots)} slots, prefill first"


@dataclass(frozen=True, slots=True)
class Chunked(Result):
    """Every step decodes all sequences, and fills up to `budget` tokens with pieces of waiting prompts."""

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
            f"continuous batching in {count(self.slots)} slots, chunks of prompts in steps of "
            f"{count(self.budget)} tokens"
        )


@dataclass(frozen=True, slots=True)
class Disaggregated(Result):
    """`prefill` servers make the cache of one prompt at a time, `decode` servers go on with it.

    In between the cache is moved, `transfer_s` seconds a token; moves do not hold each other up. A decode
    server has `slots` slots; the one with the fewest sequences takes the next.
    """

    prefill: int
    decode: int
    slots: int
    transfer_s: float = 0.0

    def __post_init__(self) -> None:
        _positive(prefill=self.prefill, decode=self.decode, slots=self.slots)
        if not 0 <= self.transfer_s < float("inf"):
            raise ServingError(f"transfer_s = {self.transfer_s}: write seconds a token, from 0 on")

    def __str__(self) -> str:
        moved = f", {si(self.transfer_s, 's')} to move a token" if self.transfer_s else ""
        return (
            f"{count(self.prefill)} prefill and {count(self.decode)} decode servers of {count(self.slots)} "
            f"slots{moved}"
        )


type Policy = Static | Continuous | Chunked | Disaggregated


@dataclass(frozen=True, slots=True)
class Blocks(Result):
    """A cache cut into `count` blocks of `size` tokens, handed out as sequences grow.

    A new sequence is let in only where `spare` of all blocks stay free for those that are there (or nobody is
    there). With Disaggregated, every decode server has as many, and the prefill servers together.
    """

    count: int
    size: int = 16
    spare: float = 0.01

    def __post_init__(self) -> None:
        _positive(count=self.count, size=self.size)
        if not 0 <= self.spare < 1:
            raise ServingError(f"spare = {self.spare}: write a share of the blocks, from 0 to below 1")

    def of(self, tokens: int) -> int:
        """The blocks that so many tokens of one sequence need."""
        return -(-tokens // self.size)  # a block is one sequence's, full or not

    def __str__(self) -> str:
        return f"{count(self.count)} blocks of {count(self.size)} tokens"
