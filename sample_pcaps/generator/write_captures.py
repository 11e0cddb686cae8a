# SPDX-License-Identifier: Apache-2.0
"""Makes frames, and writes capture files field by field: no library writes every block and every damage of the samples."""

from __future__ import annotations

import struct
from pathlib import Path

from scapy.layers.l2 import Ether
from scapy.packet import Packet

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
MICROSECOND = 1_000
START_NS = 1_768_478_400 * SECOND  # 2026-01-15 12:00:00 UTC

LINK_ETHERNET = 1
LINK_RAW_IP = 101

Record = tuple[int, bytes, int]  # time in ns, bytes captured, bytes on the wire

LITTLE, BIG = "<", ">"  # byte orders of a file, as in struct


def pattern(length: int, start: int = 0) -> bytes:
    """Returns binary payload that compresses: byte k of the stream is k mod 251."""
    return bytes((start + k) % 251 for k in range(length))


def ethernet(sender: int, receiver: int) -> Ether:
    """Returns a frame between two hosts of the documentation range (RFC 7042)."""
    return Ether(src=f"00:00:5e:00:53:{sender:02x}", dst=f"00:00:5e:00:53:{receiver:02x}")


def record(time_ns: int, packet: Packet) -> Record:
    data = bytes(packet)
    return time_ns, data, len(data)


def cut(record: Record, snaplen: int) -> Record:
    """Cuts the record to a snap length."""
    time_ns, data, length = record
    return time_ns, data[:snaplen], length


def write_pcap(
    path: Path,
    records: list[Record],
    *,
    snaplen: int = 262_144,
    tail: bytes = b"",
    order: str = LITTLE,
    tick_ns: int = MICROSECOND,
) -> None:
    """Writes classic pcap, with ns if a tick is 1 ns; `tail` follows the last record unchanged."""
    magic = 0xA1B2C3D4 if tick_ns == MICROSECOND else 0xA1B23C4D
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, LINK_ETHERNET)]
    for time_ns, data, length in records:
        seconds, fraction = divmod(time_ns, SECOND)
        parts.append(struct.pack(order + "IIII", seconds, fraction // tick_ns, len(data), length))
        parts.append(data)
    path.write_bytes(b"".join(parts) + tail)


def pad_32(data: bytes) -> bytes:
    """Pads to 4 bytes, as pcapng requires."""
    return data + bytes(-len(data) % 4)


def option(code: int, value: bytes, order: str = LITTLE) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + pad_32(value)


def block(kind: int, body: bytes, *options: bytes, order: str = LITTLE) -> bytes:
    """Returns a pcapng block; its length must be both before and after the body."""
    inside = body + (b"".join(options) + option(0, b"") if options else b"")
    length = 12 + len(inside)
    return struct.pack(order + "II", kind, length) + inside + struct.pack(order + "I", length)


def section_block(*options: bytes, order: str = LITTLE) -> bytes:
    """Section header (SHB)."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), *options, order=order)


def interface_block(link_type: int, snaplen: int, *options: bytes, order: str = LITTLE) -> bytes:
    """Interface description (IDB)."""
    return block(1, struct.pack(order + "HHI", link_type, 0, snaplen), *options, order=order)


def packet_block(
    interface: int, ticks: int, data: bytes, *options: bytes, length: int | None = None, order: str = LITTLE
) -> bytes:
    """Enhanced packet (EPB); `length` is the length on the wire if the packet is truncated."""
    lengths = len(data), len(data) if length is None else length
    head = struct.pack(order + "IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, *lengths)
    return block(6, head + pad_32(data), *options, order=order)


def statistics_block(
    interface: int, ticks: int, received: int, dropped: int, dropped_by_os: int, order: str = LITTLE
) -> bytes:
    """Interface statistics (ISB)."""
    counts = {4: received, 5: dropped, 7: dropped_by_os}
    options = [option(code, struct.pack(order + "Q", count), order) for code, count in counts.items()]
    return block(5, struct.pack(order + "III", interface, ticks >> 32, ticks & 0xFFFFFFFF), *options, order=order)
