# SPDX-License-Identifier: Apache-2.0
"""A page server in a process without rights: it reads what strangers send, and asks this process, which answers.

Requests and answers are lines of JSON over a pair of sockets, one at a time.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from wiretale.analyzer.errors import InputError, UsageError, WiretaleError
from wiretale.reports.view.server import Answer, PageServer, listening

NOBODY = "nobody"
POLL_S = 0.5
ERRORS = {error.__name__: error for error in (UsageError, InputError)}
KINDS = ("answers", "actions", "pages")
Page = Callable[[Mapping[str, str]], str]


class Line:
    """One end of the pair."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.file = end.makefile("rwb")

    def send(self, message: dict[str, Any]) -> None:
        self.file.write(json.dumps(message, allow_nan=False).encode() + b"\n")
        self.file.flush()

    def receive(self) -> dict[str, Any] | None:
        """Returns the next message; None if the other process has ended."""
        text = self.file.readline()
        message: dict[str, Any] | None = json.loads(text) if text else None
        return message


def has_rights() -> bool:
    """Returns whether this process is root's, and not of a user namespace, whose root has no rights outside."""
    return os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split() == ["0", "0", str(2**32 - 1)]


def drop_rights() -> None:
    """Becomes nobody, if this process is root's."""
    if has_rights():
        user = pwd.getpwnam(NOBODY)
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)


def asking(line: Line, lock: Lock, kind: str, name: str) -> Callable[[Mapping[str, str]], Any]:
    """Returns a function that asks the other process."""

    def ask(query: Mapping[str, str]) -> Any:
        with lock:
            line.send({"kind": kind, "name": name, "query": dict(query)})
            reply = line.receive()
        if reply is None:
            raise WiretaleError("wiretale has ended")
        if "error" in reply:
            raise ERRORS.get(reply["type"], WiretaleError)(reply["error"])
        return reply["answer"]

    return ask


def end_after(server: PageServer, parent: int) -> None:
    """Ends a server after the process that answers, even if that was killed."""
    while os.getppid() == parent:
        time.sleep(POLL_S)
    server.shutdown()


def serve_line(line: Line, page: Callable[[], bytes], names: Mapping[str, list[str]], port: int, parent: int) -> None:
    """Serves until it gets SIGTERM, or the other process ends."""
    lock = Lock()
    answers, actions, pages = ({name: asking(line, lock, kind, name) for name in names[kind]} for kind in KINDS)
    try:
        server = listening(page, answers, port, actions, pages)
    except WiretaleError as error:
        line.send({"error": str(error)})
        return
    with server:
        drop_rights()
        line.send({"url": server.url})
        Thread(target=end_after, args=(server, parent), daemon=True).start()
        server.serve_forever(poll_interval=0.2)


class Apart:
    """A page server in a process of its own. A context, whose end ends it."""

    def __init__(
        self,
        page: Callable[[], bytes],
        answers: Mapping[str, Answer],
        actions: Mapping[str, Answer],
        pages: Mapping[str, Page],
        port: int,
    ) -> None:
        self.answers: dict[str, Mapping[str, Callable[[Mapping[str, str]], Any]]] = {
            "answers": answers,
            "actions": actions,
            "pages": pages,
        }
        here, there = socket.socketpair()
        parent = os.getpid()
        self.child = os.fork()
        if not self.child:
            code = 70
            try:
                here.close()
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process ends this one
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                serve_line(Line(there), page, {kind: list(self.answers[kind]) for kind in KINDS}, port, parent)
                code = 0
            finally:
                os._exit(code)
        there.close()
        self.line = Line(here)
        first = self.line.receive() or {"error": "the page server ended"}
        if "error" in first:
            self.close()
            raise UsageError(first["error"])
        self.url: str = first["url"]

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        with suppress(ProcessLookupError):
            os.kill(self.child, signal.SIGTERM)
        os.waitpid(self.child, 0)

    def serve_forever(self) -> None:
        """Answers until the process ends, or an exception such as KeyboardInterrupt."""
        while (message := self.line.receive()) is not None:
            try:
                answer = self.answers[message["kind"]][message["name"]](message["query"])
                self.line.send({"answer": answer})
            except (WiretaleError, ValueError) as error:
                kind = UsageError if isinstance(error, ValueError) else type(error)
                self.line.send({"error": str(error), "type": kind.__name__})
            except OSError as error:  # of a file that was removed, say
                self.line.send({"error": f"{error.filename}: {error.strerror}", "type": InputError.__name__})
