"""Explorers of the strong-scaling limit of data parallelism, and of a change that makes a step slower."""

from scalingbook_book.reader.explorers.parts import (
    NETWORKED,
    Band,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
)
from scalingbook_book.reader.figures.shapes import IDLE, MATH, NETWORK
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.roofline import scaling
from scalingbook_lib.units import count, si

ONE, ALL = "one torus axis", "all torus axes"
COUNTS = [2.0 ** (e / 4) for e in range(57)]  # 1 to 16,384 chips, four points an octave
_TOP = 60.0  # % of efficiency lost: where the break-even chart ends
_STORED = 12  # bytes per parameter: bf16 weight and gradient, two fp32 moments of Adam


def axes_of(chip: Chip, network: str) -> int:
    """The number of torus axes over which the gradients are summed."""
    return chip.torus.dims if network == ALL and chip.torus else 1


def _add_chips(*, P: int, B: int, n: int, chip: str, network: str, overlap: int) -> View:
    on = chips.find(chip)
    axes = axes_of(on, network)

    def step(n: float) -> scaling.ScalingStep:
        return scaling.data_parallel(P * 1e9, B, n, on, axes=axes, overlap=overlap / 100)

    one, now, knee = step(1), step(n), scaling.knee(B, on, axes=axes)
    many = [step(c) for c in COUNTS]
    return View(
        _verdict(now, knee, on),
        (_step_chart(many, now, knee), _efficiency_chart(many, one, now, knee)),
        _readouts(now, one, knee, P * 1e9, on),
        columns=2,
    )


def _step_chart(many: list[scaling.ScalingStep], now: scaling.ScalingStep, knee: float) -> Chart:
    return Chart(
        Scale("chips n", "", "log", 1, COUNTS[-1]),
        Scale("time of one step", "s", "log"),
        (
            Band(
                "full to no overlap",
                COUNTS,
                [s.math_s + max(s.network_s - s.backward_s, 0) for s in many],
                [s.math_s + s.network_s for s in many],
                IDLE,
            ),
            Curve("backward pass", COUNTS, [s.backward_s for s in many], MATH),
            Curve("AllReduce", COUNTS[4:], [s.network_s for s in many[4:]], NETWORK),
            Curve("step", COUNTS, [s.total_s for s in many], 0),
            RefLine("knee", knee),
            Points("now", [now.chips], [now.total_s], ["you"], 0),
        ),
        "Time",
    )


def _efficiency_chart(
    many: list[scaling.ScalingStep], one: scaling.ScalingStep, now: scaling.ScalingStep, knee: float
) -> Chart:
    return Chart(
        Scale("chips n", "", "log", 1, COUNTS[-1]),
        Scale("efficiency", "%", "linear", 0, 110),
        (
            Curve("speedup / n", COUNTS, [100 * scaling.strong_efficiency(s, one) for s in many], 0),
            RefLine("knee", knee),
            Points("now", [now.chips], [100 * scaling.strong_efficiency(now, one)], ["you"], 0),
        ),
        "Efficiency",
    )


def _verdict(now: scaling.ScalingStep, knee: float, chip: Chip) -> str:
    limit = count(round(knee))
    told = f"{now.bound.capitalize()} on {chip.counted(round(now.chips))}: "
    if now.chips <= knee:
        told += f"up to {limit} chips, the AllReduce is hidden behind the backward pass."
    else:
        told += f"beyond {limit} chips, the AllReduce is no longer hidden behind the backward pass."
    if now.exposed_s:
        told += f" {100 * now.exposed_s / now.total_s:.0f}% of the step is exposed communication."
    if chip.torus and now.chips > chip.torus.pod_chips:
        told += f" (A pod has {count(chip.torus.pod_chips)} chips, so this would take more than one.)"
    return told


def _readouts(
    now: scaling.ScalingStep, one: scaling.ScalingStep, knee: float, P: float, chip: Chip
) -> tuple[Readout, ...]:
    stored = _STORED * P
    fits = "fits" if stored <= chip.hbm_bytes else "does not fit"
    return (
        Readout("step", now.total_s, "s"),
        Readout("speedup", scaling.speedup(one.total_s, now.total_s), "×"),
        Readout("largest speedup", round(1.5 * (knee - 1)), "×"),
        Readout("knee", round(knee), "chips"),
        Readout(
            "memory per chip",
            stored,
            "B",
            f"{si(stored, 'B')} of {si(chip.hbm_bytes, 'B')}: {fits} ({_STORED} bytes per parameter)",
        ),
    )


ADD_CHIPS = Explorer(
    key="intro.add_chips",
    title="The strong-scaling limit of data parallelism",
    question="How many chips can one batch keep busy?",
    controls={
        "P": Slider("parameters P", 1, 1000, 8, "log", "billion"),
        "B": Slider("batch B", 2**16, 2**24, 2**21, "pow2", "tokens"),
        "n": Slider("chips n", 1, 16384, 6144, "log", "chips"),
        "chip": Chips("chip", NETWORKED, "TPU v5p"),
        "network": Choice("AllReduce over", (ONE, ALL), ALL),
        "overlap": Slider("overlap", 0, 100, 100, unit="%"),
    },
    view=_add_chips,
)


def _break_even(*, gain: int, loss: int, share: int) -> View:
    g, h = 1 + gain / 100, _hardware_efficiency(loss, share)
    gains = list(range(0, 51))
    even = [_bearable(x, share) for x in gains]
    chart = Chart(
        Scale("quality gain, as compute", "%", "linear", 0, 50),
        Scale("efficiency loss of the changed part", "%", "linear", 0, _TOP),
        (
            Band("worth it", gains, [0.0] * len(gains), [min(e, _TOP) for e in even], 2),
            Curve("break-even", gains, [e if e <= _TOP else float("nan") for e in even], 1),
            Points("your change", [gain], [loss], ["your change"], 0),
        ),
    )
    return View(
        _worth(g, h),
        (chart,),
        (
            Readout("g", g, "×", f"{g:.3g}"),
            Readout("h", h, "×", f"{h:.3g}"),
            Readout("g · h", g * h, "×", f"{g * h:.3g}"),
            Readout("gain needed", 100 * (1 / h - 1), "%", f"{100 * (1 / h - 1):.3g}%"),
        ),
    )


def _hardware_efficiency(loss: float, share: float) -> float:
    """h of the step if `share` % of it loses `loss` % of its efficiency (Amdahl's law)."""
    s = share / 100
    return 1 / (1 - s + s / (1 - loss / 100))


def _bearable(gain: float, share: float) -> float:
    """The efficiency loss in % at which a part of `share` % of the step just cancels a gain of `gain` %."""
    g, s = 1 + gain / 100, share / 100
    return 100 * (1 - s / (g - 1 + s))


def _worth(g: float, h: float) -> str:
    change = g * h - 1
    if abs(change) < 5e-4:
        return f"Break-even: g · h = {g:.3g} × {h:.3g} = 1, so the change gains nothing and loses nothing."
    verdict, kind = ("Worth it", "a gain") if change > 0 else ("Not worth it", "a loss")
    product = f"{g:.3g} × {h:.3g} = {g * h:.3g}"
    return f"{verdict}: g · h = {product}, {kind} of {100 * abs(change):.3g}% of the compute."


BREAK_EVEN = Explorer(
    key="intro.break_even",
    title="Quality gain against efficiency loss",
    question="When is a better model worth a slower step?",
    controls={
        "gain": Slider("quality gain, as compute", 0, 50, 20, unit="%"),
        "loss": Slider("efficiency loss of the changed part", 0, 50, 20, unit="%"),
        "share": Slider("the changed part's share of the step", 5, 100, 100, unit="%", step=5),
    },
    view=_break_even,
)
