"""How is the built site read on this machine? From a small server on the loopback address."""

import contextlib
import functools
import http.server
import socketserver
from pathlib import Path

TYPES = {
    ".mjs": "text/javascript",
    ".js": "text/javascript",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
    ".whl": "application/octet-stream",
    ".ipynb": "application/x-ipynb+json",
    ".svg": "image/svg+xml",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the site, with the types that browsers insist on; quiet."""

    protocol_version = "HTTP/1.1"
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | TYPES

    def end_headers(self) -> None:
        """Ask browsers to look again: a rebuilt page shows at the next reload."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about each request."""


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Answers requests side by side; a browser's closed connection is no event."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader who left is not an error."""


def server(folder: Path, port: int = 0) -> Server:
    """A server for one folder on 127.0.0.1; port 0 takes any that is free."""
    return Server(("127.0.0.1", port), functools.partial(Handler, directory=str(folder)))


def serve(folder: Path, port: int = 8000, tries: int = 20) -> None:
    """Serve until interrupted, at the first free port from `port` on, and print the address."""
    for candidate in (*range(port, port + tries), 0):
        with contextlib.suppress(OSError), server(folder, candidate) as running:
            print(
                f"\nThe book is at http://127.0.0.1:{running.server_address[1]}/  (Ctrl+C ends it)",
                flush=True,
            )
            with contextlib.suppress(KeyboardInterrupt):
                running.serve_forever()
            return
    raise SystemExit("no free port on 127.0.0.1")
