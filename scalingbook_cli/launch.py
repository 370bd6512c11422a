"""The command `scalingbook launch`: what a launch command asks for, how fast it runs, and whether it fits."""

import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from scalingbook_cli import launch_tables, parameter_types, plan, reading, serve
from scalingbook_cli.answer import Answer, answer_command
from scalingbook_lib import launch
from scalingbook_lib.launch import Given, RequestLoad, ServingLaunch, TrainingLaunch
from scalingbook_lib.machines import Chip, Machine
from scalingbook_lib.models import Transformer

_RECIPE = re.compile(r"(.+\.py)(:\w+)?")
_SUFFIXES = (".sh", ".bash", ".slurm", ".sbatch", ".txt", ".cmd", ".yml", ".yaml", ".toml", ".json")


@click.command("launch", short_help="The time and memory of a launch command or config of nine frameworks.")
@click.argument("source", type=parameter_types.SOURCE, metavar="FILE_OR_COMMAND")
@click.option(
    "--machine",
    type=parameter_types.MACHINE_OR_CHIP,
    help="The machine, as in h100:64 or p5.48xlarge:8; a chip alone takes its number from the command.",
)
@click.option("--model", type=parameter_types.MODEL, help="The model, if the command does not name it.")
@click.option("--batch", type=parameter_types.WHOLE, help="Training: sequences of a step.")
@click.option("--sequence", type=parameter_types.TOKENS, help="Training: sequence length in tokens.")
@click.option("--remat", type=parameter_types.REMAT_POLICY, help="Training: what is recomputed.")
@parameter_types.option_with_default(
    "--prompt", parameter_types.WHOLE, "1024", "Serving: prompt length in tokens."
)
@parameter_types.option_with_default(
    "--output", parameter_types.WHOLE, "512", "Serving: output length in tokens."
)
@click.option(
    "--concurrency",
    type=parameter_types.WHOLE,
    help="Serving: requests at once, of all replicas. The default is what caps and cache allow.",
)
@click.option(
    "--prefix-cache-hit",
    type=parameter_types.SHARE,
    default="0",
    help="Serving: share of the prompt tokens that are in the prefix cache.",
)
@click.option(
    "--acceptance-length",
    type=parameter_types.POSITIVE,
    help="Serving: mean tokens per decode step with the drafts of the command.",
)
@click.option(
    "--launcher",
    type=click.Choice(tuple(launch.LAUNCHERS)),
    metavar="NAME",
    help=f"The framework, if it is not recognized: {', '.join(launch.LAUNCHERS)}.",
)
@parameter_types.option_with_default(
    "--efficiency",
    parameter_types.TEXT,
    reading.CALIBRATED,
    "peak, calibrated (to published runs), or a record of `measure`.",
)
@parameter_types.expert_skew_option
@parameter_types.chip_options
@answer_command
def command(
    *,
    source: str,
    machine: Machine | Chip | None,
    model: Transformer | None,
    batch: int | None,
    sequence: int | None,
    remat: str | None,
    acceptance_length: float | None,
    launcher: str | None,
    efficiency: str,
    expert_skew: float | None,
    **load: Any,
) -> Answer:
    """Read a launch command and predict the time, the memory and what binds; nothing is executed.

    FILE_OR_COMMAND is the command line itself, a script, a config file, or a recipe FILE.py:FUNCTION of
    Megatron-Bridge or torchtitan, whose text is read, with the files that it imports from the same checkout;
    - is standard input. It may be of
    MaxText, Megatron-LM, Megatron-Bridge, torchtitan, Accelerate, DeepSpeed, vLLM, SGLang or TensorRT-LLM.
    The answer lists every flag: used, assumed by default, not used although it changes time or memory, and
    unknown. `plan --emit` and `serve --emit` write such commands. If it does not fit, the exit code is 1.
    """
    given = Given(
        model=model,
        machine=machine,
        batch=batch,
        sequence=sequence,
        remat=remat,
        acceptance_length=acceptance_length,
    )
    found = launch.understand(_command(source, launcher), given)
    if isinstance(found, TrainingLaunch):
        return TrainingAnswer(found, efficiency, expert_skew).answer()
    requests = RequestLoad(acceptance_length=acceptance_length, **load)
    return ServingAnswer(found, efficiency, expert_skew, requests).answer()


def _command(source: str, launcher: str | None) -> launch.Command:
    """The settings of a file, of standard input, or of a command line."""
    if source == "-":
        return launch.from_text(_piped(), launcher=launcher)
    single = "\n" not in source and len(source) < 4096
    if single and os.path.isdir(source):
        raise ValueError(f"{source!r} is a folder; write the path of a script or a config in it")
    if single and " " not in source and (recipe := _RECIPE.fullmatch(source)):
        path = reading.file(recipe[1])
        name = path.name + (recipe[2] or "")
        return launch.from_file(name, _text(path), _in_checkout(path.absolute()), launcher)
    if single and (os.path.isfile(source) or (" " not in source and source.endswith(_SUFFIXES))):
        path = reading.file(source)
        return launch.from_file(path.name, _text(path), _beside(path.parent), launcher)
    return launch.from_text(source, _beside(Path()), launcher)


def _piped() -> str:
    try:
        return sys.stdin.read(reading.MOST_MODEL)
    except (OSError, ValueError) as error:
        raise ValueError("standard input is not UTF-8 text; pipe a launch command into it") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ValueError(f"{str(path)!r} cannot be read; write the path of a text file") from error


_ROOTS = (".git", "pyproject.toml", "setup.py")
"""What the top folder of a checkout contains."""


def _in_checkout(file: Path) -> launch.Opener:
    """Opens the Python files that a recipe imports, in its folder and in those above it in the checkout."""
    folders = list[Path]()
    for folder in file.parents:
        folders.append(folder)
        if folder.name == "site-packages" or any((folder / name).exists() for name in _ROOTS):
            break
    else:
        folders = folders[:1]  # not a checkout

    def opened(name: str) -> str | None:
        found = (folder / name for folder in folders if (folder / name).is_file())
        return next((_text(reading.file(str(path))) for path in found), None)

    return opened


def _beside(folder: Path) -> launch.Opener:
    """Opens the files that a command names, in its own folder and in the current one."""

    def opened(name: str) -> str | None:
        if len(name) > 4096 or "\0" in name:
            return None
        for path in (folder / name, folder / Path(name).name, Path(name)):
            if path.is_file():
                return _text(reading.file(str(path)))
        return None

    return opened


@dataclass(frozen=True, slots=True)
class TrainingAnswer:
    """The prediction of a training launch."""

    launch: TrainingLaunch
    efficiency: str
    expert_skew: float | None

    def answer(self) -> Answer:
        """The step of exactly the plan of the command, and the changes that would help most."""
        asked, one = self._request(), self.launch
        predicted = launch.of_training(one, asked.efficiency, with_band=asked.pessimistic)
        found = asked.told(predicted.written)
        told = launch_tables.account_values(one) | asked.values | found.values
        told["assumed"] = [*one.account.assumed, *asked.assumed]
        if found.step is None:
            listed = launch_tables.launch_tables(one)
            return Answer(summary=found.refusal, tables=listed, values=told, refused=True)
        better = predicted.changes
        return Answer(
            summary="\n".join(predicted.lines),
            tables=(
                *launch_tables.launch_tables(one, predicted.binds),
                *launch_tables.training_changes(better, predicted.fits, one.launcher),
                *found.tables,
                *plan.plan_tables.tables(found.step, None, None),
            ),
            values=told
            | {"band_factor": predicted.band_factor, "peak_step_time_s": found.step.peak_s}
            | plan.plan_tables.values(found.step, None, None)
            | {"changes": launch_tables.training_change_values(better)},
            steps=tuple(plan.plan_tables.derivation(found.step, None)),
            details=found.details,
            refused=not told["feasible"],
        )

    def _request(self) -> plan.PlanRequest:
        one = self.launch
        return plan.PlanRequest.read(
            model=one.model,
            machine=one.machine,
            batch=str(one.batch),
            T=one.T,
            efficiency=reading.efficiency(self.efficiency),
            expert_skew=self.expert_skew,
            fixed={"compute": one.plan.compute},
            software=one.software,
            kernel=one.kernel,
        )


@dataclass(frozen=True, slots=True)
class ServingAnswer:
    """The prediction of a serving launch under a load."""

    launch: ServingLaunch
    efficiency: str
    expert_skew: float | None
    load: RequestLoad

    def answer(self) -> Answer:
        """The steady state of exactly the layout of the command, and the changes that would help most."""
        one, asked = self.launch, self._request()
        found = asked.one(one.layout)
        told = launch_tables.account_values(one)
        assumed = [*one.account.assumed, *asked.assumed]
        predicted = launch.of_serving(one, self.load, asked.efficiency_for)
        return replace(
            found,
            tables=(
                *launch_tables.launch_tables(one, predicted.binds),
                *launch_tables.serving_changes(predicted.changes, predicted.fits, one.launcher),
                *found.tables,
            ),
            values={
                **told,
                **found.values,
                "assumed": assumed,
                "changes": launch_tables.serving_change_values(predicted.changes),
            },
        )

    def _request(self) -> serve.ServeRequest:
        """The same question for the tables of `serve`."""
        one, load = self.launch, self.load
        return serve.ServeRequest(
            model=one.model,
            machine=one.machine,
            P=load.prompt,
            G=load.output,
            batch=load.batch(one),
            policy=one.policy,
            chunk=one.chunk,
            reserve=one.reserve,
            gpu_memory_utilization=None,
            max_num_seqs=one.max_sequences,
            max_model_len=one.max_length,
            prefix_cache_hit=load.prefix_cache_hit,
            draft_tokens=one.drafts or None,
            acceptance_length=load.acceptance_length if one.drafts else None,
            draft_model=one.draft.model if one.drafts else None,
            draft_cost=one.draft.cost(one.model),
            usd_per_hour=None,
            efficiency=reading.serving_efficiency(self.efficiency),
            expert_skew=self.expert_skew,
        )
