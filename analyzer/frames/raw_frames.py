# SPDX-License-Identifier: Apache-2.0
"""The bytes of a few frames, and a small pcapng file with them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer import _core

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

ROOM = 16 * 2**20  # bytes of all frames together
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6  # block types of pcapng
ORDER = 0x1A2B3C4D
NANOSECONDS = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)  # option if_tsresol 10^-9, end of options


class RawFrame(NamedTuple):
    """A frame as captured."""

    capture: int  # interfaces row of a packet of its file
    number: int  # in its file
    link_type: int
    time_ns: int | None
    length: int  # on the wire
    data: bytes


def block(kind: int, body: bytes) -> bytes:
    """Returns a block of pcapng."""
    padded = body + bytes(-len(body) % 4)
    size = struct.pack("<I", len(padded) + 12)
    return struct.pack("<I", kind) + size + padded + size


def pcapng(frames: Sequence[RawFrame]) -> bytes:
    """Returns a pcapng file of these frames, in which they are numbered from 1; each link type has its interface."""
    links = list(dict.fromkeys(frame.link_type for frame in frames))
    parts = [block(SECTION, struct.pack("<IHHq", ORDER, 1, 0, -1))]
    parts += [block(INTERFACE, struct.pack("<HHI", link, 0, 0) + NANOSECONDS) for link in links]
    for frame in frames:
        time = max(0, frame.time_ns or 0)
        sizes = (len(frame.data), max(frame.length, len(frame.data)))
        head = struct.pack("<IIIII", links.index(frame.link_type), time >> 32, time & 0xFFFFFFFF, *sizes)
        parts.append(block(PACKET, head + frame.data))
    return b"".join(parts)


def raw_frames(trace: Trace, places: Iterable[tuple[int, int]]) -> list[RawFrame]:
    """Returns the frames (interfaces row, number) that the files have, in the order of files and numbers.

    Reads each file up to its last wanted frame. Raises UsageError if the input cannot be read again, InputError if it has
    changed.
    """
    files = trace.interfaces.column("file")
    numbers: dict[str, dict[int, int]] = {}
    for capture, number in sorted(set(places)):
        numbers.setdefault(files[capture], {}).setdefault(number, capture)
    trace.check_readable()
    raw, room = [], ROOM
    for file, captures in numbers.items():
        order = sorted(captures)
        for number, frame in zip(order, _core.frames([file], order, room), strict=True):
            if frame and frame[1]:
                raw.append(RawFrame(captures[number], number, *frame[1]))
                room -= len(frame[1][3])
    trace.check_readable()
    return raw
