"""The parameter types of the command line, and the options for every field of `Plan` and `Layout`.

A type parses its value with a function of `reading` and offers names for shell completion.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from scalingbook_cli import reading
from scalingbook_lib import models
from scalingbook_lib.machines import chips
from scalingbook_lib.training.plan import CONTEXTS, REMAT, SCHEDULES
from scalingbook_lib.units import DTYPES


class ArgumentType(click.ParamType):
    """A parameter type: a parser, and the names for completion."""

    def __init__(
        self, name: str, read: Callable[[str], object], names: Iterable[str] = (), files: bool = False
    ):
        self.name, self.read, self.names, self.files = name, read, tuple(names), files

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The parsed value; an invalid one fails with one sentence."""
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
        """Names with the typed prefix, in any case, and files where a file is accepted."""
        start = incomplete.lower()
        found = [CompletionItem(name) for name in self.names if name.lower().startswith(start)]
        return found + [CompletionItem(incomplete, type="file")] * self.files

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The placeholder in the help text."""
        return self.name.upper()


def option_with_default(name: str, kind: click.ParamType, default: str, says: str) -> Callable[..., Any]:
    """An option that shows its default; `name` may include the parameter name, as in '--best keep'."""
    return click.option(*name.split(), type=kind, default=default, show_default=True, help=says)


def _typed(name: str) -> str:
    """A name as one word: 'llama-3-70b'."""
    return name.lower().replace(" ", "-")


_CHIPS = [_typed(name.removeprefix("TPU ")) for name in chips.KNOWN]
_MODELS = [_typed(model.name) for model in models.CATALOGUE]
_MACHINES = [f"{_typed(c.name.removeprefix('TPU '))}{':' * bool(c.torus)}" for c in chips.KNOWN.values()]

WHOLE = ArgumentType("count", reading.whole)
LIST_LENGTH = ArgumentType("count", reading.list_length)
TOKENS = ArgumentType("tokens", partial(reading.whole, words=("tokens",)))
BYTES = ArgumentType("bytes", partial(reading.amount, unit="B"))
FLOPS = ArgumentType("flops", partial(reading.amount, unit="FLOP"))
POSITIVE = ArgumentType("number", reading.positive)
SECONDS = ArgumentType("time", reading.seconds)
SHARE = ArgumentType("share", reading.share)
DTYPE = ArgumentType("type", reading.dtype, DTYPES)
DTYPE_OR_NONE = ArgumentType("type", reading.dtype_or_none, (*DTYPES, "none"))
CHIP = ArgumentType("chip", reading.chip, _CHIPS)
MACHINE = ArgumentType("machine", reading.machine, _MACHINES, files=True)
SHAPE = ArgumentType("BxDxF", reading.shape)
MESH = ArgumentType("mesh", reading.mesh)
MODEL = ArgumentType("model", reading.model, _MODELS, files=True)
REMAT_POLICY = ArgumentType("policy", reading.remat, REMAT)
COUNTS = ArgumentType("counts", reading.counts)
SHARE_OR_WORD = ArgumentType("share", reading.overlap, ("full", "none"))
EFFICIENCY = ArgumentType("share", reading.efficiency, ("peak", reading.CALIBRATED), files=True)
SERVING_EFFICIENCY = ArgumentType(
    "name", reading.serving_efficiency, ("peak", reading.CALIBRATED), files=True
)


type Command = Callable[..., Any]

_PLAN_WAYS = {
    "--tp": "Tensor parallelism: chips that split every product; innermost.",
    "--cp": "Context parallelism: chips that split a sequence.",
    "--ep": "Expert parallelism: chips that hold each expert once.",
    "--expert-tp": "Chips that split one expert: 1, or as --tp.",
    "--expert-domains": "A token's experts are in at most so many domains.",
    "--fsdp": "Data ranks that share the weights (see --zero).",
    "--dp": "Copies of all of that, within the machine.",
    "--pp": "Pipeline stages.",
    "--chunks": "Chunks of layers on each stage, with the interleaved schedule.",
    "--microbatch": "Sequences that a data rank works on at a time.",
}
_PLAN_TYPES = {
    "--weights": "of the weights as stored",
    "--compute": "that products compute in",
    "--activations": "of the activations",
    "--gradients": "of the gradients",
    "--moments": "of Adam's two moments",
}
_LAYOUT_WAYS = {
    "--tp": "Chips of a stage; all of them split every matrix.",
    "--rows": "Of --tp, those that split the model's width (2-D weight-stationary).",
    "--cp": "Groups of --tp that share the tokens of a prompt.",
    "--pp": "Pipeline stages.",
    "--ep": "Of --tp, the ways over experts.",
    "--attention-dp": "Groups of --tp that attend to sequences of their own.",
    "--kv-batch": "Ways of a group's cache over sequences.",
    "--kv-sequence": "Ways of a group's cache over tokens; the rest is over heads.",
}
_LAYOUT_TYPES = {
    "--weights": "of the weights as stored",
    "--kv": "of the cache",
    "--compute": "that products compute in",
    "--activations": "of the activations",
}


def layout_options(command: Command) -> Command:
    """Add an option for every field of `inference.Layout`; None if not given."""
    return _with(command, (*_counts(_LAYOUT_WAYS), *_types(_LAYOUT_TYPES)))


def plan_options(command: Command) -> Command:
    """Add an option for every field of `training.Plan`; None if not given."""
    pods = "Machines like this one, copies over the data-center network."
    shared = "What --fsdp ranks share: 1 the optimizer's state, 2 gradients too, 3 weights too."
    attends = "How --cp attends: keys and values around a ring, gathered, or heads exchanged."
    hides = "full, none, or a share, of what can overlap."
    master = "The type of a master copy of the weights, or none."
    remat = (
        "What the backward pass computes anew: "
        f"{', '.join(REMAT)}, or by name, as in 'save:q,k,v;offload:in' or 'recompute:mlp'."
    )
    options = (
        *_counts(_PLAN_WAYS),
        click.option("--pods", "dcn", type=WHOLE, help=pods),
        click.option("--zero", type=click.Choice([0, 1, 2, 3]), help=shared),
        click.option("--context", type=click.Choice(CONTEXTS), help=attends),
        click.option("--schedule", type=click.Choice(SCHEDULES), help="The pipeline's."),
        click.option("--remat", type=REMAT_POLICY, help=remat),
        click.option("--offload-layers", type=WHOLE, help="Layers whose activations wait on the host."),
        _either("--offload-optimizer", "Whether the optimizer's state is in the host's memory."),
        click.option("--loss-tiles", type=WHOLE, help="Tiles of the loss, of which one is held at a time."),
        click.option("--logit-bytes", type=POSITIVE, help="Bytes that are held for each logit."),
        click.option("--stage-layers", type=COUNTS, help="Layers of each pipeline stage, as in 7,8,8,7."),
        _either("--sequence-parallel", "Whether --tp splits tokens between products."),
        click.option("--overlap", type=SHARE_OR_WORD, help=hides),
        _either("--collective-matmul", "Whether the collectives of --tp can overlap."),
        *_types(_PLAN_TYPES),
        click.option("--master", type=DTYPE_OR_NONE, callback=_if_written, help=master),
    )
    return _with(command, options)


def written_fields(options: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given; the others keep the defaults of `Plan` or `Layout`."""
    master = {} if options.get("master") is None else {"master": options["master"][0]}
    return {name: value for name, value in options.items() if value is not None} | master


def _with(command: Command, options: Iterable[Command]) -> Command:
    for option in reversed([*options]):
        command = option(command)
    return command


def _counts(ways: dict[str, str]) -> list[Command]:
    return [click.option(name, type=WHOLE, help=what) for name, what in ways.items()]


def _types(types: dict[str, str]) -> list[Command]:
    return [click.option(name, type=DTYPE, help=f"The type {what}.") for name, what in types.items()]


def _either(name: str, says: str) -> Command:
    return click.option(f"{name}/--no-{name[2:]}", default=None, help=says)


def _if_written(ctx: click.Context, param: click.Parameter, value: object) -> object:
    """The value in a tuple if it was given, so that `--master none` differs from no option."""
    written = ctx.get_parameter_source(param.name or "") == click.core.ParameterSource.COMMANDLINE
    return (value,) if written else None
