"""Pictures of a dragged slider are there before they are asked for, however long the slider and the drag."""

import json
import subprocess
from pathlib import Path

import pytest

from web import vendor

SCRIPT = Path(__file__).with_name("ahead.mjs")


def dragged(last: int, values: list[int]) -> list[dict]:
    """For each move of a slider from 0 to last: whether its picture was there, how many were made after."""
    asked = json.dumps({"last": last, "values": values})
    ran = subprocess.run(
        [vendor.node(), str(SCRIPT)], input=asked, capture_output=True, check=True, text=True, timeout=120
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("strides", [(39,), (38, 39)])  # a pointer's pixels are not a slider's positions
def test_a_long_drag_to_and_fro_on_a_long_slider_finds_every_picture(strides):
    to = [0]
    while to[-1] < 1900:
        to.append(to[-1] + strides[len(to) % len(strides)])
    found = dragged(2047, (to + to[::-1]) * 3)
    turns = {0, 1, 2, *(n * len(to) + k for n in range(1, 6) for k in (0, 1, 2))}
    assert [n for n, move in enumerate(found) if not move["ready"] and n not in turns] == []
    assert max(move["made"] for move in found) < 20, "a reader's own event waits for one of few"


def test_all_pictures_of_a_short_slider_are_made_once():
    assert [move["made"] for move in dragged(11, [3, 4, 9, 0])] == [12, 0, 0, 0]
    assert [move["ready"] for move in dragged(200, [0, 170, 30])] == [False, True, True]
