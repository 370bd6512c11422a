"""Whatever is typed, the command line answers or says in one sentence what is wrong; it never falls over."""

import contextlib
import io
import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import scalingbook_cli as cli
from scalingbook_lib.launch import flags
from tests.core import repeatable
from tools.testing import scope

QUIET = repeatable.examples(
    150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
COMMANDS = [
    "model",
    "roofline",
    "collective",
    "plan",
    "serve",
    "launch",
    "score",
    "conform",
    "chips",
    "completion",
]
MODELS = st.sampled_from(
    ["llama-3-8b", "deepseek-v3", "gemma-3-27b", "qwen3-next-80b-a3b", "gpt-oss-20b", "phi-2"]
)
CHIPS = st.sampled_from(["v2", "v5e", "v5p", "tpu7x", "v100", "h100", "mi300x", "gb200"])
NUMBERISH = st.text("0123456789.,_-+eE^x×·= kKMGTPiBbs%:FLOPstoken", max_size=12)
COUNTS = st.one_of(
    st.integers(-1, 2**60).map(str),
    st.sampled_from(["1", "2", "8", "64", "4Ki", "16M", "2^53", "0.5"]),
    NUMBERISH,
)
SHAPES = st.lists(st.integers(0, 64), max_size=4).map(lambda sides: "x".join(map(str, sides)))
MACHINES = st.one_of(st.builds("{}:{}".format, CHIPS, st.one_of(SHAPES, COUNTS)), CHIPS, NUMBERISH)
ANYTHING = st.one_of(
    st.text(max_size=30), st.text("-/.{}[]\x00\x1b\n\udc80 a", max_size=10), COUNTS, MACHINES
)
POWERS = st.sampled_from([1, 2, 4, 8, 16])
SWITCHES = st.lists(st.sampled_from(["--json", "--explain"]), unique=True)
TYPES = st.sampled_from(["bf16", "fp8", "int4", "fp32", "none", "fp64"])


def asked(*argv):
    """The exit code and both outputs; a traceback would be an exception here."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([str(word) for word in argv])
    return code, out.getvalue(), err.getvalue()


def answers_or_tells(*argv):
    code, out, err = asked(*argv)
    assert code in (0, 1, 2)
    if code == 2:
        assert not out
        assert err.startswith("scalingbook")
        assert err.count("\n") == 1
        assert err.strip().isprintable()
        assert len(err) < 3000
    else:
        assert not err
        assert out
        if "--json" in argv and "--help" not in argv and "-h" not in argv:
            json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return code, out, err


def options(**values):
    """Some of these options with their values, as words."""
    pairs = [
        st.one_of(st.just(()), st.tuples(st.just(f"--{n.replace('_', '-')}"), v)) for n, v in values.items()
    ]
    return st.tuples(*pairs).map(lambda found: [word for pair in found for word in pair])


@pytest.fixture(autouse=True)
def nothing_is_piped(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))


@QUIET
@given(st.sampled_from(COMMANDS), st.lists(ANYTHING, max_size=5))
@example("model", ["\x00"])
@example("model", ["a" * 5000])
@example("model", ["/" + "a" * 5000])
@example("model", ["."])
@example("roofline", ["v5e", "--matmul", "9" * 400])
@example("collective", ["all-gather", "1", "v5p:" + "9" * 5000])
@example("collective", ["all-gather", "1", "v5p:" + "9" * 190])
def test_any_words(command, words):
    answers_or_tells(command, *words)


@QUIET
@given(st.lists(ANYTHING, max_size=3))
def test_any_words_without_a_command(words):
    if not words or words[0] not in COMMANDS:
        answers_or_tells(*words)


@QUIET
@given(
    MODELS,
    options(sequence=COUNTS, batch=COUNTS, context=COUNTS, tokens=COUNTS, cache=TYPES, master=TYPES),
    SWITCHES,
)
@example("llama-3-8b", ["--sequence", str(2**53), "--batch", str(2**53), "--tokens", "1"], ["--explain"])
def test_any_sizes_of_a_model(model, words, switches):
    answers_or_tells("model", model, *words, *switches)


@QUIET
@given(
    CHIPS,
    options(matmul=st.one_of(SHAPES, NUMBERISH), flops=COUNTS, bytes=COUNTS, dtype=TYPES, out=TYPES),
    SWITCHES,
)
@example("v5e", ["--flops", "0", "--bytes", "0"], ["--explain", "--json"])
def test_any_operation(chip, words, switches):
    answers_or_tells("roofline", chip, *words, *switches)


@QUIET
@given(
    st.sampled_from(["all-gather", "reduce-scatter", "all-reduce", "all-to-all"]), COUNTS, MACHINES,
    options(mesh=st.one_of(st.sampled_from(["X=8", "X=2,Y=4", "X=1"]), NUMBERISH),
            over=st.text("XYZ", max_size=3)),
    SWITCHES,
)  # fmt: skip
def test_any_collective(which, nbytes, machine, words, switches):
    answers_or_tells("collective", which, nbytes, machine, *words, *switches)


@QUIET
@given(
    MODELS, MACHINES, COUNTS,
    options(sequence=COUNTS, tp=COUNTS, fsdp=COUNTS, pp=COUNTS, ep=COUNTS, chunks=COUNTS, tokens=COUNTS,
            schedule=st.sampled_from(["1f1b", "interleaved", "zero-bubble", "dualpipe", ""]), overlap=COUNTS),
    SWITCHES,
)  # fmt: skip
@example("llama-3-8b", "h100", str(2**53), ["--fsdp", "8"], ["--explain", "--json"])
def test_any_plan(model, machine, batch, words, switches):
    answers_or_tells("plan", model, machine, "--batch", batch, *words, "--as-written", *switches)


@QUIET
@given(
    MODELS, st.sampled_from(["v5p:4x4x8", "h100:128"]), POWERS, POWERS, POWERS, st.booleans(),
    st.sampled_from(["none", "selective", "full"]), SWITCHES,
)  # fmt: skip
def test_plans_that_could_be(model, machine, tp, pp, cp, experts, remat, switches):
    fsdp = 128 // (tp * pp * cp)
    ways = ["--tp", tp, "--pp", pp, "--cp", cp, "--fsdp", fsdp, *(["--ep", tp * cp] if experts else [])]
    answers_or_tells(
        "plan", model, machine, "--batch", 1024, *ways, "--remat", remat, "--as-written", *switches
    )


@settings(QUIET, max_examples=scope.examples(40))
@given(
    MODELS, st.sampled_from(["v5e:2x2", "v5e:2x4", "h100:8", "b200:2", "v6e:1x1"]),
    options(tp=POWERS, pp=POWERS, ep=POWERS, rows=POWERS, batch=st.integers(1, 3000), prompt=COUNTS,
            output=COUNTS, itl=st.sampled_from(["50ms", "1 s", "0.001", "2GB"]),
            reserve=st.sampled_from(["0", "99%"]),
            weights=st.sampled_from(["int8", "fp8", "int4", "bf16"]),
            policy=st.sampled_from(["chunked", "interleaved"])),
    SWITCHES,
)  # fmt: skip
def test_any_way_to_serve(model, machine, words, switches):
    answers_or_tells("serve", model, machine, *words, *switches)


@settings(QUIET, max_examples=scope.examples(40))
@given(
    MODELS, st.sampled_from(["v5p:4x4x4", "h100:64", "h100:8", "v5e:2x4", "gb200"]),
    st.one_of(st.integers(1, 3000), st.sampled_from([64, 512, 1024])),
    options(tp=POWERS, pp=POWERS, ep=POWERS, zero=st.sampled_from("0123"), pods=st.integers(1, 3),
            sequence=st.sampled_from(["1", "4Ki", "12345", "2^40"]), microbatch=POWERS, chunks=POWERS,
            overlap=st.sampled_from(["none", "0.5", "2"]), schedule=st.sampled_from(["1f1b", "dualpipe"])),
    SWITCHES,
)  # fmt: skip
def test_any_search(model, machine, batch, words, switches):
    answers_or_tells("plan", model, machine, "--batch", batch, *words, *switches)


@QUIET
@given(st.one_of(st.text(max_size=60), st.recursive(
    st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.dictionaries(st.sampled_from(["model_type", "hidden_size", "x"]), inner, max_size=4),
).map(json.dumps)))  # fmt: skip
@example('{"model_type": "llama", "hidden_size": 1e400}')
@example("{" * 10_000)
def test_any_text_as_a_config(monkeypatch, text):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    answers_or_tells("model", "-", "--json")


STARTS = {
    "maxtext": "python -m MaxText.train base.yml model_name=llama3-8b max_target_length=4096",
    "megatron": "torchrun pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 1",
    "megatron_bridge": "torchrun run.py model.seq_length=4096 train.micro_batch_size=1",
    "torchtitan": "torchrun -m torchtitan.train --training.local_batch_size 1 --model.flavor 8B",
    "accelerate": "accelerate launch --use_fsdp x.py --per_device_train_batch_size 1 --max_length 2048",
    "deepspeed": "deepspeed x.py --per_device_train_batch_size 1 --max_length 2048",
    "vllm": "vllm serve openai/gpt-oss-20b",
    "sglang": "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B",
    "tensorrt_llm": "trtllm-serve meta-llama/Llama-3.1-8B",
}
VALUES = st.one_of(
    st.sampled_from(
        ["1", "2", "4", "8", "-1", "0", "true", "full", "none", "fp8", "bfloat16", "$X", "''", "0.5"]
    ),
    st.text("0123456789.-abc", min_size=1, max_size=6),
)


@settings(QUIET, max_examples=scope.examples(200))
@given(st.data(), st.sampled_from(sorted(STARTS)), st.booleans())
def test_any_flags_of_a_launcher(data, launcher, as_json):
    rows = flags.table(launcher).rows
    drawn = data.draw(st.lists(st.tuples(st.sampled_from(rows), VALUES), max_size=6))
    words = [
        f"{row.flag} {value}" if row.flag.startswith("-") else f"{row.flag}={value}"
        for row, value in drawn
        if not row.flag.startswith("$")
    ]
    model = [] if launcher in ("vllm", "sglang", "tensorrt_llm") else ["--model", "llama-3-8b"]
    line = " ".join((STARTS[launcher], *words))
    answers_or_tells("launch", line, "--machine", "h100:8", *model, *(["--json"] if as_json else []))


@QUIET
@given(st.text("vllm serve-tp $(){}'\"\\\n#=<>|&;`1x", max_size=80))
@example("vllm serve ${")
@example("vllm serve $((")
@example("A=(")
@example("cat <<EOF")
@example("if\nfi\nfi\nvllm serve m")
def test_any_text_as_a_launch(text):
    answers_or_tells("launch", "--machine", "h100:8", "--", text)


@QUIET
@given(st.sampled_from(["a.json", "a.toml", "a.yaml"]), st.text(max_size=80))
@example("a.yaml", "&a [*a]")
@example("a.yaml", "a: &a\n  b: *a")
@example("a.json", '{"zero_optimization": {"stage": null}}')
def test_any_file_as_a_launch(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8", errors="surrogatepass")
    answers_or_tells("launch", tmp_path / name, "--machine", "h100:8", "--model", "gpt-2", "--sequence", 64)
