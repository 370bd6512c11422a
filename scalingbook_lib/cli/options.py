"""Which options say how a model is trained or served? One for each field of `Plan`, and of `Layout`."""

from collections.abc import Callable, Iterable
from typing import Any

import click

from scalingbook_lib.cli import kinds
from scalingbook_lib.training.plan import CONTEXTS, REMAT, SCHEDULES

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
    """A way of serving, for `inference.Layout`; what is not given is None."""
    return _with(command, (*_counts(_LAYOUT_WAYS), *_types(_LAYOUT_TYPES)))


def plan_options(command: Command) -> Command:
    """A way of training, for `training.Plan`; what is not given is None."""
    pods = "Machines like this one, copies over the data-center network."
    shared = "What --fsdp ranks share: 1 the optimizer's state, 2 gradients too, 3 weights too."
    attends = "How --cp attends: keys and values around a ring, gathered, or heads exchanged."
    hides = "full, none, or a share, of what can overlap."
    master = "The type of a master copy of the weights, or none."
    options = (
        *_counts(_PLAN_WAYS),
        click.option("--pods", "dcn", type=kinds.WHOLE, help=pods),
        click.option("--zero", type=click.Choice(["0", "1", "2", "3"]), callback=_number, help=shared),
        click.option("--context", type=click.Choice(CONTEXTS), help=attends),
        click.option("--schedule", type=click.Choice(SCHEDULES), help="The pipeline's."),
        click.option("--remat", type=click.Choice(REMAT), help="What the backward pass computes anew."),
        _either("--sequence-parallel", "Whether --tp splits tokens between products."),
        click.option("--overlap", type=kinds.SHARE_OR_WORD, help=hides),
        _either("--collective-matmul", "Whether the collectives of --tp can overlap."),
        *_types(_PLAN_TYPES),
        click.option("--master", type=kinds.DTYPE_OR_NONE, callback=_if_written, help=master),
    )
    return _with(command, options)


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The fields that were written; what was not is as `Plan` or `Layout` has it."""
    master = {} if options.get("master") is None else {"master": options["master"][0]}
    return {name: value for name, value in options.items() if value is not None} | master


def _with(command: Command, options: Iterable[Command]) -> Command:
    for option in reversed([*options]):
        command = option(command)
    return command


def _counts(ways: dict[str, str]) -> list[Command]:
    return [click.option(name, type=kinds.WHOLE, help=what) for name, what in ways.items()]


def _types(types: dict[str, str]) -> list[Command]:
    return [click.option(name, type=kinds.DTYPE, help=f"The type {what}.") for name, what in types.items()]


def _either(name: str, says: str) -> Command:
    return click.option(f"{name}/--no-{name[2:]}", default=None, help=says)


def _number(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    return None if value is None else int(value)


def _if_written(ctx: click.Context, param: click.Parameter, value: object) -> object:
    """In a tuple, so that no master copy differs from nothing said."""
    written = ctx.get_parameter_source(param.name or "") == click.core.ParameterSource.COMMANDLINE
    return (value,) if written else None
