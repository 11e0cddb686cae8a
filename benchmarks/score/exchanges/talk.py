# SPDX-License-Identifier: Apache-2.0
"""Client and server of a run: talk.py ask|serve HOST ORDER, in a network namespace; ORDER is that of a Plan, as JSON.

Each prints a line: its log, in ns of the clock that captures have. Then it keeps its connections until its input ends.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Log = dict[str, Any]
DNS_PORT, TRIES, RETRY_S, PATIENCE_S, LONG_PATIENCE_S, RESET_S = 53, 3, 1.0, 1.2, 6.0, 0.3
KEPT: list[socket.socket] = []  # connections of which the capture does not see the end


def sleep(seconds: float) -> int:
    begin = time.time_ns()
    if seconds:
        time.sleep(seconds)
    return time.time_ns() - begin


def send(peer: socket.socket, parts: list[list[float]], head: bytes) -> int:
    """Sends the parts of a message, of which the last ends with a dot. Returns the ns of its pauses."""
    slept = 0
    for number, (size, before) in enumerate(parts):
        slept += sleep(before)
        first = head if number == 0 else b""
        end = b"." if number == len(parts) - 1 else b"-"
        peer.sendall(first + b"-" * (int(size) - len(first) - 1) + end)
    return slept


def receive(peer: socket.socket) -> tuple[int, int]:
    """Returns when the first and the last byte of a message came."""
    first, got = 0, b""
    while not got.endswith(b"."):
        got = peer.recv(65_536)
        if not got:
            raise ConnectionError("no answer")
        first = first or time.time_ns()
    return first, time.time_ns()


def head_of(connection: Log, number: int, start: str) -> bytes:
    """Returns the head of HTTP for the first message of a connection, if it has one."""
    if number or connection["status"] is None:
        return b""
    parts = connection["turns"][0]["request" if start.startswith("GET") else "response"]
    least = f"{start}\r\nHost: x\r\nContent-Length: 0000\r\n\r\n"
    length = int(sum(size for size, _ in parts)) - len(least)
    return least.replace("0000", f"{length:04}").encode()


def opened(port: int) -> socket.socket:
    peer = socket.socket()
    peer.settimeout(60)
    peer.connect((sys.argv[2], port))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def ask_one(connection: Log) -> Log:
    begin, turns = time.time_ns(), list[Log]()
    try:
        peer = opened(connection["port"])
    except ConnectionRefusedError:
        return {"connected": None, "turns": turns}
    log: Log = {"connected": time.time_ns() - begin, "client_port": peer.getsockname()[1], "turns": turns}
    plan, got, last = connection["turns"], 0, len(connection["turns"]) - 1
    for number, turn in enumerate(plan):
        begin = time.time_ns()
        turns.append({"begin": begin, "pause": begin - got if got else None})
        turns[-1]["request_pause"] = send(peer, turn["request"], head_of(connection, number, "GET / HTTP/1.1"))
        if number == last and connection["end"] != "answered":
            break
        turns[-1]["first"], got = receive(peer)
        turns[-1]["end"] = got
        sleep(turn["pause_s"])
    if connection["end"] == "hung":
        KEPT.append(peer)
        return log
    if connection["end"] in ("closed", "reset"):
        peer.settimeout(LONG_PATIENCE_S)
        try:
            receive(peer)
        except TimeoutError:  # the RST was lost
            log["unheard"] = True
        except ConnectionError:
            pass
    elif connection["end"] == "abandoned":
        sleep(PATIENCE_S)
    peer.close()
    return log


def serve_one(listening: socket.socket, connection: Log) -> list[Log]:
    """Serves one connection. Returns when each request was there, and what its answer took."""
    peer, log, last = listening.accept()[0], list[Log](), len(connection["turns"]) - 1
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number, turn in enumerate(connection["turns"]):
        _, got = receive(peer)
        if number == last and connection["end"] != "answered":
            break
        sleep(turn["think_s"])
        server = time.time_ns() - got
        head = head_of(connection, number, f"HTTP/1.1 {connection['status']} Any")
        log.append({"server": server, "response_pause": send(peer, turn["response"], head)})
    if connection["end"] == "hung":
        KEPT.append(peer)
        return log
    if connection["end"] in ("closed", "reset"):
        sleep(RESET_S)
    else:
        peer.recv(1)  # the client closes
    if connection["end"] == "reset":
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    return log


def look_up(number: int, lookup: Log) -> Log:
    """Asks up to three times, as resolvers do."""
    name = b"".join(bytes([len(label)]) + label.encode() for label in lookup["name"].split("."))
    query = struct.pack("!6H", 1000 + number, 0x0100, 1, 0, 0, 0) + name + b"\0\0\1\0\1"
    begin = time.time_ns()
    with socket.socket(type=socket.SOCK_DGRAM) as asking:
        asking.connect((sys.argv[2], DNS_PORT))
        asking.settimeout(RETRY_S)
        for attempt in range(1, TRIES + 1):
            asking.send(query)
            with contextlib.suppress(TimeoutError):
                asking.recv(512)
                return {"waited": time.time_ns() - begin, "attempts": attempt}
    return {"waited": None, "attempts": TRIES}


def answer_names(order: Log, answering: socket.socket) -> None:
    while True:
        query, asker = answering.recvfrom(512)
        lookup = order["lookups"][struct.unpack_from("!H", query)[0] - 1000]
        if lookup["code"] is not None:
            reply = query[:2] + struct.pack("!H", 0x8180 | lookup["code"]) + query[4:]
            threading.Timer(lookup["think_s"], answering.sendto, (reply, asker)).start()


def ask(order: Log) -> Log:
    with ThreadPoolExecutor(32) as threads:
        lookups = [threads.submit(look_up, number, lookup) for number, lookup in enumerate(order["lookups"])]
        client_log = list(threads.map(ask_one, order["connections"]))
        return {"connections": client_log, "lookups": [lookup.result() for lookup in lookups]}


def serve(order: Log) -> Log:
    connections = [connection for connection in order["connections"] if connection["end"] != "refused"]
    answering = socket.socket(type=socket.SOCK_DGRAM)
    answering.bind(("", DNS_PORT))
    threading.Thread(target=answer_names, args=(order, answering), daemon=True).start()
    listening = [socket.create_server(("", connection["port"])) for connection in connections]
    print("ready", flush=True)
    with ThreadPoolExecutor(32) as threads:
        logs = list(threads.map(serve_one, listening, connections))
    return {str(connection["port"]): log for connection, log in zip(connections, logs, strict=True)}


if __name__ == "__main__":
    print(json.dumps((ask if sys.argv[1] == "ask" else serve)(json.loads(sys.argv[3]))), flush=True)
    sys.stdin.read()
