# SPDX-License-Identifier: Apache-2.0
"""Servers that push, poll, hold requests or wait for a person, and servers that are slow: column server_talk of flows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

import wiretale
from plain_wire import ACK, PSH, Connection, Wire

RTT = 1.0
SWITCHES = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
HEAD = b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n"


class Turn(NamedTuple):
    """A message of the client `pause` ms after that of the server, and the server's `wait` ms later; sizes in bytes."""

    pause: float
    wait: float
    request: int = 100
    response: int = 400


class Dialogue(NamedTuple):
    """Turns on a port; `talk`: what they are."""

    port: int
    turns: Iterable[Turn]
    talk: str | None
    head: bytes = b""  # the first message
    reply: bytes = b""  # the answer to it


def conversation(
    folder: Path, port: int, turns: Iterable[Turn], head: bytes = b"", reply: bytes = b""
) -> wiretale.Trace:
    """The capture of a dialogue at the client."""
    wire = Wire()
    link = Connection(wire, server_port=port).open(rtt=RTT)
    ms, sent, received = 5.0, 0, 0
    for number, turn in enumerate(turns):
        ms += turn.pause
        payload = head if head and not number else bytes(turn.request)
        link.send(ms, 0, sent, flags=PSH | ACK, ack=received, payload=payload)
        sent += len(payload)
        link.send(ms + RTT, 1, received, ack=sent)
        ms += RTT + turn.wait
        answer = reply if reply and not number else bytes(turn.response)
        link.send(ms, 1, received, flags=PSH | ACK, ack=sent, payload=answer)
        received += len(answer)
        link.send(ms + 0.05, 0, sent, ack=received)
    return wiretale.analyze(wire.write(folder / "talk.pcap"))


def repeated(count: int, turn: Callable[[int], Turn]) -> list[Turn]:
    return [turn(i) for i in range(count)]


PUSH_PERIOD = 500.0
#: 20, 57, 94, 31, 68, … ms: pauses of a client
VARIED = [20 + 37 * i % 111 for i in range(40)]
DIALOGUES = {
    # the server asks: the client replies at once, and says more
    "OpenFlow controller that polls": Dialogue(
        6654, repeated(12, lambda i: Turn(0.3, 2990.0 + VARIED[i], 1000, 24)), "pushed"
    ),
    "event after a subscription": Dialogue(7422, [Turn(0, 3), Turn(4, 1900, 18, 6), Turn(5, 1400, 68, 74)], "pushed"),
    "the same on the port of NATS": Dialogue(4222, [Turn(0, 3), Turn(4, 1900, 18, 600), Turn(90, 1400)], "pushed"),
    "publishing at a fixed interval": Dialogue(
        9900, repeated(30, lambda i: Turn(VARIED[i], PUSH_PERIOD - VARIED[i] - RTT)), "pushed"
    ),
    "the same over HTTP": Dialogue(
        80, repeated(30, lambda i: Turn(VARIED[i], PUSH_PERIOD - VARIED[i] - RTT)), "pushed", HEAD
    ),
    "WebSocket": Dialogue(
        80, [Turn(0, 2), *repeated(8, lambda i: Turn(0.5, 900.0 + 30 * VARIED[i], 12, 200))], "pushed", HEAD, SWITCHES
    ),
    "WebSocket whose upgrade is slow": Dialogue(
        80, [Turn(0, 8000), *repeated(8, lambda i: Turn(0.5, 5.0, 12, 200))], None, HEAD, SWITCHES
    ),
    "idle pair of sockets": Dialogue(43210, [Turn(0, 2), Turn(30, 694_000, 10, 4)], "pushed"),
    "long polls": Dialogue(80, repeated(4, lambda i: Turn(3.0, 40_100.0 + i)), "held", HEAD),
    "shell": Dialogue(22, [Turn(0, 5), Turn(400, 2500), Turn(700, 900), Turn(30, 4000)], "typed"),
    "remote desktop": Dialogue(3389, repeated(5, lambda i: Turn(20.0, 900.0 + 300 * i)), "typed"),
    # slow servers
    "one request a connection": Dialogue(7422, [Turn(0, 2000)], None),
    "equal waits, think times": Dialogue(5001, repeated(5, lambda i: Turn(100.0, 2200.0)), None),
    "equal waits, asked in a loop": Dialogue(7422, repeated(5, lambda i: Turn(0.2, 2000.0)), None),
    "even waits over HTTP, asked in a loop": Dialogue(80, repeated(30, lambda i: Turn(0.2, 450.0 + i % 2)), None, HEAD),
    "writes to a database in a loop": Dialogue(
        5432, repeated(12, lambda i: Turn(0.2, 280.0 + 3 * VARIED[i], 900, 20)), None
    ),
    "uploads to an unknown service, with pauses": Dialogue(
        7422, repeated(8, lambda i: Turn(60.0, 280.0 + 3 * VARIED[i], 900, 20)), None
    ),
    "reads in a loop": Dialogue(7422, repeated(12, lambda i: Turn(0.2, 280.0 + 3 * VARIED[i])), None),
    "slow pages of a reader": Dialogue(80, repeated(4, lambda i: Turn(4000.0, 30_000.0)), None, HEAD),
    "slow pages in a loop": Dialogue(80, repeated(4, lambda i: Turn(1.0, 6000.0 + 400 * i)), None, HEAD),
    "mail": Dialogue(25, [Turn(0, 2500, 30), Turn(0.4, 300, 40, 20), Turn(0.4, 5200, 500, 20)], None),
}


@pytest.mark.parametrize("name", DIALOGUES)
def test_a_server_is_slow_only_if_somebody_waits_for_its_answer(tmp_path: Path, name: str) -> None:
    case = DIALOGUES[name]
    trace = conversation(tmp_path, case.port, case.turns, case.head, case.reply)
    flow = trace.flows.rows()[0]
    slow = [row for row in trace.findings.rows() if row["code"] == "slow-server"]
    assert (flow["server_talk"], len(slow)) == (case.talk, case.talk is None)
    waited_ns = sum(turn.wait for turn in case.turns if turn.wait >= 200) * 1e6
    if case.talk == "typed":
        waited_ns += sum(turn.pause for turn in case.turns) * 1e6
    part = flow["time_idle_ns" if case.talk else "time_server_ns"]
    assert abs(part - waited_ns) < 0.02 * waited_ns + 300e6
    parts = [name for name in flow if name.startswith("time_")]
    assert sum(flow[name] for name in parts) == flow["last_ns"] - flow["first_ns"]
