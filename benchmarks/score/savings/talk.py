# SPDX-License-Identifier: Apache-2.0
"""A client that asks and a server that answers: talk.py ask|serve HOST ORDER, in a network namespace; ORDER is Turns as JSON.

The server must be started first. It ends after one connection.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from typing import Any

PORT = 41_900


def receive(connection: socket.socket, size: int) -> None:
    while size:
        data = connection.recv(min(size, 65_536))
        if not data:
            raise ConnectionError("the other end closed too early")
        size -= len(data)


def ask(host: str, order: dict[str, Any]) -> None:
    """Sends each request in `writes` writes of equal size, with Nagle's algorithm if there are several."""
    with socket.create_connection((host, PORT), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, order["writes"] == 1)
        part = bytes(order["request_bytes"] // order["writes"])
        for _ in range(order["turns"]):
            for _ in range(order["writes"]):
                connection.sendall(part)
            receive(connection, order["response_bytes"])


def serve(order: dict[str, Any]) -> None:
    with socket.create_server(("", PORT)) as listening:
        connection = listening.accept()[0]
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = order["request_bytes"] // order["writes"] * order["writes"]
        for _ in range(order["turns"]):
            receive(connection, request)
            time.sleep(order["think_s"])
            connection.sendall(bytes(order["response_bytes"]))
        connection.recv(1)  # the client closes


if __name__ == "__main__":
    role, host, text = sys.argv[1:]
    if role == "ask":
        ask(host, json.loads(text))
    else:
        serve(json.loads(text))
