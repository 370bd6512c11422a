"""JupyterLab for the browser tests: a server over a copy of the notebooks, and one of them in a browser."""

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.browser.conftest import PATIENCE_MS
from web.vendor import ROOT

FOLDERS = ("chapters", "exercises")
QUIET = {  # what JupyterLab would ask its makers, or the reader, when it starts
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}
IDLE = "/\\| Idle/.test(document.querySelector('#jp-main-statusbar').innerText)"


@dataclass(frozen=True)
class Server:
    """A JupyterLab that is running: where, with which token, over which folder."""

    base: str
    token: str
    folder: Path

    def get(self, path: str) -> dict:
        """What its contents API says of a path."""
        asked = urllib.request.Request(
            f"{self.base}/api/contents/{path}", headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as answer:
            return json.load(answer)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Server]:
    """A server over a copy of the notebooks, with nothing of the user's own, while the block runs."""
    places = {name: folder / name for name in ("config", "data", "runtime", "settings", "workspaces", "book")}
    for name in FOLDERS:
        shutil.copytree(ROOT / name, places["book"] / name)
    for plugin, settings in QUIET.items():
        file = places["settings"] / f"{plugin.replace(':', '/')}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(settings))
    token = secrets.token_hex(16)
    with _started(places, token) as base:
        yield Server(base, token, places["book"])


@contextlib.contextmanager
def _started(places: dict[str, Path], token: str) -> Iterator[str]:
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(places["config"]),
        "JUPYTER_DATA_DIR": str(places["data"]),
        "JUPYTER_RUNTIME_DIR": str(places["runtime"]),
        "JUPYTERLAB_SETTINGS_DIR": str(places["settings"]),
        "JUPYTERLAB_WORKSPACES_DIR": str(places["workspaces"]),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_TOKEN": token,
        "PYTHONPATH": str(ROOT),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--port=0", "--ip=127.0.0.1",
        f"--ServerApp.root_dir={places['book']}", "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    trust = [sys.executable, "-m", "jupyter", "trust", *map(str, places["book"].glob("*/*.ipynb"))]
    subprocess.run(trust, env=environment, check=True, capture_output=True)  # as `make lab` does
    log = places["book"].parent / "server.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, env=environment, cwd=places["book"], stdout=sink, stderr=subprocess.STDOUT
        )
        try:
            yield _address(process, places["runtime"], log)
        finally:
            process.terminate()  # it ends its kernels
            process.wait(PATIENCE_MS / 1000)


def _address(process: subprocess.Popen, runtime: Path, log: Path) -> str:
    """Where the server says that it listens."""
    until = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < until and process.poll() is None:
        for said in runtime.glob("jpserver-*.json"):
            with contextlib.suppress(ValueError):  # half written
                return json.loads(said.read_text())["url"].rstrip("/")
        time.sleep(0.1)
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text(errors='replace')[-3000:]}")


@dataclass
class Opened:
    """A notebook in the browser, and what went wrong there."""

    page: object
    base: str
    wrong: list = field(default_factory=list)

    def watch(self):
        page = self.page
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda m: self.wrong.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: self.wrong.append(str(e)))
        page.on("response", lambda r: self.wrong.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.on("request", lambda r: None if self._ours(r.url) else self.wrong.append(f"asked {r.url}"))
        return self

    def _ours(self, url):
        return url.startswith((self.base, self.base.replace("http", "ws", 1), "data:", "blob:"))

    def go(self, path, token):
        """Open a notebook alone in the window, and wait for its kernel."""
        self.page.goto(f"{self.base}/doc/tree/{path}?token={token}&reset")
        self.page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        self.page.wait_for_function(IDLE)
        return self

    def cell(self, source):
        """The code cell that holds this text."""
        return self.page.locator(".jp-CodeCell").filter(
            has=self.page.locator(".jp-InputArea-editor", has_text=source)
        ).first  # fmt: skip

    def numbered(self, cell):
        """The same cell by its place, whatever will be written into it."""
        place = cell.get_attribute("data-windowed-list-index")
        return self.page.locator(f'.jp-Cell[data-windowed-list-index="{place}"]')

    def run(self, cell, source=None):
        """Run a cell as a reader does, with other text in it if there is some."""
        cell.locator(".cm-content").first.click()
        if source is not None:
            self.page.keyboard.press("ControlOrMeta+A")
            self.page.keyboard.insert_text(source)
        self.page.keyboard.press("Shift+Enter")

    def run_above(self, cell):
        """Run all cells above this one, and wait until they have run."""
        cell.locator(".cm-content").first.click()
        self.page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-above')")

    def failures(self):
        """What cells have written to standard error or raised."""
        found = self.page.locator('[data-mime-type$="jupyter.stderr"], [data-mime-type$="jupyter.error"]')
        return found.all_inner_texts()

    def explorer(self, key):
        """Run the cell that shows an explorer; its widget, alive."""
        cell = self.cell(f'show.explorer("{key}"')
        self.run(cell)
        shown = Explorer(cell.locator(".widget-vbox").first)
        shown.box.locator(".ex-live svg:visible").first.wait_for()
        shown.box.locator(".ex-live .ex-verdict:visible").wait_for()
        return shown


@dataclass(frozen=True)
class Explorer:
    """The widget of an explorer."""

    box: object

    def row(self, label):
        """The row of a control."""
        return self.box.locator(".widget-hbox").filter(has_text=re.compile(f"^{re.escape(label)}"))

    def picture(self):
        """The picture that there is room for, as SVG."""
        return self.box.locator(".ex-live :is(.ex-wide, .ex-narrow):visible").first.inner_html()

    def said(self):
        """The numbers and the verdict."""
        return self.box.locator(".ex-live").last.inner_text()

    def moves(self, act, *, to=""):
        """Do something, and wait until picture and words are others; the words then hold `to`."""
        words, picture = self.said(), self.picture()
        act()
        self.until(lambda: words != self.said() and to in self.said() and self.picture() != picture)

    def until(self, holds):
        """Wait until this holds."""
        until = time.monotonic() + PATIENCE_MS / 1000
        while not holds():
            assert time.monotonic() < until, f"it did not come; the explorer says: {self.said()}"
            self.box.page.wait_for_timeout(100)
