"""Start a Chromium for measurements, with the site served beside it."""

import contextlib
import os
import shutil
from collections.abc import Iterator

from playwright.sync_api import Browser, sync_playwright

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


def chromium_path() -> str | None:
    """Return the system's Chromium, or the one that CHROMIUM names; None if there is none."""
    names = (
        os.environ.get("CHROMIUM"),
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    )
    return next((found for name in names if name and (found := shutil.which(name))), None)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Provide a headless Chromium for the duration of the block."""
    path = chromium_path()
    if path is None:
        raise SystemExit("no Chromium here: tools/chromium.sh installs one, or set CHROMIUM to its path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
