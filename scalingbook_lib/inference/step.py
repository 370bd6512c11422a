"""How long does one step of serving take, term by term, which term binds, and what would unbind it?

A decode step gives every sequence a token; a prefill reads prompts; a mixed step does both, a chunk at a
time. Products wait for their arithmetic or for their weights, attention for its arithmetic or for the cache,
whatever takes longer, class by class; the classes are added, and so are collectives. Source: the scaling
book, "All About Transformer Inference", with collectives, hops and launches added. Chapter: Inference.
"""

from dataclasses import dataclass

from scalingbook_lib.inference.case import Pass, Quick, case, fullest
from scalingbook_lib.inference.efficiency import PEAK, Efficiency
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.traffic import Traffic
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import Told, count, si

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


@dataclass(frozen=True, slots=True)
class Step(Told):
    """One step of one copy of the model: `B` sequences with S cached tokens get T each, and prompts c in all.

    `one` is the pass of one of `microbatches` through all stages, `lasts_s` until all have passed.
    """

    quick: Quick
    what: str
    B: float
    S: float
    T: int
    chunk: float
    context: float
    prompts: int
    one: Pass
    microbatches: int
    lasts_s: float

    @property
    def model(self) -> Transformer:
        """The model."""
        return self.quick.model

    @property
    def machine(self) -> Machine:
        """The machine, of which a copy of the model takes `chips`."""
        return self.quick.machine

    @property
    def layout(self) -> Layout:
        """How the copy is spread."""
        return self.quick.layout

    @property
    def chips(self) -> int:
        """Those of one copy."""
        return self.layout.chips

    @property
    def total_s(self) -> float:
        """The step: its terms added."""
        return max(self.lasts_s + self.launch_s, self.host_s)

    @property
    def launch_s(self) -> float:
        """What is lost once a step or microbatch, and for each sequence; with stages, also to the host."""
        e = self.quick.efficiency
        waited_s = self.host_s if self.layout.pp > 1 else 0.0
        return e.fixed_s * self.microbatches + e.sequence_s * self._sequences + waited_s

    @property
    def host_s(self) -> float:
        """What the host of a group needs to prepare such a step."""
        return self.quick.efficiency.host_s * fullest(self._sequences, self.layout.attention_dp)

    @property
    def _sequences(self) -> float:
        return self.B + (self.prompts if self.chunk else 0)

    @property
    def terms(self) -> dict[str, float]:
        """All that the step consists of, in seconds of the mean stage: the sides that are waited for."""
        p, scale = self.one, self.microbatches / self.layout.pp
        named = {
            "weights": p.weights_s + (p.head_s if p.head_waits else 0.0),
            "matmul": p.matmul_s + (0.0 if p.head_waits else p.head_s),
            "KV": p.kv_s, "attention": p.attention_s, "activations": p.activations_s, **self.collectives,
            "launch": p.launch_s,
        }  # fmt: skip
        found = {name: s * scale for name, s in named.items() if s}
        if self.launch_s:
            found["launch"] = found.get("launch", 0.0) + self.launch_s
        bubble, idle = self.lasts_s - p.total_s * scale, self.total_s - self.lasts_s - self.launch_s
        found |= {"host": idle} if idle > 1e-12 * self.lasts_s else {}
        return found | ({"bubble": bubble} if bubble > 1e-12 * self.lasts_s else {})

    @property
    def collectives(self) -> dict[str, float]:
        """What is waited for of collectives, by name, in one pass."""
        busy: dict[str, float] = {}
        for row in self.traffic:
            busy[row.name] = busy.get(row.name, 0.0) + row.bandwidth_s(*self._passing) + row.hops_s
        whole = sum(busy.values())
        return {name: s * self.one.collectives_s / whole for name, s in busy.items()} if whole else {}

    @property
    def bound(self) -> dict[str, str]:
        """Of each collective, whether its bytes or its hops take longer."""
        passing = self._passing
        return {r.name: "bytes" if r.bandwidth_s(*passing) > r.hops_s else "hops" for r in self.traffic}

    @property
    def _passing(self) -> tuple[float, float, float, float]:
        """Of a microbatch in a tensor group: tokens decoded, rows of logits, tokens read, and of prompts."""
        m, cp = self.microbatches, self.layout.cp
        decoded = fullest(fullest(self.B, m), cp) * self.T
        prompts = self.prompts if self.chunk else 0
        prompts, read = fullest(prompts, m) if self.what == "prefill" else prompts, self.chunk / m
        return decoded, decoded + prompts, read / cp, read + prompts * self.context

    @property
    def compute_s(self) -> float:
        """What one chip does by itself: without collectives, launches and bubbles."""
        own = ("weights", "matmul", "KV", "attention", "activations")
        return sum(s for name, s in self.terms.items() if name in own)

    @property
    def network_s(self) -> float:
        """All collectives, as far as they are waited for."""
        return self.one.collectives_s * self.microbatches / self.layout.pp

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """Every collective of the step."""
        kinds = ("all", *["decoded"] * bool(self.B), *["prompts"] * bool(self.chunk))
        return tuple(row for row in self.quick.traffic if row.of in kinds)

    @property
    def tokens(self) -> float:
        """Those that pass the model."""
        return self.B * self.T + self.chunk

    @property
    def tokens_per_s(self) -> float:
        """Of one copy: generated ones, or of a prefill those that are read."""
        return (self.B * self.T if self.B else self.chunk) / self.total_s

    @property
    def tokens_per_s_per_chip(self) -> float:
        """The same, of each chip."""
        return self.tokens_per_s / self.chips

    def usd_per_million(self, usd_per_hour: float | None = None) -> float:
        """USD for a million of these tokens, at a price of one chip-hour (the chip's own without one)."""
        price = self.machine.chip.usd_per_hour if usd_per_hour is None else usd_per_hour
        if price is None:
            raise ValueError(f"{self.machine.chip.name} has no price; give usd_per_hour=...")
        return price * self.chips / 3600 / self.tokens_per_s * 1e6

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
        decoding = f"{count(self.B)} sequences of {count(self.S)} tokens" if self.B else ""
        reading = (
            f"{count(self.chunk)} tokens of {count(self.prompts)} prompt{'s' * (self.prompts > 1)}"
            * bool(self.chunk)
        )
        work = " and ".join(part for part in (decoding, reading) if part)
        return (
            f"{self.model.name}, {self.what} of {work} on {self.layout}: {si(self.total_s, 's')} ({terms}); "
            f"{self.binds} binds, and {self.unbind} would help"
        )


def decode(
    model: Transformer, machine: Machine, layout: Layout, *, B: float, S: float, T: int = 1,
    efficiency: Efficiency = PEAK,
) -> Step:  # fmt: skip
    """One step of B sequences with S tokens in the cache each; T > 1 new tokens of each are checked at once.

    With stages, B sequences are in as many microbatches; the step is the time until each has its tokens.
    """
    return mixed(model, machine, layout, B=B, S=S, T=T, chunk=0, efficiency=efficiency)


def mixed(
    model: Transformer, machine: Machine, layout: Layout, *, B: float, S: float, chunk: float,
    chunk_context: float = 0, T: int = 1, prompts: int = 1, efficiency: Efficiency = PEAK,
) -> Step:  # fmt: skip
    """A decode step that also reads `chunk` tokens of prompts, `chunk_context` of each are read already."""
    _check(B=B, S=S, chunk=chunk, chunk_context=chunk_context)
    if (not B and not chunk) or T < 1 or prompts < 1:
        raise ValueError(
            f"B={B} with T={T} and chunk={chunk} of {prompts} prompts: write at least 1 token to do"
        )
    quick = case(model, machine, layout, efficiency)
    found = quick.staged(B, B * S, T, chunk, chunk_context, prompts)
    what = "decode step" if not chunk else "mixed step" if B else "chunk"
    return Step(quick, what, B, S, T, chunk, chunk_context, prompts, *found)


def prefill(
    model: Transformer, machine: Machine, layout: Layout, *, P: int, prompts: int = 1, cached: int = 0,
    efficiency: Efficiency = PEAK,
) -> Step:  # fmt: skip
    """`prompts` prompts of P tokens, the first `cached` of which have their keys and values already.

    With stages, one prompt (of each group) follows another through them.
    """
    _check(cached=cached)
    if P - cached < 1 or prompts < 1:
        raise ValueError(
            f"{prompts} prompts of P={P} tokens with cached={cached}: write at least 1 token to read"
        )
    quick = case(model, machine, layout, efficiency)
    chunk, groups = prompts * (P - cached), layout.attention_dp
    m = -(-prompts // groups) if layout.pp > 1 else 1
    one = quick.passed(0, 0, 1, chunk / m, cached, -(-prompts // m))
    lasts_s = one.total_s + (m - 1) * quick.longest_s(one)
    return Step(quick, "prefill", 0, 0, 1, chunk, cached, prompts, one, m, lasts_s)


def _check(**given: float) -> None:
    for name, value in given.items():
        if not value >= 0:
            raise ValueError(f"{name}={value}: write a number of at least 0")
