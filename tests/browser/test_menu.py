"""What else an explorer offers, and what a screen reader hears of it: on one page, live."""

import csv
import io
import json
import xml.dom.minidom
from pathlib import Path

import pytest

from tests.browser.touching import PAINT, others, reset, roots


@pytest.fixture
def live(visit):
    visited = visit(width=1366)
    visited.go("chapters/rooflines.html")
    visited.wake()
    return visited


def test_a_page_speaks_with_one_voice(live):
    boxes = "[aria-live], [role=status], [role=alert]"
    assert live.page.locator(".explorer").locator(boxes).count() == 0
    assert live.page.locator("p.spoken[role=status]").count() == 1
    for root, explorer in roots(live)[:1]:
        name = next(n for n, c in explorer.controls.items() if others(c))
        live.page.evaluate(PAINT, [root, name, others(explorer.controls[name])[0]])
        told = root.query_selector(".ex-verdict").inner_text()
        live.page.wait_for_selector(
            f".spoken:text-is({json.dumps(told, ensure_ascii=False)})", state="attached"
        )


def test_the_menu_gives_link_figure_and_numbers(live):
    live.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for root, explorer in roots(live)[:1]:
        reset(live, root)
        root.query_selector(".ex-more > summary").click()
        link, _, figure, numbers, whole = root.query_selector_all(".ex-more button")
        link.click()
        live.page.wait_for_function("(link) => link.textContent === 'Copied'", arg=link)
        copied = live.page.evaluate("navigator.clipboard.readText()")
        assert copied == f"{live.base}/{live.page.url.partition(live.base + '/')[2]}"
        assert copied.endswith("#" + root.get_attribute("id"))
        with live.page.expect_download() as saved:
            figure.click()
        drawn = Path(saved.value.path()).read_text("utf-8")
        assert xml.dom.minidom.parseString(drawn).documentElement.tagName == "svg"
        assert "var(" not in drawn
        with live.page.expect_download() as saved:
            numbers.click()
        rows = list(csv.reader(io.StringIO(Path(saved.value.path()).read_text("utf-8"))))
        assert ["verdict", "", "", "", explorer.evaluate().verdict, ""] in rows
        whole.click()
        live.page.wait_for_function("(root) => document.fullscreenElement === root", arg=root)
        live.page.evaluate("document.exitFullscreen()")
        live.page.wait_for_function("!document.fullscreenElement")
        live.page.keyboard.press("Escape")
