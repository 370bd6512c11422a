"""JSON says exactly what the library says: nothing is computed, rounded or lost on the way."""

from dataclasses import replace

import pytest

from scalingbook_cli import parameter_types, reading, serve
from scalingbook_lib import calibrated, collectives, inference, models, planner, roofline, rules, training
from scalingbook_lib.calibrated import bands, recommendation
from scalingbook_lib.calibrated.memory_margin import memory_margin
from scalingbook_lib.inference.layout import WAYS
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models import arithmetic
from scalingbook_lib.training import Plan
from scalingbook_lib.units import BF16, DTYPES, FP8, FP32, INT8, percent

MODELS = [model.name for model in models.CATALOG]
KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
COLLECTIVES = {name: collectives.FORMULAS[collectives.Collective.named(name)] for name in KINDS}
MACHINES = {
    "v5p:4x4x8": Slice.of(chips.V5P, "4x4x8").axes,
    "v5e:4x8": Slice.of(chips.V5E, "4x8").axes,
    "tpu7x:2x2x1": Slice.of(chips.TPU7X, "2x2x1").axes,
    "h100": Cluster.of(chips.H100, 8).levels,
    "h100:1024": Cluster.of(chips.H100, 1024).levels,
    "GB200:576": Cluster.of(chips.GB200, 576).levels,
    "mi300x:64": Cluster.of(chips.MI300X, 64).levels,
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_counted_as_the_library_counts_it(ask, name):
    model = models.find(name)
    told = ask("model --sequence 4096 --batch 3 --causal --json", name).values
    forward = arithmetic.flops(model, 3, 4096, causal=True)
    cache = arithmetic.kv_cache(model, 4096, sequences=3)
    state = arithmetic.training_state(model)
    assert told["parameters"]["total"] == model.params
    assert told["parameters"]["active"] == model.active_params
    assert told["parameters"]["by_part"] == model.by_part
    assert told["parameters"]["active_by_part"] == model.active_by_part
    assert told["flops"]["forward_flops"] == forward.total
    assert told["flops"]["training_flops"] == 3 * forward.total
    assert told["flops"]["forward_flops_by_part"] == {t.name: t.value for t in forward.terms}
    assert told["kv_cache"]["total_bytes"] == cache.nbytes
    assert told["kv_cache"]["bytes_per_token"] == cache.bytes_per_token
    assert told["training_state"]["total_bytes"] == state.total


@pytest.mark.parametrize(
    ("name", "not_counted", "assumed"),
    [
        ("llama-3-8b", [], []),
        ("google/gemma-3n-E2B-it", ["the part that sees pictures", "the part that hears"], []),
        ("Qwen/Qwen3-8B-AWQ", [], ["weights in int4, by the name of the checkpoint"]),
    ],
)
def test_json_tells_what_is_not_counted_and_what_is_assumed(ask, name, not_counted, assumed):
    told = ask("model --json", name).values
    assert (told["not_counted"], told["assumed"]) == (not_counted, assumed)


def test_types_and_a_run_are_the_library_s(ask):
    model = models.find("Llama 3 8B")
    line = "model llama-3-8b --weights fp32 --gradients none --moments bf16 --master none --cache int8"
    told = ask(line, "--context", "32Ki", "--tokens", "15T", "--json").values
    state = arithmetic.training_state(model, weights=FP32, gradients=None, moments=BF16, master=None)
    run = arithmetic.training_flops(model, 15 * 10**12, 8192)
    assert told["training_state"]["bytes_by_part"] == {t.name: t.value for t in state.terms}
    assert told["kv_cache"]["total_bytes"] == arithmetic.kv_cache(model, 2**15, INT8).nbytes
    assert told["training_run"]["total_flops"] == run.total
    assert told["training_run"]["six_nd_flops"] == run.six_nd


@pytest.mark.parametrize("chip", chips.CATALOG.values(), ids=str)
def test_a_product_on_every_chip_is_the_library_s_roofline(ask, chip):
    dtype = DTYPES[next(iter(chip.rates()))]
    told = ask(f"roofline --matmul 64x4096x16Ki --dtype {dtype} --json", chip.name).values
    line = roofline.matmul(64, 4096, 16384, chip, dtype)
    assert told["chip"] == chip.name
    for name in ("flops", "bytes", "flops_per_s", "bytes_per_s", "math_s", "memory_s", "lower_s", "upper_s",
                 "bound", "attained_flops_per_s"):  # fmt: skip
        assert told[name] == getattr(line, name)
    assert told["break_even_batch_tokens"] == finite(rules.matmul_critical_batch(4096, 16384, chip, dtype))


def test_stored_and_computed_types_reach_the_roofline(ask):
    told = ask("roofline v5e --matmul 8,512,512 --weights int8 --out fp32 --compute int8 --json").values
    line = roofline.matmul(8, 512, 512, chips.V5E, weights=INT8, out=FP32, maths=INT8)
    assert (told["bytes"], told["math_s"]) == (line.bytes, line.math_s)


def test_any_operation_is_its_flops_and_bytes(ask):
    told = ask("roofline h100 --flops 2.5TFLOPs --bytes 1.5GiB --dtype fp8 --json").values
    line = roofline.operation(2.5e12, 1.5 * 2**30, chips.H100, FP8)
    assert (told["flops"], told["bytes"], told["lower_s"]) == (line.flops, line.bytes, line.lower_s)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("which", COLLECTIVES)
def test_a_collective_over_a_whole_machine_takes_the_library_s_time(ask, which, machine):
    told = ask(f"collective {which} 2GiB {machine} --json").values
    transfer = COLLECTIVES[which](2**31, *MACHINES[machine])
    assert told["array_bytes"] == 2**31
    assert told["chips"] == collectives.chips(*MACHINES[machine])
    for name in ("bandwidth_s", "latency_s", "total_s", "textbook_s", "bound"):
        assert told[name] == getattr(transfer, name)


def test_a_collective_over_mesh_axes_uses_their_links(ask):
    mesh = Slice.of(chips.V5P, "8x8x16").mesh(X=16, Y=64)
    told = ask("collective AllGather 1G v5p:8x8x16 --mesh X=16,Y=64 --over Y --json").values
    assert told["total_s"] == collectives.all_gather(1e9, *mesh.axes("Y")).total_s
    levels = Cluster.of(chips.H100, 1024).mesh(X=8, Y=128).axes("XY")
    told = ask("collective all_reduce 16M h100:1024 --mesh X8,Y128 --over XY --in-switch --json").values
    assert told["total_s"] == collectives.all_reduce(16e6, *levels, in_switch=True).total_s


PLANS = [
    ("llama-3-70b", "v5p:16x16x16", "--batch 2048 --tp 4 --fsdp 1024 --remat full",
     Plan(tp=4, fsdp=1024, remat="full"), 2048),
    ("llama-3.1-405b", "h100:16384", "--batch 16Mi --tp 8 --pp 16 --fsdp 128 --zero 2 --overlap none",
     Plan(tp=8, pp=16, fsdp=128, zero=2, overlap="none"), 2048),
    ("deepseek-v3", "h100:2048", "--batch 15360 --sequence 4096 --pp 16 --ep 64 --fsdp 128 --master none "
     "--schedule dualpipe --no-sequence-parallel --moments bf16",
     Plan(pp=16, ep=64, fsdp=128, master=None, schedule="dualpipe", sequence_parallel=False,
          moments=BF16), 15360),
]  # fmt: skip


@pytest.mark.parametrize(("model", "machine", "line", "plan", "batch"), PLANS)
def test_a_plan_is_the_library_s_step(ask, model, machine, line, plan, batch):
    T = 4096 if "4096" in line else 8192
    told = ask(
        f"plan {model} {machine} {line} --tokens 15T --usd-per-hour 2 --as-written --efficiency peak --json"
    )
    on = Cluster.of(chips.H100, int(machine[5:])) if "h100" in machine else Slice.of(chips.V5P, machine[4:])
    plan = replace(plan, **recommendation.habits(models.find(model), on.chip))
    step = training.step(models.find(model), on, plan, batch=batch, T=T)
    run = training.run(step, 15e12, 2)
    error = memory_margin(on.chip).error
    why = training.feasible(models.find(model), on, plan, batch, T, headroom=-error)
    assert told.code == bool(why)
    assert told.values["reasons"] == list(why)
    assert told.values["step_time_s"] == step.total_s
    assert told.values["terms_s"] == step.terms
    assert told.values["mfu"] == step.mfu
    assert told.values["memory_bytes_by_part"] == step.memory.terms
    assert [row["total_s"] for row in told.values["collectives"]] == [row.seconds for row in step.traffic]
    assert told.values["run"]["usd"] == run.usd


SEARCHES = [
    ("llama-3-8b", "h100:64", "", {}),
    ("llama-3-8b", "h100:64", "--tp 2 --remat full", {"tp": 2, "remat": "full"}),
    ("llama-3-70b", "v5p:4x4x8", "--zero 3 --microbatch 1", {"zero": 3, "microbatch": 1}),
    ("mixtral-8x7b", "h100:128", "--pp 4 --master none", {"pp": 4, "master": None}),
]


@pytest.mark.parametrize(("model", "machine", "line", "fixed"), SEARCHES)
def test_a_search_is_the_library_s_recommendation(ask, model, machine, line, fixed):
    told = ask(f"plan {model} {machine} --batch 512 {line} --best 3 --efficiency peak --json")
    on = reading.machine(machine)
    how = {"batch": 512, "T": 8192, "fixed": fixed, "pessimistic": False, "keep": 3}
    ranking = calibrated.recommend(models.find(model), on, **how).ranking
    assert told.values["search"]["possible"] == ranking.legal
    assert [one["step_time_s"] for one in told.values["search"]["best"]] == [
        one.step.total_s for one in ranking.best
    ]
    assert told.values["step_time_s"] == ranking.winner.step.total_s
    for name, value in fixed.items():
        assert told.values["plan"][name] == value
    people = ask(f"plan {model} {machine} --batch 512 {line} --best 3 --efficiency peak --explain").out
    assert " ".join(str(ranking.why).split()) in " ".join(people.split())


SERVED = [
    ("llama-3-70b", "v5e:4x4", "--weights int8 --kv int8 --pp 1", {"weights": INT8, "kv": INT8, "pp": 1}),
    ("llama-3-8b", "h100:2", "--tp 2 --itl 30ms", {"tp": 2}),
    ("mixtral-8x7b", "h200:8", "--attention-dp 1 --weights fp8 --compute fp8",
     {"attention_dp": 1, "weights": FP8, "compute": FP8}),
]  # fmt: skip


@pytest.mark.parametrize(("model", "machine", "line", "fixed"), SERVED)
def test_a_front_is_the_planner_s(ask, model, machine, line, fixed):
    told = ask(f"serve {model} {machine} --prompt 2048 --output 256 {line} --efficiency peak --json").values
    within = 0.03 if "--itl" in line else None
    on = reading.machine(machine)
    how = {"chunk": serve.default_batched_tokens(on.chip), "reserve": 0.1}
    front = planner.serve(models.find(model), on, P=2048, G=256, fixed=fixed, itl_s=within, **how)
    assert [p["cost_per_million_tokens"] for p in told["search"]["front"]] == [p.cost for p in front]
    assert [p["itl_s"] for p in told["search"]["front"]] == [p.itl_s for p in front]
    assert told["usd_per_million_output_tokens"] == front.best.cost
    assert told["terms_s"] == front.best.serving.step.terms
    assert told["chips_joules_per_output_token"] == front.best.serving.joules_per_token


@pytest.mark.parametrize("efficiency", ["peak", "calibrated"])
def test_a_layout_as_written_is_served_as_the_library_says(ask, efficiency):
    line = "--prompt 2048 --output 256 --tp 8 --weights fp8 --kv fp8 --compute fp8 --batch 64 --as-written"
    told = ask(f"serve llama-3-70b h100:8 {line} --efficiency {efficiency} --json").values
    layout = inference.Layout(tp=8, weights=FP8, kv=FP8, compute=FP8)
    reached = inference.PEAK if efficiency == "peak" else calibrated.serving(chips.H100, FP8)
    llama, node = models.find("Llama 3 70B"), Cluster.of(chips.H100, 8)
    served = inference.serve(llama, node, layout, P=2048, G=256, batch=64, efficiency=reached)
    assert told["output_tokens_per_s"] == served.tokens_per_s
    assert told["itl_s"] == served.itl_s
    assert told["decode_step_time_s"] == served.step.total_s
    held = inference.memory(llama, layout, node, batch=64, S=2176, reserve=0.1)
    assert told["memory_bytes_by_part"] == held.terms
    assert (told["band_factor"] is None) == (efficiency == "peak")


def test_every_way_of_a_layout_can_be_written():
    written = {
        option.name for option in vars(parameter_types.layout_options(lambda: None))["__click_params__"]
    }
    assert set(WAYS) <= written


def test_what_if_is_the_planner_s_sensitivity(ask):
    told = ask("plan llama-3-8b h100:64 --batch 512 --efficiency peak --what-if --json").values["what_if"]
    how = {"batch": 512, "T": 8192, "pessimistic": False, "keep": 5}
    found = calibrated.recommend(models.find("Llama 3 8B"), Cluster.of(chips.H100, 64), **how)
    changes = planner.sensitivity(found.ranking).changes
    assert [one["what"] for one in told] == [change.what for change in changes]
    assert [one["step_time_s"] for one in told] == [change.then.step.total_s for change in changes]
    assert "compute × 2" in ask("plan llama-3-8b h100:64 --batch 512 --efficiency peak --what-if").out


def test_calibrated_is_the_efficiency_of_that_chip_and_type(ask):
    told = ask("plan llama-3-8b h100:64 --batch 512 --efficiency calibrated --compute fp8 --json").values
    reached = calibrated.training(chips.H100, "fp8")
    found = calibrated.recommend(models.find("Llama 3 8B"), Cluster.of(chips.H100, 64), batch=512, T=8192,
                                 fixed={"compute": FP8}, efficiency=reached)  # fmt: skip
    assert told["efficiency"] == reached.name
    assert told["efficiency_shares"] == reached.shares
    assert told["band_factor"] == bands.training_band(experts=False).factor
    assert told["step_time_s"] == found.winner.step.total_s
    assert told["p80_step_time_s"] == found.p80_s > found.winner.step.total_s
    assert told["nearest_published"]["id"] == found.published.plan.id


def test_two_pods_are_searched_together(ask):
    told = ask("plan llama-3-8b v5p:4x4x4 --batch 512 --pods 2 --efficiency peak --json").values
    how = {"batch": 512, "T": 8192, "pods": 2, "pessimistic": False}
    found = calibrated.recommend(models.find("Llama 3 8B"), Slice.of(chips.V5P, "4x4x4"), **how)
    assert told["plan"]["dcn"] == 2
    assert told["step_time_s"] == found.winner.step.total_s


def test_every_field_of_a_plan_can_be_written_or_is_left_to_the_library():
    written = {option.name for option in vars(parameter_types.plan_options(lambda: None))["__click_params__"]}
    unwritten = set(training.plan.PLAN_FIELDS) - written
    assert unwritten == {"frozen", "prefetch", "reduced", "zigzag"}
    assert written <= set(training.plan.PLAN_FIELDS)


def test_plans_are_ranked_by_the_time_that_80_percent_of_steps_do_not_exceed(ask):
    """Meta's degrees; plans with lower expected times have degrees that no published run has."""
    told = ask("plan llama-3.1-405b h100:16384 --batch 16Mi --json").values
    assert [told["plan"][name] for name in ("tp", "cp", "pp")] == [8, 1, 16]


LLAMA_405B = (
    "plan llama-3.1-405b h100:8192 --batch 16Mi --tp 8 --pp 16 --fsdp 64 --zero 1 --schedule interleaved"
)


def test_a_plan_of_the_user_is_not_refused_within_the_error_of_the_memory_count(ask):
    line = f"{LLAMA_405B} --chunks 8 --moments bf16 --as-written"
    told = ask(f"{line} --json")
    assert (told.code, told.values["feasible"], told.values["reasons"]) == (0, True, [])
    over = told.values["memory_bytes"] / told.values["hbm_bytes"] - 1
    assert 0.04 < over < told.values["memory_count_error"] < 0.1
    people = " ".join(ask(line).out.split())
    assert f"{percent(over)} over; our count is off by up to 6.3% on published runs" in people
    strict = ask(f"{line} --headroom 0 --json")
    assert strict.code == 1
    assert "a chip would hold" in strict.values["reasons"][0]


def test_headroom_decides_what_a_search_may_fill(ask):
    line = "plan llama-3-70b h100:256 --batch 2Mi --best 3 --json"
    shares = {}
    for headroom in (None, 0, "40%"):
        told = ask(f"{line} --headroom {headroom}" if headroom is not None else line).values
        shares[headroom] = max(one["memory_bytes"] for one in told["search"]["best"]) / told["hbm_bytes"]
    assert shares[None] <= 1 - memory_margin(chips.H100).headroom < shares[0] <= 1
    assert shares["40%"] <= 0.6


def test_where_no_plan_leaves_headroom_one_within_the_error_is_found(ask):
    line = "plan llama-3-8b h100:1 --batch 8Ki --sequence 8192 --weights bf16 --master none --moments bf16"
    told = ask(f"{line} --json")
    assert told.code == 0
    assert told.values["headroom"] == -memory_margin(chips.H100).error
    assert "No plan leaves the headroom of 23%." in " ".join(ask(f"{line} --explain").out.split())
    assert ask(f"{line} --headroom 30%").code == 1


def test_recipes_can_be_written_in_full(ask):
    line = (
        "plan llama-3.1-405b tpu7x:4x8x8 --batch 1536 --fsdp 256 --microbatch 6 --loss-tiles 4 "
        "--weights fp32 --master none --moments bf16 --remat save:k,v;offload:in,down --as-written --json"
    )
    told = ask(line)
    assert told.code == 0
    assert told.values["plan"]["remat"] == "save:k,v;offload:in,down"
    assert told.values["step_time_s"] == pytest.approx(98.34, rel=0.1)  # of average software
    oss = ask(
        "plan gpt-oss-120b tpu7x:4x4x4 --batch 1280 --fsdp 64 --microbatch 20 --weights fp32 --master none "
        "--remat offload:in,down --as-written --json"
    )
    assert oss.code == 0
    assert oss.values["memory_bytes_by_part"]["logits"] < 70e9
    stages = "--pp 4 --fsdp 16 --stage-layers 21,21,21,17 --offload-layers 8 --offload-optimizer --zero 1"
    told = ask(f"plan llama-3-70b h100:64 --batch 128 {stages} --as-written --headroom 0 --json").values
    assert told["plan"]["stage_layers"] == [21, 21, 21, 17]
    assert told["memory_bytes_by_part"].keys().isdisjoint({"optimizer"})


def test_every_chip_is_listed_with_all_of_its_figures(ask):
    told = ask("chips --json").values["chips"]
    assert [chip["name"] for chip in told] == list(chips.ALL)
    for chip, row in zip(chips.ALL.values(), told, strict=True):
        figures = {name: value for name, value in chip.figures().items() if name != "torus"}
        assert figures.items() <= row.items()
        assert all(source for source in ask("chips --json", chip.name).values["sources"].values())


def finite(value):
    return None if value == float("inf") else value


def test_options_on_experts_that_mean_nothing_are_refused(ask):
    for line in ("plan llama-3-8b h100:64 --batch 512", "serve llama-3-8b h100:8"):
        told = ask(f"{line} --expert-skew 1")
        assert told.code == 2
        assert "Llama 3 8B has no experts; leave the option out" in told.err
    told = ask("plan deepseek-v3 h100:256 --batch 2048 --expert-domains 99")
    assert told.code == 2
    assert "--expert-domains 99 is more than the 32 domains of 256 H100; write at most 32" in told.err


def test_the_nearest_published_plan_says_how_likely_it_fits(ask):
    told = ask("plan qwen3-30b-a3b h100:16 --batch 512")
    row = next(line for line in told.out.splitlines() if "16 H100, 4,096 tokens" in line)
    assert row.split()[-1] == "no"
    kimi = "plan llama-3-70b h100:512 --batch 1024 --fsdp 16 --headroom"
    tight, roomy = (ask(f"{kimi} {share}").out for share in ("0.55", "0.1"))
    assert ">99%, too tight" in tight
    assert "too tight" not in roomy
