"""How does an option of the command line read its value, and what does the shell complete?"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from scalingbook_lib import models
from scalingbook_lib.cli import reading
from scalingbook_lib.machines import chips
from scalingbook_lib.units import DTYPES


class Kind(click.ParamType):
    """A type of value: a function of `reading`, and the names that a shell may offer."""

    def __init__(
        self, name: str, read: Callable[[str], object], names: Iterable[str] = (), files: bool = False
    ):
        self.name, self.read, self.names, self.files = name, read, tuple(names), files

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The value that was meant; what cannot be read ends the command with one sentence."""
        if not isinstance(value, str):
            return value
        if len(value) > reading.MOST_CHARACTERS and not self.files:
            self.fail(
                f"{value[:20]!r}... has {len(value):,} characters; write at most {reading.MOST_CHARACTERS}"
            )
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin like what is typed, whatever its capitals; files too where a file will do."""
        start = incomplete.lower()
        found = [CompletionItem(name) for name in self.names if name.lower().startswith(start)]
        return found + [CompletionItem(incomplete, type="file")] * self.files

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """What stands for the value in the help."""
        return self.name.upper()


def defaulted(name: str, kind: click.ParamType, default: str, says: str) -> Callable[..., Any]:
    """An option that shows its default; `name` may have the variable's behind it, as in '--best keep'."""
    return click.option(*name.split(), type=kind, default=default, show_default=True, help=says)


def _typed(name: str) -> str:
    """A name as one word: 'llama-3-70b'."""
    return name.lower().replace(" ", "-")


_CHIPS = [_typed(name.removeprefix("TPU ")) for name in chips.CATALOGUE]
_MODELS = [_typed(model.name) for model in models.CATALOGUE]
_MACHINES = [f"{_typed(c.name.removeprefix('TPU '))}{':' * bool(c.torus)}" for c in chips.CATALOGUE.values()]

WHOLE = Kind("count", reading.whole)
FEW = Kind("count", reading.few)
TOKENS = Kind("tokens", partial(reading.whole, words=("tokens",)))
BYTES = Kind("bytes", partial(reading.amount, unit="B"))
FLOPS = Kind("flops", partial(reading.amount, unit="FLOP"))
POSITIVE = Kind("number", reading.positive)
SECONDS = Kind("time", reading.seconds)
SHARE = Kind("share", reading.share)
DTYPE = Kind("type", reading.dtype, DTYPES)
DTYPE_OR_NONE = Kind("type", reading.dtype_or_none, (*DTYPES, "none"))
CHIP = Kind("chip", reading.chip, _CHIPS)
MACHINE = Kind("machine", reading.machine, _MACHINES)
SHAPE = Kind("BxDxF", reading.shape)
MESH = Kind("mesh", reading.mesh)
MODEL = Kind("model", reading.model, _MODELS, files=True)
SHARE_OR_WORD = Kind("share", reading.overlap, ("full", "none"))
EFFICIENCY = Kind("share", reading.efficiency, ("peak", reading.CALIBRATED), files=True)
REACHED = Kind("name", reading.reached, ("peak", reading.CALIBRATED), files=True)
