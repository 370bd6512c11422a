"""Where the book's site is, so that a report can link its findings to sections.

The book has no fixed address: a reader names one, or has built the site in the clone.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

import click

import scalingbook_lib

VARIABLE = "SCALINGBOOK_SITE"
BUILT = Path(scalingbook_lib.__file__).parents[1] / "_build" / "html"


def _address(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """The address with a slash at its end; without one, that of the built site, or None if there is none."""
    if text is None:
        return f"{BUILT.as_uri()}/" if (BUILT / "index.html").is_file() else None
    if os.path.isdir(text):
        return f"{Path(text).resolve().as_uri()}/"
    if urlsplit(text).scheme not in ("http", "https", "file"):
        raise click.BadParameter(
            f"{text!r} is neither an address nor a folder; write one, as in http://127.0.0.1:8000/ or "
            "_build/html"
        )
    return f"{text.rstrip('/')}/"


option = click.option(
    "--site",
    callback=_address,
    envvar=VARIABLE,
    show_envvar=True,
    metavar="ADDRESS",
    help="The book's site, an address or a folder, to which --html links findings. The default is the site "
    "that `make site` built, if there is one.",
)
