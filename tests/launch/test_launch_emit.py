"""Emit, read, and the plan is the same; what a launcher cannot express and changes time is refused."""

import random
from dataclasses import replace

import pytest

from scalingbook_lib import calibrated, inference, launch, models, planner
from scalingbook_lib.calibrated import recommendation
from scalingbook_lib.inference import Layout
from scalingbook_lib.launch import Given, LaunchError, changes, emit
from scalingbook_lib.launch.serving import DRAFT_HEAD, HEAD, Draft
from scalingbook_lib.machines import chips, machine_names
from scalingbook_lib.training import Plan, PlanError, step
from scalingbook_lib.units import BF16, FP8, FP32

DENSE, MOE, LARGE = (models.find(name) for name in ("llama-3-70b", "mixtral-8x7b", "llama-3.1-405b"))
T = 4096


def machine(name):
    return machine_names.read(name).machine


def drawn(launcher, seed):
    """A plan that the launcher can express, with its model, machine and batch."""
    draw = random.Random(f"{launcher} {seed}")
    model = draw.choice((DENSE, MOE))
    names = ["v5p:4x4x4", "tpu7x:4x4x4", "h100:64"] if launcher == "maxtext" else ["h100:64", "b200:64"]
    on = machine(draw.choice(names))
    fixed, tried = emit.searched(launcher, model)
    tp, cp, pp = draw.choice((1, 2, 4)), draw.choice((1, 2)), draw.choice((1, 2, 4))
    ranks = on.chips // (tp * cp * pp)
    dp = draw.choice([n for n in (1, 2, 4) if ranks % n == 0])
    ep = draw.choice((1, 2, 4)) if model.experts and (ranks // dp) % 4 == 0 else 1
    fields = {"tp": tp, "cp": cp, "pp": pp, "dp": dp, "fsdp": ranks // dp, "ep": ep}
    fields |= {
        name: draw.choice(values) for name, values in tried.items() if name not in ("schedule", "chunks")
    }
    if pp > 1:
        interleaved = draw.random() < 0.5 and launcher != "maxtext"
        fields |= (
            {"schedule": "interleaved", "chunks": 2} if interleaved else {"schedule": tried["schedule"][0]}
        )
    fields["microbatch"] = draw.choice((1, 2))
    if launcher == "megatron":
        split = draw.random() < 0.5 or bool(model.experts and tp > 1)
        fields |= {"sequence_parallel": split, "collective_matmul": split and draw.random() < 0.5}
        fields |= {"compute": draw.choice((BF16, FP8)), "gradients": draw.choice((BF16, FP32))}
        fields |= {"expert_tp": draw.choice((None, 1)), "zero": draw.choice((0, 1, 2, 3))}
        fields |= {
            "offload_optimizer": draw.random() < 0.3,
            "context": draw.choice(("ring", "gather", "ulysses")),
        }
    elif launcher == "torchtitan":
        fields |= {"collective_matmul": draw.random() < 0.5, "compute": draw.choice((BF16, FP8))}
        fields |= {"context": draw.choice(("ring", "gather")), "expert_tp": draw.choice((None, 1))}
    else:
        fields |= {
            "sequence_parallel": draw.random() < 0.5,
            "context": draw.choice(("ring", "gather", "ulysses")),
        }
        fields |= {"loss_tiles": draw.choice((1, 4)), "offload_optimizer": draw.random() < 0.3}
        fields |= {"weights": draw.choice((FP32, BF16)), "compute": draw.choice((BF16, FP8))}
        fields["remat"] = draw.choice((*tried["remat"], "save:q,k;offload:in", "offload:q,k,v"))
        fields["zigzag"] = draw.random() < 0.8
        fields["moments"] = fields["weights"]  # without mu_dtype
        fields["dcn"] = draw.choice((1, 1, 2)) if on.chip.torus else 1
    if fields.get("expert_tp") == 1 and (ep == 1 or tp == 1):
        fields["expert_tp"] = None
    plan = Plan(**fixed | fields)
    m = draw.choice((1, 2, 4)) if pp == 1 else pp * draw.choice((1, 2))
    return model, on, plan, plan.ranks * plan.microbatch * m


@pytest.mark.parametrize("launcher", emit.TRAINING)
@pytest.mark.parametrize("seed", range(60))
def test_a_plan_is_read_back_from_its_own_flags(launcher, seed):
    model, on, plan, batch = drawn(launcher, seed)
    emission = emit.training(launcher, model, on, plan, batch=batch, T=T)
    back = launch.read(emission.text, Given(model=model, machine=on), launcher=launcher)
    assert emit.differences(plan, back.plan) == []
    assert (back.batch, back.T, emission.not_expressed) == (batch, T, ())
    assert not back.account.unknown
    assert [one.flag for one in back.account.unused] == []


@pytest.mark.parametrize(
    ("launcher", "name", "model"),
    [("maxtext", "v5p:4x4x8", DENSE), ("maxtext", "h100:64", DENSE), ("megatron", "h100:128", MOE),
     ("megatron", "h100:512", LARGE), ("torchtitan", "h100:128", DENSE)],
)  # fmt: skip
def test_a_recommended_plan_is_emitted_and_takes_the_same_time(launcher, name, model):
    on, fixed_and_tried = machine(name), emit.searched(launcher, model)
    efficiency = calibrated.training(on.chip, "bf16")
    found = recommendation.recommend(
        model,
        on,
        batch=512,
        T=T,
        efficiency=efficiency,
        fixed=fixed_and_tried[0],
        tried=fixed_and_tried[1],
        keep=1,
    )
    plan = found.winner.plan
    emission = emit.training(launcher, model, on, plan, batch=512, T=T)
    back = launch.read(emission.text, Given(model=model, machine=on), launcher=launcher)
    again = step(model, on, back.plan, batch=512, T=T, efficiency=efficiency)
    assert again.total_s == pytest.approx(found.winner.step.total_s, rel=1e-12)
    assert again.memory.total == pytest.approx(found.winner.step.memory.total, rel=1e-12)


@pytest.mark.parametrize(
    ("launcher", "name", "fields", "said"),
    [
        ("torchtitan", "h100:64", {"weights": BF16, "master": FP32}, "master=fp32"),
        ("torchtitan", "h100:64", {"offload_layers": 4}, "offload_layers=4"),
        ("torchtitan", "h100:64", {"zero": 1}, "zero=1"),
        ("megatron", "h100:64", {"remat": "save:q,k,v"}, "remat=save:q,k,v"),
        ("megatron", "h100:64", {"loss_tiles": 4}, "loss_tiles=4"),
        ("maxtext", "v5p:4x4x4", {"zero": 2}, "zero=2"),
        ("maxtext", "v5p:4x4x4", {"overlap": "none"}, "overlap=none"),
        ("maxtext", "v5p:4x4x4", {"master": FP32}, "master=fp32"),
        ("megatron", "v5p:4x4x4", {}, "does not run on TPU v5p; write --emit maxtext"),
    ],
)
def test_what_changes_time_or_memory_and_cannot_be_written_is_refused(launcher, name, fields, said):
    plan = Plan(**emit.searched(launcher, DENSE)[0] | {"fsdp": 64} | fields)
    with pytest.raises(LaunchError) as told:
        emit.training(launcher, DENSE, machine(name), plan, batch=64, T=T)
    assert said in str(told.value)


def test_experts_under_tensor_parallelism_need_sequence_parallelism_in_megatron():
    plan = Plan(**emit.searched("megatron", MOE)[0] | {"tp": 4, "fsdp": 16, "sequence_parallel": False})
    with pytest.raises(LaunchError, match="leave --no-sequence-parallel out, or write --tp 1"):
        emit.training("megatron", MOE, machine("h100:64"), plan, batch=64, T=T)


UNIFORM = ["llama-3-8b", "llama-3.2-1b", "qwen2.5-7b", "qwen3-8b", "mixtral-8x7b", "glm-4.5-air", "gpt-2"]


@pytest.mark.parametrize("name", UNIFORM)
def test_the_shape_flags_of_megatron_build_the_model_of_the_plan(name):
    """Norms, biases, positions, MLP, tied embeddings, grouped queries, and no padding of the vocabulary."""
    model, on = models.find(name), machine("h100:8")
    plan = Plan(**emit.searched("megatron", model)[0] | {"fsdp": 8, "zero": 1})
    emission = emit.training("megatron", model, on, plan, batch=8, T=1024)
    back = launch.read(emission.text, Given(machine=on), launcher="megatron")
    assert back.model.by_part == model.by_part
    assert back.model.windows == model.windows
    assert emit.differences(plan, back.plan) == []
    assert len(emission.notes) == 1  # on mock data


def test_parts_that_megatron_has_no_flags_for_are_named():
    model = models.find("gemma-2-9b")
    plan = Plan(**emit.searched("megatron", model)[0] | {"fsdp": 8, "zero": 1})
    notes = emit.training("megatron", model, machine("h100:8"), plan, batch=8, T=1024).notes
    assert notes[0].startswith("Gemma-2 9B has other norms, attention windows than these flags build")


@pytest.mark.parametrize("seed", range(60))
def test_megatron_starts_with_the_arguments_of_a_plan(seed):
    """The assertions of megatron/training/arguments.py at d98e8a6, for what a plan can ask for."""
    model, on, plan, batch = drawn("megatron", seed)
    text = emit.training("megatron", model, on, plan, batch=batch, T=T).text
    first, *lines = text.split(" \\\n  ")
    has = {line.split()[0]: line.partition(" ")[2] for line in lines}
    required = {"--num-layers", "--hidden-size", "--num-attention-heads", "--max-position-embeddings"}
    assert (
        required | {"--micro-batch-size", "--lr", "--train-iters", "--mock-data", "--tokenizer-type"}
    ) <= set(has)
    assert int(has["--max-position-embeddings"]) >= int(has["--seq-length"])
    fsdp = "--use-megatron-fsdp" in has
    if fsdp:
        assert has["--ckpt-format"] == "fsdp_dtensor"
    one = "CUDA_DEVICE_MAX_CONNECTIONS=1" in first
    assert one == (not fsdp and (plan.tp > 1 or plan.cp > 1))
    needs = {
        "--overlap-param-gather": "--overlap-grad-reduce",
        "--tp-comm-overlap": "--sequence-parallel",
        "--optimizer-cpu-offload": "--use-precision-aware-optimizer",
    }
    assert all(other in has for flag, other in needs.items() if flag in has)
    if "--overlap-param-gather" in has:
        assert fsdp or "--use-distributed-optimizer" in has
    if model.experts:
        assert has["--moe-token-dispatcher-type"] == "alltoall"
        assert "--moe-grouped-gemm" in has


def test_torchtitan_compiles_as_the_runs_of_the_calibration_do():
    plan = Plan(**emit.searched("torchtitan", DENSE)[0] | {"tp": 8, "fsdp": 8, "collective_matmul": True})
    lines = emit.training("torchtitan", DENSE, machine("h100:64"), plan, batch=64, T=T).lines
    assert "--compile.enable" in lines
    assert "--parallelism.enable_async_tensor_parallel" in lines  # a switch, which takes no value


def test_what_changes_neither_is_listed():
    """The number of domains of a token's experts says nothing on one machine of a single domain."""
    on = machine("h100:8")
    plan = Plan(**emit.searched("torchtitan", MOE)[0] | {"fsdp": 8, "ep": 8, "expert_domains": 1})
    emission = emit.training("torchtitan", MOE, on, plan, batch=8, T=T)
    assert emission.not_expressed == ("expert_domains=1",)


def test_tp_overlap_is_no_flag_of_megatron_without_sequence_parallelism():
    fields = {"tp": 4, "fsdp": 16, "sequence_parallel": False, "collective_matmul": True}
    plan = Plan(**emit.searched("megatron", DENSE)[0] | fields)
    emission = emit.training("megatron", DENSE, machine("h100:64"), plan, batch=64, T=T)
    assert emission.not_expressed == ("collective_matmul=True",)
    assert "--tp-comm-overlap" not in emission.lines


# Servers


def drawn_server(launcher, seed):
    draw = random.Random(f"{launcher} {seed}")
    model = models.find(draw.choice(("llama-3-70b", "qwen3-235b-a22b", "deepseek-v3")))
    on = machine("h200:16")
    tp, pp = draw.choice((8, 16)), 1
    if model.experts is None and draw.random() < 0.3:
        tp, pp = 4, 2
    narrow = {"weights": FP8, "compute": FP8, "outer": BF16} if model.name != "Qwen3 235B-A22B" else {}
    fields = {"tp": tp, "pp": pp, "kv": draw.choice((BF16, FP8))} | narrow
    if model.experts:
        fields |= {"attention_dp": draw.choice((1, tp)), "ep": draw.choice((1, tp))}
    elif launcher == "vllm":
        fields["kv_sequence"] = draw.choice((1, 2)) if tp > model.K else 1
    caps = {"sequences": 16 * draw.choice((1, 2, 4)), "S": 2048, "chunk": draw.choice((2048, 8192))}
    policy = draw.choice(("chunked", "interleaved"))
    return emit.serving_launch(launcher, model, on, Layout(**fields), policy=policy, fraction=0.9, **caps)


@pytest.mark.parametrize("launcher", emit.SERVING)
@pytest.mark.parametrize("seed", range(40))
def test_a_layout_is_read_back_from_its_own_flags(launcher, seed):
    one = drawn_server(launcher, seed)
    text = emit.serving(one, "a/model").text
    back = launch.read(text, Given(model=one.model, machine=one.machine), launcher=launcher)
    assert back.layout == one.layout or emit.serving(back, "a/model").text == text
    told = (back.max_sequences, back.chunk, back.policy, back.fraction, back.replicas)
    assert told == (one.max_sequences, one.chunk, one.policy, one.fraction, one.replicas)
    assert not back.account.unknown


@pytest.mark.parametrize("launcher", emit.SERVING)
def test_the_memory_fraction_holds_the_sequences_of_the_plan(launcher):
    on, model = machine("h100:8"), DENSE
    layout = Layout(tp=8)
    most = inference.largest_batch(model, layout, on, S=2048, reserve=0.1)
    one = emit.serving_launch(
        launcher, model, on, layout, sequences=most, S=2048, chunk=8192, policy="chunked", fraction=0.9
    )
    assert one.fraction >= 0.9
    assert inference.largest_batch(model, layout, on, S=2048, reserve=one.reserve) >= most
    with pytest.raises(LaunchError, match="does not hold 100,000 sequences with 97% of the memory"):
        emit.serving_launch(
            launcher, model, on, layout, sequences=100_000, S=2048, chunk=8192, policy="chunked", fraction=0.9
        )


@pytest.mark.parametrize(
    ("launcher", "fields"),
    [
        ("vllm", {"rows": 2}),
        ("vllm", {"kv_batch": 2}),
        ("sglang", {"kv_sequence": 2}),
        ("vllm", {"attention_dp": 2}),
    ],
)
def test_a_layout_that_a_server_has_no_flags_for_is_refused(launcher, fields):
    one = emit.serving_launch(
        launcher, DENSE, machine("h100:8"), Layout(tp=8, **fields), sequences=8, S=2048, chunk=2048,
        policy="chunked", fraction=0.9,
    )  # fmt: skip
    with pytest.raises(LaunchError, match=next(iter(fields))):
        emit.serving(one, "m")


DRAFT = models.find("llama-3.2-1b")


@pytest.mark.parametrize("launcher", emit.SERVING)
@pytest.mark.parametrize(
    ("name", "drafts", "draft"),
    [("llama-3-70b", 3, HEAD), ("llama-3-70b", 4, Draft(DRAFT)), ("deepseek-v3", 1, HEAD)],
)
def test_drafts_are_read_back_from_their_own_flags(launcher, name, drafts, draft):
    layout = Layout(tp=8, weights=FP8, compute=FP8, outer=BF16)
    one = emit.serving_launch(
        launcher, models.find(name), machine("h200:8"), layout, sequences=16, S=2048, chunk=2048,
        policy="interleaved", fraction=0.9, drafts=drafts, draft=draft,
    )  # fmt: skip
    emission = emit.serving(one, "a/model")
    given = Given(model=one.model, machine=one.machine, acceptance_length=2.0)
    back = launch.read(emission.text, given, launcher=launcher)
    assert (back.drafts, back.draft) == (drafts, draft)
    assert not back.account.unknown
    head = draft == HEAD and name == "llama-3-70b"  # DeepSeek-V3 has its own in the checkpoint
    assert (DRAFT_HEAD in emission.text, len(emission.notes)) == (head, 1 + head)


@pytest.mark.parametrize(
    ("layout", "policy", "said"),
    [(Layout(tp=8), "chunked", "policy=chunked"), (Layout(tp=4, pp=2), "interleaved", "write --pp 1")],
)
def test_sglang_has_no_drafts_in_mixed_steps_or_in_a_pipeline(layout, policy, said):
    one = emit.serving_launch(
        "sglang", DENSE, machine("h100:8"), layout, sequences=8, S=2048, chunk=2048, policy=policy,
        fraction=0.9, drafts=3,
    )  # fmt: skip
    with pytest.raises(LaunchError, match=said):
        emit.serving(one, "m")


def test_a_checkpoint_that_is_stored_in_fp8_needs_no_flag_for_it():
    on, model = machine("h200:8"), models.find("deepseek-v3")
    layout = Layout(tp=8, weights=FP8, compute=FP8, outer=BF16)
    one = emit.serving_launch(
        "vllm", model, on, layout, sequences=8, S=2048, chunk=2048, policy="chunked", fraction=0.9
    )
    assert "--quantization" not in emit.serving(one, "deepseek-ai/DeepSeek-V3").text
    assert "--quantization fp8" in emit.serving(one, "someone/else").text


def test_the_front_of_a_search_has_a_layout_that_each_server_can_express():
    on = machine("h100:8")
    for launcher, module in emit.SERVING.items():
        front = planner.serve(DENSE, on, P=1024, G=256, fixed=module.SEARCHED, reserve=0.1)
        told = []
        for point in front.points:
            try:
                one = emit.serving_launch(
                    launcher, DENSE, on, point.layout, sequences=int(point.serving.slots), S=1152, chunk=512,
                    policy=point.serving.policy, fraction=0.9,
                )  # fmt: skip
                told.append(emit.serving(one, "m"))
            except LaunchError:
                continue
        assert told


# Changes


def test_the_best_changes_are_faster_fit_and_can_be_written():
    text = (
        "torchrun pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 1 --global-batch-size 512 "
        "--tensor-model-parallel-size 8 --use-distributed-optimizer --pipeline-model-parallel-size 4 "
        "--recompute-granularity full"
    )
    on = machine("h100:64")
    one = launch.read(text, Given(model=DENSE, machine=on))
    efficiency = calibrated.training(on.chip, "bf16")

    def judge(plan):
        try:
            return step(DENSE, on, plan, batch=one.batch, T=one.T, efficiency=efficiency)
        except ValueError:
            return None

    now = judge(one.plan)
    better = changes.training(one, now, judge)
    assert len(better) == 2
    for change in better:
        assert change.step.total_s < now.total_s
        assert change.gain == pytest.approx(1 - change.step.total_s / now.total_s)
        assert change.step.memory.total <= on.chip.hbm_bytes
        assert change.flags
    assert [c.gain for c in better] == sorted((c.gain for c in better), reverse=True)
    every = [judge(plan) for plan in changes.neighbors(one)]
    fitting = [s.total_s for s in every if s and s.memory.total <= on.chip.hbm_bytes]
    assert better[0].step.total_s == min(fitting)


def test_a_plan_that_does_not_fit_gets_changes_that_make_it_fit():
    text = "torchrun pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 4 "
    text += "--tensor-model-parallel-size 8"
    on = machine("h100:64")
    one = launch.read(text, Given(model=DENSE, machine=on))

    def judge(plan):
        try:
            return step(DENSE, on, plan, batch=one.batch, T=one.T)
        except (ValueError, PlanError):
            return None

    now = judge(one.plan)
    assert now.memory.total > on.chip.hbm_bytes
    better = changes.training(one, now, judge)
    assert better
    assert all(change.step.memory.total < now.memory.total for change in better)


TRAINER = (
    "train.py --model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 1 "
    "--max_seq_length 4096 --gradient_checkpointing --bf16"
)


def accelerate(config):
    """The launch of the trainer with a configuration of Accelerate."""
    text = f"accelerate launch --config_file c.yaml {TRAINER}"
    return launch.read(text, Given(machine=machine("h100:8")), opener={"c.yaml": config}.get)


def stepped(one):
    """A judge of plans for a launch."""

    def judge(plan):
        try:
            return step(one.model, one.machine, plan, batch=one.batch, T=one.T)
        except ValueError:
            return None

    return judge


def test_replicas_that_do_not_fit_are_sharded_in_the_words_of_the_launcher():
    one = accelerate("distributed_type: MULTI_GPU\nnum_processes: 8\n")
    judge = stepped(one)
    now = judge(one.plan)
    better = changes.training(one, now, judge)
    assert better[0].what == "FSDP 1 → 8, replicas 8 → 1, ZeRO 0 → 2"
    assert "distributed_type: FSDP" in better[0].flags
    assert all(change.step.memory.total < now.memory.total for change in better)
    again = accelerate(
        "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 2\n"
        "  fsdp_reshard_after_forward: false\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    )
    assert judge(again.plan).memory.total == pytest.approx(better[0].step.memory.total, rel=0.05)


@pytest.mark.parametrize(
    "text",
    [
        f"torchrun --nproc_per_node 8 {TRAINER}",
        "torchrun --nproc_per_node 8 pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 1",
        "torchrun --nproc_per_node 8 -m torchtitan.train --model.name llama3 --model.flavor 8B "
        "--training.seq_len 8192 --parallelism.data_parallel_replicate_degree 8",
    ],
)
def test_every_neighbor_is_another_plan(text):
    one = launch.read(text, Given(model=models.find("llama-3-8b"), machine=machine("h100:8")))
    found = [emit.canonical(plan) for plan in changes.neighbors(one)]
    assert emit.canonical(one.plan) not in found
    assert all(plan.fsdp * plan.dp == 8 or plan.tp * plan.cp * plan.pp > 1 for plan in found)
    if not one.plan.zero:  # which shards nothing: moving ranks between the two changes nothing
        assert all(
            plan.zero for plan in found if plan.fsdp != one.plan.fsdp and plan.tp * plan.cp * plan.pp == 1
        )


def served(one):
    """The steady state of a server that is as full as it can be; None where it does not fit."""
    S = 1280
    most = inference.largest_batch(one.model, one.layout, one.machine, S=S, reserve=one.reserve)
    if not most:
        return None
    batch = min(most, one.max_sequences or most)
    how = {"P": 1024, "G": 512, "batch": batch, "chunk": one.chunk, "policy": one.policy}
    return inference.serve(one.model, one.machine, one.layout, **how)


@pytest.mark.parametrize(
    ("text", "name", "flag", "chips"),
    [
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct", "v5e:2x2", "--tensor-parallel-size 4", 4),
        ("vllm serve meta-llama/Llama-3.1-405B-Instruct -tp 8", "h100:16", "--pipeline-parallel-size 2", 16),
        ("vllm serve meta-llama/Llama-3.1-70B-Instruct", "h100:1", "--tensor-parallel-size 2", 2),
        ("vllm serve openai/gpt-oss-120b", "a100-40g:4", "--tensor-parallel-size 2", 4),
    ],
)
def test_a_server_that_does_not_fit_gets_changes_that_make_it_fit(text, name, flag, chips):
    one = launch.read(text, Given(machine=machine(name)))
    assert served(one) is None
    found = changes.fitting(one, served)
    assert flag in {each for change in found for each in change.flags}
    assert not any("--data-parallel-size" in each for change in found for each in change.flags)
    for change in found:
        assert (change.helps, change.gain, change.launch.machine.chips) == ("fit", None, chips)
        back = launch.read(f"{text} {' '.join(change.flags)}", Given(machine=change.launch.machine))
        assert served(back).tokens_per_s == pytest.approx(change.served.tokens_per_s, rel=1e-9)


def test_a_server_gets_one_change_for_throughput_and_one_for_latency():
    one = launch.read(
        "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 8 --max-num-seqs 64", Given(machine=chips.H100)
    )

    def judge(other):
        try:
            return inference.serve(
                other.model, other.machine, other.layout, P=1024, G=256, batch=other.max_sequences,
                chunk=other.chunk, policy=other.policy,
            )  # fmt: skip
        except ValueError:
            return None

    now = judge(one)
    better = changes.serving(one, now, judge)
    assert better[0].helps == "throughput"
    assert better[0].launch.replicas * better[0].served.tokens_per_s > one.replicas * now.tokens_per_s
    for change in better[1:]:
        assert change.helps == "ITL"
        assert change.served.itl_s < now.itl_s
    assert replace(one, chunk=1).chunk == 1
