"""The explorers of training Llama 3 obey the laws of what they show."""

import itertools

import pytest
from looked import panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.training_llama3.explorers import board, cost, planner
from scalingbook_book.reader.explorers.view import Bars, Chart, Grid, Points, Regions
from scalingbook_book.reader.options.machines import machine
from scalingbook_lib import models, rules, training
from scalingbook_lib.evidence.measured.whole_runs import WHOLE_RUNS
from scalingbook_lib.machines import chips

ALL = {e.key: e for stem in ("training", "training_llama3") for e in explorers.chapter(stem)}
approx = pytest.approx


# Llama 3: days and dollars


def test_the_reference_run_on_a_pod():
    view = ALL["training_llama3.cost"].evaluate()
    assert readout(view, "days") == approx(44.7, abs=0.05)
    assert readout(view, "cost") == approx(40.3e6, rel=2e-3)
    assert readout(view, "tokens/s per chip") == approx(434, abs=0.5)


def test_twice_the_chips_take_half_the_days_for_the_same_money():
    one, two = (ALL["training_llama3.cost"].evaluate(n=n) for n in (4096, 8192))
    assert readout(one, "days") == approx(2 * readout(two, "days"))
    assert readout(one, "cost") == approx(readout(two, "cost"))


@pytest.mark.parametrize(
    ("chip", "price", "says"),
    [
        ("H100", 100, "$3.85, on 2026-09-25"),
        ("H100", 50, "50% of $3.85, on 2026-09-25"),
        ("TPU7x", 100, "$4.20, assumed"),
    ],
)
def test_every_chip_is_paid_at_its_own_price_or_at_one_that_is_said_to_be_assumed(chip, price, says):
    found = ALL["training_llama3.cost"].evaluate(chip=chip, price=price)
    assert [r.text for r in found.readouts if r.label == "price of a chip-hour"] == [says]
    usd = (chips.find(chip).usd_per_hour or 4.2) * price / 100
    assert readout(found, "cost") == approx(usd * readout(found, "chip-hours"))


def test_every_whole_run_is_on_the_chart_at_its_utilization():
    dots = next(
        m for m in panel(ALL["training_llama3.cost"].evaluate(), Chart, 1).marks if isinstance(m, Points)
    )
    assert list(dots.ys) == [100 * run.utilization.share for run in WHOLE_RUNS]
    assert set(cost.NAMED) <= {run.name for run in WHOLE_RUNS}


# Llama 3: memory


def test_the_reference_minimum_of_chips():
    view = ALL["training_llama3.memory"].evaluate(tokens=4_000_000)
    assert readout(view, "all chips together") == approx(21.7e12, rel=3e-3)
    assert readout(view, "minimum chips") == 213  # of 95 GiB; 226 of the reference's 96 GB


def test_every_part_is_shared_by_all_chips():
    view = ALL["training_llama3.memory"].evaluate(n=1024, state="16 (with an fp32 master copy)")
    *parts, total = panel(view, Bars).lengths()
    assert sum(parts) == approx(total) == approx(readout(view, "per chip"))
    params = models.find("Llama 3 70B").params
    assert sum(parts[:-1]) * 1024 == approx(16 * params)


def test_what_is_kept_orders_the_policies():
    keeps = ("layer inputs", "weight matmuls", "all matmuls", "everything")
    each = [readout(ALL["training_llama3.memory"].evaluate(keeps=k), "per chip") for k in keeps]
    assert each == sorted(each)


# Llama 3: regimes


def test_the_map_agrees_with_the_closed_forms():
    view = ALL["training_llama3.regimes"].evaluate
    data = rules.data_parallel_tokens(chips.V5P, axes=3)
    for tokens, said in (
        (data * 1.01, "FSDP alone"),
        (data * 0.99, "enough for FSDP with TP"),
        (20, "too few"),
    ):
        assert said in view(n=4096, tokens=tokens * 4096).verdict
    assert "do not fit" in view(n=16, tokens=2**22).verdict


def test_a_dial_of_one_makes_the_mixed_regime_start_four_times_as_high():
    needs = [
        readout(ALL["training_llama3.regimes"].evaluate(dial=d), "FSDP with TP needs") for d in (0.0, 1.0)
    ]
    assert needs[1] == approx(4 * needs[0])


def test_more_tokens_never_wait_more_for_the_network():
    regions = next(
        m for m in panel(ALL["training_llama3.regimes"].evaluate(), Chart).marks if isinstance(m, Regions)
    )
    rank = {5: 0, 0: 1, 1: 2, 2: 3, 3: 4, 4: 5}
    for column in zip(*regions.cells, strict=True):
        ranks = [rank[cell] for cell in column]
        assert ranks == sorted(ranks, reverse=True)


# Llama 3: the board


def _board(**given):
    view = ALL["training_llama3.board"].evaluate(**given)
    return view, {
        name: row[0] for name, row in zip(panel(view, Grid).rows, panel(view, Grid).cells, strict=True)
    }


def test_2048_by_4_leaves_768_chips_of_the_pod_idle():
    _, checks = _board(ways="largest power of two")
    assert checks["chips"].text == "2,048 · 4 = 8,192, 768 idle"


def test_shards_and_copies_make_a_plan_for_every_chip_of_the_pod():
    view, checks = _board(ways="shards that divide, with replicas", sequences=1120)
    assert {name for name, cell in checks.items() if cell.color == 1} == {"torus"}
    assert "does not get a ring" in view.verdict


def test_the_board_is_green_but_for_idle_chips_and_lines_where_the_library_has_no_reason():
    for pod, ways, Y in itertools.product(board.PODS, board.WAYS, (1, 4, 5, 7, 16)):
        on = machine(pod)
        b = board.Board(models.find("Llama 3 70B"), on, 1024, Y, board.WAYS[ways], False)
        wrong = {name for name, (ok, _) in b.checks().items() if not ok} - {"torus"}
        if on.chips == b.X * b.Y:
            why = training.feasible(b.model, on, b.plan, 1024, 4096)
            assert bool(wrong) == any("would hold" not in one for one in why), (pod, ways, Y, wrong, why)
        else:
            assert "chips" in wrong


def test_the_board_has_the_ratios_of_the_sheet():
    """1,024 by 4 on 16x16x16 with 90% of the links: 0.31 and 0.36; here with all of them."""
    view, _ = _board(pod="TPU v5p 16x16x16")
    assert readout(view, "FSDP time over compute") == approx(0.31 * 0.9, rel=0.02)
    assert readout(view, "TP time over compute") == approx(0.356 * 0.9, rel=0.01)


# Llama 3: the planner


def test_the_planner_shows_the_rankings_best_and_judges_it_as_the_library_does():
    view = ALL["training_llama3.planner"].evaluate()
    found = planner.ranked("Llama 3 70B", "TPU v5p 16x16x16", 1024, 4096, ())
    plan = found.winner.plan
    step = training.step(models.find("Llama 3 70B"), machine("TPU v5p 16x16x16"), plan, batch=1024, T=4096)
    assert readout(view, "best step") == step.total_s == min(point.step_s for point in found.points)
    assert len(panel(view, Grid).cells) == len(found.best)


def test_what_is_fixed_is_kept_and_never_makes_the_best_faster():
    free = readout(ALL["training_llama3.planner"].evaluate(), "best step")
    for name, value in (("tp", "8"), ("cp", "2"), ("pp", "4"), ("remat", "full")):
        view = ALL["training_llama3.planner"].evaluate(**{name: value})
        assert readout(view, "best step") >= free
        fixed = {name: int(value) if value.isdigit() else value}
        found = planner.ranked("Llama 3 70B", "TPU v5p 16x16x16", 1024, 4096, tuple(fixed.items()))
        assert all(getattr(one.plan, name) == fixed[name] for one in found.best)


def test_a_pod_of_odd_sides_wants_a_batch_of_35s():
    pod = {"where": "TPU v5p 16x20x28"}
    assert "35 data ranks" in ALL["training_llama3.planner"].evaluate(**pod).verdict
    assert readout(ALL["training_llama3.planner"].evaluate(**pod, batch="4480"), "valid combinations") > 0
