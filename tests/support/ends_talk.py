# SPDX-License-Identifier: Apache-2.0
"""Two programs that talk over TCP, one as client and one as server, each with a way to be slow.

python ends_talk.py server KIND OWN_ADDRESS [OTHER_ADDRESS], python ends_talk.py client KIND SERVER_ADDRESS
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

PORT, BACK_PORT = 5001, 6001
REQUEST, RESPONSE = 100, 400
END = b"end of content"
SMALL_BUFFER = {"small-window": 16_384, "zero-window": 32_768}


def receive(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = link.recv(65_536)
        if not part:
            break
        data += part
    return data


def listen(address: str, port: int, buffer: int = 0) -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if buffer:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    server.bind((address, port))
    server.listen(16)
    return server


def answer(link: socket.socket, think: Callable[[int], None]) -> None:
    """Answers requests until the client closes."""
    number = 0
    while receive(link, 150 if think is hurry else REQUEST):
        think(number)
        link.sendall(bytes(RESPONSE))
        number += 1


def hurry(_: int) -> None:
    pass


def work(number: int) -> None:
    time.sleep(0.3 + 0.03 * (number % 7))


def ask_back(address: str) -> Callable[[int], None]:
    """Asks a second server before each answer."""
    back = socket.create_connection((address, BACK_PORT))

    def ask(_: int) -> None:
        back.sendall(bytes(REQUEST))
        receive(back, RESPONSE)

    return ask


def swallow(link: socket.socket, size: int, pause: float) -> None:
    while link.recv(size):
        time.sleep(pause)


def serve(kind: str, address: str, other: str) -> None:
    server = listen(address, BACK_PORT if kind == "back" else PORT, SMALL_BUFFER.get(kind, 0))
    print("ready", flush=True)
    while True:
        link, _ = server.accept()
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kind in ("small-window", "send-buffer", "app-limited", "no-window-scaling"):
            swallow(link, 1 << 20, 0.0)
        elif kind == "zero-window":
            swallow(link, 4096, 0.05)
        elif kind == "expect-continue":
            data = receive(link, 1)
            while not data.endswith(END):
                data += link.recv(65_536)
            link.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        elif kind == "slow-dependency":
            answer(link, ask_back(other))
        else:
            answer(
                link, work if kind in ("slow-server", "back") else hurry if kind == "nagle-delack" else lambda _: None
            )
        link.close()


def ask(link: socket.socket, count: int, pause: Callable[[int], float] | None = None) -> None:
    for number in range(count):
        if pause:
            time.sleep(pause(number))
        link.sendall(bytes(REQUEST))
        receive(link, RESPONSE)


def write_twice(link: socket.socket, count: int) -> None:
    for _ in range(count):
        link.sendall(bytes(60))
        link.sendall(bytes(90))
        receive(link, RESPONSE)


def upload(address: str) -> None:
    """Waits for 100 Continue, which never comes, as curl does."""
    with socket.create_connection((address, PORT)) as link:
        link.sendall(b"PUT /a HTTP/1.1\r\nHost: app.example\r\nExpect: 100-continue\r\nContent-Length: 50014\r\n\r\n")
        link.settimeout(1.0)
        with suppress(TimeoutError):
            link.recv(1)
        link.settimeout(None)
        link.sendall(bytes(50_000) + END)
        receive(link, 1 << 10)


def talk(kind: str, address: str) -> None:
    if kind == "expect-continue":
        for _ in range(3):
            upload(address)
        return
    if kind == "reconnects":
        for _ in range(40):
            with socket.create_connection((address, PORT)) as link:
                ask(link, 1)
        return
    link = socket.socket()
    if kind == "send-buffer":
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
    link.connect((address, PORT))
    if kind != "nagle-delack":
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if kind in ("slow-server", "slow-dependency"):
        ask(link, 8, lambda _: 0.03)
    elif kind == "serial-requests":
        ask(link, 70)
    elif kind == "client-pause":
        ask(link, 25, lambda number: 0.1 + 0.01 * (7 * number % 13))
    elif kind == "nagle-delack":
        write_twice(link, 40)
    elif kind == "app-limited":
        for _ in range(25):
            link.sendall(bytes(64_000))
            time.sleep(0.1)
    else:
        link.sendall(bytes({"zero-window": 300_000}.get(kind, 3_000_000)))
    link.shutdown(socket.SHUT_WR)
    receive(link, 1)


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve(sys.argv[2], sys.argv[3], sys.argv[-1])
    else:
        talk(sys.argv[2], sys.argv[3])
