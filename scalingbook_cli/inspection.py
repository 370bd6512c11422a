"""The command `scalingbook inspect`: what a compiled program does, what it costs, and what to change."""

import contextlib
import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from scalingbook_cli import book_site, inspection_report, parameter_types, reading
from scalingbook_cli.answer import Answer, answer_command
from scalingbook_lib import inspection
from scalingbook_lib.hlo import DoesNotFit
from scalingbook_lib.inspection import Limits, ProgramReport, ProgramSource, source, stablehlo
from scalingbook_lib.machines import Machine, Slice
from scalingbook_lib.models import Transformer

NO_CODE = "to inspect a program without running its file, save compiled.as_text() and give that: --hlo FILE"


@click.command("inspect", short_help="What a compiled program does: collectives, memory, time, findings.")
@click.argument("program", metavar="PROGRAM", required=False, type=parameter_types.PATH)
@click.option("--hlo", "hlo_file", type=parameter_types.PATH, help="Read a text, and run no code of a file.")
@click.option(
    "--slice", "machine", type=parameter_types.MACHINE, help="The machine to compile for, as in v5p:4x4x4."
)
@click.option("--mesh", type=parameter_types.NAMED_MESH, help="Mesh axes, as in data=16,model=4.")
@click.option(
    "--args", "arguments", help="Arguments of the function, as in 'bf16[4096@data,8192] f32[8192]'."
)
@click.option("--model", type=parameter_types.MODEL, help="The model, to compare the FLOPs with its need.")
@click.option("--tokens", type=parameter_types.TOKENS, help="Tokens of one run, over all devices.")
@parameter_types.option_with_default(
    "--sequence", parameter_types.WHOLE, "8192", "Sequence length of those tokens."
)
@click.option("--forward", is_flag=True, help="The program is a forward pass, not a training step.")
@click.option(
    "--max-exposed",
    type=parameter_types.SHARE_OR_SECONDS,
    help="Exit with 3 if exposed communication is more: a share of the run (10%) or a time (2ms).",
)
@click.option(
    "--max-hbm",
    type=parameter_types.SHARE_OR_BYTES,
    help="Exit with 3 if the peak of memory is more: bytes (80GiB) or a share (90%).",
)
@click.option(
    "--no-collective",
    "forbidden",
    multiple=True,
    metavar="KIND",
    help="Exit with 3 if it runs: all-gather, or all-gather:data for that axis.",
)
@click.option(
    "--diff",
    "old",
    type=parameter_types.PATH,
    help="Compare with an old program: a text or FILE.py:FUNCTION.",
)
@click.option(
    "--save", type=click.Path(path_type=Path), help="Write the compiled text, with its mesh, to a file."
)
@click.option("--html", type=click.Path(path_type=Path), help="Write the report with drawings to a file.")
@book_site.option
@answer_command
def command(
    *,
    program: str | None,
    hlo_file: str | None,
    machine: Machine | None,
    mesh: dict[str, int] | None,
    arguments: str | None,
    model: Transformer | None,
    tokens: int | None,
    sequence: int,
    forward: bool,
    max_exposed: tuple[str, float] | None,
    max_hbm: tuple[str, float] | None,
    forbidden: tuple[str, ...],
    old: str | None,
    save: Path | None,
    html: Path | None,
    site: str | None,
) -> Answer:
    """Inspect PROGRAM: collectives, memory at its peak, time of every kernel, and what a reviewer would say.

    \b
    PROGRAM is
      train.py:step    a function, compiled for --slice, or for this machine's devices without it
      step.hlo.txt     the text of a compiled program: compiled.as_text()
      step.mlir        a StableHLO module: lowered.as_text(); it is compiled, too
      -                a text on standard input

    A function is traced and compiled, never run. Its file is imported, and so runs its top-level code;
    nothing else is imported, and --hlo runs no code at all. The file says which arguments the function takes:
    step_args(mesh) returns a tuple of jax.ShapeDtypeStruct (or step_args is one), and mesh_axes is a dict of
    axis sizes. --args and --mesh do the same on the command line.

    Times are the TPU compiler's estimates of kernels and the formulas of this book for transfers; nothing is
    measured. With --max-exposed, --max-hbm or --no-collective, the exit code is 3 if a limit is exceeded.
    """
    if (program is None) == (hlo_file is None):
        raise ValueError("give one program: FILE.py:FUNCTION or a text, or a text with --hlo FILE")
    limits = _limits(max_exposed, max_hbm, forbidden)
    how: dict[str, Any] = {"machine": machine, "mesh": mesh, "arguments": arguments}
    asked: dict[str, Any] = {
        "model": model,
        "tokens": tokens,
        "sequence": sequence,
        "training": not forward,
    }
    named = program or hlo_file or ""
    with _complete("standard input" if named == "-" else named):
        found, notes = read_program(named, text_only=hlo_file is not None, **how)
        report = inspection.inspect(found, machine=machine, limits=limits, **asked)
        told = inspection_report.answer(report, notes=notes)
    if save:
        save.write_text(source.with_notes(report.program.source), encoding="utf-8")
    if html:
        html.write_text(_page(report, site), encoding="utf-8")
    if old is None:
        return told
    with _complete(old):
        before, more = read_program(old, text_only=hlo_file is not None, **how)
        compared = inspection.compare(inspection.inspect(before, machine=machine, **asked), report)
    return inspection_report.comparison(compared, report, notes=(*notes, *more))


@contextlib.contextmanager
def _complete(name: str) -> Iterator[None]:
    """Turn what a damaged text raises into one sentence."""
    try:
        yield
    except (KeyError, IndexError, StopIteration, AttributeError, RecursionError, ZeroDivisionError) as error:
        raise ValueError(
            f"{name} is not the whole text of a compiled program: something in it refers to {error}, "
            "which is not "
            "there; write compiled.as_text() to a file again"
        ) from error


def _page(report: ProgramReport, site: str | None) -> str:
    from scalingbook_book import inspection_page  # drawings, which an answer without --html does not need

    return inspection_page.page(report, book=site)


def _limits(
    exposed: tuple[str, float] | None, hbm: tuple[str, float] | None, forbidden: tuple[str, ...]
) -> Limits:
    given = dict[str, float]()
    for value, names in ((exposed, ("exposed_share", "exposed_s")), (hbm, ("hbm_share", "hbm_bytes"))):
        if value is not None:
            given[names[value[0] != "share"]] = value[1]
    return Limits(forbidden=forbidden, **given)


def read_program(
    text: str,
    *,
    text_only: bool = False,
    machine: Machine | None = None,
    mesh: dict[str, int] | None = None,
    arguments: str | None = None,
) -> tuple[ProgramSource, tuple[str, ...]]:
    """The program of an argument, with sentences on how it was read.

    Raises a ValueError that says what to write instead.
    """
    if text == "-":
        try:
            piped = sys.stdin.read(reading.MOST_FILE)
        except (OSError, ValueError) as error:
            raise ValueError("standard input is not UTF-8 text; pipe compiled.as_text() into it") from error
        return _of_text(piped, "standard input", text_only, machine, mesh)
    if _is_function(text) and not text_only:
        return _of_function(text, machine, mesh, arguments)
    if arguments:
        raise ValueError("--args are arguments of a function; a text has its own, so leave --args out")
    path = reading.file(text)
    if not path.is_file():
        hint = "write FILE.py:FUNCTION for a function" if text.endswith(".py") else "write the path of a text"
        raise ValueError(f"there is no file {text!r}; {hint}, as in train.py:step or step.hlo.txt")
    if text.endswith(".py"):
        raise ValueError(f"{text} is a Python file; name its function too, as in {text}:step, or {NO_CODE}")
    return _of_text(_decoded(path), str(path), text_only, machine, mesh)


def _is_function(text: str) -> bool:
    file, colon, name = text.rpartition(":")
    return bool(colon) and file.endswith(".py") and name.isidentifier()


def _decoded(path: Path) -> str:
    """The text of a file, perhaps compressed with gzip."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}; give a file that you can read") from error
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is compressed with gzip and damaged; copy it again") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text: byte {error.start:,} is not UTF-8; write compiled.as_text() to a "
            "file, not the "
            "serialized program"
        ) from error


def _of_text(
    text: str, name: str, text_only: bool, machine: Machine | None, mesh: dict[str, int] | None
) -> tuple[ProgramSource, tuple[str, ...]]:
    """The program of a text, or of a StableHLO module, which is compiled."""
    if stablehlo.is_module(text) and not text_only:
        from_module = _lab("compile a StableHLO module")
        with _as_value_errors():
            compiled = from_module.stablehlo.compile_module(text, slice_name=_slice(machine), mesh=mesh)
        return inspection.read_source(compiled), (f"{name} is a StableHLO module, which was compiled",)
    try:
        return inspection.read_source(text, mesh=mesh), ()
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _of_function(
    text: str, machine: Machine | None, mesh: dict[str, int] | None, arguments: str | None
) -> tuple[ProgramSource, tuple[str, ...]]:
    """The program of a function of a Python file."""
    lab = _lab(f"compile {text}")
    with _as_value_errors():
        user = lab.user_program.load(text)
        compiled = lab.user_program.compile_user(
            user, slice_name=_slice(machine), mesh=mesh, arguments=arguments or ""
        )
    told = (
        f"imported {user.path} (its top-level code ran) and no other file; compiled {user.name} without "
        "running it"
    )
    return inspection.read_source(compiled), (told,)


class _Lab:
    """The modules of the laboratory that compile."""

    def __init__(self) -> None:
        from scalingbook_lab.compiler import stablehlo, user_program

        self.user_program, self.stablehlo = user_program, stablehlo


def _lab(purpose: str) -> _Lab:
    try:
        lab = _Lab()
    except ImportError as error:
        raise ValueError(
            f"to {purpose}, inspect needs JAX ({error}); run pip install jax, or {NO_CODE}"
        ) from None
    lab.user_program.quiet()
    return lab


class _as_value_errors:
    """Turn what the compiler raises into an error of the command."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, DoesNotFit | RuntimeError):
            raise ValueError(str(error)) from error


def _slice(machine: Machine | None) -> str:
    """The compiler's name of a slice, such as v5p:4x4x4; "" for this machine's devices.

    Raises a ValueError for a machine that cannot be compiled for from here.
    """
    if machine is None:
        return ""
    if not isinstance(machine, Slice):
        raise ValueError(
            f"XLA compiles for {machine.chip.name} only where one is; run inspect there without "
            "--slice, save its "
            "text with --save, and give that text here"
        )
    from scalingbook_lab.compiler import slices

    names = [name for name, chip in slices.GENERATIONS.items() if chip == machine.chip]
    if not names:
        raise ValueError(
            f"there is no compiler for {machine.chip.name}; its generations are "
            f"{', '.join(slices.GENERATIONS)}"
        )
    return f"{names[0]}:{machine.name.rpartition(' ')[2]}"
