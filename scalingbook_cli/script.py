"""The command group `scalingbook`: its commands, error messages and exit codes."""

import io
import os
import sys
from collections.abc import Sequence

import click

import scalingbook_lib
from scalingbook_cli import (
    FAILED,
    HELP,
    INTERRUPTED,
    chips,
    collective,
    completion,
    conform,
    explain,
    grade,
    inspection,
    launch,
    mcp_server,
    measure,
    model,
    plan,
    profiling,
    roofline,
    score,
    serve,
    terminal,
)
from scalingbook_cli.answer import sentence

BAD_INPUT = 2

EXAMPLES = """\b
Examples:
  scalingbook model llama-3-70b --sequence 8192
  scalingbook roofline v5e --matmul 64x8192x8192 --explain
  scalingbook collective all-gather 2GiB v5p:4x4x8
  scalingbook collective all-reduce 16M h100:1024 --mesh X=8,Y=128 --over X --json
  scalingbook plan llama-3.1-405b h100:16384 --batch 16Mi
  scalingbook inspect train.py:step --slice v5p:4x4x4 --max-exposed 10%
  scalingbook profile logs/
  scalingbook serve llama-3-70b v5e:4x4 --prompt 8192 --weights int8 --kv int8 --itl 50ms
"""


@click.group(
    context_settings={"help_option_names": HELP, "max_content_width": 100},
    invoke_without_command=True,
    epilog=EXAMPLES,
)
@click.version_option(scalingbook_lib.__version__, message="scalingbook %(version)s")
@click.pass_context
def scalingbook(ctx: click.Context) -> None:
    """Compute how fast a model can run, what limits it, and how to split it over chips.

    These are the cost models of the book. Sizes may have prefixes: 16M is 16,000,000, and 16Mi is
    16,777,216. A chip is a name such as v5e or h100; a machine is a TPU slice (v5p:16x20x28, or its
    accelerator type, v5p-128), a number of GPUs (h100:1024, 8xH100, or 2x8xH100 for two nodes of eight), or
    instances of a cloud (p5.48xlarge:4, a3-highgpu-8g), which bring their network. Rates are documented
    peaks unless a command says otherwise.

    Exit codes: 0 answered, 1 impossible (the reasons are printed), 2 bad input, 3 a limit is exceeded
    (inspect and profile).
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for module in (
    model,
    roofline,
    collective,
    plan,
    serve,
    inspection,
    profiling,
    launch,
    measure,
    score,
    conform,
    grade,
    chips,
    explain,
    mcp_server,
    completion,
):
    scalingbook.add_command(module.command)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; an error is one sentence on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals that lack a character
    try:
        if sys.stdout is None:
            raise OSError(0, "it is closed")  # as by `>&-`
        args = None if argv is None else list(argv)
        code = scalingbook.main(args, prog_name="scalingbook", standalone_mode=False, obj=terminal.show)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        ctx = getattr(error, "ctx", None)
        print(f"{ctx.command_path if ctx else 'scalingbook'}: {sentence(error)}", file=sys.stderr)
        return BAD_INPUT
    except click.Abort:
        return INTERRUPTED
    except OSError as error:
        if not error.filename:  # the rest of the output would fail again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(
            error, BrokenPipeError
        ):  # a closed pipe is not an error: its reader, such as `head`, has finished
            print(
                f"scalingbook: cannot write {error.filename or 'standard output'}: {error.strerror}; "
                "choose a writable destination",
                file=sys.stderr,
            )
        return FAILED
