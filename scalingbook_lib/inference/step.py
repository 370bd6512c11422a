"""The time of one step of serving by term, its bottleneck, and what would shorten it.

A decode step generates a token for every sequence, a prefill processes prompts, and a mixed step does both,
one chunk of prompts at a time. The formula is in `passes`. Chapter: Inference.
"""

from dataclasses import dataclass

from scalingbook_lib.inference.case import ServingCase, Staged, case
from scalingbook_lib.inference.efficiency import PEAK, ServingEfficiency
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.passes import Load, fullest
from scalingbook_lib.inference.price import Priced
from scalingbook_lib.inference.traffic import ServingCollective
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import count, require_min, si

REMEDIES = {
    "weights": "a larger batch, narrower weights, or a larger tensor-parallel degree",
    "matmul": "faster chips or a narrower compute dtype",
    "KV": "shorter contexts, a narrower KV cache, fewer KV heads, or a KV cache sharded over more chips",
    "attention": "shorter prompts or more chips",
    "activations": "fused kernels",
    "bubble": "fewer stages, or more sequences than stages",
    "host": "an engine with less host work per sequence, or a host per group of sequences",
    "launch": "fewer and larger kernels, CUDA graphs, or a larger batch",
    "hops": "a smaller tensor-parallel degree, or a mesh with shorter axes",
    "bytes": "a smaller tensor-parallel degree, a smaller batch, or narrower activations",
}
"""What would shorten each term of a step; "hops" and "bytes" are of collectives."""

OWN = ("weights", "matmul", "KV", "attention", "activations")  # the terms of a chip's own work


@dataclass(frozen=True, kw_only=True, slots=True)
class InferenceStep(Priced):
    """One step of a replica: `batch` sequences with S cached tokens get T tokens each, prompts get c in all.

    `times` holds the times of its microbatches and the time lost between them.
    """

    what: str
    load: Load
    S: float
    times: Staged

    @property
    def batch(self) -> float:
        """The number of sequences that decode."""
        return self.load.batch

    @property
    def total_s(self) -> float:
        """The time of the step in seconds: the sum of its terms."""
        return self.times.total_s

    @property
    def terms(self) -> dict[str, float]:
        """Every term of the step in seconds of the mean stage; overlapped work does not count."""
        # m microbatches pass each of pp stages, which has 1/pp of the layers: the mean stage works for m/pp
        # of a pass. What the longest stage and the filling of the pipeline take more is the bubble.
        p, t, scale = self.times.one, self.times, self.times.microbatches / self.layout.pp
        named = {
            "weights": p.weights_s + (p.head_s if p.head_waits else 0.0),
            "matmul": p.matmul_s + (0.0 if p.head_waits else p.head_s),
            "KV": p.kv_s,
            "attention": p.attention_s,
            "activations": p.activations_s,
            **self.collectives,
            "launch": p.launch_s,
        }
        found = {name: s * scale for name, s in named.items() if s}
        if t.launch_s:
            found["launch"] = found.get("launch", 0.0) + t.launch_s
        rest = {"host": t.total_s - t.lasts_s - t.launch_s, "bubble": t.lasts_s - p.total_s * scale}
        return found | {name: s for name, s in rest.items() if s > 1e-12 * t.lasts_s}  # not what is rounding

    @property
    def collectives(self) -> dict[str, float]:
        """The exposed time of each collective in one pass, in seconds by name."""
        # Overlap hides a share of all collectives together: each is told its part of what is left.
        busy = dict.fromkeys((row.name for row in self.traffic), 0.0)
        for row in self.traffic:
            busy[row.name] = busy[row.name] + self._bandwidth_s(row) + row.hops_s
        whole = sum(busy.values())  # before any overlap
        return {name: s * self.times.one.collectives_s / whole for name, s in busy.items()} if whole else {}

    @property
    def bound(self) -> dict[str, str]:
        """For each collective, whether its "bytes" or its "hops" take longer."""
        return {row.name: "bytes" if self._bandwidth_s(row) > row.hops_s else "hops" for row in self.traffic}

    def _bandwidth_s(self, row: ServingCollective) -> float:
        """The time in seconds that the bytes of a collective take in one microbatch."""
        m, cp, load = self.times.microbatches, self.layout.cp, self.load
        # the same numbers of tokens as in `passes.passed`, or the parts would not add up
        decoded = fullest(fullest(load.batch, m), cp) * load.T
        prompts = load.prompts if load.chunk else 0
        prompts, read = fullest(prompts, m) if self.what == "prefill" else prompts, load.chunk / m
        return row.bandwidth_s(decoded, decoded + prompts, read / cp, read + prompts * load.context)

    @property
    def compute_s(self) -> float:
        """The time in seconds of a chip's own work: without collectives, launches and bubbles."""
        return sum(s for name, s in self.terms.items() if name in OWN)

    @property
    def network_s(self) -> float:
        """The exposed time of all collectives in seconds."""
        # of the mean stage, as `terms`
        return self.times.one.collectives_s * self.times.microbatches / self.layout.pp

    @property
    def traffic(self) -> tuple[ServingCollective, ...]:
        """Every collective of the step."""
        some = {"all": True, "decoded": self.load.batch, "prompts": self.load.chunk}
        return tuple(row for row in self.case.traffic if some[row.of])

    @property
    def tokens(self) -> float:
        """The tokens that pass through the model."""
        # T new ones of each sequence, and those of prompts
        return self.load.batch * self.load.T + self.load.chunk

    @property
    def tokens_per_s(self) -> float:
        """The tokens per second of one replica: generated tokens, or prompt tokens of a prefill."""
        # prompts that ride along are not counted: they are read, not written
        return (self.load.batch * self.load.T if self.load.batch else self.load.chunk) / self.total_s

    @property
    def bottleneck(self) -> str:
        """The name of the longest term."""
        return max(self.terms, key=lambda name: self.terms[name])

    @property
    def remedy(self) -> str:
        """What would shorten the longest term."""
        return REMEDIES[self.bottleneck if self.bottleneck in REMEDIES else self.bound[self.bottleneck]]

    def __str__(self) -> str:
        terms = ", ".join(f"{name} {si(s, 's')}" for name, s in self.terms.items())
        load = self.load
        many = f"sequence{'s' * (load.batch != 1)}"
        decoded = f"{count(load.batch)} {many} with {count(self.S)} cached tokens" if load.batch else ""
        read = f"{count(load.chunk)} tokens of {count(load.prompts)} prompt{'s' * (load.prompts > 1)}"
        work = [part for part in (decoded, read if load.chunk else "") if part]
        return (
            f"{self.model.name}, {self.what} of {' and '.join(work)} on {self.layout}: "
            f"{si(self.total_s, 's')} ({terms})"
        )


def decode(
    model: Transformer,
    machine: Machine,
    layout: Layout,
    *,
    batch: float,
    S: float,
    T: int = 1,
    efficiency: ServingEfficiency = PEAK,
) -> InferenceStep:
    """One decode step of `batch` sequences with S cached tokens each; T > 1 tokens are verified at once.

    With pipeline stages, the sequences form as many microbatches, and the step lasts until each has its
    tokens.
    """
    return stepped(case(model, machine, layout, efficiency), batch=batch, S=S, T=T)


def mixed(
    model: Transformer,
    machine: Machine,
    layout: Layout,
    *,
    batch: float,
    S: float,
    chunk: float,
    chunk_context: float = 0,
    T: int = 1,
    prompts: int = 1,
    efficiency: ServingEfficiency = PEAK,
) -> InferenceStep:
    """A decode step that also processes `chunk` prompt tokens.

    `chunk_context` tokens of each prompt have been processed before.
    """
    on = case(model, machine, layout, efficiency)
    return stepped(on, batch=batch, S=S, T=T, chunk=chunk, context=chunk_context, prompts=prompts)


def prefill(
    model: Transformer,
    machine: Machine,
    layout: Layout,
    *,
    P: int,
    prompts: int = 1,
    cached: int = 0,
    efficiency: ServingEfficiency = PEAK,
) -> InferenceStep:
    """A prefill of `prompts` prompts of P tokens, the first `cached` of which are in the KV cache already.

    With pipeline stages, the prompts of each group follow one another through the stages.
    """
    return prefilled(case(model, machine, layout, efficiency), P=P, prompts=prompts, cached=cached)


def stepped(
    on: ServingCase,
    *,
    batch: float,
    S: float,
    T: int = 1,
    chunk: float = 0,
    context: float = 0,
    prompts: float = 1,
) -> InferenceStep:
    """A step as by `mixed`, for a known case."""
    require_min(0, batch=batch, S=S, chunk=chunk, chunk_context=context)
    if (not batch and not chunk) or T < 1 or prompts < 1:
        raise ValueError(
            f"batch={batch} with T={T} and chunk={chunk} of {prompts} prompts: write at least 1 token to do"
        )
    # S is the mean context: attention is linear in the sum of all
    load = Load(batch=batch, kv_tokens=batch * S, T=T, chunk=chunk, context=context, prompts=prompts)
    what = "decode step" if not chunk else "mixed step" if batch else "chunk"
    return InferenceStep(case=on, what=what, load=load, S=S, times=on.staged(load))


def prefilled(on: ServingCase, *, P: int, prompts: int = 1, cached: int = 0) -> InferenceStep:
    """A prefill as by `prefill`, for a known case."""
    require_min(0, cached=cached)
    if P - cached < 1 or prompts < 1:
        raise ValueError(
            f"{prompts} prompts of P={P} tokens with cached={cached}: write at least 1 token to read"
        )
    load = Load(chunk=prompts * (P - cached), context=cached, prompts=prompts)
    return InferenceStep(case=on, what="prefill", load=load, S=0, times=on.prefilled(load))
