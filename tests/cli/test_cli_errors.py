"""Whatever is wrong, the answer is one sentence on standard error, exit code 2, and no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

import scalingbook_cli as cli

WRONG = {
    "nothing": "No such command 'nothing'",
    "model": "Missing argument 'MODEL'",
    "model llama-9": "'llama-9' is not in the catalog; write one of",
    "model /nowhere/config.json": "cannot be read; give the path of a config.json",
    "model llama-3-8b --sequence 0": "'0' is not a whole number from 1",
    "model llama-3-8b --sequence 1.5": "'1.5' is not a whole number",
    "model llama-3-8b --sequence 5GB": "'5GB' has the unit B; write a plain count",
    "model llama-3-8b --batch -3": "'-3' is not a whole number",
    "model llama-3-8b --tokens many": "'many' is not a number",
    "model llama-3-8b --cache fp64": "'fp64' is not a data type here; the widest is fp32; write one of",
    "model llama-3-8b --frobnicate": "No such option",
    "roofline": "Missing argument 'CHIP'",
    "roofline v9": "no chip 'v9' in the catalog; write one of TPU v4, TPU v3, TPU v2; `scalingbook chips`",
    "roofline v5e": "write either --matmul BxDxF, or both --flops and --bytes",
    "roofline v5e --flops 1T": "write either --matmul BxDxF, or both --flops and --bytes",
    "roofline v5e --matmul 1x2x3 --flops 1T --bytes 1G": "write either --matmul",
    "roofline v5e --matmul 64x8192": "'64x8192' has 2 sizes; write B, D and F",
    "roofline v5e --matmul 64xx8192": "is not a number",
    "roofline v5e --flops 1TB --bytes 1G": "'1TB' has the unit B; write 8.6G",
    "roofline v5e --flops 1T --bytes 1e40": "'1e40' is not between 0 and 1e+30",
    "roofline v5e --flops 1T --bytes 1G --weights int8": "--weights and --out are for --matmul",
    "roofline v5e --matmul 64x64x64 --dtype fp8": "no fp8 rate of TPU v5e is known",
    "collective all-gather": "Missing argument 'BYTES'",
    "collective all-sum 1G h100": "'all-sum' is not a collective of this command; write one of all-gather",
    "collective all-gather 5s h100": "'5s' has the unit s; write 16M, 2TiB",
    "collective all-gather 1G v5p": "write the shape of its slice, as in v5p:4x4x4",
    "collective all-gather 1G v5e": "write the shape of its slice, as in v5e:4x4",
    "collective all-gather 1G v5p:4097": "is 4,097 chips, but TPU v5p has no slice of that size; write",
    "collective all-gather 1G v5p-7": "counts TensorCores, two per TPU v5p, and 7 is odd",
    "collective all-gather 1G h100-4x4": "H100 is not joined in a torus, so 4x4 is not a machine",
    "collective all-gather 1G l40s:16": "no source documents the network between them; write at most 8 chips",
    "roofline h100 --figure hbm_byte=3 --matmul 1x2x3": "write one of hbm_bytes, hbm_bytes_per_s",
    "roofline h100 --figure hbm_bytes --matmul 1x2x3": "'hbm_bytes' is not an assignment; write a name",
    "roofline h100 --chip-file /no.json --matmul 1x2x3": "'/no.json' cannot be read; write the path",
    "roofline h100-96gb --matmul 1x2x3": "H100 has 80 GiB, not 96 GB; write H100 NVL or H100",
    "collective all-gather 1G v5p:4x4x5": "is not offered as 4x4x5; the nearest slices are",
    "collective all-gather 1G h100:4x4": "'4x4' is not a number of chips, and H100 is not joined in a torus",
    "collective all-gather 1G h100:100": "100 chips do not fill domains of 8: write 96 or 104",
    "collective all-gather 1G v100:8": "which this model does not cover",
    "collective all-gather 1G h100:1024 --over X": "write the mesh too, as in --mesh",
    "collective all-gather 1G h100:1024 --mesh X=8,Y=128": "--mesh needs --over; name the axes",
    "collective all-gather 1G h100:1024 --mesh X=8,X=128 --over X": "is not a mesh; name each axis once",
    "collective all-gather 1G h100:1024 --mesh X=8,Y=100 --over X": "does not use the 1,024 chips",
    "collective all-gather 1G h100:1024 --mesh X=8,Y=128 --over Z": "'Z' is not a set of axes of this mesh",
    "collective all-gather 1G h100:1024 --mesh eight --over X": "'eight' is not a mesh",
    "collective all-gather 1G h100 --in-switch": "--in-switch is for all-reduce",
    "collective all-reduce 1G mi300x --in-switch": "no switch of these levels can reduce",
    "collective all-reduce 1G v5p:4x4x4 --in-switch": "a torus has no switch that can reduce",
    "plan llama-3-8b": "Missing argument 'MACHINE'",
    "plan llama-3-8b h100": "Missing option '--batch'",
    "plan llama-3-8b h100 --batch 16M --fsdp 8": "sequences of 8,192 tokens; write '15,998,976 tokens'",
    "plan llama-3-8b h100 --batch 8 --fsdp 8 --chunks 2 --as-written": "chunks=2 are for schedule",
    "plan llama-3-8b h100 --batch 8 --fsdp 8 --overlap 3": "'3' is not a share; write one from 0 to 1",
    "plan llama-3-8b h100 --batch 8 --fsdp 8 --efficiency 0": "'0' is not an efficiency",
    "plan llama-3-8b h100 --batch 8 --fsdp 8 --usd-per-hour 0": "'0' is not a positive number",
    "plan llama-3-8b h100 --batch 8 --what-if --as-written": "--what-if needs a search",
    "plan llama-3-8b h100 --batch 8 --ep 2": "Llama 3 8B has no experts for ep=2: write 1",
    "plan llama-3-8b h100 --batch 8 --tp 2 --expert-tp 2 --expert-domains 4": "expert_tp=2, expert_domains=4",
    "plan llama-3-8b h100 --batch 8 --best 2000": "'2000' is too long a list",
    "plan llama-3-8b h100 --batch 8 --zero 4": "'4' is not one of '0', '1', '2', '3'",
    "serve llama-3-8b": "Missing argument 'MACHINE'",
    "serve llama-3-8b h100 --prompt 0": "'0' is not a whole number",
    "serve llama-3-8b h100 --itl 50GB": "'50GB' is not a time above 0; write one as in 50ms",
    "serve llama-3-8b h100 --tp 3 --as-written": "the 3 chips of a replica do not divide the 8 chips",
    "serve llama-3-8b h100 --tp 8 --itl 50ms --as-written": "--as-written gives one; leave them out",
    "serve llama-3-8b h100 --tp 8 --ep 8 --as-written": "Llama 3 8B has no experts for ep=8: write 1",
    "serve llama-3-8b h100 --policy lifo": "'lifo' is not one of 'interleaved', 'chunked'",
    "serve llama-3-8b h100 --reserve 2": "'2' is not a share",
    "serve llama-3-8b h100 --reserve 10% --gpu-memory-utilization 90%": "write only one of them",
    "serve llama-3-8b h100 --draft-tokens 3": "belong together; write both",
    "serve llama-3-8b h100 --draft-tokens 3 --acceptance-length 5": "write an acceptance length from 1 to 4",
    "serve llama-3-8b h100 --draft-model llama-3.2-1b": "--draft-model needs --draft-tokens",
    "serve llama-3-8b h100 --prompt 4096 --max-model-len 4096": "exceed --max-model-len 4,096",
    "chips v9": "there is no chip 'v9' in the catalog; write one of",
    "completion": "Missing argument",
    "completion tcsh": "'tcsh' is not one of 'bash', 'zsh', 'fish'",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_cannot_be_read_is_told_in_one_sentence(ask, line):
    told = ask(line)
    assert (told.code, told.out) == (2, "")
    assert WRONG[line] in told.err
    assert told.err.startswith("scalingbook")
    assert told.err.count("\n") == 1


def test_a_plan_that_cannot_be_says_why_and_ends_with_1(ask):
    told = ask("plan llama-3-8b h100:1024 --batch 1024 --tp 3 --fsdp 8 --as-written")
    assert told.code == 1
    said = one_line(told.out)
    assert "the plan uses 24 chips, but the machine has 1,024; 32 heads are not divisible by tp=3" in said
    told = ask("plan llama-3-8b h100:1024 --batch 1024 --tp 3 --fsdp 8 --as-written --json")
    assert told.code == 1
    assert not told.values["feasible"]
    assert len(told.values["reasons"]) > 1
    assert "step_time_s" not in told.values


def test_a_search_that_finds_nothing_says_why_and_ends_with_1(ask):
    told = ask("plan llama-3.1-405b h100 --batch 8")
    assert told.code == 1
    assert "No plan is possible" in one_line(told.out)
    told = ask("plan llama-3.1-405b h100 --batch 8 --json")
    assert told.code == 1
    assert not told.values["feasible"]
    assert told.values["search"]["rejected"]


@pytest.mark.parametrize(
    "line", ["plan llama-3-8b h100 --batch 8 --fsdp 8 --ep 2 --as-written", "serve llama-3-8b h100 --ep 2"]
)
def test_experts_that_a_model_has_not_are_spread_nowhere(ask, line):
    told = ask(line)
    assert told.code == 1
    assert "Llama 3 8B has no experts for ep=2: write 1" in one_line(told.out)


def test_a_plan_too_large_is_timed_and_refused(ask):
    told = ask("plan llama-3.1-405b h100 --batch 8 --fsdp 8 --as-written")
    assert told.code == 1
    assert " over" in told.out.splitlines()[2]


def test_a_name_of_control_characters_does_not_reach_the_terminal(ask):
    told = ask("model", "\x1b[31mred\n\udc80")
    assert told.code == 2
    assert told.err[:-1].isprintable()


def test_more_characters_than_a_size_can_have_are_refused(ask):
    assert "'99999999999999999999'... has 5,000 characters" in ask("roofline v5e --matmul", "9" * 5000).err


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_one_sentence_says_what_to_install(missing):
    program = f"import sys; sys.modules[{missing!r}] = None; import scalingbook_cli as cli; "
    program += "sys.exit(cli.main([]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"scalingbook: the command line needs {missing}, which is not installed; run pip install click rich\n"
    )


def test_an_error_in_an_import_of_our_own_is_not_taken_for_a_missing_extra(monkeypatch):
    import scalingbook_cli as cli

    monkeypatch.setitem(sys.modules, "scalingbook_cli.script", None)
    monkeypatch.delattr("scalingbook_cli.script", raising=False)
    with pytest.raises(ImportError, match="script"):
        cli.main([])


def test_a_reader_who_has_seen_enough_ends_it_quietly():
    one = f"{sys.executable} -m scalingbook_cli chips h100 --json | head -c 1"
    done = subprocess.run(["bash", "-c", one], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{", "")


@pytest.mark.parametrize(
    ("where", "why"),
    [(">/dev/full", "No space left on device"), (">&-", "it is closed")],
)
@pytest.mark.parametrize("line", ["chips", "chips --json", "--help"])
def test_an_answer_that_cannot_be_written_is_told_in_one_sentence(line, where, why):
    one = f"{sys.executable} -m scalingbook_cli {line} {where}"
    done = subprocess.run(["bash", "-c", one], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"scalingbook: cannot write standard output: {why}; choose a writable destination\n"


def test_a_terminal_without_our_signs_gets_the_numbers():
    line = [sys.executable, "-m", "scalingbook_cli", "roofline", "v5e", "--matmul", "64x64x64", "--explain"]
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PATH": ""}
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "FLOPs = 2 ? B ? D ? F" in done.stdout


def test_families_and_the_help_are_offered_for_a_name_that_resembles_none(ask):
    told = one_line(ask("model zzzzzz").err)
    assert "write one of Llama 3 70B, Mistral Small 24B, Gemma-3 27B, Qwen3 8B, DeepSeek-V3" in told
    assert "(see `scalingbook model --help`), or give the model's config.json" in told


def one_line(text):
    return " ".join(text.split())


def test_an_interrupt_while_the_commands_load_is_no_traceback(monkeypatch):
    class Interrupted:
        def find_spec(self, name, *_):
            if name == "scalingbook_cli.script":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "scalingbook_cli.script", raising=False)
    monkeypatch.delattr(cli, "script", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    assert cli.main(["chips"]) == 130


def test_nothing_loads_outside_of_what_watches_for_an_interrupt():
    """Python's own start is its own; from there on the library has `sys` alone until it can answer."""
    root = str(Path(cli.__file__).parents[1])
    program = f"import sys; sys.path.append({root!r}); old = set(sys.modules); import scalingbook_cli"
    asked = [sys.executable, "-I", "-S", "-c", f"{program}; print(*sorted(set(sys.modules) - old))"]
    loaded = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    assert loaded == ["scalingbook_cli"]
