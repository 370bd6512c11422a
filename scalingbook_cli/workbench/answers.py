"""Runs the commands of a set-up as a terminal would, and keeps their answers for the page."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import click

from scalingbook_cli import HELP, model, plan, serve
from scalingbook_cli.answer import Answer, DerivationLine, format_value, sentence
from scalingbook_cli.workbench.setup import CONFIG, FIELDS, WorkbenchSetup, field_of
from scalingbook_cli.workbench.wording import for_page

COMMANDS = {"model": model.command, "plan": plan.command, "serve": serve.command}


class UnreadableCommand(ValueError):
    """A command that could not be parsed: one sentence, and the field that it is about."""

    def __init__(self, sentence: str, field: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of one command of a set-up."""

    command: str
    answer: Answer

    def json(self) -> dict[str, object]:
        """The answer as the page shows it: sentences, tables, and the lines of the derivation."""
        one = self.answer
        return {
            "told": one.summary.splitlines(),
            "searched": list(one.details),
            "refused": one.refused,
            "tables": [
                {"title": t.title, "columns": t.columns, "rows": t.rows, "words": t.words} for t in one.tables
            ],
            "lines": derived(one.steps),
        }


def derived(steps: Iterable[DerivationLine]) -> list[dict[str, str]]:
    """A derivation as the page shows it."""
    return [
        {"name": s.name, "formula": s.formula, "numbers": s.numbers, "value": format_value(s.value, s.unit)}
        for s in steps
    ]


@lru_cache(maxsize=64)  # a picture, a difference and a notebook ask for what a panel has searched
def answered(setup: WorkbenchSetup, command: str) -> Answered:
    """The answer of a command; raises `UnreadableCommand` if it cannot be parsed."""
    kept: list[Answer] = []
    with _typed(setup, command) as words:
        COMMANDS[command].main(
            words[1:],
            "scalingbook",
            standalone_mode=False,
            help_option_names=HELP,
            obj=lambda answer, **_: kept.append(answer),
        )
    return Answered(command, kept[0])


def read(setup: WorkbenchSetup, command: str) -> dict[str, Any]:
    """The parsed arguments and options of a command."""
    with _typed(setup, command) as words:
        return COMMANDS[command].make_context(command, words[1:], help_option_names=HELP).params


@contextmanager
def _typed(setup: WorkbenchSetup, command: str) -> Iterator[list[str]]:
    """The command's words, with a pasted config in a temporary file; raises `UnreadableCommand`."""
    if empty := setup.empty(command):
        example = f"write a value such as {empty.example or empty.start}"
        raise UnreadableCommand(f"{empty.label} is empty; {example}", empty.name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, CONFIG)
        path.write_text(setup.config, encoding="utf-8")
        words = setup.words(command)
        try:
            yield [str(path) if setup.config and word == CONFIG else word for word in words]
        except click.ClickException as error:
            raise of_field(error, command, str(path)) from error


def of_field(error: click.ClickException, command: str, path: str = CONFIG) -> UnreadableCommand:
    """The error of a command as a sentence, with the field that it is about."""
    named = getattr(error, "param", None)
    option = named.opts[-1] if named else getattr(error, "param_hint", None) or ""
    name = field_of(command, option)
    example = next((field.example for field in FIELDS if field.name == name), "")
    return UnreadableCommand(for_page(sentence(error).replace(path, CONFIG), example=example), name)
