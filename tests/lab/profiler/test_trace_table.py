"""A trace is plain values: its sums hold, its file gives it back, and reading one needs no JAX."""

import gzip
import json
import subprocess
import sys

import pytest

from scalingbook_lib.lab.profiler import times as trace_times
from scalingbook_lib.lab.profiler import trace
from scalingbook_lib.lab.profiler.trace import Event, Moment, Op, Trace
from scalingbook_lib.machines import chips

OPS = (
    Op("dot.1", "matmul", "jit_f", "jit(f)/up/dot_general", flops=2_000_000, nbytes=1000),
    Op("all-reduce.2", "collective", "jit_f", "jit(f)/down/psum", moves="all-reduce over X of 1 kB"),
    Op("while.3", "loop", "jit_f", "jit(f)/while"),
)
MADE = Trace(
    "made up", "cpu", "cpu", 1, True, 1, "jax 0", OPS,
    (
        Event(2, 0, 0, 0.0, 10e-6, 1e-6), Event(0, 0, 0, 1e-6, 6e-6, 6e-6), Event(1, 0, 0, 4e-6, 5e-6, 5e-6),
        Event(0, 0, 1, 20e-6, 4e-6, 4e-6),
    ),
    (Moment("compile", 11e-6, 5e-6), Moment("step", 0.0, 10e-6)),
)  # fmt: skip


def test_own_times_add_up_to_what_holds_them():
    stretches = [(0.0, 10.0), (1.0, 4.0), (2.0, 3.0), (5.0, 9.0), (12.0, 13.0)]
    own = trace_times.own(stretches)
    assert own == [3.0, 2.0, 1.0, 4.0, 1.0]
    assert sum(own) == trace_times.length(stretches)


@pytest.mark.parametrize(
    ("stretches", "covered"), [([], 0), ([(0, 2), (1, 3)], 3), ([(0, 5), (1, 2)], 5), ([(3, 4), (0, 1)], 2)]
)
def test_what_overlaps_counts_once(stretches, covered):
    assert trace_times.length(stretches) == covered


def test_communication_is_exposed_where_nothing_computes():
    lanes = MADE.lanes
    assert lanes.compute_s == pytest.approx(5e-6)  # 6 in the first run, 4 in the second
    assert lanes.comms_s == pytest.approx(2.5e-6)
    assert lanes.exposed_s == pytest.approx(1e-6)  # from 7 to 9 of the first run
    assert lanes.hidden_s + lanes.exposed_s == pytest.approx(lanes.comms_s)
    assert lanes.run_s == pytest.approx(7e-6)


def test_rows_share_all_that_was_busy():
    assert [row.op.name for row in MADE.rows] == ["dot.1", "all-reduce.2", "while.3"]
    assert sum(row.share for row in MADE.rows) == pytest.approx(1)
    assert MADE.rows[0].own_s == pytest.approx(5e-6)
    assert MADE.by("scope") == {"up": MADE.rows[0].own_s, "down": MADE.rows[1].own_s, "": MADE.rows[2].own_s}
    assert MADE.collectives == {"all-reduce over X of 1 kB": 0.5}
    assert [row.op.name for row in MADE.of("down")] == ["all-reduce.2"]


def test_a_trace_says_what_is_real_and_what_was_compiled():
    said = str(MADE)
    assert "durations and counts are real, rates say nothing about an accelerator" in said
    assert "1 call before to warm up, 1 compilation within" in said


def test_a_file_gives_the_trace_back(tmp_path):
    written = trace.save(MADE, tmp_path / "made.json")
    assert trace.load(written) == MADE
    assert len(written.read_text()) < 1500


def test_a_file_of_another_format_is_refused(tmp_path):
    (tmp_path / "old.json").write_text('{"format": 0}')
    with pytest.raises(ValueError, match=r"write it with trace\.save"):
        trace.load(tmp_path / "old.json")
    with pytest.raises(FileNotFoundError, match="give a file, or one of"):
        trace.load("no such trace")


def test_reading_a_trace_needs_no_jax(tmp_path):
    trace.save(MADE, tmp_path / "made.json")
    script = (
        "import sys; sys.modules['jax'] = sys.modules['numpy'] = None\n"
        "from scalingbook_lib.lab.profiler import trace\n"
        f"print(trace.load({str(tmp_path / 'made.json')!r}))\n"
        "print(trace.picture(trace.load(sys.argv[1])))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "made.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "all-reduce over X of 1 kB" in ran.stdout


def test_a_time_line_has_a_lane_for_what_moves_and_one_for_the_compiler():
    line = trace.view(MADE, run=None).panels[0]
    assert line.lanes == ("host compiles", "computes", "moves")
    assert {span.label for span in line.spans} == {"up", "all-reduce over X", "compile"}
    first = trace.view(MADE, run=0).panels[0]
    assert first.end == pytest.approx(10e-6)
    assert "host compiles" not in first.lanes
    with pytest.raises(ValueError, match="there is no run 7"):
        trace.view(MADE, run=7)


def test_a_picture_is_drawn_and_said():
    shown = trace.picture(MADE)._repr_mimebundle_()
    assert "<svg" in shown["text/html"]
    assert shown["text/plain"].startswith("made up: of 7 µs a run")


def test_against_a_chip_every_rate_follows_from_time_and_work():
    told = trace.against(MADE, chips.V5E)
    dot = next(a for a in told.rows if a.row.op.name == "dot.1")
    assert dot.flops_per_s == pytest.approx(2_000_000 / 5e-6)
    assert dot.fraction == pytest.approx(2_000_000 / chips.V5E.bf16_flops_per_s / 5e-6)
    assert "say nothing about a chip" in str(told)
    with pytest.raises(ValueError, match="is no chip of the catalogue"):
        trace.against(MADE)


@pytest.mark.parametrize(
    ("kind", "chip"),
    [("TPU v5 lite", chips.V5E), ("TPU v5", chips.V5P), ("NVIDIA H100 80GB HBM3", chips.find("H100"))],
)
def test_a_trace_knows_its_chip(kind, chip):
    from dataclasses import replace

    assert trace.against(replace(MADE, kind=kind, simulated=False)).name == chip.name


def test_perfetto_gets_microseconds_and_a_process_for_each_device(tmp_path):
    said = trace.perfetto(MADE, tmp_path / "made.json.gz")
    events = json.loads(gzip.decompress((tmp_path / "made.json.gz").read_bytes()))["traceEvents"]
    dot = next(e for e in events if e["name"] == "dot.1")
    assert (dot["ts"], dot["dur"], dot["pid"]) == (pytest.approx(1), pytest.approx(6), 0)
    assert "drop made.json.gz on it" in str(said)


def test_where_xprof_is_missing_it_says_what_to_do(monkeypatch):
    from dataclasses import replace

    from scalingbook_lib.lab.profiler import file

    monkeypatch.setattr(file, "_command", lambda *_: None)
    assert "use trace.perfetto" in str(trace.xprof(MADE))
    said = str(trace.xprof(replace(MADE, folder="runs")))
    assert "pip install xprof, then: xprof --port 8791 --logdir runs" in said


def test_where_xprof_is_there_it_is_started_and_stopped(monkeypatch):
    from scalingbook_lib.lab.profiler import file

    command = [sys.executable, "-c", "import time; time.sleep(3600)"]
    monkeypatch.setattr(file, "_command", lambda *_: command)
    opened = trace.xprof("runs", port=1234)
    assert "http://localhost:1234" in str(opened)
    assert opened.process.poll() is None
    opened.stop()
    assert opened.process.poll() is not None


@pytest.mark.parametrize(
    ("source", "scope"),
    [
        ("jit(f)/up/dot_general", "up"),
        ("jit(f)/shard_map/while/body/eval_jaxpr/sum/psum", "loop/sum"),
        ("jit(f)/transpose(jvp(up))/dot_general", "up backward"),
        ("jit(f)/jvp(up)/tanh", "up"),
        ("jit(f)/jvp()/mul", ""),
        ("jit(f)/outer/jit(g)/inner/add", "outer/inner"),
        ("", ""),
    ],
)
def test_a_scope_is_what_the_author_named(source, scope):
    assert Op("x", "copy", source=source).scope == scope
