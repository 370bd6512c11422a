"""The training chapter's explorers obey the laws of what they show."""

import itertools

import pytest
from looked import curve, every_control_changes_something, panel, readout, values

from scalingbook_lib import models, training
from scalingbook_lib.chapters import explorers
from scalingbook_lib.chapters.training.explorers import experts as training_experts
from scalingbook_lib.chapters.training.explorers import pipeline, zero
from scalingbook_lib.chapters.training.explorers import split as training_split
from scalingbook_lib.chapters.training_llama3.explorers import board, cost, planner
from scalingbook_lib.evidence.measured.whole_runs import WHOLE_RUNS
from scalingbook_lib.machines import chips
from scalingbook_lib.reader.explorers.view import Bars, Chart, Grid, Points, Regions, Timeline
from scalingbook_lib.reader.offered.training import machine
from scalingbook_lib.steps import pipelines
from scalingbook_lib.training import Plan, program, rules
from scalingbook_lib.units import FP32

ALL = {e.key: e for stem in ("training", "training_llama3") for e in explorers.chapter(stem)}
approx = pytest.approx


# Laws of all of them


@pytest.mark.parametrize("key", ALL)
def test_every_setting_with_the_first_control_paints_or_says_what_to_write(key):
    explorer = ALL[key]
    (a, first), *others = explorer.controls.items()
    for (b, second), one in itertools.product(others, values(first)):
        for other in values(second):
            painted = explorer.look({a: first.position(one), b: second.position(other)})
            told = any(
                word in painted.error
                for word in (
                    ": set",
                    ": lower",
                    ": take",
                    ": write",
                    "; take",
                    "; write",
                    " needs even",
                    "do not divide over cp",
                )
            )
            assert painted.view or told, (a, one, b, other, painted.error)


@pytest.mark.parametrize("key", ALL)
def test_every_control_changes_something(key):
    every_control_changes_something(ALL[key])


# ZeRO


def test_the_table_of_the_zero_paper():
    bars = panel(ALL["training.zero"].see(), Bars)
    assert [x / 1e9 for x in bars.lengths()] == approx([120, 31.4, 16.6, 1.88], rel=3e-3)


@pytest.mark.parametrize("stage", zero.STAGES)
def test_zero_is_what_the_library_says_of_the_state(stage):
    view = ALL["training.zero"].see(billions=70.0, ways=256, stage=stage, gradients="fp32", master=False)
    plan = Plan(fsdp=256, zero=zero.STAGES[stage], gradients=FP32, master=None)
    assert readout(view, "on each chip") == training.states(70e9, plan).total


def test_a_higher_stage_never_keeps_more_and_one_chip_has_nothing_to_share():
    for ways in (1, 8, 4096):
        lengths = panel(ALL["training.zero"].see(ways=ways), Bars).lengths()
        assert lengths == sorted(lengths, reverse=True)
        assert (len(set(lengths)) == 1) == (ways == 1)


# The dial


def test_the_dial_moves_the_knee_by_four():
    ends = [readout(ALL["training.dial"].see(dial=d), "mixed needs, at this dial") for d in (0.0, 1.0)]
    assert ends[1] == approx(4 * ends[0])


def test_the_reference_knees_at_90_percent_of_the_links():
    view = ALL["training.dial"].see(F=28672, links=0.9)
    assert readout(view, "mixed needs, at this dial") == approx(113.4, abs=0.1)
    assert readout(view, "FSDP alone needs") == approx(850, abs=0.5)


def test_at_the_knee_communication_takes_as_long_as_the_arithmetic():
    for dial in (0.0, 0.5, 1.0):
        knee = rules.mixed_tokens(28672, chips.V5P, dial=dial)
        view = ALL["training.dial"].see(b=knee, dial=dial)
        assert readout(view, "at most, of the peak") == approx(1)
        assert "1 times as long" in view.verdict


def test_whole_ways_are_never_better_than_the_ideal_split():
    for b, dial in itertools.product((64, 512, 2048), (0.0, 1.0)):
        ideal, whole = (ALL["training.dial"].see(b=b, dial=dial, N=8960, whole=w) for w in (False, True))
        label = "at most, of the peak"
        assert readout(whole, label) <= readout(ideal, label) * (1 + 1e-12)
        X, _, Y = next(str(r) for r in whole.readouts if r.label == "best split").replace(",", "").split()
        assert float(X) * float(Y) == 8960


# Pipelines


@pytest.mark.parametrize("schedule", pipeline.SCHEDULES)
def test_the_gantt_is_the_simulated_schedule_and_never_overlaps_itself(schedule):
    view = ALL["training.pipeline"].see(schedule=schedule, P=4, M=12)
    chunks = 2 if schedule == "interleaved" else 1
    run = pipelines.simulate(pipeline.SCHEDULES[schedule], 4, 12, chunks=chunks)
    line = panel(view, Timeline)
    assert line.range()[1] == float(run.total_s)
    assert len(line.spans) == len(run.spans)
    assert readout(view, "idle, of the step") == approx(float(run.bubble))


@pytest.mark.parametrize("schedule", pipeline.SCHEDULES)
def test_what_a_stage_holds_peaks_at_what_the_library_says(schedule):
    run = pipeline.played(schedule, 4, 12, chunks=2, backward=2.0, hop=0.0)
    moments = sorted({float(s.start) for s in run.spans})
    for stage in range(4):
        most = max(pipeline.holds(run, stage, now) for now in moments)
        assert most == float(run.live[stage])
        assert pipeline.holds(run, stage, float(run.total_s)) == 0


def test_the_bubble_of_1f1b_is_the_closed_form():
    for P, M in ((2, 1), (4, 8), (8, 32)):
        view = ALL["training.pipeline"].see(P=P, M=M)
        assert readout(view, "idle, of the step") == approx((P - 1) / (M + P - 1))
        assert readout(view, "idle, over the work") == approx((P - 1) / M)


def test_a_stage_does_at_most_one_thing_or_an_overlapped_pair():
    for schedule, step in itertools.product(pipeline.SCHEDULES, range(0, 40, 3)):
        does = panel(ALL["training.pipeline"].see(schedule=schedule, step=step), Grid).cells[0]
        assert all(cell.text.count("+") <= (schedule == "DualPipe") for cell in does)


# Pods


def test_at_the_tokens_needed_the_sum_takes_as_long_as_the_backward_pass():
    view = ALL["training.dcn"].see(pods=4, batch=4 * rules.pod_tokens(chips.V5P, 4))
    assert readout(view, "AllReduce over backward pass") == approx(1)


def test_two_pods_of_v5p_need_36720_tokens_each_and_twice_that_in_fp32():
    needed = [readout(ALL["training.dcn"].see(pods=2, gradients=g), "needed") for g in ("bf16", "fp32")]
    assert needed == [approx(36720), approx(73440)]


def test_more_pods_need_more_and_have_less():
    view = ALL["training.dcn"].see()
    assert list(curve(view, "needed, bf16 gradients").ys) == sorted(curve(view, "needed, bf16 gradients").ys)
    shared = list(curve(view, "your batch, shared").ys)
    assert shared == sorted(shared, reverse=True)


# Move by move


def _moved(scheme, what, when=None):
    return sum(m.what == what and when in (None, m.when) for m in program.program(scheme))


def test_every_scheme_has_the_collectives_of_its_algorithm():
    counts = {
        s: [
            _moved(s, what, when)
            for when in ("forward", "backward")
            for what in ("AllGather", "ReduceScatter")
        ]
        for s in program.SCHEMES
    }
    assert counts == {
        "DP": [0, 0, 0, 0],
        "FSDP": [2, 0, 2, 2],
        "TP": [1, 1, 2, 1],
        "FSDP with TP": [3, 1, 4, 3],
    }
    assert [_moved("DP", "AllReduce", when) for when in ("forward", "backward")] == [0, 2]
    assert all(_moved(s, "product") == 6 for s in program.SCHEMES)


@pytest.mark.parametrize(("X", "Y"), [(1, 1), (4, 2), (16, 16)])
def test_the_bytes_received_are_those_of_the_formulas(X, Y):
    B, D, F = 8192, 4096, 16384
    shares = {"DP": 8 * D * F * (X - 1) / X, "FSDP": 12 * D * F * (X - 1) / X, "TP": 10 * B * D * (Y - 1) / Y}
    shares["FSDP with TP"] = shares["FSDP"] / Y + shares["TP"] / X
    for scheme, nbytes in shares.items():
        view = ALL["training.steps"].see(scheme=scheme, X=X, Y=Y, B=B, D=D, F=F)
        assert readout(view, "received in all") == nbytes


def test_in_the_end_a_chip_has_its_weights_their_gradients_and_dIn():
    for scheme in program.SCHEMES:
        last = program.program(scheme)[-1]
        assert set(last.held) == {"W_in", "W_out", "dW_in", "dW_out", "dIn"}
        assert "{" not in "".join(last.held.values())
        for name in ("W_in", "W_out"):
            assert last.held[name] == last.held[f"d{name}"] == program.program(scheme)[0].held[name]


# Every split


def _split(**given):
    return ALL["training.split"].see(**given)


def test_the_fastest_split_is_a_plan_of_the_library_and_no_other_is_faster():
    base = Plan(remat="selective")
    found = training_split.judged(
        "LLaMA-3 70B", "TPU v5p 16x16x16", batch=1024, T=4096, rest="context (CP)", base=base
    )
    best = min(one.step_s for one in found.values() if not one.why)
    assert readout(_split(), "fastest step") == best
    legal = sum(not one.why for one in found.values())
    assert (readout(_split(), "ways to split"), readout(_split(), "of these legal")) == (len(found), legal)
    cells = [cell for row in panel(_split(), Grid).cells for cell in row]
    assert sum(cell.color in (0, 2) for cell in cells) == legal
    assert all(cell.text != "mesh" for cell in cells)


def test_no_split_of_a_whole_v5p_pod_is_even_but_with_35_copies():
    pod = {"where": "TPU v5p 16x20x28"}
    assert _split(**pod).verdict.startswith("None of")
    copies = _split(**pod, batch="4480", rest="copies (DP)")
    assert 0 < readout(copies, "of these legal") < readout(copies, "ways to split")
    assert "DP 35" in copies.verdict


def test_collectives_that_do_not_overlap_never_make_a_step_shorter():
    for where in ("TPU v5p 8x8x8", "H100 × 512"):
        times = [readout(_split(where=where, hidden=h, matmul=h), "fastest step") for h in (True, False)]
        assert times[0] <= times[1]


# Context


@pytest.mark.parametrize("C", [4, 8, 16, 32, 64])
def test_a_ring_takes_what_its_closed_form_says(C):
    T, m = 2**20, models.find("LLaMA-3 70B")
    view = ALL["training.context"].see(T=T, C=C)
    least = rules.ring_tokens(m, chips.V5P)
    assert readout(view, "a ring is free from") == least
    assert readout(view, "sent over attention") == approx((C - 1) / C * least / (T / C), rel=2e-2)


def test_ulysses_stops_at_the_key_value_heads_and_says_so():
    assert ALL["training.context"].look({"way": "Ulysses"}).view  # 8 ways, as it starts
    assert "heads" in ALL["training.context"].look({"way": "Ulysses", "C": 4}).error


# Experts


def test_the_exchange_over_the_products_is_the_width_needed_over_the_width():
    for name, model in itertools.product(training_experts.JOINED, training_experts.MODELS):
        s = training_experts.setting(model, "bf16 both ways", False)
        for Z in (z for z in s.sizes if training_experts.joined(name, z)):
            times = training_experts.layer_times(s, training_experts.joined(name, Z), 4096)
            view = ALL["training.experts"].see(model=model, name=name, Z=Z)
            ratio = times["there and back"] / times["products"]
            assert readout(view, "exchange over products") == approx(ratio)


def test_a_cube_of_whole_rings_needs_what_its_longest_axis_says():
    view = ALL["training.experts"].see(Z=64)
    assert readout(view, "needed") == approx(rules.expert_width(4, chips.V5P))


# LLaMA 3: days and dollars


def test_the_reference_run_on_a_pod():
    view = ALL["training_llama3.cost"].see()
    assert readout(view, "days") == approx(44.7, abs=0.05)
    assert readout(view, "cost") == approx(40.3e6, rel=2e-3)
    assert readout(view, "tokens/s of a chip") == approx(434, abs=0.5)


def test_twice_the_chips_take_half_the_days_for_the_same_money():
    one, two = (ALL["training_llama3.cost"].see(n=n) for n in (4096, 8192))
    assert readout(one, "days") == approx(2 * readout(two, "days"))
    assert readout(one, "cost") == approx(readout(two, "cost"))


@pytest.mark.parametrize(
    ("chip", "price", "says"),
    [
        ("H100", 100, "$3.85, on 2026-09-25"),
        ("H100", 50, "50 % of $3.85, on 2026-09-25"),
        ("TPU7x", 100, "$4.20, assumed"),
    ],
)
def test_every_chip_is_paid_at_its_own_price_or_at_one_that_is_said_to_be_assumed(chip, price, says):
    found = ALL["training_llama3.cost"].see(chip=chip, price=price)
    assert [r.text for r in found.readouts if r.label == "price of a chip-hour"] == [says]
    usd = (chips.find(chip).usd_per_hour or 4.2) * price / 100
    assert readout(found, "cost") == approx(usd * readout(found, "chip-hours"))


def test_every_whole_run_is_on_the_chart_at_its_utilization():
    dots = next(m for m in panel(ALL["training_llama3.cost"].see(), Chart, 1).marks if isinstance(m, Points))
    assert list(dots.ys) == [100 * run.utilization.share for run in WHOLE_RUNS]
    assert set(cost.NAMED) <= {run.name for run in WHOLE_RUNS}


# LLaMA 3: memory


def test_the_reference_minimum_of_chips():
    view = ALL["training_llama3.memory"].see(tokens=4_000_000)
    assert readout(view, "on all chips together") == approx(21.7e12, rel=3e-3)
    assert readout(view, "chips at least") == 213  # of 95 GiB; 226 of the reference's 96 GB


def test_every_part_is_shared_by_all_chips():
    view = ALL["training_llama3.memory"].see(n=1024, state="16 (fp32 copy too)")
    *parts, total = panel(view, Bars).lengths()
    assert sum(parts) == approx(total) == approx(readout(view, "on each"))
    params = models.find("LLaMA-3 70B").params
    assert sum(parts[:-1]) * 1024 == approx(16 * params)


def test_what_is_kept_orders_the_policies():
    keeps = ("layer inputs", "products with weights", "every product", "everything")
    each = [readout(ALL["training_llama3.memory"].see(keeps=k), "on each") for k in keeps]
    assert each == sorted(each)


# LLaMA 3: regimes


def test_the_map_agrees_with_the_closed_forms():
    view = ALL["training_llama3.regimes"].see
    data = rules.data_tokens(chips.V5P, axes=3)
    for tokens, said in (
        (data * 1.01, "FSDP alone"),
        (data * 0.99, "enough for FSDP with TP"),
        (20, "too few"),
    ):
        assert said in view(n=4096, tokens=tokens * 4096).verdict
    assert "do not hold" in view(n=16, tokens=2**22).verdict


def test_a_dial_of_one_makes_the_mixed_regime_start_four_times_as_high():
    needs = [readout(ALL["training_llama3.regimes"].see(dial=d), "FSDP with TP needs") for d in (0.0, 1.0)]
    assert needs[1] == approx(4 * needs[0])


def test_more_tokens_never_wait_more_for_the_network():
    regions = next(
        m for m in panel(ALL["training_llama3.regimes"].see(), Chart).marks if isinstance(m, Regions)
    )
    rank = {5: 0, 0: 1, 1: 2, 2: 3, 3: 4, 4: 5}
    for column in zip(*regions.cells, strict=True):
        ranks = [rank[cell] for cell in column]
        assert ranks == sorted(ranks, reverse=True)


# LLaMA 3: the board


def _board(**given):
    view = ALL["training_llama3.board"].see(**given)
    return view, {
        name: row[0] for name, row in zip(panel(view, Grid).rows, panel(view, Grid).cells, strict=True)
    }


def test_2048_by_4_leaves_768_chips_of_the_pod_idle():
    _, checks = _board(ways="the largest power of two")
    assert checks["chips"].text == "2,048 · 4 = 8,192, 768 idle"


def test_shards_and_copies_make_a_plan_for_every_chip_of_the_pod():
    view, checks = _board(ways="shards that divide, and copies", sequences=1120)
    assert {name for name, cell in checks.items() if cell.color == 1} == {"torus"}
    assert "no ring" in view.verdict


def test_the_board_is_green_but_for_idle_chips_and_lines_where_the_library_has_no_reason():
    for pod, ways, Y in itertools.product(board.PODS, board.WAYS, (1, 4, 5, 7, 16)):
        on = machine(pod)
        b = board.Board(models.find("LLaMA-3 70B"), on, 1024, Y, board.WAYS[ways], False)
        wrong = {name for name, (ok, _) in b.checks().items() if not ok} - {"torus"}
        if on.chips == b.X * b.Y:
            why = training.feasible(b.model, on, b.plan, 1024, 4096)
            assert bool(wrong) == any("would hold" not in one for one in why), (pod, ways, Y, wrong, why)
        else:
            assert "chips" in wrong


def test_the_board_has_the_ratios_of_the_sheet():
    """1,024 by 4 on 16x16x16 with 90 % of the links: 0.31 and 0.36; here with all of them."""
    view, _ = _board(pod="TPU v5p 16x16x16")
    assert readout(view, "FSDP over arithmetic") == approx(0.31 * 0.9, rel=0.02)
    assert readout(view, "TP over arithmetic") == approx(0.356 * 0.9, rel=0.01)


# LLaMA 3: the planner


def test_the_planner_shows_the_rankings_best_and_judges_it_as_the_library_does():
    view = ALL["training_llama3.planner"].see()
    found = planner.ranked("LLaMA-3 70B", "TPU v5p 16x16x16", 1024, 4096, ())
    plan = found.winner.plan
    step = training.step(models.find("LLaMA-3 70B"), machine("TPU v5p 16x16x16"), plan, batch=1024, T=4096)
    assert readout(view, "best step") == step.total_s == min(point.step_s for point in found.points)
    assert len(panel(view, Grid).cells) == len(found.best)


def test_what_is_fixed_is_kept_and_never_makes_the_best_faster():
    free = readout(ALL["training_llama3.planner"].see(), "best step")
    for name, value in (("tp", "8"), ("cp", "2"), ("pp", "4"), ("remat", "full")):
        view = ALL["training_llama3.planner"].see(**{name: value})
        assert readout(view, "best step") >= free
        fixed = {name: int(value) if value.isdigit() else value}
        found = planner.ranked("LLaMA-3 70B", "TPU v5p 16x16x16", 1024, 4096, tuple(fixed.items()))
        assert all(getattr(one.plan, name) == fixed[name] for one in found.best)


def test_a_pod_of_odd_sides_wants_a_batch_of_35s():
    pod = {"where": "TPU v5p 16x20x28"}
    assert "35 data ranks" in ALL["training_llama3.planner"].see(**pod).verdict
    assert readout(ALL["training_llama3.planner"].see(**pod, batch="4480"), "of these legal") > 0
