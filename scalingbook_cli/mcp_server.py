"""The command `scalingbook mcp`: a server of the Model Context Protocol on standard input and output.

Its tools are commands. The input schema of each is made from the command's parameters, and a call runs the
command with `--json`. A tool reads no file and opens no connection: a model is a name or the text of a
config.json, a launch command, a config or a compiled program is its text, and a value that names a file is
refused.
"""

import asyncio
import contextlib
import functools
import io
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

import scalingbook_lib
from scalingbook_cli import LIMIT_EXCEEDED

if TYPE_CHECKING:
    from mcp.server import Server

NAMES = ("model", "roofline", "collective", "plan", "serve", "launch", "inspect", "chips", "explain")
LEFT_OUT = {"as_json", "progress", "chip_files"}  # options that a tool does not have
LEFT_OUT_OF = {  # these import or write files
    "inspect": {"program", "arguments", "old", "save", "html", "site"}
}
TEXTS = {"launch": "source", "inspect": "hlo_file"}  # the parameter that a command reads from its input
CONFIG = "model"  # the parameter that may also be the text of a config.json
INSTRUCTIONS = (
    "Cost models of large-model training and inference on TPUs and GPUs. Every number comes from the library "
    "scalingbook_lib; names in a result contain the unit. Sizes may have prefixes (16Mi tokens, 2GiB). A "
    "machine is a TPU slice (v5p:4x4x8), a number of GPUs (h100:64), or instances of a cloud (p5.48xlarge:4)."
)


class ToolError(ValueError):
    """A call that a tool refuses, with what to write instead."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A command as a tool: its name, its description, and the JSON Schema of its input."""

    command: click.Command

    @property
    def name(self) -> str:
        """The name of the command."""
        return str(self.command.name)

    @property
    def description(self) -> str:
        """The help text of the command in one paragraph, or what the tool takes instead of files."""
        return _DESCRIPTIONS.get(self.name) or " ".join((self.command.help or "").split())

    @property
    def parameters(self) -> dict[str, click.Parameter]:
        """The parameters by the name of their longest option without dashes."""
        left_out = LEFT_OUT | LEFT_OUT_OF.get(self.name, set())
        told = (p for p in self.command.params if p.name not in left_out)
        return {max(p.opts, key=len).lstrip("-").replace("-", "_"): p for p in told}

    def is_text(self, param: click.Parameter) -> bool:
        """Whether a parameter is a text, which the command reads from its standard input."""
        return param.name == TEXTS.get(self.name)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the input; a name that is not in it is refused."""
        found = self.parameters
        return {
            "type": "object",
            "properties": {
                name: _TEXT_SCHEMAS[self.name] if self.is_text(param) else _schema(param)
                for name, param in found.items()
            },
            "required": [name for name, p in found.items() if p.required or self.is_text(p)],
            "additionalProperties": False,
        }

    def call(self, given: Mapping[str, Any]) -> str:
        """Run the command and return its JSON; raises ToolError with the command's own sentence."""
        found = self.parameters
        if unknown := set(given) - set(found):
            raise ToolError(f"{self.name} has no {', '.join(sorted(unknown))}; it has {', '.join(found)}")
        if missing := [name for name, param in found.items() if self.is_text(param) and name not in given]:
            raise ToolError(f"{self.name} reads a text; give {missing[0]}")
        text, options, arguments = "", list[str](), dict[str, str]()
        for name, value in given.items():
            self._require(name, value)
            if self.is_text(found[name]):
                text, value = value, "-"
            if isinstance(found[name], click.Argument):
                arguments[name] = " ".join(_texts(value))
            else:
                options += _option(found[name], value)
        ordered = [arguments[name] for name in found if name in arguments]
        return _run([self.name, "--json", *options, "--", *ordered], text)

    def _require(self, name: str, value: Any) -> None:
        """Raise a ToolError for a value that the schema does not allow, or that names a file."""
        allowed = self.schema["properties"][name]
        shown = f"{name}={str(value)[:60]!r}"
        if self.is_text(self.parameters[name]):
            if not isinstance(value, str) or not value.strip():
                raise ToolError(f"{shown} is not the text that {self.name} reads")
            return
        if not _conforms(value, allowed):
            raise ToolError(f"{shown} is not {_in_words(allowed)}")
        texts = _texts(value)
        is_config = name == CONFIG and texts[0].lstrip().startswith("{")
        if not is_config and (file := next(filter(_is_file, texts), "")):
            raise ToolError(f"{name}={file!r} is a file, and this server reads none; give a name or a text")


_DESCRIPTIONS = {
    "launch": "Read the text of a launch command, a script or a config of MaxText, Megatron-LM, "
    "Megatron-Bridge, torchtitan, Accelerate, DeepSpeed, vLLM, SGLang or TensorRT-LLM, and predict the time, "
    "the memory and what binds. Nothing is executed, and no file that the text names is read. The answer "
    "lists every flag: used, assumed by default, not used although it changes time or memory, and unknown.",
    "inspect": "Inspect the text of a compiled program: collectives, memory at its peak, time of every "
    "kernel, and what a reviewer would say. No code runs. Name the machine (slice) and the mesh axes unless "
    "`inspect --save` wrote the text. Times are the TPU compiler's estimates of kernels and the formulas of "
    "this book for transfers; nothing is measured.",
}

_TEXT_SCHEMAS: dict[str, dict[str, Any]] = {
    "launch": {
        "type": "string",
        "minLength": 1,
        "description": "The text of a launch command, of a script, or of a config in YAML, TOML or JSON; "
        "files that it names are not read.",
    },
    "inspect": {
        "type": "string",
        "minLength": 1,
        "description": "The text of a compiled program in HLO: compiled.as_text(), or what inspect --save "
        "writes.",
    },
}


def _is_file(text: str) -> bool:
    """Whether a command would read a file of this name, or its standard input."""
    return text in ("-", "/dev/stdin") or os.path.exists(text)


def _schema(param: click.Parameter) -> dict[str, Any]:
    """Return the JSON Schema of one parameter."""
    about = " ".join((getattr(param, "help", None) or _about(param)).split())
    told: dict[str, Any] = {"description": about.replace("Exit with 3 if", "Add to broken_limits if")}
    if isinstance(param.type, click.types.BoolParamType):
        return told | {"type": "boolean"}
    value: dict[str, Any] = {"type": ["string", "number"]}
    if isinstance(param.type, click.Choice):
        value = {"enum": [str(choice) for choice in param.type.choices]}
    if getattr(param, "multiple", False):
        return told | {"type": "array", "items": value}
    return told | value


def _about(param: click.Parameter) -> str:
    """Return the description of an argument, which has no help of its own."""
    return {
        "model": "A model's name or Hugging Face id, or the text of its config.json.",
        "machine": "A TPU slice, as in v5p:4x4x8, a number of GPUs, as in h100:64, or instances of a cloud, "
        "as in p5.48xlarge:4.",
        "chip": "A chip's name, as in v5e or h100.",
        "which": "all-gather, reduce-scatter, all-reduce, all-to-all, or another collective.",
        "nbytes": "Bytes of the whole array, as in 2GiB.",
        "term": "A term of the field, as in KV cache.",
    }.get(str(param.name), str(param.name))


_JSON_TYPES: dict[str, type | tuple[type, ...]] = {"string": str, "number": (int, float), "boolean": bool}


def _conforms(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value of JSON is what the schema of a parameter allows."""
    if "enum" in schema:
        return value in schema["enum"]
    if schema["type"] == "array":
        return isinstance(value, list) and all(_conforms(one, schema["items"]) for one in value)
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if isinstance(value, bool):  # Python counts it as a number, JSON does not
        return "boolean" in kinds
    return any(isinstance(value, _JSON_TYPES[kind]) for kind in kinds)


def _in_words(schema: Mapping[str, Any]) -> str:
    """What the schema of a parameter allows, as a phrase."""
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if schema["type"] == "array":
        return f"a list, each of whose entries is {_in_words(schema['items'])}"
    return "true or false" if schema["type"] == "boolean" else "a text or a number"


def _texts(value: Any) -> list[str]:
    """Return a value of JSON as words of a command line."""
    if isinstance(value, list):
        return [str(one) for one in value]
    return [] if isinstance(value, bool) else [str(value)]


def _option(param: click.Parameter, value: Any) -> list[str]:
    """Return an option as words: a flag alone, any other with each of its values."""
    longest = max(param.opts, key=len)
    if isinstance(value, bool):
        off = max(param.secondary_opts, key=len, default="")
        return [longest] if value else [off] * bool(off)
    return [f"{longest}={text}" for text in _texts(value)]


_ONE_AT_A_TIME = threading.Lock()  # a call redirects the streams of the process


def _run(words: list[str], stdin: str) -> str:
    from scalingbook_cli import script

    with _ONE_AT_A_TIME, _streams(stdin) as (out, err):
        code = script.run(words)
    # 1 is an answer, too: the reasons why it is impossible
    if code not in (0, 1, LIMIT_EXCEEDED) or not out.getvalue():
        said = err.getvalue().strip().replace("standard input", "the text")
        raise ToolError(said or f"the command ended with exit code {code}")
    return out.getvalue()


@contextlib.contextmanager
def _streams(stdin: str) -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Replace the standard streams, which carry the protocol, during the block."""
    out, err, before = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(stdin)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield out, err
    finally:
        sys.stdin = before


@functools.cache
def tools() -> dict[str, Tool]:
    """Return the tools by name."""
    from scalingbook_cli import script

    return {name: Tool(script.scalingbook.commands[name]) for name in NAMES}


def server() -> "Server":
    """Return the server; raises ModuleNotFoundError without the package `mcp`."""
    import mcp_types as types
    from mcp.server import Server

    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=one.name, description=one.description, input_schema=one.schema)
                for one in tools().values()
            ]
        )

    async def called(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if params.name not in tools():
                raise ToolError(f"there is no tool {params.name!r}; there are {', '.join(tools())}")
            text = await asyncio.to_thread(tools()[params.name].call, params.arguments or {})
        except ToolError as error:
            content = types.TextContent(type="text", text=str(error))
            return types.CallToolResult(content=[content], is_error=True)
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], structured_content=json.loads(text))

    return Server(
        "scalingbook",
        version=scalingbook_lib.__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )


async def _serve() -> None:
    from mcp.server.stdio import stdio_server

    made = server()
    async with stdio_server() as (read, write):
        await made.run(read, write, made.create_initialization_options())


@click.command("mcp", short_help="A Model Context Protocol server with these commands as tools.")
def command() -> None:
    """Serve model, roofline, collective, plan, serve, launch, inspect, chips and explain as tools.

    The server speaks the Model Context Protocol on standard input and output; an assistant starts it with
    "scalingbook mcp". It reads no files and opens no network connections: launch takes the text of a command
    or a config, and inspect that of a compiled program. It needs the Python package mcp.
    """
    try:
        asyncio.run(_serve())
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mcp"):
            raise
        raise click.UsageError("the Python package mcp is not installed; run pip install mcp") from error
