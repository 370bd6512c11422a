"""The tables of the appendix on predicted and published training steps, a function for each."""

from collections.abc import Iterable, Iterator
from statistics import mean

from scalingbook_lib.evidence import training
from scalingbook_lib.evidence.calibration import Values
from scalingbook_lib.evidence.measured.training_runs import RUNS
from scalingbook_lib.evidence.training.fit import EXPECTED, TORUS
from scalingbook_lib.units import si

SHORT = {
    "matmul": "products", "experts": "experts", "attention": "attention",
    "early": "attention, early kernels", "unfused": "attention, unfused", "memory": "HBM", "torus": "torus",
    "domain": "domain", "network": "network", "dcn": "DCN", "exposed": "exposed",
}  # fmt: skip


def tables() -> dict[str, str]:
    """Every table by its name in the page."""
    return {"by_family": table(_families()), "values": table(_values()), "worst": table(_worst()),
            "expected": table(_expected()), "sources": table(_sources()), "links": table(_links()),
            "kept": table(_kept()), "bands": table(_bands()), "series_far": table(_series_far())}  # fmt: skip


def table(rows: Iterable[Iterable[str]]) -> str:
    """Its rows in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _families() -> Iterator[tuple[str, ...]]:
    for fitted, out in training.by_family():
        yield (fitted.name, str(fitted.runs), share(fitted.mean), signed(fitted.bias),
               share(out.mean), signed(out.bias))  # fmt: skip


def _values() -> Iterator[tuple[str, ...]]:
    for (chip, precision), row in sorted(training.TABLE.items()):
        runs = sum((run.chip.name, run.precision) == (chip, precision) for run in RUNS)
        times = (si(row[name], "s") if name in row else "" for name in ("layer_s", "expert_layer_s"))
        shares = (f"{row[name]:.2f}" if name in row else "" for name in ("matmul", "experts"))
        yield chip, precision, str(runs), *shares, _attention(row), f"{row['memory']:.2f}", *times


def _attention(row: Values) -> str:
    """The share of today's kernels, and those of older ones by name."""
    words = {"attention": "", "early": "early ", "unfused": "unfused "}
    return ", ".join(f"{word}{row[name]:.2f}" for name, word in words.items() if name in row)


def _links() -> Iterator[tuple[str, ...]]:
    for (chip, precision), row in sorted(training.TABLE.items()):
        names = ("torus", "dcn") if "torus" in row else ("domain", "network")
        yield chip, precision, *(f"{row[name]:.2f}" for name in (*names, "exposed"))


def _kept() -> Iterator[tuple[str, ...]]:
    for s in training.kept():
        what = f"{s.run.chips:,} {s.run.chip.name}, {s.run.batch:,} sequences of {s.run.T:,}"
        yield what, si(s.run.step_s, "s"), si(s.predicted_s, "s"), signed(s.error)


def _bands() -> Iterator[tuple[str, ...]]:
    for experts, name in ((False, "dense"), (True, "with experts")):
        found = training.held_by_band(experts).values()
        within = sum(inside for inside, _ in found) / sum(runs for _, runs in found)
        yield name, str(len(found)), share(within, 0), share(mean(i / runs for i, runs in found), 0)


def _series_far() -> Iterator[tuple[str, ...]]:
    far = sorted((one for one in training.ratios() if abs(one.error) > 0.05), key=lambda one: one.run.series)
    for one in far:
        run = one.run
        where = f"{run.model.name}, {run.chips:,} {run.chip.name}, {run.precision}"
        yield run.id, where, f"{run.T:,}", str(run.microbatch or ""), signed(one.error)


def _expected() -> Iterator[tuple[str, ...]]:
    for name, one in EXPECTED.items():
        value = si(one.value, "s") if name.endswith("_s") else f"{one.value:.2f}"
        value += f" ({TORUS[name].value:.2f} on tori)" if name in TORUS else ""
        yield (
            SHORT.get(name, f"lost with {'experts' if 'expert' in name else 'a layer'}"),
            value,
            f"{one.spread:.2f}",
        )


def _sources() -> Iterator[tuple[str, ...]]:
    families = {run.family: run for run in RUNS}
    for name, run in sorted(families.items()):
        yield name, f"[{run.source.text}]({run.source.url})", run.note


def _worst(many: int = 16) -> Iterator[tuple[str, ...]]:
    for s in sorted(training.scores(), key=lambda s: -abs(s.error))[:many]:
        yield (s.run.id, s.run.model.name, si(s.run.step_s, "s"), si(s.predicted_s, "s"), signed(s.error, 0))


def share(value: float, digits: int = 1) -> str:
    """'4.5 %'."""
    return f"{value:.{digits}%}".replace("%", " %")


def signed(value: float, digits: int = 1) -> str:
    """'+4.5 %', or with a minus."""
    return f"{value:+.{digits}%}".replace("%", " %").replace("-", "\N{MINUS SIGN}")
