"""Finds the launcher and its settings in a command, a script or a file.

Of a script, the last command that starts a known launcher counts, also inside the quotes of `bash -c` or of a
cluster tool. Files that the command names are read if they are there, or if the script writes them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePath

from scalingbook_lib import git_lfs
from scalingbook_lib.launch import files, manifests, recipes, shell
from scalingbook_lib.launch.flags import LAUNCHERS, canonical, table
from scalingbook_lib.launch.settings import LaunchError, Setting
from scalingbook_lib.launch.shell import Script, Word
from scalingbook_lib.launch.slurm import SlurmAllocation
from scalingbook_lib.words import pluralize

type Opener = Callable[[str], str | None]
"""Gives the text of a file that a command names, or None if there is none."""

_PYTHON = re.compile(r"from [\w.]+ import |import \w+|def \w+\(|\"{3}")
_ASSIGNED = re.compile(r"\+{0,2}[A-Za-z_][\w.]*=")
_OVERRIDE = re.compile(
    r"\+{0,2}(cfg\.)?(model|train|ddp|optimizer|comm_overlap|mixed_precision|dataset|tokenizer)\.\w+="
)
_CONFIGS = {
    "vllm": ("--config",), "sglang": ("--config",), "tensorrt_llm": ("--extra_llm_api_options", "--config"),
    "accelerate": ("--config_file", "--deepspeed_config_file", "--fsdp_config", "--config"),
    "deepspeed": ("--deepspeed", "--deepspeed_config"),
    "torchtitan": ("$CONFIG_FILE", "--job.config_file", "--job.config-file"), "megatron": (),
    "megatron_bridge": ("--config-file",),
    "maxtext": (),
}  # fmt: skip
_FILE_WINS = ("tensorrt_llm",)  # over the command line
_FILE_DECIDES = {
    "torchtitan": "the model and the plan",
    "accelerate": "how the model is sharded",
    "deepspeed": "how the model is sharded",
    "megatron_bridge": "what the recipe leaves open",
}  # what the file of a command sets, without which its answer would be about another run
_PROGRAMS = (
    ("tensorrt_llm", re.compile(r"(^|/)trtllm-serve$")),
    ("sglang", re.compile(r"^sglang(_router)?\.launch_server$|(^|/)sglang$")),
    ("vllm", re.compile(r"^vllm\.entrypoints\..*api_server$|(^|/)vllm$|(^|/)vllm/vllm-openai")),
    ("accelerate", re.compile(r"(^|/)accelerate$|^accelerate\.commands\.launch$")),
    (
        "torchtitan",
        re.compile(r"^torchtitan\.train$|torchtitan/train\.py$|^--job\.config_file|(^|/)run_train\.sh$"),
    ),
    (
        "maxtext",
        re.compile(r"(?i)^maxtext\.|maxtext/(train|train_compile)\.py$|^(per_device_batch_size|ici_\w+)="),
    ),
    ("deepspeed", re.compile(r"(^|/)deepspeed$|^--deepspeed(_config)?$|^--deepspeed=")),
    (
        "megatron_bridge",
        re.compile(rf"megatron\.bridge|scripts/performance/|scripts/training/|^{_OVERRIDE.pattern}"),
    ),
    ("megatron", re.compile(r"(^|/)pretrain_\w+\.py$|^--tensor-model-parallel-size|^--micro-batch-size")),
    (
        "accelerate",
        re.compile(r"^--fsdp(=|$)|^--per_device_train_batch_size(=|$)"),
    ),  # of a Hugging Face trainer
    ("accelerate", re.compile(r"(^|/)(llamafactory-cli|axolotl|trl)$|^axolotl\.cli\.train$")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The launcher, its settings in the order in which they count, and notes on how they were read."""

    launcher: str
    settings: tuple[Setting, ...]
    notes: tuple[str, ...] = ()
    unresolved: tuple[Setting, ...] = ()
    absent: tuple[Setting, ...] = ()  # files of settings that the command names and that are not here


def nothing(path: str) -> None:
    """Opens no file."""
    return


def from_file(name: str, text: str, opener: Opener = nothing, launcher: str | None = None) -> Command:
    """The settings of a file: of YAML, TOML, JSON, a recipe (FILE.py:FUNCTION), or else a script."""
    _refuse_other_texts(text, name)
    file, colon, function = name.rpartition(":")
    if not colon or not file.endswith(".py"):
        file, function = name, ""
    if file.endswith(".py"):
        recipe = recipes.read(text, file, function, opener)
        return Command(launcher=recipe.launcher, settings=recipe.settings, notes=recipe.notes)
    kind = files.KINDS.get(PurePath(name).suffix.lower())
    if kind == "yaml" and manifests.is_manifest(text):
        return _of_manifest(text, name, opener, launcher)
    if kind is None:
        return from_text(text, opener, launcher)
    return _with_deepspeed(_of_config(text, kind, name, launcher), opener)


def _with_deepspeed(command: Command, opener: Opener) -> Command:
    """A trainer's config with the DeepSpeed file that it names."""
    named = _deepspeed_file(command.settings) if command.launcher == "accelerate" else None
    if named is None:
        return command
    found = _file(str(named.value), "deepspeed", [], opener)
    return Command(
        launcher="deepspeed",
        settings=(*command.settings, *(found or ())),
        absent=() if found is not None else (named,),
    )


_PROGRAM_TEXT = re.compile(r"HloModule |module( @[\w.$-]+)?( attributes)? \{|func\.func |#\w+ = loc\(")


def _refuse_other_texts(text: str, name: str) -> None:
    """Refuse what is neither a command nor a config, with what it is."""
    begins = text.lstrip("\ufeff \t\r\n")
    if not begins:
        raise LaunchError(f"{name} is empty; give a launch command, a script or a config")
    if git_lfs.is_pointer(text):
        raise LaunchError(git_lfs.refusal(name))
    if _PROGRAM_TEXT.match(begins):
        raise LaunchError(
            f"{name} is the text of a program, not a launch command; write `scalingbook inspect --hlo FILE`"
        )


def _of_config(text: str, kind: str, name: str, launcher: str | None) -> Command:
    """The settings of a config of that kind; `name` is for error messages."""
    settings = files.settings(text, kind)
    return Command(launcher=launcher or _of_file(settings, kind, name), settings=tuple(settings))


def _of_file(settings: list[Setting], kind: str, name: str) -> str:
    """The launcher whose table knows most of a file's names."""
    if kind == "toml":
        return "torchtitan"
    names = [canonical(one.name) for one in settings]
    candidates = (
        ("deepspeed",) if kind == "json" else tuple(name for name in LAUNCHERS if name != "torchtitan")
    )

    def known(launcher: str) -> int:
        rows = table(launcher)
        return sum(bool((flag := rows.find(one)) and (flag.key or flag.counts)) for one in names)

    best = max(candidates, key=known)
    if not known(best):
        if {"architectures", "model_type"} & set(names):
            raise LaunchError(
                f"{name} is the config.json of a model, not of a launch; write `scalingbook model FILE`, or "
                "give it as --model beside a launch command"
            )
        shown = ", ".join(names[:3]) or "nothing"
        raise LaunchError(
            f"{name} has settings of no known launcher ({shown}); write --launcher and one of "
            f"{', '.join(LAUNCHERS)}"
        )
    return best


def _of_manifest(text: str, name: str, opener: Opener, launcher: str | None) -> Command:
    """The settings of the last launch in the containers of a manifest, without their lines."""
    found = from_text(manifests.script(text, name), opener, launcher)
    settings = tuple(Setting(one.name, one.value, 0, name) for one in found.settings)
    note = f"The command is that of a container in {name}; its replicas and its GPUs are not read."
    return replace(found, settings=settings, notes=(note, *found.notes))


def from_text(text: str, opener: Opener = nothing, launcher: str | None = None) -> Command:
    """The settings of a command line or a script, or of a config, whose kind its first line shows."""
    _refuse_other_texts(text, "the text")
    if manifests.is_manifest(text) and files.kind_of(text) == "yaml":
        return _of_manifest(text, "the text", opener, launcher)
    if kind := files.kind_of(text):
        return _of_config(text, kind, "the text", launcher)
    if _PYTHON.match(files.first_statement(text)):
        raise LaunchError(
            "the text is a Python program, and nothing is executed here; give the command that starts it, or "
            "a file named *.py if it has recipes of Megatron-Bridge or torchtitan"
        )
    script = shell.read(text)
    found = list(_launches(script, launcher))
    if not found:
        words = " ".join(word.text for command in script.commands[-1:] for word in command)[:60]
        raise LaunchError(
            f"{words or 'the text'!r} starts no launcher that is known here; give a command or a file of "
            f"{', '.join(LAUNCHERS.values())}"
        )
    kind, words, scripts = found[-1]
    _refuse_clients(words)
    notes = []
    if len(found) > 1:
        notes.append(
            f"The script has {len(found)} launch commands; the last one, on line {words[0].line}, is read."
        )
    if lines := [line for one in scripts for line in one.conditions]:
        numbers = ", ".join(map(str, dict.fromkeys(lines)))
        notes.append(
            f"Conditions are not evaluated: of each `if` (line {numbers}), the first branch is read."
        )
    given = [*_environment(kind, scripts), *_settings(kind, words)]
    given = [*_allocated(kind, given, script.allocation, notes), *given]
    from_files, absent = list[Setting](), list[Setting]()
    for named in _files(kind, given, words):
        found_settings = _file(str(named.value), kind, scripts, opener)
        if found_settings is None:
            absent.append(named)
            notes.append(_without(named, kind))
        else:
            from_files += found_settings
    if kind == "accelerate" and (named := _deepspeed_file([*from_files, *given])):
        kind = "deepspeed"
        found_settings = _file(str(named.value), kind, scripts, opener)
        if found_settings is None:
            absent.append(named)
        from_files += found_settings or []
    ordered = [*given, *from_files] if kind in _FILE_WINS else [*from_files, *given]
    unresolved = {what: line for one in scripts for what, line in one.unresolved.items()}
    open_ = tuple(Setting(what, True, line) for what, line in unresolved.items())
    _refuse_unresolved(kind, ordered, unresolved)
    return Command(
        launcher=kind,
        settings=tuple(ordered),
        notes=tuple(notes),
        unresolved=open_,
        absent=tuple(absent),
    )


def _refuse_clients(words: list[Word]) -> None:
    """Refuse a subcommand of a server's program that starts no server."""
    for program, word in pairwise(word.text for word in words):
        name = PurePath(program).name
        if word in _COMMANDS.get(name, ()) and word != "serve":
            raise LaunchError(
                f"`{name} {word}` starts no server; give the `{name} serve` command, and the load as "
                "--prompt 1024 --output 128 --concurrency 64"
            )


def _deepspeed_file(settings: Iterable[Setting]) -> Setting | None:
    """The setting of a trainer's YAML that names a DeepSpeed file."""
    named = [one for one in settings if canonical(one.name) == "deepspeed" and isinstance(one.value, str)]
    return named[-1] if named and str(named[-1].value).endswith(".json") else None


def _without(named: Setting, kind: str) -> str:
    """What a command means without a file that it names."""
    wins = ", and its settings override the command line" if kind in _FILE_WINS else ""
    return f"The file {named.value} is not here{wins}; its settings are not read."


def refuse_absent(command: Command) -> None:
    """Refuse a command without the file that decides its plan: the answer would be about another run."""
    if command.launcher in _FILE_DECIDES:
        for named in command.absent:
            positional = named.name in ("the config file", "--config")
            decides = "the model and its training" if positional else _FILE_DECIDES[command.launcher]
            raise named.refuse(
                f"is not here, and it sets {decides}",
                f"run this where the file is, or write its text into the script (cat > {named.value} <<EOF)",
            )


def _refuse_unresolved(kind: str, settings: Iterable[Setting], unresolved: dict[str, int]) -> None:
    """Refuse a flag that matters and has a value that only a shell can know."""
    rows = table(kind)
    for setting in settings:
        flag, value = rows.find(setting.name), str(setting.value)
        matters = flag and flag.key and (flag.counts or flag.concept == "MACHINE")
        if matters and any(what in value for what in unresolved):
            raise setting.refuse("is set by the shell, which does not run here", "write its value")


def _launches(script: Script, forced: str | None) -> Iterator[tuple[str, list[Word], list[Script]]]:
    """Every launch in a script, with the scripts around it, the outer one first."""
    for command in script.commands:
        inner = [word for word in command if _quoted_command(word)]
        if inner:
            for word in inner:
                option = re.match(r"--?[\w-]+=", word.text)
                quoted = word.after(option.end()) if option else word
                for kind, words, scripts in _launches(shell.nested(quoted, script), forced):
                    outer = [one for one in command if one is not word]
                    yield kind, [*outer[1:], *words], [script, *scripts]
            continue
        kind = forced or _launcher(command)
        if kind and (forced is None or command is script.commands[-1] or _launcher(command)):
            yield kind, command, [script]


def _quoted_command(word: Word) -> bool:
    text = word.text
    return " " in text.strip() and bool(
        re.search(r"\b(python3?|torchrun|vllm|trtllm-serve|accelerate|sglang)\s", text)
    )


def _launcher(words: list[Word]) -> str | None:
    texts = [word.text for word in words]
    for kind, pattern in _PROGRAMS:
        if any(pattern.search(text) and _runs(texts, at) for at, text in enumerate(texts)):
            return kind
    return None


_COMMANDS = {
    "vllm": ("serve", "bench", "chat", "complete", "run-batch"),
    "sglang": ("serve", "generate", "version"),
}
"""The subcommands of programs whose names are words of other commands, too."""


def _runs(texts: list[str], at: int) -> bool:
    """Whether a word is a program that runs, and not, for instance, the name of a release or of a host."""
    known = _COMMANDS.get(PurePath(texts[at]).name)
    return known is None or any(text in known for text in texts[at + 1 : at + 2])


def _allocated(
    kind: str, given: list[Setting], allocation: SlurmAllocation, notes: list[str]
) -> Iterator[Setting]:
    """The nodes and processes of the #SBATCH lines, where the command itself says neither."""
    rows, each, nodes = table(kind), allocation.each, allocation.nodes or 1
    per_node = next((key for key in ("processes_per_node", "gpus_per_node") if rows.has(key)), "")
    said = {flag.key for one in given if (flag := rows.find(one.name))}
    if not each or not per_node or said & {per_node, "nodes", "gpus"}:
        return
    notes.append(f"The number of GPUs is that of the #SBATCH lines: {pluralize(nodes, 'node')} of {each}.")
    yield Setting(rows.of("nodes").flag, str(nodes), allocation.line)
    yield Setting(rows.of(per_node).flag, str(each), allocation.line)


def _environment(kind: str, scripts: list[Script]) -> Iterator[Setting]:
    """The environment variables of a table that the script sets."""
    names = {row.flag[1:] for row in table(kind).rows if row.flag.startswith("$")}
    for script in scripts:
        for name, words in script.variables.items():
            if name in names and words and words[0].text.strip():
                text = " ".join(word.text for word in words)
                yield Setting(f"${name}", text, words[0].line)


def _settings(kind: str, words: list[Word]) -> Iterator[Setting]:
    """The options of a command, of the launcher and of what starts it."""
    rows, at, last = table(kind), 0, len(words)
    pattern = next(pattern for name, pattern in _PROGRAMS if name == kind)
    texts = [word.text for word in words]
    program = next((i for i, text in enumerate(texts) if pattern.search(text) and _runs(texts, i)), 0)
    positional = kind in ("vllm", "tensorrt_llm", "sglang")
    if kind == "accelerate" and re.search(r"(^|/)python3?(\.\d+)?$", words[0].text):
        yield Setting("the program", "python", words[0].line)
    if kind in ("accelerate", "deepspeed"):
        for word in words:
            if match := _OTHER_STEPS.search(word.text):
                yield Setting("--stage", match[1], word.line)
    if kind == "megatron" and (match := _PRETRAIN.search(words[program].text)):
        yield Setting("the program", match[1], words[program].line)
    while at < last:
        word = words[at]
        name, equals, value = word.text.partition("=")
        at += 1
        if kind == "vllm" and (level := re.fullmatch(r"-O([0-3])", word.text)):
            yield Setting("--optimization-level", level[1], word.line)
        elif word.text.startswith("-") and len(word.text) > 1 and not _is_number(word.text):
            flag = rows.find(name)
            outer = at <= program and flag is None
            if equals:
                taken: object = value
            else:
                taken, at = _value(flag.type if flag else None, words, at)
                if flag and flag.key and taken is True and flag.type in _VALUED:
                    raise LaunchError(
                        f"line {word.line}: {name} has no value; write one, as in {name} {_VALUED[flag.type]}"
                    )
            if not outer:
                yield from _expanded(Setting(name, taken, word.line))
        elif _ASSIGNED.match(word.text) and kind in ("maxtext", "megatron_bridge"):
            yield Setting(name.lstrip("+").removeprefix("cfg."), value, word.line)
        elif (
            positional
            and at > program + 1
            and word.text not in ("serve", "openai")
            and not word.text.startswith(">")
            and not words[at - 2].text.startswith(">")  # a file that the output goes to
        ):
            positional = False
            yield Setting("model" if kind == "tensorrt_llm" else rows.of("model").flag, word.text, word.line)


_OTHER_STEPS = re.compile(
    r"(?:^|/)((?:run_)?(?:online_dpo|dpo|grpo|ppo|kto|orpo|cpo|rloo|gkd|xpo|nash_md|reward|reward_modeling|prm)"
    r"(?:_\w+)?)(?:\.py)?$"
)  # programs and subcommands of TRL
_PRETRAIN = re.compile(r"(?:^|/)(pretrain_\w+\.py)$")


_VALUED = {"int": "8", "float": "0.9", "dtype": "bfloat16"}
"""Types of flags that need a value, with an example."""


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-[0-9.]+", text))


def _value(kind: str | None, words: list[Word], at: int) -> tuple[object, int]:
    """The value behind a flag, and the place behind it."""

    def is_value(place: int) -> bool:
        if place >= len(words):
            return False
        text = words[place].text
        return not text.startswith("-") or _is_number(text)

    if kind in ("flag", "bool"):
        if at < len(words) and words[at].text.lower() in ("true", "false"):
            return words[at].text, at + 1
        return True, at
    if kind == "list":
        found = []
        while is_value(at):
            found.append(words[at].text)
            at += 1
        return found, at
    return (words[at].text, at + 1) if is_value(at) else (True, at)


def _expanded(setting: Setting) -> list[Setting]:
    """The settings inside a JSON value, as those of --speculative-config."""
    text = setting.value
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return [setting]
    try:
        inner = files.settings(text, "json")
    except LaunchError as error:
        raise setting.refuse("is not valid JSON", "correct the quotes") from error
    return [Setting(f"{setting.name}.{one.name}", one.value, setting.line) for one in inner]


def _files(kind: str, settings: Iterable[Setting], words: list[Word]) -> Iterator[Setting]:
    """The files of settings that a command names, each once and in their order."""
    names, seen = {canonical(name) for name in _CONFIGS[kind]}, set[PurePath]()
    named = [
        one
        for one in settings
        if canonical(one.name) in names and isinstance(one.value, str) and one.value.lower() != "none"
    ]
    if kind in ("maxtext", "accelerate"):
        values = {str(one.value) for one in named}
        named += [
            Setting("the config file", word.text, word.line)
            for word in words
            if word.text.endswith((".yml", ".yaml"))
            and not word.text.endswith("base.yml")
            and "=" not in word.text
            and word.text not in values
        ]
    for one in named:
        path = PurePath(str(one.value))
        if path not in seen:
            seen.add(path)
            yield one


def _file(path: str, kind: str, scripts: list[Script], opener: Opener) -> list[Setting] | None:
    """The settings of a file that the script writes, or that is there; None if it is neither."""
    suffix = files.KINDS.get(PurePath(path).suffix.lower(), "yaml")
    for script in scripts:
        for name, text in script.files.items():
            if PurePath(name) == PurePath(path):
                found = files.settings(text.text, suffix, "", text.line)
                return [each for one in found for each in _expanded(one)]
    text = opener(path)
    if text is None:
        return None
    found = files.settings(text, suffix, PurePath(path).name)
    return [each for one in found for each in _expanded(one)]
