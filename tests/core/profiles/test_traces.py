"""A trace: its sums, its file, its viewers, and its comparison with a roofline."""

import gzip
import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from scalingbook_lib import collectives, profiles
from scalingbook_lib.hlo.schedule import ScheduledStep
from scalingbook_lib.machines import chips
from scalingbook_lib.notation import Mesh
from scalingbook_lib.profiles import Event, HostEvent, Op, Trace, intervals, trace_events, viewers

OPS = (
    Op("dot.1", "matmul", "jit_f", "jit(f)/up/dot_general", flops=2_000_000, nbytes=1000),
    Op("all-reduce.2", "collective", "jit_f", "jit(f)/down/psum", moves="all-reduce over X of 1 kB"),
    Op("while.3", "loop", "jit_f", "jit(f)/while"),
)
TRACE = Trace(
    "made up", "cpu", "cpu", 1, True, 1, "jax 0", OPS,
    (
        Event(2, 0, 0, 0.0, 10e-6, 1e-6), Event(0, 0, 0, 1e-6, 6e-6, 6e-6), Event(1, 0, 0, 4e-6, 5e-6, 5e-6),
        Event(0, 0, 1, 20e-6, 4e-6, 4e-6),
    ),
    (HostEvent("compile", 11e-6, 5e-6), HostEvent("step", 0.0, 10e-6)),
)  # fmt: skip


def test_self_times_add_up_to_the_time_of_the_outermost_intervals():
    given = [(0.0, 10.0), (1.0, 4.0), (2.0, 3.0), (5.0, 9.0), (12.0, 13.0)]
    own = intervals.self_times(given)
    assert own == [3.0, 2.0, 1.0, 4.0, 1.0]
    assert sum(own) == intervals.covered_s(given)


@pytest.mark.parametrize(
    ("given", "covered"), [([], 0), ([(0, 2), (1, 3)], 3), ([(0, 5), (1, 2)], 5), ([(3, 4), (0, 1)], 2)]
)
def test_overlapping_intervals_count_once(given, covered):
    assert intervals.covered_s(given) == covered


def test_communication_is_exposed_where_nothing_computes():
    breakdown = TRACE.breakdown
    assert breakdown.compute_s == pytest.approx(5e-6)  # 6 in the first run, 4 in the second
    assert breakdown.comms_s == pytest.approx(2.5e-6)
    assert breakdown.exposed_s == pytest.approx(1e-6)  # from 7 to 9 of the first run
    assert breakdown.hidden_s + breakdown.exposed_s == pytest.approx(breakdown.comms_s)
    assert breakdown.run_s == pytest.approx(7e-6)


@pytest.mark.parametrize("name", profiles.names())
def test_an_operation_never_lasts_longer_than_its_run(name):
    trace = profiles.load(name)
    assert all(row.self_s <= trace.run_s * (1 + 1e-9) for row in trace.rows)


def test_one_slow_run_lengthens_neither_the_run_nor_the_operation():
    events = (*TRACE.events, *(Event(0, 0, run, 100e-6 * run, 4e-6, 4e-6) for run in (2, 3)))
    slow = replace(TRACE, events=(*events, Event(0, 0, 4, 900e-6, 90e-6, 90e-6)))
    (row,) = slow.of("dot.1")
    assert (row.self_s, slow.run_s) == (pytest.approx(4e-6), pytest.approx(4e-6))


def test_shares_of_the_rows_add_up_to_one():
    assert [row.op.name for row in TRACE.rows] == ["dot.1", "all-reduce.2", "while.3"]
    assert sum(row.share for row in TRACE.rows) == pytest.approx(1)
    assert TRACE.rows[0].self_s == pytest.approx(5e-6)
    assert TRACE.by("scope") == {
        "up": TRACE.rows[0].self_s,
        "down": TRACE.rows[1].self_s,
        "": TRACE.rows[2].self_s,
    }
    assert TRACE.collectives == {"all-reduce over X of 1 kB": 0.5}
    assert [row.op.name for row in TRACE.of("down")] == ["all-reduce.2"]


def test_a_trace_says_what_is_real_and_what_was_compiled():
    text = str(TRACE)
    assert "durations and counts are real, rates do not apply to an accelerator" in text
    assert "1 call for warm-up, 1 compilation within" in text


def test_a_saved_trace_loads_unchanged(tmp_path):
    written = profiles.save(TRACE, tmp_path / "made.json")
    assert profiles.load(written) == TRACE
    assert len(written.read_text()) < 1500


def test_a_file_of_another_format_is_refused(tmp_path):
    (tmp_path / "old.json").write_text('{"format": 0}')
    with pytest.raises(ValueError, match=r"write it with profiles\.save"):
        profiles.load(tmp_path / "old.json")
    with pytest.raises(FileNotFoundError, match="give a file, or one of"):
        profiles.load("no such trace")


def test_attained_rates_follow_from_time_and_work():
    compared = profiles.against(TRACE, chips.V5E)
    dot = next(a for a in compared.rows if a.row.op.name == "dot.1")
    assert dot.flops_per_s == pytest.approx(2_000_000 / 5e-6)
    assert dot.fraction == pytest.approx(2_000_000 / chips.V5E.bf16_flops_per_s / 5e-6)
    assert "do not apply to any chip" in str(compared)
    with pytest.raises(ValueError, match="is not a chip in the catalog"):
        profiles.against(TRACE)


@pytest.mark.parametrize(
    ("kind", "chip"),
    [("TPU v5 lite", chips.V5E), ("TPU v5", chips.V5P), ("NVIDIA H100 80GB HBM3", chips.find("H100"))],
)
def test_the_chip_of_a_trace_follows_from_its_device_kind(kind, chip):
    assert profiles.against(replace(TRACE, kind=kind, simulated=False)).name == chip.name


def test_perfetto_gets_microseconds_and_one_process_per_device(tmp_path):
    text = profiles.perfetto(TRACE, tmp_path / "made.json.gz")
    events = json.loads(gzip.decompress((tmp_path / "made.json.gz").read_bytes()))["traceEvents"]
    dot = next(e for e in events if e["name"] == "dot.1")
    assert (dot["ts"], dot["dur"], dot["pid"]) == (pytest.approx(1), pytest.approx(6), 0)
    assert "drop made.json.gz on it" in str(text)


def test_without_xprof_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(viewers, "_command", lambda *_: None)
    assert "use profiles.perfetto" in str(profiles.xprof(TRACE))
    text = str(profiles.xprof(replace(TRACE, folder="runs")))
    assert "pip install xprof, then: xprof --port 8791 --logdir runs" in text


def test_an_installed_xprof_is_started_and_stopped(monkeypatch):
    command = [sys.executable, "-c", "import time; time.sleep(3600)"]
    monkeypatch.setattr(viewers, "_command", lambda *_: command)
    opened = profiles.xprof("runs", port=1234)
    assert "http://localhost:1234" in str(opened)
    assert opened.process.poll() is None
    opened.stop()
    assert opened.process.poll() is not None


def test_an_expected_trace_computes_while_a_transfer_is_under_way():
    size = 2**24
    steps = (
        ScheduledStep("compute", "first", 1000),
        ScheduledStep("start", "all-gather Y", 0, size),
        ScheduledStep("compute", "second", 2000),
        ScheduledStep("done", "all-gather Y", 0, size),
        ScheduledStep("compute", "third", 3000),
    )
    program = SimpleNamespace(
        chip=chips.V5E, target="TPU v5e 2x4", mesh=Mesh(X=2, Y=4), schedule=lambda: steps
    )
    trace = profiles.expected(program)
    cycle_s = 1 / chips.V5E.clock_hz
    gather = collectives.all_gather(size, *chips.Slice.of(chips.V5E, "2x4").mesh(X=2, Y=4).axes("Y"))
    started = {trace.ops[event.op].name: event.start_s for event in trace.events}
    assert started == pytest.approx(
        {
            "first": 0.0,
            "all-gather": 1000 * cycle_s,
            "second": 1000 * cycle_s,
            "third": 1000 * cycle_s + gather.total_s,
        }
    )


def test_a_trace_of_viewers_is_in_microseconds():
    span = {"ph": "X", "name": "dot", "ts": 3, "dur": 5, "args": {"hlo_op": "dot"}}
    event = trace_events._event(span)
    assert (event.start_ns, event.duration_ns) == (3000, 5000)
