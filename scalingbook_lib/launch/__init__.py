"""What does a launch command ask for? Its flags as a plan or a layout, and back.

`read` takes the command line, script or file of a launcher. The result names the model, the machine, the
batch and the plan (or the layout and its caps), and accounts for every flag: used, assumed, not used although
it changes time or memory, and unknown. `predict` also answers how fast that runs, whether it fits, and which
change would help most. `emit` writes the flags of a plan. The tables of flags are data
(`flags/*.csv`), and nothing is executed. Chapter: The conclusions.

>>> command = "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --enforce-eager"
>>> launch = read(command, Given(machine=chips.H100))
>>> print(launch.layout, [one.flag for one in launch.account.unused], sep="; ")
4 chips as TP 4; weights bf16, KV cache bf16, compute bf16; ['--enforce-eager']
>>> print(predict(command, machine="h100"))  # doctest: +ELLIPSIS
Layout: TP 4; 1 replica with batch size ...; weights bf16, KV bf16
TTFT ...
Memory ...
Bound by ...
Would help: ...
Not used: --enforce-eager
"""

from scalingbook_lib.launch import (
    accelerate,
    deepspeed,
    maxtext,
    megatron,
    sglang,
    tensorrt_llm,
    torchtitan,
    vllm,
)
from scalingbook_lib.launch.commands import Command, Opener, from_file, from_text, nothing, refuse_absent
from scalingbook_lib.launch.flags import LAUNCHERS, table
from scalingbook_lib.launch.prediction import (
    RequestLoad,
    ServingPrediction,
    TrainingPrediction,
    of_serving,
    of_training,
)
from scalingbook_lib.launch.reading import Account, Reading, Unused, Used
from scalingbook_lib.launch.serving import ServingLaunch
from scalingbook_lib.launch.settings import LaunchError, Setting
from scalingbook_lib.launch.training import Given, TrainingLaunch
from scalingbook_lib.machines import Chip, Machine, chips, machine_names
from scalingbook_lib.models import Transformer, find

__all__ = [
    "LAUNCHERS",
    "Account",
    "Command",
    "Given",
    "LaunchError",
    "RequestLoad",
    "ServingLaunch",
    "ServingPrediction",
    "Setting",
    "TrainingLaunch",
    "TrainingPrediction",
    "Unused",
    "Used",
    "chips",
    "from_file",
    "from_text",
    "of_serving",
    "of_training",
    "predict",
    "read",
    "table",
    "understand",
]

_READERS = {
    "maxtext": maxtext.read,
    "megatron": megatron.read,
    "megatron_bridge": megatron.read,
    "torchtitan": torchtitan.read,
    "accelerate": accelerate.read,
    "deepspeed": deepspeed.read,
    "vllm": vllm.read,
    "sglang": sglang.read,
    "tensorrt_llm": tensorrt_llm.read,
}


def read(
    text: str,
    given: Given | None = None,
    *,
    name: str = "",
    opener: Opener = nothing,
    launcher: str | None = None,
) -> TrainingLaunch | ServingLaunch:
    """What a command or a file asks for; `name` is the file's, and `opener` reads others that it names."""
    how = from_file(name, text, opener, launcher) if name else from_text(text, opener, launcher)
    return understand(how, given or Given())


def understand(command: Command, given: Given) -> TrainingLaunch | ServingLaunch:
    """What these settings ask for; a LaunchError says what is missing or wrong, and what to write."""
    refuse_absent(command)
    reading = Reading(table(command.launcher), command.settings, command.notes, command.absent)
    try:
        return _READERS[command.launcher](reading, given)
    except LaunchError:
        raise
    except ValueError as error:  # of a plan or a layout that cannot be
        raise LaunchError(f"{table(command.launcher).name}: {error}") from error


def predict(
    text: str,
    *,
    machine: Machine | Chip | str | None = None,
    model: Transformer | str | None = None,
    batch: int | None = None,
    sequence: int | None = None,
    remat: str | None = None,
    load: RequestLoad | None = None,
    name: str = "",
    opener: Opener = nothing,
    launcher: str | None = None,
) -> TrainingPrediction | ServingPrediction:
    """How a command runs: `predict("vllm serve openai/gpt-oss-120b -tp 4", machine="h100")`.

    `machine` is a chip, whose number the command says, or a machine such as "h100:64"; `load` are the
    requests of a server. What the command leaves open is given by the other arguments, as for `read`. The
    result prints as the short answer: the plan or the layout, the time with its band, the memory, what binds,
    and the changes that would help most. Raises a LaunchError that says what is missing or wrong.
    """
    requests = load or RequestLoad()
    given = Given(
        model=find(model) if isinstance(model, str) else model,
        machine=_machine(machine) if isinstance(machine, str) else machine,
        batch=batch,
        sequence=sequence,
        remat=remat,
        acceptance_length=requests.acceptance_length,
    )
    found = read(text, given, name=name, opener=opener, launcher=launcher)
    return of_training(found) if isinstance(found, TrainingLaunch) else of_serving(found, requests)


def _machine(text: str) -> Machine | Chip:
    """A chip by its name alone, or a machine."""
    try:
        return chips.find(text)
    except ValueError:
        return machine_names.read(text).machine
