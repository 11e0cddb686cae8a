# SPDX-License-Identifier: Apache-2.0
"""Writes capture files field by field, as no library writes every block and lie that a sample wants."""

from __future__ import annotations

import struct
from pathlib import Path

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
MICROSECOND = 1_000

LINK_ETHERNET = 1
LINK_RAW_IP = 101

Record = tuple[int, bytes, int]  # time in ns, bytes captured, bytes on the wire


def write_pcap(path: Path, records: list[Record], *, snaplen: int = 262_144, tail: bytes = b"") -> None:
    """Classic little-endian pcap with microseconds; `tail` follows the last record as it is."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snaplen, LINK_ETHERNET)]
    for time_ns, data, length in records:
        seconds, rest = divmod(time_ns, SECOND)
        parts.append(struct.pack("<IIII", seconds, rest // MICROSECOND, len(data), length))
        parts.append(data)
    path.write_bytes(b"".join(parts) + tail)


def pad_32(data: bytes) -> bytes:
    """To a multiple of 4 bytes, as pcapng wants."""
    return data + bytes(-len(data) % 4)


def option(code: int, value: bytes) -> bytes:
    """A pcapng option."""
    return struct.pack("<HH", code, len(value)) + pad_32(value)


def block(kind: int, body: bytes, *options: bytes) -> bytes:
    """A pcapng block; its length is told before and after."""
    inside = body + (b"".join(options) + option(0, b"") if options else b"")
    length = 12 + len(inside)
    return struct.pack("<II", kind, length) + inside + struct.pack("<I", length)


def section_block(*options: bytes) -> bytes:
    """Section header (SHB)."""
    return block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1), *options)


def interface_block(link_type: int, snaplen: int, *options: bytes) -> bytes:
    """Interface description (IDB)."""
    return block(1, struct.pack("<HHI", link_type, 0, snaplen), *options)


def packet_block(interface: int, ticks: int, data: bytes, *options: bytes) -> bytes:
    """Enhanced packet (EPB)."""
    head = struct.pack("<IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(6, head + pad_32(data), *options)


def statistics_block(interface: int, ticks: int, received: int, dropped: int, dropped_by_os: int) -> bytes:
    """Interface statistics (ISB)."""
    counts = {4: received, 5: dropped, 7: dropped_by_os}
    options = [option(code, struct.pack("<Q", count)) for code, count in counts.items()]
    return block(5, struct.pack("<III", interface, ticks >> 32, ticks & 0xFFFFFFFF), *options)
