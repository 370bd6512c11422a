"""The examples that the README and the guides for contributors print: commands, code and make targets."""

import re

from tools.environment import ROOT

GUIDES = ("README.md", "CONTRIBUTING.md", "docs/exercises.md", "docs/maintaining.md")
FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"(?:^|`)make ([a-z][a-z-]*)", re.MULTILINE)
IMPORTS = """\
from scalingbook_lib import roofline
from scalingbook_lib.machines import chips
from scalingbook_book.reader.checks.check import Check, Mistake
"""


def text(guide: str) -> str:
    return (ROOT / guide).read_text(encoding="utf-8")


def fences(guide: str, language: str) -> list[str]:
    """The fenced blocks in a language."""
    return [block for _, named, block in FENCE.findall(text(guide)) if named.strip() == language]


def python_examples() -> list[str]:
    """Every Python example as a program; a fragment without imports gets those of an exercise's check."""
    blocks = [block for guide in GUIDES for block in fences(guide, "python")]
    return [
        block if re.search(r"^(from|import) ", block, re.MULTILINE) else IMPORTS + block for block in blocks
    ]


def scalingbook_commands() -> list[str]:
    """Every line of a shell block that calls the command line."""
    lines = [line for guide in GUIDES for block in fences(guide, "sh") for line in block.splitlines()]
    return [line for line in lines if re.match(r"(\.venv/bin/)?scalingbook\b", line)]


def targets() -> list[str]:
    """Every make target that a guide names."""
    return sorted({target for guide in GUIDES for target in TARGET.findall(text(guide))})
