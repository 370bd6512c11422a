"""Explorer of DeepSeek-V4-Pro served in a rack: throughput of a GPU against the speed that a user sees."""

from dataclasses import dataclass, replace
from functools import cached_property

from scalingbook_book.chapters.architectures.case import V4_PRO
from scalingbook_book.reader.explorers.parts import (
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    Scale,
    Slider,
    View,
    sig3,
)
from scalingbook_lib import calibrated, inference
from scalingbook_lib.inference import InferenceStep, Layout, ServingEfficiency, kv_transfer
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import FP8, MXFP4, count, percent, si

PUBLISHED = {  # tokens/s of a user: tokens/s per GPU, prompt and output; 8,192 + 1,024 tokens, GB300
    "Apr. 2026": (50.0, 2200.0),
    "June 2026, MTP": (50.0, 11200.0),
}
_LONGEST = {"weights": "reading the weights", "matmul": "compute", "launch": "launching kernels"}
_USERS = (2, 4, 8, 16, 32, 64, 128, 256, 512)


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Groups of `degree` GPUs with expert parallelism, each GPU with its own sequences and cache."""

    gpu: str
    degree: int
    P: int
    G: int
    drafts: int
    accepted: float

    @cached_property
    def on(self) -> Cluster:
        """One group of GPUs, all in one rack."""
        return Cluster.of(chips.find(self.gpu), self.degree, domain=self.degree)

    @cached_property
    def layout(self) -> Layout:
        """Experts over all GPUs in FP4, attention on each GPU for its own sequences."""
        n = self.degree
        return Layout(
            tp=n,
            ep=n,
            attention_dp=n,
            weights=FP8,
            experts=MXFP4,
            kv=FP8,
            compute=FP8,
            dispatch=FP8,
        )

    @cached_property
    def efficiency(self) -> ServingEfficiency:
        """The fitted efficiency; each GPU has an engine of its own, which handles its own sequences."""
        found = calibrated.serving(chips.find(self.gpu), FP8)
        return replace(found, sequence_s=found.sequence_s / self.degree)

    @property
    def acceptance_length(self) -> float:
        """Tokens per sequence per step, if each draft is accepted with the same probability."""
        return sum(self.accepted**k for k in range(self.drafts + 1))

    @cached_property
    def room(self) -> float:
        """Sequences for which a GPU has memory, at their mean length."""
        mean = self.P + self.G // 2
        return inference.largest_batch(V4_PRO, self.layout, self.on, S=mean, reserve=0.1) / self.degree

    @cached_property
    def prefill(self) -> InferenceStep:
        """One pass of two prompts per GPU."""
        case = V4_PRO, self.on, self.layout
        return inference.prefill(*case, P=self.P, prompts=2 * self.degree, efficiency=self.efficiency)

    def decode(self, users: float) -> InferenceStep:
        """One decode step of so many sequences per GPU, which verifies all drafts."""
        return inference.decode(
            V4_PRO,
            self.on,
            self.layout,
            batch=users * self.degree,
            S=self.P + self.G / 2,
            T=self.drafts + 1,
            efficiency=self.efficiency,
        )

    def itl_s(self, users: float) -> float:
        """The mean time between two tokens of a user."""
        return self.decode(users).total_s / self.acceptance_length

    def pools(self, users: float) -> kv_transfer.Pools:
        """The groups for prefill and for decode that keep each other busy."""
        prompt_s = self.prefill.total_s / (2 * self.degree)
        return kv_transfer.pools(prompt_s, self.itl_s(users), batch=users * self.degree, G=self.G)

    def tokens_per_s_per_gpu(self, users: float) -> float:
        """Prompt and output tokens per second, over the GPUs of both kinds."""
        pools = self.pools(users)
        requests = pools.requests_per_s / self.degree / (1 + pools.ratio)
        return requests * (self.P + self.G)


def _frontier(*, gpu: str, degree: str, users: int, drafts: int, accepted: float, P: int) -> View:
    pool = Pool(gpu=gpu, degree=int(degree), P=P, G=1024, drafts=drafts, accepted=accepted)
    if users > pool.room:
        raise ValueError(
            f"a GPU has memory for {pool.room:,.0f} sequences of {P + 512:,} tokens at EP {degree}; "
            "choose fewer sequences or a larger EP degree"
        )
    step, itl_s = pool.decode(users), pool.itl_s(users)
    share = pool.pools(users).ratio / (1 + pool.pools(users).ratio)
    rate = pool.tokens_per_s_per_gpu(users)
    return View(
        f"Each user gets {1 / itl_s:.0f} tokens per second, and a GPU processes {count(round(rate))} tokens "
        f"per second, prompts included. {percent(share)} of the GPUs do prefill. In the decode step, "
        f"{_LONGEST.get(step.bottleneck, step.bottleneck)} takes the longest.",
        (_pareto(pool, users),),
        (
            Readout("decode step", step.total_s, "s"),
            Readout("ITL", itl_s, "s"),
            Readout("TTFT without waiting", pool.prefill.total_s, "s"),
            Readout("tokens per step per user", pool.acceptance_length, "", sig3(pool.acceptance_length)),
            Readout("output tokens/s per decode GPU", users / itl_s, "", count(round(users / itl_s))),
            Readout.percent("GPUs for prefill", share),
            Readout("sequences that fit on a GPU", pool.room, "", count(round(pool.room))),
            Readout("cache of a sequence", _cache(P), "B", si(_cache(P), "B")),
        ),
    )


def _cache(P: int) -> float:
    return arithmetic.kv_cache(V4_PRO, P + 512, FP8).nbytes


def _pareto(pool: Pool, users: int) -> Chart:
    tried = [n for n in _USERS if n <= pool.room]
    here = 1 / pool.itl_s(users), pool.tokens_per_s_per_gpu(users)
    marks = [
        Curve(
            f"EP {pool.degree}",
            [1 / pool.itl_s(n) for n in tried],
            [pool.tokens_per_s_per_gpu(n) for n in tried],
            0,
        ),
        Points("", [here[0]], [here[1]], [f"{users} per GPU"], 0),
    ]
    if pool.gpu == "GB300" and pool.P == 8192:
        marks.append(
            Points(
                "published, GB300",
                [x for x, _ in PUBLISHED.values()],
                [y for _, y in PUBLISHED.values()],
                list(PUBLISHED),
                1,
            )
        )
    return Chart(
        Scale("tokens/s of a user", "", "log"),
        Scale("tokens/s per GPU, prompts included", "", "log", high=20_000),
        tuple(marks),
        title="Throughput against speed",
    )


FRONTIER = Explorer(
    key="architectures.frontier",
    title="DeepSeek-V4-Pro in a rack: prefill and decode pools",
    question="How many users per decode GPU and how many prefill GPUs does the promised speed require?",
    controls={
        "gpu": Choice("GPU", ("GB300", "GB200"), "GB300"),
        "degree": Choice("EP degree", ("8", "16", "32", "64"), "32"),
        "users": Slider("sequences per decode GPU", 2, 512, 49, "log"),
        "drafts": Slider("drafted tokens (MTP)", 0, 3, 3),
        "accepted": Slider("probability that a draft is accepted", 0.3, 0.95, 0.7, step=0.05),
        "P": Slider("prompt tokens", 1024, 131072, 8192, "pow2"),
    },
    view=_frontier,
)
