"""The race detector finds the race of the faulty kernel, and none in the others."""

import pytest

from scalingbook_lab.kernels import races


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Experiments take four seconds, and any time on a busy machine."""
    monkeypatch.setattr(races, "TIMEOUT_S", None)


@pytest.mark.parametrize("name", ["gather both ways", "matmul both ways", "sum, two buffers"])
def test_synchronized_kernels_have_no_race_and_the_right_result(name):
    found = races.detect(name)
    assert not found.race
    assert found.right == (True,) * 4
    assert str(found) == f"{name} on 4 devices: no race, 4 of 4 right"


def test_a_buffer_used_again_without_credit_is_a_race():
    found = races.detect("sum, two buffers, no credit")
    assert found.race
    assert "a race, a " in str(found)
    assert all("ring_sum.py:" in access and "/" not in access for access in found.accesses)


def test_an_unknown_experiment_is_refused():
    with pytest.raises(ValueError, match=r"'sums' is not an experiment; write one of gather; .*no credit"):
        races.detect("sums")


def test_an_experiment_without_a_report_is_an_error():
    with pytest.raises(RuntimeError, match="ended without a report: out of patience"):
        races.read("gather", 4, "out of patience")


def test_both_accesses_are_named_by_file_and_line():
    said = """RACE DETECTED
      write of ('vmem', 104)[0] from (108, 0), /somewhere/ring_sum.py:62:8 (_kernel)
      read of ('vmem', 104)[0] from (102, 0), /somewhere/ring_sum.py:57:8 (_kernel)"""
    found = races.read("gather", 4, said)
    assert found.accesses == ("a write at ring_sum.py:62", "a read at ring_sum.py:57")
