"""How long does one step of serving take, term by term, which term binds, and what would unbind it?

A decode step gives every sequence a token; a prefill reads prompts; a mixed step does both, a chunk at a
time. The formula itself is in `passes`. Chapter: Inference.
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

UNBIND = {
    "weights": "a larger batch, narrower weights, or more tensor ways",
    "matmul": "faster chips or a narrower type to compute in",
    "KV": "shorter contexts, a narrower cache, fewer key-value heads, or more ways over the cache",
    "attention": "shorter prompts, or more chips",
    "activations": "kernels that fuse",
    "bubble": "fewer stages, or more sequences than stages",
    "host": "an engine that does less for each sequence, or groups with hosts of their own",
    "launch": "fewer and larger kernels, graphs that are launched whole, or a larger batch",
    "hops": "fewer tensor ways, or a mesh with shorter axes",
    "bytes": "fewer tensor ways, a smaller batch, or narrower activations",
}

OWN = ("weights", "matmul", "KV", "attention", "activations")  # terms of what a chip does by itself


@dataclass(frozen=True, kw_only=True, slots=True)
class InferenceStep(Priced):
    """One step of a copy of the model: `batch` sequences with S cached tokens get T each, prompts c in all.

    `times` has its microbatches, and what is lost beside them.
    """

    what: str
    load: Load
    S: float
    times: Staged

    @property
    def batch(self) -> float:
        """Sequences that decode."""
        return self.load.batch

    @property
    def total_s(self) -> float:
        """The step: its terms added."""
        return self.times.total_s

    @property
    def terms(self) -> dict[str, float]:
        """All that the step consists of, in seconds of the mean stage: the sides that are waited for."""
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
        """What is waited for of collectives, by name, in one pass."""
        # Overlap hides a share of all collectives together: each is told its part of what is left.
        busy = dict.fromkeys((row.name for row in self.traffic), 0.0)
        for row in self.traffic:
            busy[row.name] = busy[row.name] + self._bandwidth_s(row) + row.hops_s
        whole = sum(busy.values())  # before any overlap
        return {name: s * self.times.one.collectives_s / whole for name, s in busy.items()} if whole else {}

    @property
    def bound(self) -> dict[str, str]:
        """Of each collective, whether its bytes or its hops take longer."""
        return {row.name: "bytes" if self._bandwidth_s(row) > row.hops_s else "hops" for row in self.traffic}

    def _bandwidth_s(self, row: ServingCollective) -> float:
        """The bytes of a collective, for what passes a tensor group in one microbatch."""
        m, cp, load = self.times.microbatches, self.layout.cp, self.load
        # the same numbers of tokens as in `passes.passed`, or the parts would not add up
        decoded = fullest(fullest(load.batch, m), cp) * load.T
        prompts = load.prompts if load.chunk else 0
        prompts, read = fullest(prompts, m) if self.what == "prefill" else prompts, load.chunk / m
        return row.bandwidth_s(decoded, decoded + prompts, read / cp, read + prompts * load.context)

    @property
    def compute_s(self) -> float:
        """What one chip does by itself: without collectives, launches and bubbles."""
        return sum(s for name, s in self.terms.items() if name in OWN)

    @property
    def network_s(self) -> float:
        """All collectives, as far as they are waited for."""
        # of the mean stage, as `terms`
        return self.times.one.collectives_s * self.times.microbatches / self.layout.pp

    @property
    def traffic(self) -> tuple[ServingCollective, ...]:
        """Every collective of the step."""
        some = {"all": True, "decoded": self.load.batch, "prompts": self.load.chunk}
        return tuple(row for row in self.case.traffic if some[row.of])

    @property
    def tokens(self) -> float:
        """Those that pass the model."""
        # T new ones of each sequence, and those of prompts
        return self.load.batch * self.load.T + self.load.chunk

    @property
    def tokens_per_s(self) -> float:
        """Of one copy: generated ones, or of a prefill those that are read."""
        # prompts that ride along are not counted: they are read, not written
        return (self.load.batch * self.load.T if self.load.batch else self.load.chunk) / self.total_s

    @property
    def binds(self) -> str:
        """The longest term."""
        return max(self.terms, key=lambda name: self.terms[name])

    @property
    def unbind(self) -> str:
        """What would shorten the longest term."""
        return UNBIND[self.binds if self.binds in UNBIND else self.bound[self.binds]]

    def __str__(self) -> str:
        terms = ", ".join(f"{name} {si(s, 's')}" for name, s in self.terms.items())
        load = self.load
        decoded = f"{count(load.batch)} sequences of {count(self.S)} tokens" if load.batch else ""
        read = f"{count(load.chunk)} tokens of {count(load.prompts)} prompt{'s' * (load.prompts > 1)}"
        work = [part for part in (decoded, read if load.chunk else "") if part]
        return (
            f"{self.model.name}, {self.what} of {' and '.join(work)} on {self.layout}: "
            f"{si(self.total_s, 's')} ({terms}); {self.binds} binds, and {self.unbind} would help"
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
    """One step of a batch of sequences with S cached tokens each; T > 1 new tokens are checked at once.

    With stages, the sequences are in as many microbatches; the step is the time until each has its tokens.
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
    """A decode step that also reads `chunk` tokens of prompts, `chunk_context` of each are read already."""
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
    """`prompts` prompts of P tokens, the first `cached` of which have their keys and values already.

    With stages, one prompt (of each group) follows another through them.
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
    """`mixed`, of a batch of sequences with S cached tokens each, of a case that is known already."""
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
    """`prefill` of a case that is known already."""
    require_min(0, cached=cached)
    if P - cached < 1 or prompts < 1:
        raise ValueError(
            f"{prompts} prompts of P={P} tokens with cached={cached}: write at least 1 token to read"
        )
    load = Load(chunk=prompts * (P - cached), context=cached, prompts=prompts)
    return InferenceStep(case=on, what="prefill", load=load, S=0, times=on.prefilled(load))
