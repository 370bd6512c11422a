"""The page on assistants lists the tools of the server, and shows a call with its answer."""

import json
import re

import pytest

from scalingbook_cli.mcp_server import tools
from tools.environment import ROOT

PAGE = (ROOT / "assistants.md").read_text(encoding="utf-8")
CONNECTED, GIVEN, SHOWN = map(
    json.loads, re.findall(r"^```json\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
)


def test_the_page_lists_every_tool():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE))
    assert rows == {name: tool.command.short_help for name, tool in tools().items()}


def test_the_server_is_connected_as_the_instructions_for_assistants_say():
    assert json.dumps(CONNECTED) in (ROOT / "AGENTS.md").read_text(encoding="utf-8")


def test_the_call_is_answered_as_shown():
    answer = json.loads(tools()["launch"].call(GIVEN))
    assert len(answer) > 36
    for name, value in SHOWN.items():
        shown = pytest.approx(value, rel=0.005) if isinstance(value, float | int) else value
        assert answer[name] == shown
