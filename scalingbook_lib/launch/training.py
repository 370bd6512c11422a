"""A training launch as read: model, machine, batch and plan, with the account of its flags."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from scalingbook_lib.calibrated import training_efficiency
from scalingbook_lib.calibrated.recommendation import NODE_LIMITED
from scalingbook_lib.calibrated.training_efficiency import Software
from scalingbook_lib.launch.reading import Account, Reading
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.machines import Chip, Cluster, Machine, machine_names
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Plan, TrainingEfficiency
from scalingbook_lib.units import DType

_SOFTWARE = {
    "maxtext": "MaxText",
    "megatron": "Megatron",
    "megatron_bridge": "Megatron",
    "torchtitan": "torchtitan",
    "accelerate": "PyTorch",
    "deepspeed": "DeepSpeed",
}
_RELEASES = {
    ("maxtext", "TPU v5p"): "tpu-recipes-tpuv5p",
    ("maxtext", "TPU v6e"): "tpu-recipes-tpuv6e",
    ("maxtext", "TPU7x"): "tpu-recipes-ironwood",
}
"""The release of a launcher's software on a chip, if all published runs there are of a release of its own.

Recipes of MaxText are published by generation: on TPU7x, experts reach about half of their share elsewhere.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the reader of a command is told besides it; None is left to the command.

    `machine` is a machine, or a chip whose number the command says. `batch` counts sequences.
    """

    model: Transformer | None = None
    machine: Machine | Chip | None = None
    batch: int | None = None
    sequence: int | None = None
    remat: str | None = None
    acceptance_length: float | None = None  # of speculative decoding


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLaunch:
    """What a training command asks for. The machine is one of `plan.dcn` pods."""

    launcher: str
    model: Transformer
    machine: Machine
    batch: int  # sequences of a step, of all pods
    T: int
    plan: Plan
    account: Account
    kernel: str | None = None  # the attention kernel, if the command names it

    @property
    def efficiency(self) -> TrainingEfficiency:
        """The calibrated efficiency of the launcher's software and its attention kernel on these chips."""
        chip, precision = self.machine.chip, self.plan.compute.name
        return training_efficiency.training(chip, precision, self.kernel, self.software)

    @property
    def software(self) -> Software:
        """The software of the launcher and its release, by their names in the calibrated efficiencies."""
        return software(self.launcher, self.machine.chip)

    @property
    def accumulation(self) -> int:
        """Microbatches that a data rank works through in one step."""
        return self.plan.microbatches(self.batch)


def software(launcher: str, chip: Chip) -> Software:
    """The software of a launcher and its release on these chips, by their names in the efficiencies."""
    release = _RELEASES.get((launcher, chip.name))
    return (_SOFTWARE[launcher], release) if release else (_SOFTWARE[launcher],)


def assume_kernel(reading: Reading, chip: Chip) -> None:
    """Say which attention kernel PyTorch has on Hopper, where its releases differ."""
    if chip.name.startswith(training_efficiency.HOPPER):
        reading.assume(
            "Attention is FlashAttention-2, which PyTorch's SDPA uses on Hopper before release 2.11."
        )


def assume_adapters(reading: Reading) -> None:
    """Say how a run that trains adapters (LoRA) is counted."""
    reading.assume("The base weights are frozen, and the adapters are not counted.")


def model_of(reading: Reading, given: Given, found: Transformer | None, how: str) -> Transformer:
    """The model of the command or of the option; a LaunchError says how to name it."""
    if given.model:
        return given.model
    if found:
        return found
    raise LaunchError(f"the command does not name the model; {how}, or add --model, as in --model llama-3-8b")


def refuse_model(reading: Reading, error: ValueError, option: str = "add --model") -> LaunchError:
    """The error for a model that is not in the catalog, or for the path of one."""
    if reading.word("model").startswith((".", "/", "~")):
        return reading.refuse(
            "model",
            "is a path, and no files of a model are read by a command",
            f"{option}, or with that folder or its config.json",
        )
    return reading.refuse("model", "is not a model of the catalog", f"{option}: {error}")


def chips_of(given: Given, counted: int | None, what: str, reading: Reading) -> Machine:
    """The machine: as given, or the given chip in the number that the command says."""
    machine = given.machine
    if machine is None:
        said = f"starts {counted:,} {what} and does not say which" if counted else ""
        said = said or f"does not say on how many {what} it runs, or on which"
        raise LaunchError(f"the command {said}; add --machine, as in --machine h100:{counted or 64}")
    if isinstance(machine, Chip):
        if counted is None:
            raise LaunchError(
                f"the command does not say on how many {what} it runs; write the number in --machine, as in "
                f"--machine {machine.name.lower().replace(' ', '-')}:64"
            )
        return _of_size(machine, counted, reading)
    if counted is not None and counted != machine.chips:
        reading.assume(
            f"The command starts {counted:,} {what}; --machine has {machine.chips:,}, which are used instead."
        )
    return machine


def on_all_nodes(r: Reading, per_node: str) -> int | None:
    """The processes that the command starts on all nodes together; None without the number per node."""
    return r.whole(per_node) * r.whole("nodes") if r.given(per_node) else None


def _of_size(chip: Chip, count: int, reading: Reading) -> Machine:
    """The machine of so many of these chips; runs on racks of 72 GPUs often use 64 of each."""
    domain = chip.domain_chips
    if domain and count > domain and count % domain:
        used = next((n for n in range(domain, domain // 2, -1) if count % n == 0), 0)
        if used:
            reading.assume(f"Of each NVLink domain of {domain} GPUs, the run uses {used}.")
            return Cluster.of(chip, count, domain=used)
    return of_size(chip, count)


def of_size(chip: Chip, count: int) -> Machine:
    """The machine of so many of these chips."""
    return machine_names.read(f"{chip.name}:{count}", lambda _: chip).machine


def fill(reading: Reading, degrees: Mapping[str, int], total: int, what: str) -> dict[str, int]:
    """The degrees by key, with the one that is -1 filled up to `total`.

    Raises a LaunchError if the product is not `total`, or if two degrees are -1.
    """
    open_ = [key for key, degree in degrees.items() if degree == -1]
    for key, degree in degrees.items():
        if degree < 1 and degree != -1:
            raise reading.refuse(
                key, "is not a degree", "write a whole number of at least 1, or -1 for the rest"
            )
    known = prod(degree for degree in degrees.values() if degree != -1)
    named = " · ".join(
        f"{reading.setting(key).name.removesuffix(' (default)')}={degree}"
        for key, degree in degrees.items()
        if degree not in (1, -1)
    )
    if len(open_) > 1:
        flags = " and ".join(reading.setting(key).name for key in open_)
        raise LaunchError(f"{flags} are both -1; write a number for one of them")
    if (open_ and total % known) or (not open_ and known != total):
        rule = "does not divide" if open_ else "is not"
        raise LaunchError(
            f"{named or 'the product of all degrees'} = {known:,} {rule} the {total:,} {what}; write degrees "
            f"whose product {'divides' if open_ else 'is'} {total:,}, or another --machine"
        )
    return {key: total // known if degree == -1 else degree for key, degree in degrees.items()}


def sequence_of(reading: Reading, given: Given, key: str) -> int:
    """The sequence length: as given, or as the command says."""
    if given.sequence:
        return given.sequence
    if not reading.given(key) and reading.get(key) is None:
        raise LaunchError(
            f"the command does not set {reading.setting(key).name}; add it, or --sequence, as in "
            "--sequence 8192"
        )
    return reading.whole(key)


def refuse_both_halves(reading: Reading, *keys: str) -> None:
    """Refuse bf16 and fp16 together, as every framework does."""
    on = [key for key in keys if reading.given(key) and reading.on(key)]
    if len(on) > 1:
        raise reading.refuse(
            on[-1], f"is set together with {reading.setting(on[0]).name}", "write one of the two"
        )


def mean_type(first: DType, second: DType) -> DType:
    """One type for two moments that may differ; its bytes are their mean."""
    return first if first == second else DType(f"{first}/{second}", (first.bytes + second.bytes) / 2)


def domains(model: Transformer) -> int | None:
    """The scale-up domains to which the model's router limits the experts of a token."""
    return NODE_LIMITED.get(model.name)


def divided(reading: Reading, key: str, total: int, by: int, what: str) -> int:
    """`total` / `by`, where it must be whole."""
    if by < 1 or total % by:
        raise reading.refuse(
            key, f"leaves {total:,} {what}, which do not divide by {by:,}", f"write a multiple of {by:,}"
        )
    return total // by
