"""The report, live while a sweep runs; the command is `python -m distpaml.dashboard`.

Served to this machine only. The page polls every two seconds and redraws without losing the reader's choices; the
report is rebuilt when a record, an event or a run was added.
"""

import errno
import hashlib
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from distpaml.errors import UserError

HOST, PORT = "127.0.0.1", 8080
WATCHED = ("records.jsonl", "events.jsonl", "sweep.yaml", "lock")


class News:
    """The newest payload of a report, rebuilt only when its directories change."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        self.lock = threading.Lock()
        self.state: object = None
        self.json, self.page, self.tag = b"", b"", ""

    def refresh(self) -> None:
        """Rebuild the report if something changed."""
        from distpaml.report.collect import collect
        from distpaml.report.page import html, text
        from distpaml.report.payload import payload

        with self.lock:
            state = state_of(self.paths)
            if state == self.state:
                return
            tree = payload(collect(self.paths))
            self.json, self.page, self.state = text(tree).encode(), html(tree, live=True).encode(), state
            self.tag = f'"{hashlib.sha256(self.json).hexdigest()[:20]}"'


class Handler(BaseHTTPRequestHandler):
    """Serves the page, and its data as JSON."""

    news: News
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
        if host not in (HOST, "localhost"):  # DNS rebinding: another site's name that points here
            self._answer(403, b"This dashboard serves this machine only.\n", "text/plain; charset=utf-8")
            return
        address = self.path.partition("?")[0]
        if address not in ("/", "/index.html", "/data.json"):
            self._answer(404, b"There is no such page.\n", "text/plain; charset=utf-8")
            return
        self.news.refresh()
        if address != "/data.json":
            self._answer(200, self.news.page, "text/html; charset=utf-8")
        elif self.headers.get("If-None-Match") == self.news.tag:
            self._answer(304, b"", "application/json")
        else:
            self._answer(200, self.news.json, "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store"}
        for name, value in (headers | {"ETag": self.news.tag, "X-Content-Type-Options": "nosniff"}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: every open page polls every two seconds."""


class Server(ThreadingHTTPServer):
    """Says nothing of readers who leave in the middle of an answer."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(paths: Sequence[Path], port: int = PORT) -> ThreadingHTTPServer:
    """A server that listens at `server.server_address`; port 0 takes any free port."""
    handler = type("Handler", (Handler,), {"news": News(paths)})
    try:
        server = Server((HOST, port), handler)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"Port {port} is taken; choose another one with --port, or --port 0 for any.") from error
        raise UserError(f"Port {port} cannot be used: {error.strerror}; choose another one with --port.") from error
    except OverflowError as error:
        raise UserError(f"--port is {port}, but ports are from 0 to 65535.") from error
    return server


def state_of(paths: Sequence[Path]) -> tuple:
    """Sizes and times of all files behind a report."""
    found = []
    for path in paths:
        for name in WATCHED:
            for file in sorted(path.rglob(name)):
                try:
                    stat = file.stat()
                except OSError:
                    continue
                found.append((str(file), stat.st_mtime_ns, stat.st_size))
    return tuple(found)
