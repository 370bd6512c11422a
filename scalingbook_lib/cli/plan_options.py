"""Which options say how a training step is spread? One for each field of `training.Plan`."""

from collections.abc import Callable
from typing import Any

import click

from scalingbook_lib.cli import kinds
from scalingbook_lib.training.plan import CONTEXTS, REMAT, SCHEDULES

_WAYS = {
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
_CHOICES = {
    "--context": (CONTEXTS, "How --cp attends: keys and values around a ring, gathered, or heads exchanged."),
    "--schedule": (SCHEDULES, "The pipeline's."),
    "--remat": (REMAT, "What the backward pass computes anew."),
}
_TYPES = {
    "--weights": "of the weights as stored",
    "--compute": "that products compute in",
    "--activations": "of the activations",
    "--gradients": "of the gradients",
    "--moments": "of Adam's two moments",
}


def plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All of them; what is not given is left out of what the command receives as `plan`."""
    for option in reversed(_options()):
        command = option(command)
    return command


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `Plan` that were written; what was not is as `Plan` has it."""
    master = {} if options.get("master") is None else {"master": options["master"][0]}
    return {name: value for name, value in options.items() if value is not None} | master


def _options() -> list[Callable[..., Any]]:
    counts = [click.option(name, type=kinds.WHOLE, help=what) for name, what in _WAYS.items()]
    words = [
        click.option(name, type=click.Choice(known), help=what) for name, (known, what) in _CHOICES.items()
    ]
    stored = [click.option(name, type=kinds.DTYPE, help=f"The type {what}.") for name, what in _TYPES.items()]
    return [*counts, _PODS, _ZERO, *words, _SEQUENCE, _OVERLAP, _COLLECTIVE_MATMUL, *stored, _MASTER]


def _number(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    return None if value is None else int(value)


def _kept(ctx: click.Context, param: click.Parameter, value: object) -> object:
    """In a tuple, so that no master copy differs from nothing said."""
    written = ctx.get_parameter_source(param.name or "") == click.core.ParameterSource.COMMANDLINE
    return (value,) if written else None


_PODS = click.option(
    "--pods", "dcn", type=kinds.WHOLE, help="Machines like this one, copies over the data-center network."
)
_ZERO = click.option(
    "--zero", type=click.Choice(["0", "1", "2", "3"]), callback=_number,
    help="What --fsdp ranks share: 1 the optimizer's state, 2 gradients too, 3 weights too.",
)  # fmt: skip
_SEQUENCE = click.option(
    "--sequence-parallel/--no-sequence-parallel", default=None,
    help="Whether --tp splits tokens between products.",
)  # fmt: skip
_OVERLAP = click.option(
    "--overlap", type=kinds.SHARE_OR_WORD, help="full, none, or a share, of what can overlap."
)
_COLLECTIVE_MATMUL = click.option(
    "--collective-matmul/--no-collective-matmul", default=None,
    help="Whether the collectives of --tp can overlap.",
)  # fmt: skip
_MASTER = click.option(
    "--master", type=kinds.DTYPE_OR_NONE, callback=_kept,
    help="The type of a master copy of the weights, or none.",
)  # fmt: skip
