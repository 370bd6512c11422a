"""The server of the Model Context Protocol, asked by the reference client in another process."""

import asyncio
import json
import sys

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from scalingbook_cli import mcp_server
from scalingbook_cli.mcp_server import ToolError, tools

CONFIG = json.dumps(
    {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
     "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False}
)  # fmt: skip


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
    ]
    told, listed, answers = asyncio.run(_asked(calls))
    assert "scalingbook_lib" in told.instructions
    assert [tool.name for tool in listed] == list(mcp_server.NAMES)
    roofline, explained, model, unknown, nothing = answers
    assert roofline.structured_content == ask("roofline v5e --matmul 64x8192x8192 --json").values
    assert explained.structured_content["term"] == "AllGather"
    assert model.structured_content["parameters"] == ask("model llama-3-8b --json").values["parameters"]
    assert (roofline.is_error, unknown.is_error, nothing.is_error) == (False, True, True)
    assert "is not in the catalog" in unknown.content[0].text
    assert "there are model, roofline" in nothing.content[0].text


@pytest.mark.parametrize("name", mcp_server.NAMES)
def test_a_schema_describes_every_parameter_and_allows_no_others(name):
    schema = tools()[name].schema
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    for told in schema["properties"].values():
        assert len(told["description"]) > 4
        assert "type" in told or "enum" in told
    assert not {"json", "chip_file", "progress"} & set(schema["properties"])


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
        ("roofline", {"chip": "v5e", "matmul": {"B": 64}}, "neither text, a number nor true or false"),
        ("roofline", {"chip": "v5e", "explain": "yes"}, "explain='yes' is not true or false"),
        ("explain", {"term": "--help"}, "is not in the glossary"),
        ("chips", {"chip": "--version"}, "No such chip|is not a chip|no chip"),
    ],
)
def test_a_call_that_cannot_be_answered_says_why(name, given, words):
    with pytest.raises(ToolError, match=words):
        tools()[name].call(given)


def test_a_plan_that_is_impossible_is_an_answer():
    told = json.loads(tools()["plan"].call({"model": "llama-3-70b", "machine": "h100:1", "batch": 8}))
    assert told["plans"] == [] if "plans" in told else told["search"]


def test_flags_and_lists_are_words_of_the_command():
    given = {"chip": "h100", "matmul": "64x8192x8192", "figure": ["hbm_bytes=48GiB", "hbm_bytes_per_s=1e12"]}
    plain, slower = (json.loads(tools()["roofline"].call(g)) for g in ({**given, "figure": []}, given))
    assert slower["bytes"] == plain["bytes"]
    assert slower != plain
