"""The training chapter's explorers obey the laws of what they show."""

import itertools

import pytest
from looked import curve, panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.training.explorers import experts as training_experts
from scalingbook_book.chapters.training.explorers import pipeline, zero
from scalingbook_book.chapters.training.explorers import split as training_split
from scalingbook_book.reader.explorers.view import Bars, Chart, Grid, Timeline
from scalingbook_lib import models, rules, training
from scalingbook_lib.machines import chips
from scalingbook_lib.rules.scaling_laws import CHINCHILLA, CHINCHILLA_REFIT
from scalingbook_lib.steps import limits, pipelines
from scalingbook_lib.training import Plan, program
from scalingbook_lib.units import FP32

ALL = {e.key: e for stem in ("training", "training_llama3") for e in explorers.chapter(stem)}
approx = pytest.approx


# ZeRO


def test_the_table_of_the_zero_paper():
    bars = panel(ALL["training.zero"].evaluate(), Bars)
    assert [x / 1e9 for x in bars.lengths()] == approx([120, 31.4, 16.6, 1.88], rel=3e-3)


@pytest.mark.parametrize("stage", zero.STAGES)
def test_zero_is_what_the_library_says_of_the_state(stage):
    view = ALL["training.zero"].evaluate(billions=70.0, ways=256, stage=stage, gradients="fp32", master=False)
    plan = Plan(fsdp=256, zero=zero.STAGES[stage], gradients=FP32, master=None)
    assert readout(view, "training state per chip") == training.states(70e9, plan).total


def test_a_higher_stage_never_keeps_more_and_one_chip_has_nothing_to_share():
    for ways in (1, 8, 4096):
        lengths = panel(ALL["training.zero"].evaluate(ways=ways), Bars).lengths()
        assert lengths == sorted(lengths, reverse=True)
        assert (len(set(lengths)) == 1) == (ways == 1)


# The dial


def test_the_dial_moves_the_knee_by_four():
    ends = [readout(ALL["training.dial"].evaluate(dial=d), "FSDP with TP needs") for d in (0.0, 1.0)]
    assert ends[1] == approx(4 * ends[0])


def test_the_reference_knees_at_90_percent_of_the_links():
    view = ALL["training.dial"].evaluate(F=28672, links=0.9)
    assert readout(view, "FSDP with TP needs") == approx(113.4, abs=0.1)
    assert readout(view, "FSDP alone needs") == approx(850, abs=0.5)


def test_at_the_knee_communication_takes_as_long_as_the_arithmetic():
    for dial in (0.0, 0.5, 1.0):
        knee = rules.fsdp_with_tensor_tokens(28672, chips.V5P, dial=dial)
        view = ALL["training.dial"].evaluate(b=knee, dial=dial)
        assert readout(view, "fraction of the peak, at most") == approx(1)
        assert "1 times as long" in view.verdict


def test_whole_ways_are_never_better_than_the_ideal_split():
    for b, dial in itertools.product((64, 512, 2048), (0.0, 1.0)):
        ideal, whole = (ALL["training.dial"].evaluate(b=b, dial=dial, N=8960, whole=w) for w in (False, True))
        label = "fraction of the peak, at most"
        assert readout(whole, label) <= readout(ideal, label) * (1 + 1e-12)
        X, _, Y = (
            next(str(r) for r in whole.readouts if r.label == "best degrees, FSDP × TP")
            .replace(",", "")
            .split()
        )
        assert float(X) * float(Y) == 8960


# Pipelines


@pytest.mark.parametrize("schedule", pipeline.SCHEDULES)
def test_the_gantt_is_the_simulated_schedule_and_never_overlaps_itself(schedule):
    view = ALL["training.pipeline"].evaluate(schedule=schedule, P=4, M=12)
    chunks = 2 if schedule == "interleaved" else 1
    run = pipelines.simulate(pipeline.SCHEDULES[schedule], 4, 12, chunks=chunks)
    line = panel(view, Timeline)
    assert line.range()[1] == float(run.total_s)
    assert len(line.spans) == len(run.spans)
    assert readout(view, "idle fraction of the step") == approx(float(run.bubble))


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
        view = ALL["training.pipeline"].evaluate(P=P, M=M)
        assert readout(view, "idle fraction of the step") == approx((P - 1) / (M + P - 1))
        assert readout(view, "idle time over work") == approx((P - 1) / M)


def test_a_stage_does_at_most_one_thing_or_an_overlapped_pair():
    for schedule, step in itertools.product(pipeline.SCHEDULES, range(0, 40, 3)):
        does = panel(ALL["training.pipeline"].evaluate(schedule=schedule, step=step), Grid).cells[0]
        assert all(cell.text.count("+") <= schedule.startswith("DualPipe") for cell in does)


def test_only_dualpipe_doubles_the_weights():
    for schedule in pipeline.SCHEDULES:
        view = ALL["training.pipeline"].evaluate(schedule=schedule)
        assert readout(view, "stages of weights per chip") == 1 + (schedule == "DualPipe")
        assert ("holds the weights of two stages" in view.verdict) == (schedule == "DualPipe")


def test_without_a_barrier_zb_h2_and_zb_v_are_never_idle_and_say_so():
    label = "idle fraction without a barrier between steps"
    for schedule in pipeline.SCHEDULES:
        view = ALL["training.pipeline"].evaluate(schedule=schedule)
        free = schedule in ("ZB-H2", "ZB-V")
        assert readout(view, label) == (0 if free else readout(view, "idle fraction of the step"))
        assert ("Without a barrier" in view.verdict) == free


# Pods


def test_at_the_tokens_needed_the_sum_takes_as_long_as_the_backward_pass():
    view = ALL["training.dcn"].evaluate(pods=4, batch=4 * rules.cross_pod_tokens(chips.V5P, 4))
    assert readout(view, "AllReduce over backward pass") == approx(1)


def test_two_pods_of_v5p_need_36720_tokens_each_and_twice_that_in_fp32():
    needed = [
        readout(ALL["training.dcn"].evaluate(pods=2, gradients=g), "needed per pod") for g in ("bf16", "fp32")
    ]
    assert needed == [approx(36720), approx(73440)]


def test_more_pods_need_more_and_have_less():
    view = ALL["training.dcn"].evaluate()
    assert list(curve(view, "needed, bf16 gradients").ys) == sorted(curve(view, "needed, bf16 gradients").ys)
    shared = list(curve(view, "batch divided by pods").ys)
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
        view = ALL["training.steps"].evaluate(scheme=scheme, X=X, Y=Y, B=B, D=D, F=F)
        assert readout(view, "received in total") == nbytes


def test_in_the_end_a_chip_has_its_weights_their_gradients_and_dIn():
    for scheme in program.SCHEMES:
        last = program.program(scheme)[-1]
        assert set(last.held) == {"W_in", "W_out", "dW_in", "dW_out", "dIn"}
        assert "{" not in "".join(last.held.values())
        for name in ("W_in", "W_out"):
            assert last.held[name] == last.held[f"d{name}"] == program.program(scheme)[0].held[name]


# Every split


def _split(**given):
    return ALL["training.split"].evaluate(**given)


def test_the_fastest_split_is_a_plan_of_the_library_and_no_other_is_faster():
    base = Plan(remat="selective")
    found = training_split.judged(
        "Llama 3 70B", "TPU v5p 16x16x16", batch=1024, T=4096, rest="context (CP)", base=base
    )
    best = min(one.step_s for one in found.values() if not one.why)
    assert readout(_split(), "fastest step") == best
    legal = sum(not one.why for one in found.values())
    assert (readout(_split(), "plans"), readout(_split(), "possible plans")) == (len(found), legal)
    cells = [cell for row in panel(_split(), Grid).cells for cell in row]
    assert sum(cell.color in (0, 2) for cell in cells) == legal
    assert all(cell.text != "mesh" for cell in cells)


def test_no_split_of_a_whole_v5p_pod_is_even_but_with_35_copies():
    pod = {"where": "TPU v5p 16x20x28"}
    assert _split(**pod).verdict.startswith("None of")
    copies = _split(**pod, batch="4480", rest="replicas (DP)")
    assert 0 < readout(copies, "possible plans") < readout(copies, "plans")
    assert "DP 35" in copies.verdict


def test_collectives_that_do_not_overlap_never_make_a_step_shorter():
    for where in ("TPU v5p 8x8x8", "H100 × 512"):
        times = [readout(_split(where=where, hidden=h, matmul=h), "fastest step") for h in (True, False)]
        assert times[0] <= times[1]


# Context


@pytest.mark.parametrize("C", [4, 8, 16, 32, 64])
def test_a_ring_takes_what_its_closed_form_says(C):
    T, m = 2**20, models.find("Llama 3 70B")
    view = ALL["training.context"].evaluate(T=T, C=C)
    least = rules.context_parallel_tokens(m.G, chips.V5P)
    assert readout(view, "ring hidden above") == least
    assert readout(view, "communication over attention") == approx((C - 1) / C * least / (T / C), rel=2e-2)


def test_ulysses_stops_at_the_key_value_heads_and_says_so():
    assert ALL["training.context"].evaluate_state({"way": "Ulysses"}).view  # 8 ways, as it starts
    assert "heads" in ALL["training.context"].evaluate_state({"way": "Ulysses", "C": 4}).error


# Experts


def test_the_exchange_over_the_products_is_the_width_needed_over_the_width():
    for name, model in itertools.product(training_experts.JOINED, training_experts.MODELS):
        s = training_experts.setting(model, "bf16 both", False)
        for Z in (z for z in s.sizes if training_experts.joined(name, z)):
            layer = limits.routed_layer(training_experts.joined(name, Z), s.model, 4096)
            view = ALL["training.experts"].evaluate(model=model, name=name, Z=Z)
            ratio = layer.exchange_s / layer.products_s
            assert readout(view, "AllToAlls over compute") == approx(ratio)


def test_a_cube_of_whole_rings_needs_what_its_longest_axis_says():
    view = ALL["training.experts"].evaluate(Z=64)
    assert readout(view, "width needed") == approx(rules.expert_parallel_width(chips.V5P, 4))


# Scaling laws


def test_the_optimum_of_the_explorer_is_that_of_the_law_and_its_curve_is_lowest_there():
    view = ALL["training.scaling"].evaluate(size=1.0)
    best = CHINCHILLA_REFIT.optimum(4.9e24)
    assert readout(view, "compute-optimal size") == approx(best.params)
    assert readout(view, "its training FLOPs over the budget") == approx(1)
    line = panel(view, Chart).marks[0]
    lowest = line.xs[list(line.ys).index(min(line.ys))]
    assert lowest == approx(best.params / 1e9, rel=0.01)
    assert "Yours is the compute-optimal size" in view.verdict


def test_more_served_tokens_make_the_best_model_smaller():
    sizes = [
        readout(ALL["training.scaling"].evaluate(served=served), "lifetime optimum")
        for served in (0.1, 1.0, 10.0, 100.0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert readout(ALL["training.scaling"].evaluate(served=0.01), "lifetime optimum") == approx(
        CHINCHILLA_REFIT.optimum(4.9e24).params, rel=0.01
    )


def test_the_fit_decides_the_advice():
    old, new = (
        readout(ALL["training.scaling"].evaluate(law=law.name, budget=576.0), "tokens per parameter, optimum")
        for law in (CHINCHILLA, CHINCHILLA_REFIT)
    )
    assert (round(old), round(new)) == (93, 18)
