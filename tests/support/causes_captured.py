# SPDX-License-Identifier: Apache-2.0
"""Captures that show faults of the capture itself: one example for each cause."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import several_legs as legs
import transfer_wires as wires
from capture_files import write_pcap
from checkout import SAMPLES
from finding_captures import of_wire
from plain_wire import ACK, PSH, START_NS, Connection, Wire
from talk import Talk
from tracer_wire import write_interrupted

Make = Callable[[Path], Path]


def of_sample(name: str) -> Make:
    return lambda path: Path(shutil.copy(SAMPLES / name, path))


def upload() -> Wire:
    return wires.steady(wires.connection(), 200)


def routed_copy() -> Wire:
    """An upload at both sides of a router, in VLAN 10 and 20."""
    return legs.at_two_places(upload(), legs.tagged(10), legs.tagged(20))


def one_end() -> Wire:
    """An upload of which the capture has the sender's packets alone."""
    wire = upload()
    return Wire([(ms, frame) for ms, frame in wire.packets if frame[26:30] == bytes((10, 0, 0, 1))])


def open_request() -> Wire:
    talk = Connection(Wire()).open()
    for turn in range(3):
        talk.send(100 + 1000 * turn, 0, 50 * turn, 50, PSH | ACK, 200 * turn)
        talk.send(600 + 1000 * turn, 1, 200 * turn, 200, PSH | ACK, 50 * turn + 50)
    talk.send(3100, 0, 150, 50, PSH | ACK, 600)
    return talk.wire


def set_back(path: Path) -> Path:
    """An upload whose clock is set back by 200 ms at packet 100, and goes on."""
    packets = upload().packets
    return write_pcap(
        path, ((START_NS + round((ms - 200 * (i >= 100)) * 1e6), frame) for i, (ms, frame) in enumerate(packets))
    )


def interrupted(path: Path) -> Path:
    """An upload of which the tracer's link missed a part."""
    return write_interrupted(path, upload())


def left_out(acks: bool = False, opened: bool = False, answers: int = 8) -> Wire:
    """A server that sends much, of which the file lacks each fourth segment, and a client that says a word after so many of them;
    `acks`: it acknowledges all others at once."""
    wire, sent, spoken = Wire(), 0, 0
    link = Connection(wire)
    link = link.open() if opened else link
    for number in range(120):
        now = 100.0 + 10 * number
        if number % 4:
            link.send(now, 1, sent, 500, PSH | ACK, ack=spoken)
        sent += 500
        if acks:
            link.send(now + 1, 0, spoken, ack=sent)
        if number % answers == answers - 1:
            link.send(now + 2, 0, spoken, 40, PSH | ACK, ack=sent)
            spoken += 40
    return wire


EXAMPLES: dict[str, Make] = {
    "capture-drops": of_sample("capture_drops.pcapng"),
    "one-direction": of_wire(one_end),
    "not-decoded": of_sample("findings/undecoded.pcap.gz"),
    "cut-open": of_wire(open_request),
    "copies": of_wire(routed_copy),
    "offload": of_sample("super_segments.pcap"),
    "clock-step": set_back,
    "carrier-lost": interrupted,
}


JUMP_MS, TURNS, JUMP_AT = 1_500, 40, 20


def turns(late: str) -> Talk:
    """Requests every 100 ms, each answered after 12 ms at a round trip of 10 ms. At the 20th, 1.5 s pass: the capture's clock
    jumps before the answer or after it, the server needs the time, or the path holds its answer back."""
    talk = Talk().open(rtt=10)
    for turn in range(TURNS):
        begin = 50 + 100.0 * turn
        asked_ms = begin + JUMP_MS * (turn > JUMP_AT)  # by the capture's clock
        answered_ms = asked_ms + 12 + JUMP_MS * (turn == JUMP_AT and late != "clock after the answer")
        client = 10_000 + round(begin if late.startswith("clock") else asked_ms)  # clocks of both ends
        server = client + 10 + JUMP_MS * (turn == JUMP_AT and late == "server")
        after = client + 12 + JUMP_MS * (turn == JUMP_AT and late in ("server", "path"))
        request, response = 100 * turn, 300 * turn
        talk.send(asked_ms, 0, request, 100, ack=response, flags="PA", tsval=client)
        talk.send(answered_ms, 1, response, 300, ack=request + 100, flags="PA", tsval=server)
        talk.send(answered_ms + 0.1, 0, request + 100, ack=response + 300, tsval=after)
    return talk


#: who was late: the cause that is the answer
JUMPS: dict[str, str | None] = {
    "clock before the answer": "clock-step",
    "clock after the answer": "clock-step",
    "server": "slow-server",
    "path": "slow-server",
}
