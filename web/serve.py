"""A small server for the built site on the loopback address.

Starlette serves files below the folder only, without directory listings, with range requests, and only for
this machine's own host names, so that another web page cannot read the book through the browser.
"""

import asyncio
import contextlib
import mimetypes
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import FileResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from web.policy import POLICY

LOOPBACK = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}
TYPES = {  # types that browsers insist on and that some systems do not know
    ".mjs": "text/javascript",
    ".js": "text/javascript",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
    ".whl": "application/octet-stream",
    ".ipynb": "application/x-ipynb+json",
    ".svg": "image/svg+xml",
}


def framed(path: str) -> str:
    """Return the Content-Security-Policy of a path; other sites may frame embeddable explorers only."""
    return POLICY if path.startswith("/embed/") else f"{POLICY}; frame-ancestors 'none'"


class Headed:
    """Middleware that adds headers: caches revalidate, and only the book's own code runs."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request with the added headers."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                policy = framed(scope["path"])
                MutableHeaders(scope=message).update(HEADERS | {"Content-Security-Policy": policy})
            await send(message)

        await self.app(scope, receive, headed)


class Notebooks(StaticFiles):
    """Static notebooks whose pictures are rendered as PNG on download."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return the notebook with its pictures as PNG, which a local build stores as SVG."""
        found = await super().get_response(path, scope)
        if not isinstance(found, FileResponse) or not path.endswith(".ipynb"):
            return found
        return Response(await run_in_threadpool(_drawn, Path(found.path)), media_type=TYPES[".ipynb"])


def _drawn(notebook: Path) -> str:
    from web import downloads  # imported late because it takes a second

    return downloads.drawn(notebook.read_text(encoding="utf-8"))


def application(folder: Path) -> Starlette:
    """Return the application that serves the site in a folder."""
    for ending, kind in TYPES.items():
        mimetypes.add_type(kind, ending)
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[LOOPBACK, "localhost"])
    files = Mount("/", StaticFiles(directory=folder, html=True))
    given = Mount("/notebooks", Notebooks(directory=folder / "notebooks", check_dir=False))
    return Starlette(routes=[given, files], middleware=[Middleware(Headed), hosts])


def _server(folder: Path) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(application(folder), log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    )


@contextlib.contextmanager
def running(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve a folder while the block runs and yield its address; uses a free port by default."""
    server, place = _server(folder), socket.create_server((LOOPBACK, port))
    thread = threading.Thread(target=asyncio.run, args=(server.serve([place]),), daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{place.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def serve(folder: Path, port: int = 8000, tries: int = 20) -> None:
    """Serve a folder until interrupted, at the first free port from `port` on, and print the address."""
    for candidate in (*range(port, port + tries), 0):
        with contextlib.suppress(OSError), socket.create_server((LOOPBACK, candidate)) as place:
            print(
                f"\nThe book is at http://{LOOPBACK}:{place.getsockname()[1]}/  (Ctrl+C ends it)", flush=True
            )
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(_server(folder).serve([place]))
            return
    raise SystemExit(f"no free port on {LOOPBACK}")
