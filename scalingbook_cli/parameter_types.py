"""The parameter types of the command line, and the options for every field of `Plan` and `Layout`.

A type parses its value with a function of `reading` and offers names for shell completion.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from scalingbook_cli import reading
from scalingbook_cli.answer import NOTES
from scalingbook_lib import models
from scalingbook_lib.inspection import mesh_inference
from scalingbook_lib.machines import Chip, Cluster, chip_files, chips
from scalingbook_lib.machines.machine_names import NamedMachine
from scalingbook_lib.training.plan import CONTEXTS, REMAT, SCHEDULES
from scalingbook_lib.units import DTYPES, FP16, STORED


class ArgumentType(click.ParamType):
    """A parameter type: a parser, and the names for completion."""

    def __init__(
        self, name: str, read: Callable[[str], object], names: Iterable[str] = (), files: bool = False
    ):
        self.name, self.read, self.names, self.files = name, read, tuple(names), files

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The parsed value; an invalid one fails with one sentence."""
        if not isinstance(value, str):
            return value
        if len(value) > reading.MOST_CHARACTERS and not self.files:
            self.fail(
                f"{value[:20]!r}... has {len(value):,} characters; write at most {reading.MOST_CHARACTERS}"
            )
        try:
            found = self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if ctx and isinstance(found, models.Transformer):
            ctx.meta.setdefault(TYPED_MODEL, value)
        return found

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names with the typed prefix, in any case, and files where a file is accepted."""
        start = incomplete.lower()
        found = [CompletionItem(name) for name in self.names if name.lower().startswith(start)]
        return found + [CompletionItem(incomplete, type="file")] * self.files

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The placeholder in the help text."""
        return self.name.upper()


TYPED_MODEL = "scalingbook.model"
"""Key of the context with the model as it was typed."""


def checkpoint(ctx: click.Context, model: models.Transformer) -> str:
    """The checkpoint of a model for a launch command: the Hugging Face id if one was typed, or its name."""
    typed = str(ctx.meta.get(TYPED_MODEL, ""))
    named = "/" in typed and not typed.endswith(".json") and not typed.lstrip().startswith("{")
    return typed if named else model.name.replace(" ", "-")


FILES, FIGURES = "scalingbook.chip_files", "scalingbook.figures"
"""Keys of the context, which holds what `--chip-file` and `--figure` gave."""


class ChipType(ArgumentType):
    """A chip of a `--chip-file` or of the catalog, with the specifications of `--figure`."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The chip, with the figures that were given."""
        return self._read(value, param, ctx, lambda text, given: reading.chip(text, given))

    def _read(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
        read: Callable[[str, dict[str, Chip]], Any],
    ) -> object:
        """What `read` makes of a text and the chips of `--chip-file`; an invalid one fails with one."""
        if not isinstance(value, str):
            return value
        if len(value) > reading.MOST_CHARACTERS:
            self.fail(
                f"{value[:20]!r}... has {len(value):,} characters; write at most {reading.MOST_CHARACTERS}"
            )
        meta = ctx.meta if ctx else {}
        try:
            return with_figures(read(value, meta.get(FILES, {})), meta.get(FIGURES, {}))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class MachineType(ChipType):
    """A machine of such chips; what its name was taken to mean is kept for the answer."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The machine, whose chip has the figures that were given."""
        named = self._read(value, param, ctx, lambda text, given: reading.named_machine(text, given))
        if not isinstance(named, NamedMachine):
            return named
        if named.note and ctx:
            ctx.meta.setdefault(NOTES, []).append(named.note)
        return named.machine


class MachineOrChipType(MachineType):
    """A machine, or a chip alone, whose number something else says."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The chip if the text names one, else the machine."""
        if not isinstance(value, str):
            return value
        meta = ctx.meta if ctx else {}
        try:
            return with_figures(reading.chip(value, meta.get(FILES, {})), meta.get(FIGURES, {}))
        except ValueError:
            return super().convert(value, param, ctx)


def with_figures[Named: (Chip, NamedMachine)](named: Named, given: dict[str, str]) -> Named:
    """The chip, or the machine of such chips, with these figures."""
    if not given:
        return named
    if isinstance(named, Chip):
        return chip_files.with_figures(named, given)
    chip = chip_files.with_figures(named.machine.chip, given)
    if isinstance(named.machine, Cluster):  # whose domains and NICs are the chip's
        return replace(named, machine=Cluster.of(chip, named.machine.chips))
    return replace(named, machine=replace(named.machine, chip=chip))


def chip_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--chip-file` and `--figure`, which are read before the chip or the machine that they change."""
    for option in (
        click.option(
            "--figure",
            "figures",
            metavar="NAME=VALUE",
            multiple=True,
            is_eager=True,
            expose_value=False,
            callback=_keep_figures,
            help="Replace a specification of the chip, as in hbm_bytes=48GiB or fp8=330T.",
        ),
        click.option(
            "--chip-file",
            "chip_files",
            metavar="FILE",
            multiple=True,
            is_eager=True,
            expose_value=False,
            callback=_keep_chips,
            help="Your own chip, as JSON: name, flops_per_s, hbm_bytes, hbm_bytes_per_s, ...",
        ),
    ):
        command = option(command)
    return command


def _keep_figures(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    try:
        ctx.meta[FIGURES] = chip_files.assignments(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def _keep_chips(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    try:
        read = [chip_files.read(reading.file(path)) for path in value]
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error
    ctx.meta[FILES] = {chip.name.lower(): chip for chip in read}


def option_with_default(name: str, kind: click.ParamType, default: str, says: str) -> Callable[..., Any]:
    """An option that shows its default; `name` may include the parameter name, as in '--best keep'."""
    return click.option(*name.split(), type=kind, default=default, show_default=True, help=says)


def _typed(name: str) -> str:
    """A name as one word: 'llama-3-70b'."""
    return name.lower().replace(" ", "-")


_CHIPS = [_typed(name.removeprefix("TPU ")) for name in chips.ALL]
_MODELS = [_typed(model.name) for model in models.CATALOG]
_MACHINES = [f"{_typed(c.name.removeprefix('TPU '))}{':' * bool(c.torus)}" for c in chips.ALL.values()]

WHOLE = ArgumentType("count", reading.whole)
LIST_LENGTH = ArgumentType("count", reading.list_length)
TOKENS = ArgumentType("tokens", partial(reading.whole, words=("tokens",)))
BYTES = ArgumentType("bytes", partial(reading.amount, unit="B"))
FLOPS = ArgumentType("flops", partial(reading.amount, unit="FLOP"))
POSITIVE = ArgumentType("number", reading.positive)
SECONDS = ArgumentType("time", reading.seconds)
SHARE = ArgumentType("share", reading.share)
DTYPE = ArgumentType("type", reading.dtype, STORED)
MATRIX_DTYPE = ArgumentType("type", reading.matrix_dtype, DTYPES)
DTYPE_OR_NONE = ArgumentType("type", reading.dtype_or_none, (*STORED, "none"))
CHIP = ChipType("chip", reading.chip, _CHIPS, files=True)
MACHINE = MachineType("machine", reading.machine, _MACHINES, files=True)
MACHINE_OR_CHIP = MachineOrChipType("machine", reading.machine, _MACHINES, files=True)
TEXT = ArgumentType("name", str, ("peak", reading.CALIBRATED), files=True)
SOURCE = ArgumentType("FILE_OR_COMMAND", str, files=True)
SHAPE = ArgumentType("BxDxF", reading.shape)
MESH = ArgumentType("mesh", reading.mesh)
NAMED_MESH = ArgumentType("mesh", mesh_inference.read)
SHARE_OR_SECONDS = ArgumentType("limit", reading.share_or_seconds)
SHARE_OR_BYTES = ArgumentType("limit", reading.share_or_bytes)
PATH = ArgumentType("path", reading.path, files=True)
MODEL = ArgumentType("model", reading.model, _MODELS, files=True)
REMAT_POLICY = ArgumentType("policy", reading.remat, REMAT)
COUNTS = ArgumentType("counts", reading.counts)
SHARE_OR_WORD = ArgumentType("share", reading.overlap, ("full", "none"))
EFFICIENCY = ArgumentType("share", reading.efficiency, ("peak", reading.CALIBRATED), files=True)
SERVING_EFFICIENCY = ArgumentType(
    "name", reading.serving_efficiency, ("peak", reading.CALIBRATED), files=True
)


type Command = Callable[..., Any]

_PLAN_WAYS = {
    "--tp": "Tensor-parallel degree; its chips are neighbors.",
    "--cp": "Context-parallel degree: chips that split a sequence.",
    "--ep": "Expert-parallel degree: chips that together hold each expert once.",
    "--expert-tp": "Chips that split one expert: 1, or the degree of --tp.",
    "--expert-domains": "Largest number of scale-up domains that hold a token's experts.",
    "--fsdp": "FSDP degree: data-parallel ranks that shard the state (see --zero).",
    "--dp": "Replicas of all of the above within the machine (data parallelism).",
    "--pp": "Pipeline-parallel degree: the number of stages.",
    "--chunks": "Chunks of layers per stage, for the interleaved schedule.",
    "--microbatch": "Sequences per microbatch and data-parallel rank.",
}
_PLAN_TYPES = {
    "--weights": "of the stored weights",
    "--compute": "of the matmuls",
    "--activations": "of the activations",
    "--gradients": "of the gradients",
    "--moments": "of Adam's two moments",
}
_LAYOUT_WAYS = {
    "--tp": "Tensor-parallel degree: chips of a stage, which split every matrix.",
    "--rows": "The part of --tp that splits the model's width (2-D weight-stationary).",
    "--cp": "Context-parallel degree: groups of --tp that split the tokens of a prompt.",
    "--pp": "Pipeline-parallel degree: the number of stages.",
    "--ep": "Expert-parallel degree, a part of --tp.",
    "--redundant-experts": "Replicas of the busiest experts of a layer, which balance the load (EPLB).",
    "--attention-dp": "Groups within --tp that each attend to their own sequences.",
    "--kv-batch": "Degree that splits a group's KV cache by sequences.",
    "--kv-sequence": "Degree that splits a group's KV cache by tokens; the rest of --tp splits it by heads.",
}
_LAYOUT_TYPES = {
    "--weights": "of the stored weights",
    "--kv": "of the KV cache",
    "--compute": "of the matmuls",
    "--activations": "of the activations",
}


def expert_skew_option(command: Command) -> Command:
    """Add the option for how much tokens prefer some experts; None if not given."""
    return click.option(
        "--expert-skew",
        type=click.FloatRange(min=0),
        help="Zipf exponent of the load of experts; all chips of an expert-parallel group wait for the "
        "busiest. 0 is an even load; the default follows published routing statistics.",
    )(command)


def layout_options(command: Command) -> Command:
    """Add an option for every field of `inference.Layout`; None if not given."""
    return _with(command, (*_counts(_LAYOUT_WAYS), *_types(_LAYOUT_TYPES)))


def plan_options(command: Command) -> Command:
    """Add an option for every field of `training.Plan`; None if not given."""
    pods = "Number of machines like this one, as replicas over the data-center network."
    shared = "ZeRO stage: 1 shards the optimizer state, 2 also gradients, 3 also weights."
    attends = "Attention under --cp: keys and values in a ring, gathered, or heads exchanged."
    hides = "Overlap of the communication that can be hidden: full, none, or a share."
    master = "The dtype of the master weights, or none."
    remat = (
        "What the backward pass recomputes: "
        f"{', '.join(REMAT)}, by name as in 'save:q,k,v;offload:in' or 'recompute:mlp', or the number of "
        "layers that are recomputed in full, as in 'full:16'."
    )
    options = (
        *_counts(_PLAN_WAYS),
        click.option("--pods", "dcn", type=WHOLE, help=pods),
        click.option("--zero", type=click.Choice([0, 1, 2, 3]), help=shared),
        click.option("--context", type=click.Choice(CONTEXTS), help=attends),
        click.option("--schedule", type=click.Choice(SCHEDULES), help="The pipeline schedule."),
        click.option("--remat", type=REMAT_POLICY, help=remat),
        click.option(
            "--offload-layers", type=WHOLE, help="Layers whose activations are offloaded to the host."
        ),
        _either("--offload-optimizer", "Whether the optimizer state is in host memory."),
        click.option("--loss-tiles", type=WHOLE, help="Tiles of the loss; one tile is in memory at a time."),
        click.option("--logit-bytes", type=POSITIVE, help="Bytes in memory per logit."),
        click.option("--stage-layers", type=COUNTS, help="Layers of each pipeline stage, as in 7,8,8,7."),
        _either("--sequence-parallel", "Whether --tp splits tokens between matmuls (sequence parallelism)."),
        click.option("--overlap", type=SHARE_OR_WORD, help=hides),
        _either("--collective-matmul", "Whether the collectives of --tp can overlap with matmuls."),
        *_types(_PLAN_TYPES),
        click.option("--master", type=DTYPE_OR_NONE, callback=_if_written, help=master),
    )
    return _with(command, options)


def written_fields(options: dict[str, Any], chip: Chip | None = None) -> dict[str, Any]:
    """The fields that were given; the others keep the defaults of `Plan` or `Layout`.

    A chip whose matrix units multiply fp16 and not bf16 (V100, T4) computes in fp16 by default.
    """
    rates = chip.rates() if chip else {}
    if "fp16" in rates and "bf16" not in rates:
        options = options | {name: options.get(name) or FP16 for name in ("compute", "activations")}
    master = {} if options.get("master") is None else {"master": options["master"][0]}
    return {name: value for name, value in options.items() if value is not None} | master


def _with(command: Command, options: Iterable[Command]) -> Command:
    for option in reversed([*options]):
        command = option(command)
    return command


def _counts(ways: dict[str, str]) -> list[Command]:
    return [click.option(name, type=WHOLE, help=what) for name, what in ways.items()]


def _types(types: dict[str, str]) -> list[Command]:
    kinds = {"--compute": MATRIX_DTYPE}
    return [
        click.option(name, type=kinds.get(name, DTYPE), help=f"The dtype {what}.")
        for name, what in types.items()
    ]


def _either(name: str, says: str) -> Command:
    return click.option(f"{name}/--no-{name[2:]}", default=None, help=says)


def _if_written(ctx: click.Context, param: click.Parameter, value: object) -> object:
    """The value in a tuple if it was given, so that `--master none` differs from no option."""
    written = ctx.get_parameter_source(param.name or "") == click.core.ParameterSource.COMMANDLINE
    return (value,) if written else None
