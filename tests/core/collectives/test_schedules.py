"""Schedules deliver the collective's result over existing links, one message per link and step."""

import dataclasses

import link_simulator
import pytest
from link_simulator import Broken, execute

from scalingbook_lib.collectives import schedules
from scalingbook_lib.machines.torus import Axis

COLLECTIVES = (schedules.all_gather, schedules.reduce_scatter, schedules.all_reduce, schedules.all_to_all)


def axes_of(schedule):
    return [Axis(n, w, 1, 0) for n, w in zip(schedule.sizes, schedule.wrapped, strict=True)]


@pytest.mark.parametrize("plan", COLLECTIVES)
@pytest.mark.parametrize("sizes", [1, 2, 3, (1, 4), (2, 2), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("wrapped", [True, False])
def test_every_chip_ends_with_the_right_data(plan, sizes, wrapped):
    schedule = plan(sizes, wrapped)
    execute(schedule, axes_of(schedule), 1)


def test_a_collective_is_symmetric_on_rings():
    loads = schedules.all_gather((4, 4)).loads
    assert len(set(loads.values())) == 1


def test_reduce_scatter_uses_every_link_as_much_as_all_gather_does_in_the_other_direction():
    gather, scatter = schedules.all_gather(6, False), schedules.reduce_scatter(6, False)
    for link, load in gather.loads.items():
        back = schedules.DirectedLink(schedules.neighbor(link, gather.sizes), link.axis, -link.direction)
        assert scatter.loads[back] == load


def test_the_middle_link_of_a_line_is_busy_in_every_step_of_an_all_to_all():
    schedule = schedules.all_to_all(8, wrapped=False)
    middle = schedules.DirectedLink(3, 0, 1)
    assert [step.loads[middle] for step in schedule.steps] == [1, 2, 3, 4, 3, 2, 1]
    assert all(max(step.loads.values()) == step.loads[middle] for step in schedule.steps)


@pytest.mark.parametrize(("n", "both", "one"), [(4, 2, 3), (5, 2, 4), (8, 4, 7), (16, 8, 15)])
def test_two_directions_halve_the_steps(n, both, one):
    assert len(schedules.all_gather(n).steps) == both
    assert len(schedules.all_gather(n, bidirectional=False).steps) == one


def test_holdings_grow_by_two_shards_a_step():
    schedule = schedules.all_gather(7)
    counts = [len(schedules.holdings(schedule, after)[0]) for after in range(4)]
    assert counts == [1, 3, 5, 7]


def test_an_all_reduce_first_sums_then_spreads():
    schedule = schedules.all_reduce(5)
    half = schedules.holdings(schedule, len(schedule.steps) // 2)
    assert [set(chip.values()) for chip in half] == [{5}] * 5
    assert all(len(chip) == 5 for chip in schedules.holdings(schedule, len(schedule.steps)))


def test_step_seconds_add_up_to_the_simulated_time():
    schedule = schedules.all_reduce(6)
    axis = Axis(6, True, 2, 3)
    assert sum(schedule.step_seconds(24, axis)) == execute(schedule, [axis], 24).seconds


def test_a_schedule_prints_as_one_line():
    assert str(schedules.all_to_all((4, 4))) == (
        "AllToAll on 4x4: 4 steps; the busiest link carries 32 of 1024 pieces"
    )


@pytest.mark.parametrize("bad", [(0,), ((2, 2), (True,)), ((),)])
def test_impossible_shapes_are_refused(bad):
    with pytest.raises(ValueError, match="give each axis one size"):
        schedules.all_gather(*bad)


def test_one_direction_on_a_line_is_refused():
    with pytest.raises(ValueError, match="wrap it"):
        schedules.all_gather(4, wrapped=False, bidirectional=False)


class TestTheSimulatorItself:
    """A proof is worth as much as its power to refuse."""

    def broken(self, change, plan=schedules.all_gather):
        schedule = plan(4)
        altered = tuple(change(i, step) for i, step in enumerate(schedule.steps))
        schedule = dataclasses.replace(schedule, steps=altered)
        return execute(schedule, [Axis(4, True, 1, 0)], 1)

    def without_first_send(self, i, step):
        return step if i else dataclasses.replace(step, sends=step.sends[1:])

    def test_the_simulator_notices_a_missing_message(self):
        with pytest.raises(Broken, match="which it does not have"):
            self.broken(self.without_first_send)

    def test_the_simulator_notices_two_messages_on_a_link(self):
        with pytest.raises(Broken, match="two messages"):
            self.broken(lambda i, step: dataclasses.replace(step, sends=step.sends + step.sends[:1]))

    def test_the_simulator_notices_a_duplicate_message(self):
        schedule = schedules.all_gather(4)
        twice = dataclasses.replace(schedule, steps=schedule.steps[:1] * 2 + schedule.steps[1:])
        with pytest.raises(Broken, match="a second time"):
            execute(twice, [Axis(4, True, 1, 0)], 1)

    def test_the_simulator_notices_an_unfinished_collective(self):
        schedule = schedules.all_gather(4)
        with pytest.raises(Broken, match="does not hold what"):
            execute(dataclasses.replace(schedule, steps=schedule.steps[:1]), [Axis(4, True, 1, 0)], 1)

    def test_the_simulator_notices_a_link_that_does_not_exist(self):
        with pytest.raises(Broken, match="end of a line"):
            execute(schedules.all_gather(4), [Axis(4, False, 1, 0)], 1)

    def test_the_simulator_notices_a_message_with_the_wrong_target(self):
        send = schedules.all_gather(4).steps[0].sends[0]
        with pytest.raises(Broken, match="ends at chip"):
            link_simulator.physical(send._replace(target=3), [Axis(4, True, 1, 0)])
