"""The tables of flags are whole: one row for each flag, and each says where it is from."""

import csv
import re
from datetime import date
from importlib import resources
from pathlib import Path

import pytest

import scalingbook_lib.launch as package
from scalingbook_lib import models
from scalingbook_lib.launch import LAUNCHERS, LaunchError, Setting, flags
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.training.remat import named
from scalingbook_lib.units import DType, dtype

FOLDER = resources.files("scalingbook_lib.launch").joinpath("flags")
READERS = {"megatron_bridge": "megatron"}
KEY = re.compile(
    r"r\.(?:whole|maybe|get|on|word|meaning|number|given|setting|unexpressed|refuse)\(\s*\"([\w.]+)\""
)
BUILT = {"maxtext": ("ici.", "dcn.", "tensor.", "shape.")}  # keys that a reader puts together
ELSEWHERE = {"prefix", "dtype", "kv", "quantization", "model", "drafts", "draft_model", "spec"}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_row_has_a_type_an_effect_a_source_and_a_version(launcher):
    rows = flags.table(launcher).rows
    assert len({row.flag for row in rows}) == len(rows)
    for row in rows:
        assert row.type in flags.TYPES
        assert row.effect
        assert set(row.effect) <= set(flags.EFFECTS)
        assert row.effect == ("none",) or "none" not in row.effect
        assert row.source
        assert row.version
        assert date.fromisoformat(row.as_of)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_no_two_flags_are_spelled_alike(launcher):
    spelled = {}
    for row in flags.table(launcher).rows:
        for name in (row.flag, *row.also):
            assert spelled.setdefault(flags.canonical(name), row.flag) == row.flag


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_default_is_of_its_type(launcher):
    for row in flags.table(launcher).rows:
        if row.default not in ("", "None") and row.key and "with" not in row.default:
            row.read(Setting(row.flag, row.default))


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_reader_asks_for_every_key_and_for_no_other(launcher):
    own = Path(package.__file__).parent.glob(f"{READERS.get(launcher, launcher)}*.py")
    source = "".join(path.read_text("utf-8") for path in own)
    shared = "".join(
        Path(package.__file__).with_name(f"{name}.py").read_text("utf-8")
        for name in ("serving", "training", "deepspeed", "adapters")
    )
    asked = set(re.findall(r"\"([\w.]+)\"", source + shared))
    for row in flags.table(launcher).rows:
        built = row.key.startswith(BUILT.get(launcher, ("-",)))
        assert not row.key or built or row.key in asked, row.flag
    known = {row.key for name in (launcher, *READERS, *READERS.values()) for row in flags.table(name).rows}
    known |= {row.key for row in flags.table("deepspeed").rows if launcher == "accelerate"}
    assert set(KEY.findall(source)) <= known | ELSEWHERE


def test_every_meaning_is_one_of_the_library():
    with FOLDER.joinpath("values.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kinds = {"remat", "context", "schedule", "strategy", "quantization", "precision", "kv", "model"}
    for row in rows:
        means = row["means"]
        if row["key"] == "model":
            models.find(means)
        elif row["key"] == "remat":
            named(means)
        elif row["key"] in ("quantization", "kv", "precision"):
            for one in means.split():
                dtype(one)
        else:
            assert means or row["key"] in kinds


def test_every_wheel_has_the_tables():
    assert {path.name for path in FOLDER.iterdir()} >= {*(f"{name}.csv" for name in LAUNCHERS), "values.csv"}


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("int", "8", 8), ("int", "1_000", 1000), ("int", "5e8", 500_000_000), ("int", "8k", 8000),
        ("int", "8K", 8192), ("float", "0.9", 0.9), ("bool", "True", True), ("flag", "no", False),
        ("list", "[a,b]", ("a", "b")), ("str", 7, "7"),
    ],
)  # fmt: skip
def test_a_value_is_read_in_the_type_of_its_flag(type_, text, value):
    row = flags.table("vllm").rows[0]
    flag = flags.Flag(**{f: getattr(row, f) for f in row.__slots__} | {"type": type_})
    assert flag.read(Setting("--x", text)) == value


def test_a_data_type_may_be_spelled_as_frameworks_do():
    flag = flags.table("maxtext").of("compute")
    assert isinstance(flag.read(Setting("dtype", "bfloat16")), DType)
    with pytest.raises(LaunchError, match=r"^line 3: dtype 'float7' is not a data type; write "):
        flag.read(Setting("dtype", "float7", 3))


LEFT = {
    "torchtitan": {"compile.enable"},
    "megatron": {
        "--moe-token-dispatcher-type", "--moe-grouped-gemm", "--moe-permute-fusion", "--moe-router-fusion",
    },
    "accelerate": {"--packing"}, "deepspeed": {"--packing"},
    "tensorrt_llm": {"cuda_graph_config.enable_padding"},
}  # fmt: skip


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_defaults_for_which_the_prediction_is_not_are_assumptions(launcher):
    account = Reading(flags.table(launcher), ()).account()
    told = {sentence.split()[0] for sentence in account.assumed}
    assert told == LEFT.get(launcher, set())
    assert all("by default (" in one and ", and the prediction is for " in one for one in account.assumed)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_default_that_is_written_out_is_named_if_the_prediction_is_for_another_value(launcher):
    table = flags.table(launcher)
    written = [Setting(row.flag, row.default) for row in table.rows if row.flag in LEFT.get(launcher, ())]
    account = Reading(table, written).account()
    assert {one.flag for one in account.unused} == LEFT.get(launcher, set())
    assert not account.assumed


@pytest.mark.parametrize(
    ("launcher", "flag", "value", "named"),
    [
        ("tensorrt_llm", "cuda_graph_config", None, True),
        ("tensorrt_llm", "cuda_graph_config", {}, False),
        ("tensorrt_llm", "use_cuda_graph", False, True),
        ("tensorrt_llm", "use_cuda_graph", True, False),
        ("tensorrt_llm", "disable_overlap_scheduler", None, False),
        ("tensorrt_llm", "moe_config.backend", None, True),
        ("vllm", "--moe-backend", "auto", False),
        ("vllm", "--cpu-offload-gb", None, False),
        ("megatron", "--attention-backend", "unfused", True),
        ("torchtitan", "compile.no-enable", True, True),
        ("torchtitan", "--no-compile.enable", True, True),
    ],
)
def test_a_value_is_named_if_the_prediction_is_for_another_one(launcher, flag, value, named):
    """None in a file turns a feature off, and leaves a flag at a default that is off."""
    reading = Reading(flags.table(launcher), [Setting(flag, value)])
    assert bool(reading.account().unused) == named
    assert not reading.unknown


def test_zero_one_and_the_three_memory_fractions_are_in_the_tables():
    """The words that mean different things in two frameworks are rows with different keys or notes."""
    fractions = [flags.table(name).of("memory_fraction") for name in ("vllm", "sglang", "tensorrt_llm")]
    assert len({row.note for row in fractions}) == 3
    assert [row.default for row in fractions] == ["0.92", "None", "0.9"]
    assert flags.table("megatron").of("distributed_optimizer").default == "false"
    assert flags.table("megatron_bridge").of("distributed_optimizer").default == "true"
    assert flags.table("megatron").of("offload_fraction").default == "1.0"
    assert flags.table("megatron_bridge").of("offload_fraction").default == "0.0"
