# SPDX-License-Identifier: Apache-2.0
"""Captures with what wiretale-capture tells about its own link and clock."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from capture_files import block, enhanced, interface, option, section
from plain_wire import START_NS, Wire

COMMENT, NAME, RESOLUTION = 1, 2, 9
LINK = "wiretale.link/1 time_stamps=host promiscuous=yes mtu=1500 speed_mbit=1000 duplex=full tso=off gso=off gro=off lro=off"
CLOCK = "wiretale.clock/1 synchronized=yes error_ns=1500000 offset_ns=-310"


class Event(NamedTuple):
    """A change that was written before a packet; its time is that of the clock then."""

    before: int
    ms: float
    facts: str


def statistics(ns: int, facts: str) -> bytes:
    head = struct.pack("<III", 0, ns >> 32, ns & 0xFFFFFFFF)
    return block(5, head + option(COMMENT, b"a sentence") + option(COMMENT, facts.encode()))


def write_told(
    path: Path,
    packets: Sequence[tuple[float, bytes]],
    events: Iterable[Event] = (),
    link: str = LINK,
    clock: str = CLOCK,
) -> Path:
    """A file of the packets (ms, frame), in their order, with these events between them."""
    described = option(NAME, b"eth0") + option(RESOLUTION, b"\x09") + option(COMMENT, link.encode())
    blocks = [section(options=option(COMMENT, clock.encode())), interface(described)]
    waiting = sorted(events)
    for number, (ms, frame) in enumerate(packets):
        while waiting and waiting[0].before <= number:
            event = waiting.pop(0)
            blocks.append(statistics(START_NS + round(event.ms * 1e6), event.facts))
        blocks.append(enhanced(START_NS + round(ms * 1e6), frame))
    blocks += [statistics(START_NS + round(event.ms * 1e6), event.facts) for event in waiting]
    path.write_bytes(b"".join(blocks))
    return path


def write_interrupted(path: Path, wire: Wire, first: int = 100, last: int = 140) -> Path:
    """A capture whose link was down from one packet to another, which are missing."""
    packets = wire.packets
    lost, back = packets[first][0], packets[last][0] - 0.001
    return write_told(
        path,
        [*packets[:first], *packets[last:]],
        [
            Event(first, lost, "wiretale.link/1 event=carrier-lost losses=1"),
            Event(first, back, f"wiretale.link/1 event=carrier-back losses=0 down_ns={round((back - lost) * 1e6)}"),
        ],
    )


def write_stepped(path: Path, wire: Wire, step_ms: float, at: int = 100) -> Path:
    """A capture whose clock was set before a packet."""
    packets = [(ms + step_ms * (number >= at), frame) for number, (ms, frame) in enumerate(wire.packets)]
    event = Event(at, packets[at][0], f"wiretale.clock/1 event=step step_ns={round(step_ms * 1e6)}")
    return write_told(path, packets, [event])
