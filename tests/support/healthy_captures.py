# SPDX-License-Identifier: Apache-2.0
"""Healthy or merely busy captures, drawn: two kernels that do what they should, over a path that loses nothing.

Each kind is a function of a path; a path has a round trip, a rate, and the place of the capture point from client (0) to
server (1).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from math import ceil

from application_wire import answer, question
from plain_wire import ACK, FIN, MSS, PSH, Connection, Wire

FIRST_WINDOW = 10  # segments (RFC 6928)
WINDOW = 4096  # of 128 bytes: room for the path's whole flight
CLIENT, SERVER = 0, 1


@dataclass
class Path:
    """A path without a queue; `seen` delays are as packets pass the capture point, in order."""

    rtt: float  # ms
    at: float  # place of the capture point
    rng: random.Random
    mbps: float = 20.0
    last: list[float] = field(default_factory=lambda: [0.0, 0.0])

    @property
    def trip(self) -> float:
        """One way, ms."""
        return self.rtt / 2

    @property
    def spacing(self) -> float:
        """Time of a full segment at the path's rate, ms."""
        return 8 * (MSS + 54) / self.mbps / 1000

    def seen(self, ms: float, side: int) -> float:
        """When a packet that a side sends at a time passes the capture point."""
        share = self.at if side == CLIENT else 1 - self.at
        passed = ms + self.trip * share * (1 + 0.02 * self.rng.random())
        self.last[side] = max(passed, self.last[side] + 0.002)
        return self.last[side]


class Dialogue:
    """A TCP connection over a path; times are those of the host that acts."""

    def __init__(self, wire: Wire, path: Path, port: int = 40000, server_port: int = 443, ms: float = 0.0) -> None:
        self.path, self.position = path, [0, 0]
        self.window = [FIRST_WINDOW, FIRST_WINDOW]
        self.tcp = Connection(wire, port, server_port=server_port)
        self.now = ms + path.rtt  # when the client is connected
        self.tcp.open(path.seen(ms, CLIENT), rtt=path.rtt * (1 + 0.01 * path.rng.random()), near=path.rtt * path.at)
        path.last = [max(path.last[CLIENT], self.now), max(path.last[SERVER], self.now - path.rtt * path.at)]

    def packet(self, ms: float, side: int, at: int, size: int = 0, flags: int = ACK) -> None:
        self.tcp.send(self.path.seen(ms, side), side, at, size, flags, window=WINDOW)

    def transfer(self, ms: float, side: int, size: int) -> float:
        """Sends bytes; returns when the last one has arrived. Each second segment and the last are acknowledged at once."""
        count, sent, covered = ceil(size / MSS), ms - self.path.spacing, [0.0] * ceil(size / MSS)
        packets: list[tuple[float, int, int, int, int, int]] = []  # time, side, position, size, flags, acknowledged
        start, arrived, first = self.position[side], ms, self.window[side]
        for i in range(count):
            released = covered[ceil((i - first + 1) / 2)] if i >= first else ms
            sent = max(sent + self.path.spacing, released)
            length, is_last = min(MSS, size - i * MSS), i == count - 1
            packets.append((sent, side, start + i * MSS, length, PSH | ACK if is_last else ACK, -1))
            arrived = sent + self.path.trip
            if i % 2 or is_last:
                packets.append((arrived, 1 - side, self.position[1 - side], 0, ACK, start + i * MSS + length))
                covered[i - 1 : i + 1] = [arrived + self.path.trip] * len(covered[i - 1 : i + 1])
        for sent_ms, end, at, length, flags, acknowledged in sorted(packets):
            if acknowledged >= 0:
                self.tcp.received[end] = acknowledged
            self.packet(sent_ms, end, at, length, flags)
        self.position[side] += size
        self.window[side] = min(first + count, 200)
        return arrived

    def ask(self, request: int, response: int, think: float = 1.0, pause: float = 0.0) -> Dialogue:
        """A request after a pause of the client, and the response after the server's thinking."""
        arrived = self.transfer(self.now + pause, CLIENT, request)
        self.now = self.transfer(arrived + think, SERVER, response)
        return self

    def close(self, pause: float = 1.0) -> Wire:
        """Both ends close, the client first."""
        ms = self.now + self.path.trip + pause
        self.packet(ms, CLIENT, self.position[CLIENT], flags=FIN | ACK)
        self.tcp.received[SERVER] = self.position[CLIENT] + 1
        self.packet(ms + self.path.trip, SERVER, self.position[SERVER], flags=FIN | ACK)
        self.tcp.received[CLIENT] = self.position[SERVER] + 1
        self.packet(ms + self.path.rtt, CLIENT, self.position[CLIENT] + 1)
        return self.tcp.wire


def page(path: Path) -> Wire:
    """A page of ten objects over one connection."""
    talk = Dialogue(Wire(), path)
    for _ in range(10):
        talk.ask(
            path.rng.randint(200, 900), path.rng.randint(500, 12_000), path.rng.uniform(1, 8), path.rng.uniform(1, 30)
        )
    return talk.close()


def download(path: Path) -> Wire:
    return Dialogue(Wire(), path).ask(300, 1_500_000, 3.0, 1.0).close()


def upload(path: Path) -> Wire:
    return Dialogue(Wire(), path).ask(1_500_000, 200, 3.0, 1.0).close()


def typing(path: Path) -> Wire:
    """Keys of a terminal with their echo."""
    talk = Dialogue(Wire(), path, server_port=22)
    for _ in range(40):
        talk.ask(36, 36, path.rng.uniform(0.2, 1.0), path.rng.uniform(80, 600))
    return talk.close()


def polls(path: Path) -> Wire:
    """The same short question once a second."""
    talk = Dialogue(Wire(), path, server_port=8080)
    for _ in range(20):
        talk.ask(120, 80, path.rng.uniform(0.3, 2.0), 1000.0)
    return talk.close()


def pushes(path: Path) -> Wire:
    """A client that subscribes, and a server that sends events when they happen."""
    talk = Dialogue(Wire(), path, server_port=1883)
    talk.ask(60, 10, 0.5, 1.0)
    for _ in range(25):
        talk.now = talk.transfer(talk.now + path.rng.uniform(50, 2500), SERVER, path.rng.randint(40, 300))
    return talk.close()


def queries(path: Path) -> Wire:
    """A program that computes between queries of its database."""
    talk = Dialogue(Wire(), path, server_port=5432)
    for _ in range(15):
        talk.ask(
            path.rng.randint(60, 300),
            path.rng.randint(50, 2500),
            path.rng.uniform(0.3, 4.0),
            path.rng.uniform(100, 400),
        )
    return talk.close()


def connections(path: Path) -> Wire:
    """Clients that come one after another, each with one request."""
    wire = Wire()
    for i in range(15):
        Dialogue(wire, path, 41000 + i, 80, 900.0 * i).ask(400, 3000, path.rng.uniform(1, 10), 1.0).close()
    return wire


def echoes(path: Path) -> Wire:
    """A ping a second."""
    wire = Wire()
    for i in range(15):
        for side, kind in ((CLIENT, 8), (SERVER, 0)):
            ends = ("10.0.0.1", "10.0.0.2")[:: -1 if side else 1]
            body = struct.pack("!BBHHH", kind, 0, 0, 77, i) + bytes(56)
            wire.ip(path.seen(1000.0 * i + (path.trip + 1 if side else 0), side), *ends, 1, body)
    return wire


def names(path: Path) -> Wire:
    """Questions of DNS, each answered."""
    wire = Wire()
    for i in range(12):
        ms = 300.0 * i
        for side, text in ((CLIENT, question(i + 1)), (SERVER, answer(i + 1))):
            ports = (50000 + i, 53)[:: -1 if side else 1]
            ends = ("10.0.0.1", "10.0.0.2")[:: -1 if side else 1]
            header = struct.pack("!HHHH", *ports, 8 + len(text), 0)
            wire.ip(path.seen(ms + (path.trip + 1 if side else 0), side), *ends, 17, header + text)
    return wire


def call(path: Path) -> Wire:
    """A call: a packet each 20 ms in both directions, numbered as RTP."""
    wire = Wire()
    for i in range(300):
        for side in (CLIENT, SERVER):
            ends = ("10.0.0.1", "10.0.0.2")[:: -1 if side else 1]
            payload = struct.pack("!BBHII", 0x80, 0, 1000 + i, 160 * i, 0xABC0 + side) + bytes(160)
            body = struct.pack("!HHHH", 16384, 16384, 8 + len(payload), 0) + payload
            wire.ip(path.seen(20.0 * i + 7 * side, side), *ends, 17, body)
    return wire


def keep_alives(path: Path) -> Wire:
    """A connection that is idle for minutes, with keep-alives that are answered."""
    talk = Dialogue(Wire(), path, server_port=5432).ask(100, 100, 1.0, 1.0)
    for i in range(1, 6):
        ms = talk.now + 60_000.0 * i
        talk.packet(ms, CLIENT, talk.position[CLIENT] - 1)
        talk.packet(ms + path.trip, SERVER, talk.position[SERVER])
    talk.now += 330_000.0
    return talk.ask(100, 100, 1.0).close()


KINDS: dict[str, Callable[[Path], Wire]] = {
    make.__name__: make
    for make in (
        *(page, download, upload, typing, polls, pushes, queries, connections, echoes, names, call, keep_alives),
    )
}
#: kind, round trip in ms, place of the capture point
HEALTHY = list(product(KINDS, (0.3, 8.0, 40.0), (0.0, 0.5, 1.0)))


def healthy(kind: str, rtt: float, at: float, seed: int = 1) -> Wire:
    """The packets of a healthy capture."""
    return KINDS[kind](Path(rtt, at, random.Random(f"{kind} {rtt} {at} {seed}")))
