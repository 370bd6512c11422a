"""The book runs no text as a program, and its server gives the book alone."""

import re
import urllib.error
import urllib.request

import pytest

from tests.browser.conftest import SITE, pages, with_text
from web import serve
from web.policy import POLICY


def test_no_page_has_a_script_or_a_style_inside():
    inside = re.compile(r"<script(?![^>]*\ssrc=)|<style|<[^<>]*\s(?:style|on\w+)=\"")
    found = {name: hits for name in pages() if (hits := inside.findall((SITE / name).read_text("utf-8")))}
    assert found == {}


def test_the_server_and_every_page_say_the_policy(visit):
    answer = visit().page.request.get(f"{visit().base}/index.html")
    assert answer.headers["content-security-policy"] == f"{POLICY}; frame-ancestors 'none'"
    assert "unsafe-inline" not in POLICY
    assert set(pages()) == set(with_text(f'http-equiv="Content-Security-Policy" content="{POLICY}"'))


def test_a_page_is_live_under_the_policy(visit):
    visited = visit(bypass_csp=False)
    page = visited.go("chapters/rooflines.html")
    explorer = page.locator(".explorer").first
    page.wait_for_selector("html[data-live]")  # its script listens
    explorer.dispatch_event("pointerdown")
    page.wait_for_selector("html[data-live=live]")
    before = explorer.locator(".ex-verdict").inner_text()
    explorer.locator("input[type=range]").first.press("End")
    for _ in range(100):
        if explorer.locator(".ex-verdict").inner_text() != before:
            break
        page.wait_for_timeout(50)
    assert explorer.locator(".ex-verdict").inner_text() != before
    visited.assert_clean()


@pytest.fixture
def served(tmp_path):
    """A folder served, with a link out of it; and what an address below it answers: status, headers, text."""
    site_folder = tmp_path / "html"
    (site_folder / "chapters").mkdir(parents=True)
    (site_folder / "index.html").write_text("the book")
    (tmp_path / "secret.txt").write_text("a secret")
    (site_folder / "link.txt").symlink_to(tmp_path / "secret.txt")

    with serve.running(site_folder) as address:

        def ask(path, **headers):
            asked = urllib.request.Request(f"{address}/{path}", headers=headers)
            try:
                with urllib.request.urlopen(asked, timeout=30) as told:
                    return told.status, told.headers, told.read().decode()
            except urllib.error.HTTPError as refused:
                return refused.code, refused.headers, ""

        yield ask


def test_the_server_gives_the_book_and_parts_of_it(served):
    status, headers, text = served("index.html")
    assert (status, text) == (200, "the book")
    assert headers["content-security-policy"] == serve.framed("/index.html")
    assert served("index.html", Range="bytes=4-7")[::2] == (206, "book")


@pytest.mark.parametrize(
    "asked", ["link.txt", "../secret.txt", "%2e%2e/secret.txt", "chapters/", "nothing.html"]
)
def test_the_server_gives_nothing_outside_and_lists_no_folder(served, asked):
    assert served(asked)[0] == 404


def test_the_server_answers_to_this_machine_s_names_alone(served):
    assert served("index.html", Host="localhost")[0] == 200
    assert served("index.html", Host="elsewhere.example")[0] == 400
