"""Random command lines for an attack: lines from the grammar of every command, interrupts, and full disks.

Each of `commands`, `kills` and `outputs` draws one, tries it and returns the outcome; a failure raises.
"""

import contextlib
import io
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import click

import scalingbook_cli as cli
from scalingbook_cli import parameter_types, script

APART = ("measure", "grade")  # excluded: they use this machine's devices, and run other people's programs
NO_NUMBER = re.compile(r"(?<![\w-])[+-]?(inf|nan)(?![\w-])", re.IGNORECASE)
SIZES = [
    "1",
    "2",
    "3",
    "4",
    "8",
    "16",
    "64",
    "128",
    "1024",
    "4Ki",
    "16M",
    "1e6",
    "2^40",
    "0",
    "-1",
    "0.5",
    "1e30",
    "9007199254740993",
]
NOISE = [
    "",
    "x",
    "-",
    "--",
    "NaN",
    "inf",
    "1e999",
    "²",
    "\x00",
    "\udc80",
    "8" * 500,
    "🙂",
    "../..",
    "/dev/null",
]
MACHINES = (
    "v5e:4x4 v5p:4x4x4 v5p:2x2x1 tpu7x:4x4x8 h100:8 h100:64 b300:512 gb200:72 a100:100000 mi300x:7 "
    "v2:1x1 v5e:0 h100:-8"
)
WORDS = {
    "machine": MACHINES.split(),
    "mesh": ["X=8", "X=2,Y=4", "X=4,Y=4", "X=1", "X=0", "X"],
    "text": [*SIZES, "X", "XY"],
    "type": ["bf16", "fp8", "int8", "int4", "fp32", "none", "fp64"],
    "share": ["0", "0.5", "99%", "1", "full", "2"],
    "time": ["50ms", "1 s", "0.001", "0", "2GB"],
    "BxDxF": ["64x8192x8192", "1x1x1", "0x1x1", "8x8", "1e9x1x1"],
    "name": ["peak", "calibrated", "/dev/null"],
    "file": ["-", "/dev/null", "README.md"],
    "collective": ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"],
    "model": [*parameter_types.MODEL.names, "-", "README.md", "/dev/null"],
    "chip": list(parameter_types.CHIP.names),
}
SEARCHES = (
    ["plan", "llama-3.1-405b", "h100:16384", "--batch", "16Mi"],
    ["serve", "deepseek-v3", "b300:512"],
)
ASKED = (["chips"], ["model", "gpt-2"], ["roofline", "v5e", "--matmul", "8x8x8", "--json"])


def word(pick: Random, kind: click.ParamType) -> str:
    """Return a value for an option, mostly one of its own type."""
    own = list(kind.choices) if isinstance(kind, click.Choice) else WORDS.get(kind.name, SIZES)
    return str(pick.choice(own if pick.random() < 0.97 else NOISE))


def line(pick: Random) -> list[str]:
    """Return a command line from the grammar of a command."""
    name = pick.choice([name for name in script.scalingbook.commands if name not in APART])
    words, share = [name], pick.choice((0.05, 0.15, 0.4))
    for one in script.scalingbook.commands[name].params:
        if isinstance(one, click.Argument):
            words += [word(pick, one.type)] * (pick.random() < 0.98)
        elif pick.random() < (0.8 if one.required else share):
            words += [one.opts[0]] if getattr(one, "is_flag", False) else [one.opts[0], word(pick, one.type)]
    return words if pick.random() < 0.97 else [*words, pick.choice(NOISE)]


def told(words: list[str]) -> str:
    """Run a command line and check its status and its answer, which is JSON or a sentence with finite
    numbers.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(words)
    said, why = out.getvalue(), err.getvalue()
    assert status in (0, 1, 2), f"{words}: status {status}"
    if status == 2:
        assert not said, f"{words}: answers and refuses"
        assert re.fullmatch(r"scalingbook[^\n]*\n", why), f"{words}: {why!r} is no sentence"
        return "refused"
    assert said or why, f"{words}: says nothing"
    assert "Traceback" not in said + why, f"{words}: {why}"
    assert not (found := NO_NUMBER.findall(said)), f"{words}: says {found}"
    if "--json" in words:
        json.loads(said, parse_constant=int)  # raises an error for NaN and Infinity, which are not JSON
    return "cannot be done" if status else "answered"


def commands(pick: Random) -> str:
    """Check that a random command line never crashes."""
    words = line(pick)
    try:
        return told(words)
    except Exception as error:
        raise AssertionError(
            f"scalingbook {' '.join(map(repr, words))}: {type(error).__name__}: {error}"
        ) from error


def started(words: list[str], **streams: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "scalingbook_cli", *words], text=True, **streams)


def kills(pick: Random) -> str:
    """Check that an interrupted search says so or prints its result, without a traceback."""
    words = [*pick.choice(SEARCHES), *pick.choice(([], ["--json"]))]
    asked = started(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(pick.uniform(0.5, 3))
    asked.send_signal(signal.SIGINT)
    said, why = asked.communicate(timeout=120)
    ours = "scalingbook_" in said + why  # before Python has loaded the library, its messages are its own
    assert "Traceback" not in said + why or not ours, f"{words}: {why[-600:]}"
    assert asked.returncode in (0, 1, 130, -signal.SIGINT), (
        f"{words}: status {asked.returncode}: {why[-300:]}"
    )
    return "answered" if asked.returncode == 0 else "interrupted"


def outputs(pick: Random) -> str:
    """Check that output that cannot be written gives a sentence and a failing exit status."""
    words = pick.choice(ASKED)
    if pick.random() < 0.5:
        with Path("/dev/full").open("w") as full:
            asked = started(words, stdout=full, stderr=subprocess.PIPE)
    else:
        command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "scalingbook_cli", *words]
        asked = subprocess.Popen(command, text=True, stderr=subprocess.PIPE)
    why = asked.communicate(timeout=120)[1]
    assert (asked.returncode, why.count("\n")) == (1, 1), f"{words}: status {asked.returncode}: {why[-600:]}"
    return "told"
