"""What does a decode batch do until something happens, and a decode server of its own?

Many steps at once: the server steps ahead, and stops at a boundary when somebody comes. Chapter: Inference.
"""

import math
from heapq import heapify, heappop, heappush

from scalingbook_lib.serving.costs import CLOSE, Costs, Pace
from scalingbook_lib.serving.frontend import Setup
from scalingbook_lib.serving.paging import BlockPool
from scalingbook_lib.serving.sequence import LiveSequence, Steps, Stretch

NONE = Steps(0, 0.0, 0.0)


class Batch:
    """The sequences that one server decodes; its clock stands at the boundary of a step."""

    __slots__ = ("ends", "kv", "last_s", "live", "now", "pace", "phases", "pool", "rows", "step", "stretches")

    def __init__(self, costs: Costs, pool: BlockPool, most: int) -> None:
        self.pace, self.pool = Pace(costs, most), pool
        self.now, self.step, self.rows, self.live, self.kv = 0.0, 0, 0, 0, 0
        self.last_s = 0.0  # when the last step ended
        self.ends: list[tuple[int, int, LiveSequence]] = []  # the step after which each is done
        self.phases = [0] * (2 * pool.size)  # how many sequences have each offset, modulo a block; twice over
        self.stretches: list[Stretch] = []

    def join(self, sequence: LiveSequence) -> None:
        """A prefilled sequence takes part from the next step on; its last token is not in the cache yet."""
        length = sequence.request.prompt + sequence.emitted - 1
        sequence.offset = length - self.step
        sequence.stay.from_step = self.step
        end = self.step + sequence.request.output - sequence.emitted
        heappush(self.ends, (end, sequence.order, sequence))
        self.rows += 1
        self.live += 1
        self.kv += length
        self._phase(sequence, 1)

    def leave(self, sequence: LiveSequence) -> None:
        """Its row is free."""
        length = sequence.offset + self.step
        size = self.pool.size  # it took blocks while it grew
        sequence.own += -(-length // size) - -(-(sequence.offset + sequence.stay.from_step) // size)
        self.rows -= 1
        self.kv -= length
        self._phase(sequence, -1)

    def _phase(self, sequence: LiveSequence, more: int) -> None:
        size = self.pool.size
        self.phases[sequence.offset % size] += more
        self.phases[sequence.offset % size + size] += more

    def room(self, steps: int) -> int:
        """How many of the steps there are blocks for."""
        # An offset, a length less the server's steps, stays the same while its sequence decodes: those with
        # one offset, modulo a block, take their next blocks in the same step. Counts of them are enough.
        available, rows, size = self.pool.available, self.rows, self.pool.size
        if (steps // size + 1) * rows <= available:
            return steps
        rounds = int(available) // rows  # in `size` steps every sequence needs one block
        spare, more = int(available) - rounds * rows, 0
        while spare >= (need := self.phases[-(self.step + more) % size]):
            spare -= need
            more += 1
        return min(rounds * size + more, steps)

    def needs(self, steps: int) -> int:
        """The blocks that so many steps take: one when the tokens of a sequence fill those it has."""
        size = self.pool.size
        rounds, rest = divmod(steps, size)
        last = -self.step % size + size + 1  # the offset that needs one now, and then those before it
        return rounds * self.rows + sum(self.phases[last - rest : last])

    def forget(self, sequence: LiveSequence) -> None:
        """It will not get its last token here."""
        self.ends = [end for end in self.ends if end[2] is not sequence]
        heapify(self.ends)

    def plan(self, until_s: float) -> Steps:
        """Steps until one is done, or blocks run out, or time is up."""
        steps = self.ends[0][0] - self.step
        if self.pool.free != math.inf:
            steps = self.room(steps)
            if not steps:
                return NONE
        plan = self.pace(self.rows, self.kv, steps)
        if plan.end_s(self.now, plan.steps) > until_s:
            return Steps(min(plan.steps, after(until_s - self.now, plan)), plan.first_s, plan.growth_s)
        return plan

    def advance(self, plan: Steps, chunk: int = 0) -> None:
        """These steps are done."""
        if self.pool.free != math.inf:
            self.pool.take(self.needs(plan.steps))
        self.stretches.append(Stretch(self.now, self.step, plan, self.live, self.rows, chunk))
        self.last_s = self.now = plan.end_s(self.now, plan.steps)
        self.step += plan.steps
        self.kv += plan.steps * self.rows

    def ended(self) -> list[LiveSequence]:
        """Who has got the last token."""
        done, ends = [], self.ends
        while ends and ends[0][0] <= self.step:
            done.append(heappop(ends)[2])
        return done


def after(seconds: float, plan: Steps) -> int:
    """The fewest steps, one at least, that take so long: n · first + n (n - 1) / 2 · growth >= seconds.

    To a billionth of a step: sums that should be equal, but for their rounding, are.
    """
    # The root of a quadratic, in the form that stays exact where growth is tiny: 2c / (b + √(b² + 4ac)).
    half = 0.5 * plan.growth_s
    linear = plan.first_s - half
    root = linear * linear + 4 * half * seconds
    steps = seconds / plan.first_s if root <= 0 else 2 * seconds / (linear + math.sqrt(root))
    return max(math.ceil(steps - CLOSE), 1)


class Decoder:
    """A batch whose next steps are planned, and can be cut short."""

    def __init__(self, index: int, setup: Setup, slots: int) -> None:
        self.index, self.pool = index, BlockPool(setup.blocks, prefix_cache=False)
        self.batch = Batch(setup.costs, self.pool, setup.at_once)
        self.slots = list(range(slots))  # the free ones
        self.inside: dict[int, LiveSequence] = {}  # who has a slot, by order of arrival
        self.joining: list[LiveSequence] = []  # who is there and waits for the boundary
        self.doomed: list[LiveSequence] = []  # who goes at the boundary
        self.plan = NONE
        self.version = 0  # of the plan

    @property
    def boundary_s(self) -> float:
        """When the planned steps are over."""
        return self.plan.end_s(self.batch.now, self.plan.steps)

    def begun(self, now: float) -> int:
        """How many of the planned steps have begun by now."""
        plan, gone_s = self.plan, now - self.batch.now
        return min(after(gone_s, plan), plan.steps) if plan.steps and gone_s > CLOSE * plan.first_s else 0

    def cut(self, now: float) -> None:
        """Only as many of the planned steps as have begun by now."""
        self.plan = Steps(self.begun(now), self.plan.first_s, self.plan.growth_s)
        self.version += 1
        if not self.batch.rows:
            self.batch.now = max(now, self.batch.now)

    def has_room(self, sequence: LiveSequence, now: float) -> bool:
        """A slot, and blocks that nobody needs before the next boundary or in the step after."""
        if not self.slots or self.pool.free == math.inf:
            return bool(self.slots)
        tokens = min(sequence.tokens, sequence.most_tokens)
        return self.pool.admits(sequence, 0, tokens, self._beside(now) if self.inside else 0)

    def _beside(self, now: float) -> float:
        """Blocks that others take up to the boundary, and what has to be left for them then."""
        begun = self.begun(now)
        soon = self.batch.needs(begun)
        return soon + max(self.batch.needs(begun + 1) - soon, self.pool.spare)

    def seat(self, sequence: LiveSequence) -> None:
        """A slot and blocks, before the cache is moved there."""
        sequence.held = -(-(sequence.tokens - 1) // self.pool.size)
        self.pool.take(sequence.held)
        sequence.stay.server, sequence.stay.slot = self.index, heappop(self.slots)
        self.inside[sequence.order] = sequence

    def step(self) -> list[LiveSequence]:
        """The planned steps are done; who has all tokens."""
        if self.plan.steps:
            self.batch.advance(self.plan)
        self.plan = NONE
        return self.batch.ended()

    def go_on(self) -> bool:
        """Who waits joins, and the next steps are planned; False where blocks run out first."""
        for sequence in self.joining:
            sequence.own, sequence.held = sequence.held, 0
            sequence.stay.decode_s = self.batch.now
            self.batch.join(sequence)
        self.joining = []
        self.version += 1
        if self.batch.rows:
            self.plan = self.batch.plan(math.inf)
        return self.plan.steps > 0 or not self.batch.rows

    def leave(self, sequence: LiveSequence, now: float) -> None:
        """Out of the slot; the stay is noted."""
        sequence.stayed(self.batch.step, self.batch.last_s, now)
        if sequence.decoding:
            self.batch.leave(sequence)
            self.batch.live -= 1
            self.pool.release(sequence)
        elif sequence in self.joining:
            self.joining.remove(sequence)
        self.pool.free += sequence.held  # until it has joined; its own are those of the prefill servers
        sequence.held = 0
        heappush(self.slots, sequence.stay.slot)
        del self.inside[sequence.order]
