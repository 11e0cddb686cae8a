# SPDX-License-Identifier: Apache-2.0
"""HTTP on 127.0.0.1 for one page.

Every path begins with a random token, which only the printed address has: other users and programs of the machine, and pages
of other sites in the same browser, cannot guess it. The Host header must be this server's, so that a foreign name which
resolves to 127.0.0.1 (DNS rebinding) gets nothing; an Origin must be this server's, if there is one. The path holds the token
rather than a cookie, because browsers send cookies of 127.0.0.1 to the servers of all its ports.
"""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Thread, current_thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from wiretale.analyzer.errors import InputError, UsageError, WiretaleError
from wiretale.analyzer.printable import printable

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
CONNECTIONS_MOST = 64
QUERY_MOST = 16  # fields
BODY_MOST = 16_384  # bytes of a form
FORM = "application/x-www-form-urlencoded"
IDLE_SECONDS = 60
ENDING_SECONDS = 10
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the path has the token
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the rest is in the page
}
Answer = Callable[[Mapping[str, str]], dict[str, Any]]


class PageServer(ThreadingHTTPServer):
    """Serves a page and answers about it to whoever has the token."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        page: Callable[[], bytes],
        answers: Mapping[str, Answer],
        port: int = 0,
        actions: Mapping[str, Answer] | None = None,
        pages: Mapping[str, Callable[[Mapping[str, str]], str]] | None = None,
    ) -> None:
        self.page = page
        self.answers = answers
        self.actions = actions or {}  # what a form does, by POST
        self.pages = pages or {}  # further pages
        self.token = secrets.token_urlsafe(24)
        self._room = BoundedSemaphore(CONNECTIONS_MOST)
        self._open: dict[Any, Thread] = {}  # connections, each with the thread that answers it
        super().__init__((HOST, port), PageHandler)
        self.names = {f"{name}:{self.server_port}" for name in NAMES}

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        self._open[request] = current_thread()
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._open.pop(request, None)
            self._room.release()

    def finish_answers(self) -> None:
        """Lets the answers that are being made be sent, and reads no more requests. It waits for at most ENDING_SECONDS."""
        until = time.monotonic() + ENDING_SECONDS
        running = list(self._open.items())
        for request, _ in running:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RD)
        for _, thread in running:
            thread.join(max(0.0, until - time.monotonic()))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes its connection is no error."""


class PageHandler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "wiretale", ""
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        refused = self._refusal()
        if refused:
            self._refuse(HTTPStatus.FORBIDDEN, refused)
            return
        split = urlsplit(self.path)
        _, _, name = split.path.removeprefix("/").partition("/")
        if split.path == f"/{self.server.token}/":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page())
        elif name in self.server.answers:
            self._answer(self.server.answers[name], split.query)
        elif name in self.server.pages:
            self._show(self.server.pages[name], split.query)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        if not self.server.actions:
            self.send_error(HTTPStatus.NOT_IMPLEMENTED, "Unsupported method ('POST')")
            return
        _, _, name = urlsplit(self.path).path.removeprefix("/").partition("/")
        form = self._form()
        if refused := self._refusal():
            self._refuse(HTTPStatus.FORBIDDEN, refused)
        elif self.headers.get("Origin") is None:  # every browser sends it with a form
            self._refuse(HTTPStatus.FORBIDDEN, "the request has no Origin")
        elif name not in self.server.actions:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such action")
        elif form is None:
            self._refuse(HTTPStatus.BAD_REQUEST, f"expected a form of at most {BODY_MOST} bytes")
        else:
            self._answer(self.server.actions[name], form)

    def _form(self) -> str | None:
        """Returns the form of a request; None if it is none or too large. What is left unread would be taken for a request."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > len(str(BODY_MOST)) or int(length) > BODY_MOST:
            self.close_connection = True
            return None
        body = self.rfile.read(int(length))
        return body.decode("utf-8", "replace") if self.headers.get("Content-Type") == FORM else None

    def _refusal(self) -> str | None:
        """Returns the reason why a request gets nothing; None if it is allowed."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.names:
            return "the Host header is not this server's"
        origin = self.headers.get("Origin")
        if origin is not None and origin.lower() not in {f"http://{name}" for name in self.server.names}:
            return "the request comes from another page"
        if not self.path.startswith("/"):  # the form for proxies, whose host would count instead
            return "the request is for another server"
        token = urlsplit(self.path).path.split("/")[1:2]
        if not token or not secrets.compare_digest(token[0].encode(), self.server.token.encode()):
            return "the address lacks the token: open the one that wiretale printed"
        return None

    def _answer(self, answer: Answer, text: str) -> None:
        """Sends an answer."""
        self._made(
            lambda query: json.dumps(answer(query), separators=(",", ":"), allow_nan=False), "application/json", text
        )

    def _show(self, page: Callable[[Mapping[str, str]], str], text: str) -> None:
        """Sends a further page."""
        self._made(page, "text/html; charset=utf-8", text)

    def _made(self, make: Callable[[Mapping[str, str]], str], kind: str, text: str) -> None:
        """Sends what is made for a query; an error of the capture has status 409, and names it."""
        try:
            query = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=QUERY_MOST))
            body = make(query).encode()
        except (UsageError, ValueError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except InputError as error:
            self._refuse(HTTPStatus.CONFLICT, str(error))
        except WiretaleError as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        else:
            self._send(HTTPStatus.OK, kind, body)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._send(status, "application/json", json.dumps({"error": printable(reason)}).encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the lines would contain the token."""


def listening(
    page: Callable[[], bytes],
    answers: Mapping[str, Answer],
    port: int,
    actions: Mapping[str, Answer] | None = None,
    pages: Mapping[str, Callable[[Mapping[str, str]], str]] | None = None,
) -> PageServer:
    """Returns a server. UsageError if the port is taken."""
    try:
        return PageServer(page, answers, port, actions, pages)
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}") from None
