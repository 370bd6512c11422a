"""The server of the Model Context Protocol, asked by the reference client in another process."""

import asyncio
import gzip
import json
import sys
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from scalingbook_cli import mcp_server
from scalingbook_cli.mcp_server import ToolError, tools

CONFIG = json.dumps(
    {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
     "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False}
)  # fmt: skip

HLO = gzip.decompress(Path("data/programs/train_step.hlo.gz").read_bytes()).decode()
COMMAND = "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2"
YAML = "# the server of a team\nmodel: meta-llama/Llama-3.1-8B\ntensor_parallel_size: 2\n"
TOML = "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nseq_len = 8192\nlocal_batch_size = 1\n"


async def _asked(calls):
    """The tools of a server, and its answers to calls."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "scalingbook_cli", "mcp"])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        told = await session.initialize()
        listed = await session.list_tools()
        return told, listed.tools, [await session.call_tool(name, given) for name, given in calls]


def test_the_reference_client_lists_the_tools_and_gets_the_answers_of_the_commands(ask):
    calls = [
        ("roofline", {"chip": "v5e", "matmul": "64x8192x8192"}),
        ("explain", {"term": "all-gather"}),
        ("model", {"model": CONFIG, "sequence": 4096}),
        ("model", {"model": "no such model"}),
        ("nothing", {}),
        ("launch", {"source": COMMAND, "machine": "h100:2"}),
        ("launch", {"source": YAML, "machine": "h100:2"}),
        ("inspect", {"hlo": HLO, "max_exposed": "1%"}),
    ]
    told, listed, answers = asyncio.run(_asked(calls))
    assert "scalingbook_lib" in told.instructions
    assert [tool.name for tool in listed] == list(mcp_server.NAMES)
    roofline, explained, model, unknown, nothing, launched, configured, inspected = answers
    assert roofline.structured_content == ask("roofline v5e --matmul 64x8192x8192 --json").values
    assert explained.structured_content["term"] == "AllGather"
    assert model.structured_content["parameters"] == ask("model llama-3-8b --json").values["parameters"]
    assert (roofline.is_error, unknown.is_error, nothing.is_error) == (False, True, True)
    assert "is not in the catalog" in unknown.content[0].text
    assert "there are model, roofline" in nothing.content[0].text
    assert launched.structured_content == ask("launch --machine h100:2 --json", COMMAND).values
    assert configured.structured_content["itl_s"] == launched.structured_content["itl_s"]
    first = inspected.structured_content["findings"][0]
    assert first == ask("inspect --hlo data/programs/train_step.hlo.gz --json").values["findings"][0]
    assert "more than 1%" in inspected.structured_content["broken_limits"][0]


@pytest.mark.parametrize("name", mcp_server.NAMES)
def test_a_schema_describes_every_parameter_and_allows_no_others(name):
    schema = tools()[name].schema
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    for told in schema["properties"].values():
        assert len(told["description"]) > 4
        assert "type" in told or "enum" in told
    assert not {"json", "chip_file", "progress"} & set(schema["properties"])
    assert not {"save", "html", "site", "diff", "program", "args"} & set(schema["properties"])


def test_a_tool_that_reads_a_text_requires_it():
    assert tools()["launch"].schema["required"] == ["source"]
    assert tools()["inspect"].schema["required"] == ["hlo"]
    assert tools()["inspect"].schema["properties"]["hlo"]["type"] == "string"
    assert "train.py" not in tools()["inspect"].description


@pytest.mark.parametrize(
    ("text", "launcher"),
    [
        (COMMAND, "vllm"),
        (YAML, "vllm"),
        (TOML, "torchtitan"),
        ('{"zero_optimization": {"stage": 3}}', "deepspeed"),
    ],
)
def test_the_launch_tool_takes_commands_and_configs_of_every_kind(text, launcher):
    given = {"source": text, "machine": "h100:8", "model": CONFIG, "batch": 8, "sequence": 4096}
    assert json.loads(tools()["launch"].call(given))["launcher"] == launcher


def test_a_file_that_a_command_names_is_not_read(tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text("tensor-parallel-size: 8\n")
    text = f"vllm serve meta-llama/Llama-3.1-8B --config {config}"
    told = json.loads(tools()["launch"].call({"source": text, "machine": "h100:2"}))
    assert any("is not here" in sentence and config.name in sentence for sentence in told["assumed"])


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("model", {"model": "-"}, "reads none"),
        ("model", {"model": __file__}, "reads none"),
        ("serve", {"model": "llama-3-8b", "machine": "h100:1", "efficiency": __file__}, "reads none"),
        ("plan", {"model": "llama-3-8b", "machine": "h100:8"}, "Missing option"),
        (
            "roofline",
            {"chip": "v5e", "matmul": "64x8192x8192", "shape": 1},
            "roofline has no shape; it has chip",
        ),
        ("roofline", {"chip": "v5e", "matmul": {"B": 64}}, "is not a text or a number"),
        ("roofline", {"chip": "v5e", "explain": "yes"}, "explain='yes' is not true or false"),
        ("plan", {"model": "llama-3-8b", "machine": "h100:8", "batch": [1]}, r"batch='\[1\]' is not a text"),
        ("plan", {"model": "llama-3-8b", "machine": "h100:8", "batch": True}, "batch='True' is not a text"),
        (
            "launch",
            {"source": COMMAND, "launcher": "make"},
            "launcher='make' is not one of maxtext, meg",
        ),
        ("inspect", {"hlo": HLO, "no_collective": "all-gather"}, "is not a list, each of whose entries is"),
        ("inspect", {"hlo": HLO, "no_collective": ["all-gather", 1, None]}, "is not a list, each of whose"),
        ("explain", {"term": "--help"}, "is not in the glossary"),
        ("launch", {}, "launch reads a text; give source"),
        ("launch", {"source": "run.sh"}, "'run.sh' starts no launcher"),
        ("launch", {"source": ["vllm", "serve"]}, "is not the text that launch reads"),
        ("launch", {"source": COMMAND, "machine": __file__}, "reads none"),
        ("inspect", {"hlo": __file__}, "has no entry computation"),
        ("inspect", {"hlo": "-"}, "the text that begins '-' has no entry computation"),
        ("inspect", {"hlo": HLO, "program": "train.py:step"}, "inspect has no program; it has hlo"),
        ("inspect", {"hlo": HLO, "save": "step.hlo.txt"}, "inspect has no save"),
        ("chips", {"chip": "--version"}, "No such chip|is not a chip|no chip"),
    ],
)
def test_a_call_that_cannot_be_answered_says_why(name, given, words):
    with pytest.raises(ToolError, match=words):
        tools()[name].call(given)


GOOD = {
    "model": {"model": "llama-3-8b"},
    "roofline": {"chip": "v5e", "matmul": "64x8192x8192"},
    "collective": {"which": "all-gather", "nbytes": "2GiB", "machine": "v5p:4x4x4"},
    "plan": {"model": "llama-3-8b", "machine": "h100:8", "batch": 64},
    "serve": {"model": "llama-3-8b", "machine": "h100:1"},
    "launch": {"source": COMMAND, "machine": "h100:2"},
    "inspect": {"hlo": HLO},
    "chips": {"chip": "h100"},
    "explain": {"term": "KV cache"},
}
BAD = (None, {"a": 1}, [["x"], {}], "", "\0", "--help", "a\nb", -1, "x" * 20_000)


def test_the_server_answers_bad_input_of_every_tool_with_a_sentence_and_goes_on():
    calls = [(name, given | {next(iter(given)): bad}) for name, given in GOOD.items() for bad in BAD]
    calls += [(name, given | {"file": "x"}) for name, given in GOOD.items()]
    *answers, last = asyncio.run(_asked([*calls, ("explain", GOOD["explain"])]))[2]
    for (name, given), answer in zip(calls, answers, strict=True):
        said = answer.content[0].text
        assert answer.is_error, (name, given)
        assert "Traceback" not in said
        assert "ended with exit code" not in said
        assert len(said) < 2_000
        assert "\n" not in said or said.startswith("Usage")
    assert not last.is_error


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("llama31.py:recipe_config", "starts no launcher that is known here"),  # no file is read
        ("from megatron.bridge import x\ndef f():\n  return x()\n", "is a Python program, and nothing is"),
        (
            "torchrun -m torchtitan.train --job.config_file a.toml",
            "'a.toml' is not here, and it sets the model",
        ),
    ],
)
def test_what_a_launch_tool_cannot_see_is_named(source, words):
    with pytest.raises(ToolError, match=words):
        tools()["launch"].call({"source": source, "machine": "h100:8"})


def test_a_plan_that_is_impossible_is_an_answer():
    told = json.loads(tools()["plan"].call({"model": "llama-3-70b", "machine": "h100:1", "batch": 8}))
    assert told["plans"] == [] if "plans" in told else told["search"]


def test_flags_and_lists_are_words_of_the_command():
    given = {"chip": "h100", "matmul": "64x8192x8192", "figure": ["hbm_bytes=48GiB", "hbm_bytes_per_s=1e12"]}
    plain, slower = (json.loads(tools()["roofline"].call(g)) for g in ({**given, "figure": []}, given))
    assert slower["bytes"] == plain["bytes"]
    assert slower != plain
