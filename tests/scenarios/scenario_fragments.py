# SPDX-License-Identifier: Apache-2.0
"""Segments of a scenario in IP fragments, as a link with a small MTU carries them.

The fragment that completes a segment has the segment's time, because its receiver gets the segment then; the later pass
within the microseconds before. So the verdicts must be those of the whole segment.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from scenario_wire import FRAGMENT, MORE_FRAGMENTS, TCP, Frame, ipv4_header

LINK, IP_HEADERS = 14, {4: 20, 6: 40}
UNIT = 8  # bytes that a fragment offset counts
SPACING_NS = 1000  # between fragments: the tick of a pcap file
LINK_AND_TTL = 23  # bytes of Ethernet and of IP up to the TTL, or hop limit
COPY_NS = 200_000_000  # a later copy of a fragment would belong to the next datagram with its identification


class Form(NamedTuple):
    """How the segments of a capture are divided."""

    pieces: int
    order: (
        str  # forward, reversed, or forward with a copy: `first` again at once, `last` again behind the next fragment
    )


FORMS = tuple(Form(pieces, order) for pieces in (2, 3) for order in ("forward", "reversed", "first", "last"))


def cuts(body: bytes, pieces: int) -> list[int] | None:
    """Where a TCP segment is divided, so that the first fragment has its whole header; None if it is too short."""
    header = (body[12] >> 4) * 4
    inner = [-(-max(header, len(body) * k // pieces) // UNIT) * UNIT for k in range(1, pieces)]
    edges = [0, *inner, len(body)]
    return edges if all(low < high for low, high in pairwise(edges)) else None


def piece(frame: Frame, body: bytes, start: int, end: int, number: int) -> Frame:
    """The fragment with these bytes of the IP payload."""
    ip, more, part = frame.data[LINK : LINK + IP_HEADERS[frame.version]], end < len(body), body[start:end]
    if frame.version == 4:
        place = start // UNIT | MORE_FRAGMENTS * more
        head = ipv4_header(len(part), TCP, ip[12:20], int.from_bytes(ip[4:6], "big"), place, ip[1], ip[8])
    else:
        part = struct.pack("!BBHI", TCP, 0, start | more, number) + part
        head = ip[:4] + struct.pack("!HB", len(part), FRAGMENT) + ip[7:]
    return replace(frame, data=frame.data[:LINK] + head + part, events="")


def divided(frame: Frame, form: Form | None, number: int) -> list[Frame]:
    """The frames that carry a segment, in the order of the capture; the last one completes it and has its events.

    `number` identifies the datagram in IPv6; in IPv4 the packet's own ID does.
    """
    body = frame.data[LINK + IP_HEADERS[frame.version] :]
    edges = cuts(body, form.pieces) if form and frame.is_segment else None
    frame = replace(frame, number=number)
    if not form or not edges:
        return [frame]
    fragments = [piece(frame, body, low, high, number) for low, high in pairwise(edges)]
    if form.order == "reversed":
        fragments.reverse()
    elif form.order == "first":
        fragments.insert(0, fragments[0])
    fragments[-1] = replace(fragments[-1], events=frame.events)
    return fragments


def headers_of(frame: Frame) -> tuple[int, bytes]:
    """The packet that a frame is of, and what differs between the links on which it may have passed."""
    return frame.number, frame.data[:LINK_AND_TTL]


def completed_early(packet: list[Frame], repeated: set[tuple[int, bytes]]) -> list[Frame]:
    """A copy of a packet whose last fragment passed before: the fragment before it completes the segment."""
    if len(packet) == 1 or headers_of(packet[-1]) not in repeated:
        return packet
    return [*packet[:-2], replace(packet[-2], events=packet[-1].events), replace(packet[-1], events="")]


def timed(packet: list[Frame], before_ns: int, spacing_ns: int) -> list[Frame]:
    """The fragments just before the time of their segment, but not before the packet that precedes them."""
    ns = packet[-1].ns
    times = [ns - spacing_ns * place for place in reversed(range(len(packet)))]
    return [
        replace(frame, ns=max(time, before_ns) if ns >= before_ns else ns)
        for frame, time in zip(packet, times, strict=True)
    ]


def in_sequence(packets: list[list[Frame]], form: Form | None, spacing_ns: int) -> Iterator[Frame]:
    """The frames of all packets."""
    order = form.order if form else "forward"
    again: Frame | None = None  # the last fragment of the packet before
    repeated: set[tuple[int, bytes]] = set()
    before_ns = 0
    for group, packet in enumerate(packets, 1):
        first, *later = timed(completed_early(packet, repeated), before_ns, spacing_ns)
        yield replace(first, group=0 if later and order == "first" else group)
        if again and again.number != first.number and again.ns > packet[-1].ns - COPY_NS:
            yield replace(again, ns=first.ns, events="", group=0)
            repeated.add(headers_of(again))
        yield from (replace(frame, group=group) for frame in later)
        again = packet[-1] if later and order == "last" else None
        before_ns = packet[-1].ns
