# SPDX-License-Identifier: Apache-2.0
"""Captures of a connection at two places: on both sides of a router or a NAT, or with a tag in one direction only."""

from __future__ import annotations

import struct
from collections.abc import Callable
from socket import inet_aton

from plain_wire import Wire

LATER_MS = 0.02  # at the second place
UNTAGGED_TTL, SOURCE, DESTINATION, PORTS = 22, 26, 30, 34  # offsets in an Ethernet frame of IPv4
SEQUENCE = 38  # of TCP, then the acknowledgment
Frame = Callable[[bytes], bytes]


def unchanged(frame: bytes) -> bytes:
    return frame


def tagged(vlan: int) -> Frame:
    """Adds an IEEE 802.1Q tag."""
    return lambda frame: frame[:12] + b"\x81\0" + struct.pack("!H", vlan) + frame[12:]


def routed(frame: bytes) -> bytes:
    """Takes one off the TTL."""
    return frame[:UNTAGGED_TTL] + bytes([frame[UNTAGGED_TTL] - 1]) + frame[UNTAGGED_TTL + 1 :]


def is_of_first(frame: bytes) -> bool:
    """Returns whether 10.0.0.1 sent it."""
    return frame[SOURCE : SOURCE + 4] == inet_aton("10.0.0.1")


def renumbered(isn: tuple[int, int]) -> Frame:
    """Adds to the sequence numbers of 10.0.0.1 and of the other end, whose ISN is 1,000."""

    def write(frame: bytes) -> bytes:
        is_first = is_of_first(frame)
        sequence, ack = struct.unpack("!II", frame[SEQUENCE : SEQUENCE + 8])
        numbers = isn if is_first else isn[::-1]
        new = ((sequence + numbers[0]) % 2**32, (ack + numbers[1]) % 2**32 if ack else 0)
        return frame[:SEQUENCE] + struct.pack("!II", *new) + frame[SEQUENCE + 8 :]

    return write


def translated(address: str, port: int, inside: str = "10.0.0.1") -> Frame:
    """Writes another address and port for a host, as a source NAT does."""

    def write(frame: bytes) -> bytes:
        for place, port_place in ((SOURCE, PORTS), (DESTINATION, PORTS + 2)):
            if frame[place : place + 4] == inet_aton(inside):
                frame = frame[:place] + inet_aton(address) + frame[place + 4 :]
                frame = frame[:port_place] + struct.pack("!H", port) + frame[port_place + 2 :]
        return frame

    return write


def near_leg(wire: Wire, near: Frame, later_ms: float = LATER_MS) -> Wire:
    """Returns each packet as it is near 10.0.0.1: those of the other end have passed the router."""
    return Wire(
        [
            (ms, near(frame)) if is_of_first(frame) else (ms + later_ms, near(routed(frame)))
            for ms, frame in wire.packets
        ]
    )


def far_leg(wire: Wire, far: Frame, later_ms: float = LATER_MS) -> Wire:
    """Returns each packet as it is behind the router."""
    return Wire(
        [(ms + later_ms, far(routed(frame))) if is_of_first(frame) else (ms, far(frame)) for ms, frame in wire.packets]
    )


def at_two_places(wire: Wire, near: Frame, far: Frame, later_ms: float = LATER_MS) -> Wire:
    """Returns each packet at both places, on one clock."""
    return Wire(near_leg(wire, near, later_ms).packets + far_leg(wire, far, later_ms).packets)


def by_direction(wire: Wire, out: Frame, back: Frame) -> Wire:
    """Returns the packets of 10.0.0.1 in one way, and those of the other end in another."""
    return Wire([(ms, (out if is_of_first(frame) else back)(frame)) for ms, frame in wire.packets])
