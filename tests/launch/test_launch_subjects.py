"""The comparison tables: every flag is in the table of its launcher, and the launch readers know it."""

from datetime import date

import pytest

from scalingbook_lib.launch import LAUNCHERS, Setting, table
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.subjects import KINDS, SUBJECTS, comparison

TABLES = [("training", "training"), ("inference", "serving")] + [
    (subject, kind) for subject in ("lowprecision", "profiling") for kind in KINDS
]
LETTERS = {"DP", "FSDP", "TP", "PP", "CP", "EP", "T", "m"}
NUMBERS = {
    "layers",
    "chunks",
    "sequences",
    "tokens",
    "steps",
    "step",
    "experts",
    "bytes",
    "fraction",
    "ratio",
    "GiB",
}


def switches(subject, kind):
    return [
        one for line in comparison(subject, kind).lines for some in line.switches.values() for one in some
    ]


@pytest.mark.parametrize(("subject", "kind"), TABLES)
def test_every_flag_is_that_of_the_launch_reader_and_has_a_source_and_a_date(subject, kind):
    for one in switches(subject, kind):
        if one.flag is None:
            assert one.remark
            continue
        assert one.flag is table(one.launcher).find(one.flag.flag)
        assert one.flag.source
        assert date.fromisoformat(one.flag.as_of)


@pytest.mark.parametrize(("subject", "kind"), TABLES)
def test_every_value_is_of_the_type_of_its_flag(subject, kind):
    for one in switches(subject, kind):
        if one.flag is None or not one.value:
            assert one.flag is None or one.flag.type in ("flag", "bool") or one.flag.flag.startswith("/")
            continue
        for word in one.value.split(" | "):
            number = word in LETTERS | NUMBERS
            value = {"fraction": "0.9", "ratio": "2.0"}.get(word, "8") if number else word
            found = one.flag.read(Setting(one.flag.flag, value))
            assert found is not None or value == "null", one.setting
            assert number or one.flag.type not in ("int", "float") or word.isdigit(), one.setting


@pytest.mark.parametrize(("subject", "kind"), TABLES)
def test_no_reader_finds_an_unknown_flag_in_a_command_made_of_a_column(subject, kind):
    for launcher in comparison(subject, kind).launchers:
        settings = [
            Setting(one.flag.flag, one.value or True)
            for one in switches(subject, kind)
            if one.flag and one.launcher == launcher
        ]
        assert settings
        assert not Reading(table(launcher), settings).account().unknown


def test_every_term_has_a_flag_and_every_launcher_is_one_of_the_readers():
    for subject, kind in TABLES:
        found = comparison(subject, kind)
        assert set(found.launchers) <= set(LAUNCHERS)
        for line in found.lines:
            assert any(one.flag for some in line.switches.values() for one in some), line.term
    assert {subject for subject, _ in TABLES} == set(SUBJECTS)


def test_a_flag_is_written_as_its_launcher_reads_it():
    training, serving = comparison("training", "training"), comparison("profiling", "serving")
    first = {name: some[0].setting for name, some in training.of("ZeRO-1").switches.items() if some}
    assert first == {
        "maxtext": "shard_optimizer_over_data=true",
        "megatron": "--use-distributed-optimizer",
        "deepspeed": "zero_optimization.stage: 1",
    }
    assert serving.of("start and stop").switches["sglang"][0].setting == "POST /start_profile"
    assert serving.of("record a trace").switches["tensorrt_llm"][0].setting == "TLLM_TORCH_PROFILE_TRACE=file"


def test_an_unknown_subject_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'posttraining'.*write one of training, inference, lowprecision"):
        comparison("posttraining", "training")
