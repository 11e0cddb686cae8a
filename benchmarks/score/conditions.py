# SPDX-License-Identifier: Apache-2.0
"""The same runs as other captures would hold them: IP IDs at random, IPv6, or 64 bytes of each frame.

Only headers change, so the truth stays that of the run. A duplicate keeps the ID of its original."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

from score.capture_frames import ETHERNET, Frame, Record, read_frames, read_records, write_records

SNAP = 64
CUT = f"snap {SNAP}"
IPV6_PREFIX = bytes.fromhex("fd00") + bytes(10)
CHECKSUM_AT = {6: 16, 17: 6}  # in the transport header


def folded(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def words(data: bytes) -> int:
    return sum(struct.unpack(f">{len(data) // 2}H", data))


def with_random_id(record: Record, frame: Frame) -> Record:
    data = bytearray(record.data)
    header = ETHERNET + (data[ETHERNET] & 15) * 4
    data[18:20] = (crc32(repr(frame.key).encode()) & 0xFFFF or 1).to_bytes(2, "big")
    data[24:26] = bytes(2)
    data[24:26] = (folded(words(bytes(data[ETHERNET:header]))) ^ 0xFFFF).to_bytes(2, "big")
    return record._replace(data=bytes(data))


def as_ipv6(record: Record, frame: Frame) -> Record:
    """The IPv4 header becomes one of IPv6, and the checksum of the transport covers the new addresses."""
    data = record.data
    header = ETHERNET + (data[ETHERNET] & 15) * 4
    length = int.from_bytes(data[16:18], "big") - (header - ETHERNET)
    addresses = b"".join(IPV6_PREFIX + data[at : at + 4] for at in (26, 30))
    version = (6 << 28 | data[15] << 20).to_bytes(4, "big")
    ip = version + struct.pack(">HBB", length, data[23], data[22]) + addresses
    transport = bytearray(data[header:])
    at = CHECKSUM_AT[frame.protocol]
    if len(transport) >= at + 2:
        changed = (int.from_bytes(transport[at : at + 2], "big") ^ 0xFFFF) + words(addresses) + 0xFFFF * 2
        transport[at : at + 2] = (folded(changed - words(data[26:34])) ^ 0xFFFF).to_bytes(2, "big")
    return record._replace(
        size=record.size + 40 - (header - ETHERNET), data=data[:12] + b"\x86\xdd" + ip + bytes(transport)
    )


def cut(record: Record, frame: Frame) -> Record:
    return record._replace(data=record.data[:SNAP])


CONDITIONS: dict[str, Callable[[Record, Frame], Record]] = {
    "random IP IDs": with_random_id,
    "IPv6": as_ipv6,
    CUT: cut,
}


def write_condition(name: str, source: Path, target: Path) -> list[Frame]:
    """Writes the copy, and returns its frames: without SACK blocks and timestamps if the options were cut."""
    frames = {frame.number: frame for frame in read_frames(source)}
    change = CONDITIONS[name]
    write_records(
        source, target, [change(record, frames[number]) for number, record in enumerate(read_records(source), 1)]
    )
    if change is not cut:
        return list(frames.values())
    return [frame._replace(sacks=(), tsval=None, tsecr=None) for frame in frames.values()]
