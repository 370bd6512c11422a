"""The decode batch of a server, and the decode servers of a disaggregated deployment.

Decode steps between two events are computed at once; the batch stops at the step boundary of an event.
Chapter: Inference.
"""

import math
from heapq import heapify, heappop, heappush

from scalingbook_lib.serving.costs import RELATIVE_TOLERANCE, Costs, FusedStepTimes
from scalingbook_lib.serving.frontend import SimulationSetup
from scalingbook_lib.serving.paging import BlockPool
from scalingbook_lib.serving.sequence import DecodeSteps, LiveSequence, StepRun

NO_STEPS = DecodeSteps(0, 0.0, 0.0)


class Batch:
    """The sequences that one server decodes; `now` is always a step boundary."""

    __slots__ = (
        "ends",
        "kv_tokens",
        "last_s",
        "live",
        "now",
        "offset_counts",
        "pool",
        "rows",
        "step",
        "step_runs",
        "step_times",
    )

    def __init__(self, costs: Costs, pool: BlockPool, max_steps: int) -> None:
        self.step_times, self.pool = FusedStepTimes(costs, max_steps), pool
        self.now, self.step, self.rows, self.live, self.kv_tokens = 0.0, 0, 0, 0, 0
        self.last_s = 0.0  # end of the last step
        self.ends: list[tuple[int, int, LiveSequence]] = []  # (its last step, order of arrival, sequence)
        # sequences per offset modulo the block size, stored twice so that a slice may wrap
        self.offset_counts = [0] * (2 * pool.size)
        self.step_runs: list[StepRun] = []

    def add(self, sequence: LiveSequence) -> None:
        """Add a prefilled sequence from the next step on; its last token is not in the cache yet."""
        length = sequence.request.prompt + sequence.emitted - 1
        sequence.offset = length - self.step
        sequence.residency.from_step = self.step
        end = self.step + sequence.request.output - sequence.emitted
        heappush(self.ends, (end, sequence.order, sequence))
        self.rows += 1
        self.live += 1
        self.kv_tokens += length
        self._count_offset(sequence, 1)

    def leave(self, sequence: LiveSequence) -> None:
        """Free its row, and count the blocks that it allocated while it grew."""
        length = sequence.offset + self.step
        size = self.pool.size  # blocks allocated while it grew
        sequence.own_blocks += -(-length // size) - -(
            -(sequence.offset + sequence.residency.from_step) // size
        )
        self.rows -= 1
        self.kv_tokens -= length
        self._count_offset(sequence, -1)

    def _count_offset(self, sequence: LiveSequence, more: int) -> None:
        size = self.pool.size
        self.offset_counts[sequence.offset % size] += more
        self.offset_counts[sequence.offset % size + size] += more

    def affordable_steps(self, steps: int) -> int:
        """The number of the next `steps` steps for which the free blocks are enough."""
        # The offset (length minus the server's steps) of a decoding sequence is constant, so sequences whose
        # offsets agree modulo the block size take a block in the same step: counts per offset are enough.
        available, rows, size = self.pool.available, self.rows, self.pool.size
        if (steps // size + 1) * rows <= available:
            return steps
        rounds = int(available) // rows  # every sequence needs one block in `size` steps
        spare, more = int(available) - rounds * rows, 0
        while spare >= (need := self.offset_counts[-(self.step + more) % size]):
            spare -= need
            more += 1
        return min(rounds * size + more, steps)

    def blocks_needed(self, steps: int) -> int:
        """The blocks that the next `steps` steps need: a sequence takes one when its last block is full."""
        size = self.pool.size
        rounds, rest = divmod(steps, size)
        last = -self.step % size + size + 1  # after the offset that needs a block in the next step
        return rounds * self.rows + sum(self.offset_counts[last - rest : last])

    def remove(self, sequence: LiveSequence) -> None:
        """Drop a sequence that will not finish here, because it was cancelled or evicted."""
        self.ends = [end for end in self.ends if end[2] is not sequence]
        heapify(self.ends)

    def plan(self, until_s: float) -> DecodeSteps:
        """The steps until a sequence finishes, blocks run out, or `until_s` is reached."""
        steps = self.ends[0][0] - self.step
        if self.pool.free != math.inf:
            steps = self.affordable_steps(steps)
            if not steps:
                return NO_STEPS
        plan = self.step_times(self.rows, self.kv_tokens, steps)
        if plan.end_s(self.now, plan.steps) > until_s:
            return DecodeSteps(
                min(plan.steps, steps_covering(until_s - self.now, plan)), plan.first_s, plan.growth_s
            )
        return plan

    def advance(self, plan: DecodeSteps, chunk: int = 0) -> None:
        """Execute planned steps: allocate their blocks, record them, and advance the clock."""
        if self.pool.free != math.inf:
            self.pool.take(self.blocks_needed(plan.steps))
        self.step_runs.append(StepRun(self.now, self.step, plan, self.live, self.rows, chunk))
        self.last_s = self.now = plan.end_s(self.now, plan.steps)
        self.step += plan.steps
        self.kv_tokens += plan.steps * self.rows

    def pop_finished(self) -> list[LiveSequence]:
        """The sequences that have produced their last token."""
        done, ends = [], self.ends
        while ends and ends[0][0] <= self.step:
            done.append(heappop(ends)[2])
        return done


def steps_covering(seconds: float, plan: DecodeSteps) -> int:
    """The fewest steps, at least 1, that take `seconds`: n · first + n (n - 1) / 2 · growth >= seconds.

    The result is rounded down if it exceeds an integer by less than 1e-9, so that rounding errors of sums add
    no step.
    """
    # The root of the quadratic as 2c / (b + √(b² + 4ac)), which stays accurate for tiny growth.
    half = 0.5 * plan.growth_s
    linear = plan.first_s - half
    root = linear * linear + 4 * half * seconds
    steps = seconds / plan.first_s if root <= 0 else 2 * seconds / (linear + math.sqrt(root))
    return max(math.ceil(steps - RELATIVE_TOLERANCE), 1)


class DecodeServer:
    """A decode-only server whose planned steps can be truncated by an event."""

    def __init__(self, index: int, setup: SimulationSetup, slots: int) -> None:
        self.index, self.pool = index, BlockPool(setup.blocks, prefix_cache=False)
        self.batch = Batch(setup.costs, self.pool, setup.max_fused_steps)
        self.free_slots = list(range(slots))  # indices of free slots
        self.running: dict[int, LiveSequence] = {}  # sequences with a slot, by order of arrival
        self.joining: list[LiveSequence] = []  # transferred sequences that wait for the boundary
        self.cancelled_at_boundary: list[LiveSequence] = []
        self.plan = NO_STEPS
        self.plan_version = 0  # counts plans, so that an event of an outdated plan is recognized

    @property
    def boundary_s(self) -> float:
        """The time in seconds at which the planned steps end."""
        return self.plan.end_s(self.batch.now, self.plan.steps)

    def started_steps(self, now: float) -> int:
        """How many of the planned steps have started by `now`."""
        plan, elapsed_s = self.plan, now - self.batch.now
        return (
            min(steps_covering(elapsed_s, plan), plan.steps)
            if plan.steps and elapsed_s > RELATIVE_TOLERANCE * plan.first_s
            else 0
        )

    def truncate_plan(self, now: float) -> None:
        """Keep only the planned steps that have started by `now`."""
        self.plan = DecodeSteps(self.started_steps(now), self.plan.first_s, self.plan.growth_s)
        self.plan_version += 1
        if not self.batch.rows:
            self.batch.now = max(now, self.batch.now)

    def can_admit(self, sequence: LiveSequence, now: float) -> bool:
        """Whether a slot is free, with enough blocks beyond those needed until after the next boundary."""
        if not self.free_slots or self.pool.free == math.inf:
            return bool(self.free_slots)
        tokens = min(sequence.tokens, sequence.max_cached_tokens)
        return self.pool.admits(sequence, 0, tokens, self._reserved_blocks(now) if self.running else 0)

    def _reserved_blocks(self, now: float) -> float:
        """The blocks that running sequences need up to the next boundary, and those to keep free then."""
        started = self.started_steps(now)
        soon = self.batch.blocks_needed(started)
        return soon + max(self.batch.blocks_needed(started + 1) - soon, self.pool.spare)

    def allocate_slot(self, sequence: LiveSequence) -> None:
        """Give a sequence a slot and blocks before its cache is transferred."""
        sequence.reserved_blocks = -(-(sequence.tokens - 1) // self.pool.size)
        self.pool.take(sequence.reserved_blocks)
        sequence.residency.server, sequence.residency.slot = self.index, heappop(self.free_slots)
        self.running[sequence.order] = sequence

    def finish_plan(self) -> list[LiveSequence]:
        """Execute the planned steps and return the sequences that they finish."""
        if self.plan.steps:
            self.batch.advance(self.plan)
        self.plan = NO_STEPS
        return self.batch.pop_finished()

    def plan_next(self) -> bool:
        """Add transferred sequences and plan the next steps; False if the blocks do not last for one step."""
        for sequence in self.joining:
            sequence.own_blocks, sequence.reserved_blocks = sequence.reserved_blocks, 0
            sequence.residency.decode_s = self.batch.now
            self.batch.add(sequence)
        self.joining = []
        self.plan_version += 1
        if self.batch.rows:
            self.plan = self.batch.plan(math.inf)
        return self.plan.steps > 0 or not self.batch.rows

    def release_slot(self, sequence: LiveSequence, now: float) -> None:
        """Free the slot of a sequence and close its residency."""
        sequence.end_residency(self.batch.step, self.batch.last_s, now)
        if sequence.decoding:
            self.batch.leave(sequence)
            self.batch.live -= 1
            self.pool.release(sequence)
        elif sequence in self.joining:
            self.joining.remove(sequence)
        self.pool.free += sequence.reserved_blocks  # its own blocks are on the prefill servers until it joins
        sequence.reserved_blocks = 0
        heappush(self.free_slots, sequence.residency.slot)
        del self.running[sequence.order]
