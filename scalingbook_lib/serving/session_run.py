"""The result of simulated agent sessions: hit rate, latencies of turns and sessions, and interactivity.

Chapter: Inference.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from scalingbook_lib.serving.results import RequestResult, percentile_index
from scalingbook_lib.serving.run import ServingRun
from scalingbook_lib.serving.sequence import Residency
from scalingbook_lib.serving.sessions import Session
from scalingbook_lib.units import Result, count, percent, si


@dataclass(frozen=True, kw_only=True)
class SessionRun(Result):
    """What became of every turn, and the record of every replica."""

    sessions: tuple[Session, ...]
    turns: tuple[tuple[RequestResult, ...], ...]  # of each session
    runs: tuple[ServingRun, ...]  # of each replica

    @cached_property
    def _finished(self) -> list[RequestResult]:
        return [turn for row in self.turns for turn in row if turn.outcome == "finished"]

    def _residencies(self, skip: int) -> Iterator[Residency]:
        """The residencies of all turns but the first `skip` of each session."""
        return (one for row in self.turns for turn in row[skip:] for one in turn.residencies)

    @property
    def end_s(self) -> float:
        """The end of the last turn, in seconds."""
        return max((run.end_s for run in self.runs), default=0.0)

    @property
    def hit_rate(self) -> float:
        """The fraction of all prompt tokens that were found in the prefix cache, host memory included."""
        return self._share("cached")

    @property
    def loaded_rate(self) -> float:
        """The fraction of all prompt tokens that were loaded from host memory."""
        return self._share("loaded")

    @property
    def history_hit_rate(self) -> float:
        """The fraction of the history that was found, over all turns but the first of each session."""
        history = [
            sum(t.prompt + t.output for t in s.turns[:i])
            for s in self.sessions
            for i in range(1, len(s.turns))
        ]
        found = sum(one.cached for one in self._residencies(1))
        return found / sum(history) if history else 0.0

    def _share(self, what: str) -> float:
        found = list(self._residencies(0))
        total = sum(one.cached + one.computed for one in found)
        return sum(getattr(one, what) for one in found) / total if total else 0.0

    def ttft(self, percentile: float = 50) -> float:
        """A percentile of the TTFT of a turn in seconds, over finished turns."""
        return _percentile([turn.ttft_s for turn in self._finished], percentile)

    def itl(self, percentile: float = 50) -> float:
        """A percentile of the mean inter-token latency of a turn in seconds, over finished turns."""
        return _percentile([turn.itl_s for turn in self._finished], percentile)

    def latency(self, percentile: float = 50) -> float:
        """A percentile of the end-to-end latency of a turn in seconds, over finished turns."""
        return _percentile([turn.latency_s for turn in self._finished], percentile)

    def session_s(self, percentile: float = 50) -> float:
        """A percentile of the time from the start of a session to its last token, with its tool calls."""
        return _percentile([row[-1].end_s - row[0].request.arrival_s for row in self.turns], percentile)

    def interactivity(self, percentile: float = 90) -> float:
        """Tokens per second for a user: 1 over a percentile of a turn's latency per output token.

        The definition of InferenceX: at the 90th percentile, nine in ten turns are at least this fast.
        """
        return 1 / _percentile([turn.latency_s / turn.tokens for turn in self._finished], percentile)

    def __str__(self) -> str:
        return (
            f"{count(len(self.sessions))} sessions, {count(len(self._finished))} turns on "
            f"{count(len(self.runs))} replicas in {si(self.end_s, 's')}: hit rate {percent(self.hit_rate)}, "
            f"TTFT p50 {si(self.ttft(50), 's')}, p90 {si(self.ttft(90), 's')}, "
            f"P90 interactivity {self.interactivity(90):.3g} tokens/s"
        )


def _percentile(values: list[float], percentile: float) -> float:
    return sorted(values)[percentile_index(len(values), percentile)]
