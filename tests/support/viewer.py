# SPDX-License-Identifier: Apache-2.0
"""A running `wiretale view`, and what it answers."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SECONDS = 60


@dataclass
class Viewer:
    """A running `wiretale view`, and the address that it printed."""

    process: subprocess.Popen[str]
    url: str

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of a request, whose Host is that of the address unless it is given."""
        port = urlsplit(self.url).port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"Host": f"127.0.0.1:{port}", **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        answer = response.status, response.read(), dict(response.headers)
        connection.close()
        return answer

    def answer(self, name: str, **query: int) -> dict[str, Any]:
        """The answer to a query, which must succeed."""
        words = "&".join(f"{key}={value}" for key, value in query.items())
        status, body, _ = self.ask(f"{self.path}{name}?{words}")
        assert status == 200, body
        answer: dict[str, Any] = json.loads(body)
        return answer

    def error(self, name: str, **headers: str) -> tuple[int, str]:
        """Status and text of a request that is refused."""
        status, body, _ = self.ask(name if name.startswith("/") else self.path + name, **headers)
        return status, json.loads(body)["error"]

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Exit code and stderr after a signal."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors


@contextmanager
def viewing(*arguments: str | Path, folder: Path | None = None) -> Iterator[Viewer]:
    command = [sys.executable, "-m", "wiretale", "view", *map(str, arguments)]
    environment = {**os.environ, **({"TMPDIR": str(folder)} if folder else {})}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout
        url = process.stdout.readline().strip()
        assert url or process.wait(SECONDS) is None, process.stderr and process.stderr.read()
        yield Viewer(process, url)
    finally:
        process.kill()
        process.communicate()
