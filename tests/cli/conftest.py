"""A terminal of 100 columns without colors, and a way to ask the command line."""

import json
from dataclasses import dataclass

import pytest

import scalingbook_cli as cli
from tests.core import repeatable as repeatable


@dataclass(frozen=True)
class Told:
    code: int
    out: str
    err: str

    @property
    def values(self):
        """The JSON on standard output; NaN and infinity are none."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ask(capsys):
    """`ask("model llama-3-8b", "--json")`: the first is split at spaces, the others are as they are."""

    def asked(line, *more):
        capsys.readouterr()
        code = cli.main([*line.split(), *more])
        read = capsys.readouterr()
        return Told(code, read.out, read.err)

    return asked
