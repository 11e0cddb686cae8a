# SPDX-License-Identifier: Apache-2.0
"""moto's S3 server on a free port of the loopback interface, in a process of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from processes import wait_until

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


@contextlib.contextmanager
def serving() -> Iterator[dict[str, str]]:
    """The environment of its clients."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: accepts(port), "the S3 server listens")
        yield {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    finally:
        server.kill()
        server.wait()


def script(environment: dict[str, str], text: str, *words: object) -> Any:
    """The output of a Python script that has the client `s3`."""
    command = [sys.executable, "-c", f"import sys, boto3\ns3 = boto3.client('s3')\n{text}", *map(str, words)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout
