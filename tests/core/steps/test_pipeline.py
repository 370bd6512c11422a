"""Chunks through stages, against a machine in which a stage takes a chunk when it can."""

import itertools

import pytest

from scalingbook_lib import roofline

TIMES = [
    (1.0,),
    (2.0, 3.0),
    (3.0, 2.0),
    (1.0, 4.0, 2.0),
    (4.0, 1.0, 4.0),
    (0.0, 1.0, 0.0),
    (2.0, 2.0, 2.0, 5.0),
]
MANY = pytest.mark.parametrize(("times", "chunks"), list(itertools.product(TIMES, (1, 2, 3, 8, 33))))


def stages(times):
    return {f"stage {i}": t for i, t in enumerate(times)}


def played(times, chunks, buffers=None):
    """(start, end) of every chunk in every stage; with `buffers`, a stage waits for room behind it."""
    turns = {}
    for c, s in itertools.product(range(chunks), range(len(times))):
        arrived = turns[s - 1, c][1] if s else 0.0
        free = turns[s, c - 1][1] if c else 0.0
        room = turns[s + 1, c - buffers][0] if buffers and s + 1 < len(times) and c >= buffers else 0.0
        start = max(arrived, free, room)
        turns[s, c] = (start, start + times[s])
    return turns


@MANY
def test_the_schedule_is_what_the_machine_does(times, chunks):
    work = roofline.pipeline(stages(times), chunks)
    turns = played(times, chunks)
    assert len(work.turns) == len(turns)
    for turn in work.turns:
        s = int(turn.stage.split()[1])
        assert (turn.start_s, turn.end_s) == pytest.approx(turns[s, turn.chunk])
    assert work.total_s == pytest.approx(max(end for _, end in turns.values()))
    assert work.total_s == pytest.approx(sum(times) + (chunks - 1) * max(times))


@MANY
@pytest.mark.parametrize("buffers", [1, 2])
def test_a_buffer_or_two_between_stages_are_enough(times, chunks, buffers):
    ends = [end for _, end in played(times, chunks, buffers).values()]
    assert max(ends) == pytest.approx(roofline.pipeline(stages(times), chunks).total_s)


@MANY
def test_no_stage_works_on_two_chunks_and_no_chunk_is_in_two_stages(times, chunks):
    turns = roofline.pipeline(stages(times), chunks).turns
    for key in ("stage", "chunk"):
        groups = {}
        for turn in turns:
            groups.setdefault(getattr(turn, key), []).append((turn.start_s, turn.end_s))
        for spans in groups.values():
            assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(sorted(spans)))


@MANY
def test_bounds_and_shares(times, chunks):
    work = roofline.pipeline(stages(times), chunks)
    assert work.lower_s <= work.total_s <= work.upper_s + 1e-12
    assert work.busy[work.slowest] == max(work.busy.values()) == pytest.approx(work.lower_s / work.total_s)


@pytest.mark.parametrize("chunks", [1, 2, 7, 64])
def test_two_stages_are_the_pipelined_roofline(chunks):
    work = roofline.pipeline({"copy": 166e-6 / chunks, "compute": 43.6e-6 / chunks}, chunks)
    assert work.total_s == pytest.approx(roofline.pipelined(43.6e-6, 166e-6, chunks))
    assert str(work).startswith(f"{chunks} chunk{'s' if chunks > 1 else ''} through copy, compute: ")


def test_with_many_chunks_only_the_slowest_counts():
    work = roofline.pipeline({"in": 2e-9, "compute": 1e-9, "out": 1e-9}, 10**6)
    assert work.total_s == pytest.approx(2e-3, rel=1e-5)
    assert work.slowest == "in"


def test_it_tells_itself():
    work = roofline.pipeline({"copy in": 2e-6, "compute": 3e-6}, 4)
    assert str(work) == (
        "4 chunks through copy in, compute: 14 µs, bottleneck compute, busy 85.7% of the time"
    )
    assert str(work.turns[5]) == "chunk 1 in compute: 5 µs to 8 µs"


@pytest.mark.parametrize(
    ("times", "chunks", "said"),
    [
        ({}, 1, "at least one stage"),
        ({"in": -1.0}, 1, "in=-1.0: write a number of at least 0"),
        ({"in": 1.0}, 0, "chunks=0"),
    ],
)
def test_what_is_no_pipeline(times, chunks, said):
    with pytest.raises(ValueError, match=said):
        roofline.pipeline(times, chunks)
