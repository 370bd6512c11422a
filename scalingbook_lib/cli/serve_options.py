"""Which options say how a model is served? One for each field of `inference.Layout`."""

from collections.abc import Callable
from typing import Any

import click

from scalingbook_lib.cli import kinds

_WAYS = {
    "--tp": "Chips of a stage; all of them split every matrix.",
    "--rows": "Of --tp, those that split the model's width (2-D weight-stationary).",
    "--cp": "Groups of --tp that share the tokens of a prompt.",
    "--pp": "Pipeline stages.",
    "--ep": "Of --tp, the ways over experts.",
    "--attention-dp": "Groups of --tp that attend to sequences of their own.",
    "--kv-batch": "Ways of a group's cache over sequences.",
    "--kv-sequence": "Ways of a group's cache over tokens; the rest is over heads.",
}
_TYPES = {
    "--weights": "of the weights as stored",
    "--kv": "of the cache",
    "--compute": "that products compute in",
    "--activations": "of the activations",
}


def layout_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All of them; what is not given is None."""
    ways = [click.option(name, type=kinds.WHOLE, help=what) for name, what in _WAYS.items()]
    types = [click.option(name, type=kinds.DTYPE, help=f"The type {what}.") for name, what in _TYPES.items()]
    for option in reversed([*ways, *types]):
        command = option(command)
    return command
