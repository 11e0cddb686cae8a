# SPDX-License-Identifier: Apache-2.0
"""Reads and rewrites captures independently of wiretale: packets, and copies of a file with frames removed or doubled.

The only reader of capture files outside the core. A file must be as tcpdump writes it in the testbed: little-endian pcap
with nanoseconds, Ethernet and IPv4.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

MAGIC_NANO = 0xA1B23C4D
FILE_HEADER, RECORD = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
ETHERNET, TCP, UDP = 14, 6, 17
FIN, SYN, RST, ACK = 1, 2, 4, 16
SACK_OPTION, TIMESTAMP_OPTION = 5, 8
IPERF3_ID = slice(8, 16)  # of a datagram of iperf3 with 64-bit counters


class Frame(NamedTuple):
    """An IPv4 packet that carries TCP or UDP."""

    number: int  # in the file, from 1
    time_ns: int
    protocol: int
    source: str
    source_port: int
    destination_port: int
    ip_id: int
    length: int  # of the payload
    sequence: int = 0
    acknowledgment: int = 0
    flags: int = 0
    sacks: tuple[tuple[int, int], ...] = ()
    tsval: int | None = None
    tsecr: int | None = None
    datagram: int | None = None  # sequence number of iperf3

    @property
    def key(self) -> tuple[object, ...]:
        """Fields that are equal at all capture points, and differ between packets unless they are copies."""
        return (*self[2:13], self.datagram)  # all fields except number, time_ns and tsecr


class Record(NamedTuple):
    time_ns: int
    size: int
    data: bytes


def read_records(path: Path) -> Iterator[Record]:
    content = path.read_bytes()
    magic, *_ = FILE_HEADER.unpack_from(content)
    if magic != MAGIC_NANO:
        raise ValueError(f"{path}: not a little-endian pcap file with nanoseconds")
    at = FILE_HEADER.size
    while at + RECORD.size <= len(content):
        seconds, nanoseconds, captured, size = RECORD.unpack_from(content, at)
        at += RECORD.size
        yield Record(seconds * 10**9 + nanoseconds, size, content[at : at + captured])
        at += captured


def read_options(options: bytes) -> tuple[tuple[tuple[int, int], ...], int | None, int | None]:
    """Returns the SACK blocks, TSval and TSecr of the TCP options."""
    sacks: tuple[tuple[int, int], ...] = ()
    tsval = tsecr = None
    at = 0
    while at + 1 < len(options) and options[at]:
        if options[at] == 1:
            at += 1
            continue
        kind, size = options[at], options[at + 1]
        if size < 2:
            break
        if kind == SACK_OPTION:
            edges = struct.unpack_from(f">{(size - 2) // 4}I", options, at + 2)
            sacks = tuple(zip(edges[::2], edges[1::2], strict=True))
        elif kind == TIMESTAMP_OPTION:
            tsval, tsecr = struct.unpack_from(">II", options, at + 2)
        at += size
    return sacks, tsval, tsecr


def source_address(data: bytes) -> str:
    return ".".join(map(str, data[26:30]))


def read_transport(number: int, time_ns: int, data: bytes) -> Frame | None:
    """Returns the packet of a frame, None if it carries neither TCP nor UDP."""
    transport = ETHERNET + (data[ETHERNET] & 15) * 4
    end = ETHERNET + int.from_bytes(data[16:18], "big")
    source_port, destination_port = struct.unpack_from(">HH", data, transport)
    ip_id = int.from_bytes(data[18:20], "big")
    head = (number, time_ns, data[23], source_address(data), source_port, destination_port, ip_id)
    if data[23] == UDP:
        datagram = int.from_bytes(data[transport + 8 :][IPERF3_ID], "big") if end - transport > 100 else None
        return Frame(*head, length=end - transport - 8, datagram=datagram)
    if data[23] != TCP:
        return None
    sequence, acknowledgment, offset, flags = struct.unpack_from(">IIBB", data, transport + 4)
    payload = transport + (offset >> 4) * 4
    return Frame(*head, end - payload, sequence, acknowledgment, flags, *read_options(data[transport + 20 : payload]))


def read_frames(path: Path) -> list[Frame]:
    frames = (
        read_transport(number, record.time_ns, record.data) for number, record in enumerate(read_records(path), 1)
    )
    return [frame for frame in frames if frame]


def write_records(source: Path, target: Path, records: list[Record]) -> None:
    """Writes the records behind the file header of `source`."""
    parts = [source.read_bytes()[: FILE_HEADER.size]]
    for record in records:
        parts.append(RECORD.pack(*divmod(record.time_ns, 10**9), len(record.data), record.size))
        parts.append(record.data)
    target.write_bytes(b"".join(parts))


def missed_at_random(count: int, chance: random.Random) -> set[int]:
    return {number for number in range(1, count + 1) if chance.random() < 0.01}


def missed_in_bursts(count: int, chance: random.Random) -> set[int]:
    """Returns twelve spans of up to 40 frames: the pattern of a capture that cannot keep up."""
    missed: set[int] = set()
    for _ in range(12):
        start = chance.randrange(1, count)
        missed.update(range(start, start + chance.randrange(2, 40)))
    return missed


MISSED: dict[str, Callable[[int, random.Random], set[int]]] = {"random": missed_at_random, "bursts": missed_in_bursts}


def leave_out(source: Path, target: Path, how: str, seed: int) -> set[int]:
    """Writes a copy of `source` without some frames and returns their numbers. SYNs are kept, because each flow needs its ISN."""
    records = list(read_records(source))
    missed = MISSED[how](len(records), random.Random(seed))
    missed -= {frame.number for frame in read_frames(source) if frame.flags & SYN}
    write_records(source, target, [record for number, record in enumerate(records, 1) if number not in missed])
    return missed


def mirror(source: Path, target: Path, seed: int) -> None:
    """Writes a copy in which a mirror port of both directions stores each frame a second time, 1 to 9 µs later."""
    chance = random.Random(seed)
    twice = []
    for record in read_records(source):
        twice += [record, record._replace(time_ns=record.time_ns + chance.randrange(1_000, 9_000))]
    write_records(source, target, sorted(twice, key=lambda record: record.time_ns))
