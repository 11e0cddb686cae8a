# SPDX-License-Identifier: Apache-2.0
"""Sender and receiver of a scenario: host_talk.py send|receive HOST ORDER, in a network namespace; ORDER is a Talk as JSON.

The receiver must be started first. It ends after the number of connections in ORDER.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

PORT = 41_900


def send_one(host: str, order: dict[str, Any]) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, order["control"].encode())
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(60)
        connection.connect((host, PORT))
        left = order["bytes"]
        while left:
            size = min(left, order["chunk"])
            connection.sendall(bytes(size))
            left -= size
            if order["pause"]:
                time.sleep(order["pause"])
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1024):  # the receiver closes once it has read all
            pass


def send(host: str, order: dict[str, Any]) -> None:
    for _ in range(order["connections"]):
        with ThreadPoolExecutor(order["parallel"]) as threads:
            for _ in range(order["parallel"]):
                threads.submit(send_one, host, order)


def read(connection: socket.socket, order: dict[str, Any]) -> None:
    count, stopped = 0, False
    with connection:
        while data := connection.recv(order["read_bytes"]):
            count += len(data)
            if order["read_pause"]:
                time.sleep(order["read_pause"])
            if order["stop_reading"] and not stopped and count > order["bytes"] // 3:
                stopped = True
                time.sleep(order["stop_reading"])


def receive(order: dict[str, Any]) -> None:
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if order["receive_buffer"]:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, order["receive_buffer"])
        listening.bind(("", PORT))
        listening.listen(64)
        print("listening", flush=True)
        count = order["connections"] * order["parallel"]
        with ThreadPoolExecutor(count) as threads:
            for _ in range(count):
                threads.submit(read, listening.accept()[0], order)


def main() -> None:
    role, host, text = sys.argv[1:]
    with contextlib.suppress(KeyboardInterrupt):
        if role == "send":
            send(host, json.loads(text))
        else:
            receive(json.loads(text))


if __name__ == "__main__":
    main()
