"""The book's shipped profiles are small, match their programs, and show each mistake."""

import pytest

from scalingbook_lab.profiler import lessons
from scalingbook_lib import profiles
from scalingbook_lib.evidence import resources
from scalingbook_lib.profiles.files import FOLDERS
from tools.compiled import profiled

SHIPPED = {name: profiles.load(name) for name in lessons.NAMES}


def collectives(found):
    return sum(found.collectives.values())


def test_every_lesson_is_shipped_with_the_book():
    assert set(lessons.NAMES) <= set(profiles.names())
    sizes = {path.name: path.stat().st_size for path in FOLDERS[1].glob("*.json")}
    assert max(sizes.values()) < 100_000


@pytest.mark.parametrize("name", lessons.NAMES)
def test_no_lesson_contains_a_path(name):
    kept = (FOLDERS[1] / f"{name}.json").read_text()
    assert "/home" not in kept
    assert "/work" not in kept
    assert SHIPPED[name].simulated
    assert all(e.duration_s >= e.self_s >= 0 for e in SHIPPED[name].events)


def test_a_mismatched_sharding_appears_as_an_all_gather():
    before, after = SHIPPED["sharding-before"], SHIPPED["sharding-after"]
    assert any("all-gather" in moved for moved in before.collectives)
    assert list(after.collectives) == ["all-reduce over X of 1.05 MB"]
    assert before.run_s > after.run_s


def test_a_recompilation_is_a_host_event():
    assert len(SHIPPED["recompile-before"].compilations) == len(lessons.LENGTHS)
    assert SHIPPED["recompile-after"].compilations == ()


def test_an_all_reduce_in_a_loop_counts_once_per_trip():
    before, after = SHIPPED["serial-before"], SHIPPED["serial-after"]
    assert (collectives(before), collectives(after)) == (12, 1)
    assert before.breakdown.comms_s > after.breakdown.comms_s
    assert before.run_s > after.run_s


def test_prefetching_shortens_the_wait_for_batches():
    waited = {}
    for when in ("before", "after"):
        host = SHIPPED[f"input-{when}"].host
        waited[when] = [m.duration_s for m in host if m.name == lessons.WAITING]
        assert [m.name for m in host].count(lessons.READING) == len(waited[when]) == lessons.BATCHES
    assert min(waited["before"]) > lessons.READ_S
    assert max(waited["after"][1:]) < lessons.READ_S / 3


def test_the_figures_record_equals_the_traces():
    """The other rows are recorded from the compiler; `make renew` records them again."""
    drawn = {row["title"]: row for row in resources.record("compiled_profiling")}
    assert {name: drawn[name] for name in profiled.LESSONS} == {
        n: profiled.drawn(n) for n in profiled.LESSONS
    }


@pytest.mark.parametrize("name", lessons.NAMES)
def test_a_new_recording_of_a_lesson_has_the_same_operations(name):
    again = lessons.record(name, smaller=4, runs=1)
    kept = SHIPPED[name]
    assert again.runs == (1 if kept.warmup else kept.runs)
    assert len(again.compilations) == len(kept.compilations)
    assert collectives(again) == collectives(kept)
    assert {op.kind for op in again.ops} >= {"collective"} or name.startswith(("recompile", "input"))


def test_an_unknown_lesson_is_refused_with_the_known_names():
    with pytest.raises(ValueError, match="there are: layer, sharding-before"):
        lessons.record("fusion")
