# SPDX-License-Identifier: Apache-2.0
"""Captures read and rewritten without wiretale: what passed in which frame, and files with frames left out or doubled."""

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
    """An IPv4 packet of TCP or UDP."""

    number: int  # as Wireshark counts
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
    datagram: int | None = None  # iperf3's number

    @property
    def key(self) -> tuple[object, ...]:
        """The same wherever the packet is captured, and of no other packet but its copies."""
        return (
            *(self.source, self.source_port, self.destination_port, self.protocol, self.ip_id, self.length),
            *(self.sequence, self.acknowledgment, self.flags, self.datagram, self.tsval, self.sacks),
        )


class Record(NamedTuple):
    """A frame as it lies in the file."""

    time_ns: int
    size: int
    data: bytes


def read_records(path: Path) -> Iterator[Record]:
    """The frames of a little-endian pcap file with nanoseconds, as tcpdump writes them here."""
    content = path.read_bytes()
    magic, *_ = FILE_HEADER.unpack_from(content)
    if magic != MAGIC_NANO:
        raise ValueError(f"{path}: no pcap file with nanoseconds")
    at = FILE_HEADER.size
    while at + RECORD.size <= len(content):
        seconds, nanoseconds, captured, size = RECORD.unpack_from(content, at)
        at += RECORD.size
        yield Record(seconds * 10**9 + nanoseconds, size, content[at : at + captured])
        at += captured


def read_options(options: bytes) -> tuple[tuple[tuple[int, int], ...], int | None, int | None]:
    """SACK blocks and both timestamps."""
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


def address(data: bytes) -> str:
    """Of the sender."""
    return ".".join(map(str, data[26:30]))


def read_tcp(number: int, time_ns: int, data: bytes, transport: int, end: int) -> Frame:
    sequence, acknowledgment, offset, flags = struct.unpack_from(">IIBB", data, transport + 4)
    payload = transport + (offset >> 4) * 4
    sacks, tsval, tsecr = read_options(data[transport + 20 : payload])
    source_port, destination_port = struct.unpack_from(">HH", data, transport)
    return Frame(
        number=number,
        time_ns=time_ns,
        protocol=TCP,
        source=address(data),
        source_port=source_port,
        destination_port=destination_port,
        ip_id=int.from_bytes(data[18:20], "big"),
        length=end - payload,
        sequence=sequence,
        acknowledgment=acknowledgment,
        flags=flags,
        sacks=sacks,
        tsval=tsval,
        tsecr=tsecr,
    )


def read_udp(number: int, time_ns: int, data: bytes, transport: int, end: int) -> Frame:
    payload = data[transport + 8 : end]
    datagram = int.from_bytes(payload[IPERF3_ID], "big") if end - transport > 100 else None
    source_port, destination_port = struct.unpack_from(">HH", data, transport)
    return Frame(
        number=number,
        time_ns=time_ns,
        protocol=UDP,
        source=address(data),
        source_port=source_port,
        destination_port=destination_port,
        ip_id=int.from_bytes(data[18:20], "big"),
        length=end - transport - 8,
        datagram=datagram,
    )


def read_frames(path: Path) -> list[Frame]:
    """Every packet of TCP and UDP."""
    frames = []
    for number, record in enumerate(read_records(path), 1):
        data = record.data
        transport = ETHERNET + (data[ETHERNET] & 15) * 4
        end = ETHERNET + int.from_bytes(data[16:18], "big")
        reader = {TCP: read_tcp, UDP: read_udp}.get(data[23])
        if reader:
            frames.append(reader(number, record.time_ns, data, transport, end))
    return frames


def write_records(source: Path, target: Path, records: list[Record]) -> None:
    """A file like another one, of these frames."""
    parts = [source.read_bytes()[: FILE_HEADER.size]]
    for record in records:
        parts.append(RECORD.pack(*divmod(record.time_ns, 10**9), len(record.data), record.size))
        parts.append(record.data)
    target.write_bytes(b"".join(parts))


def missed_at_random(count: int, chance: random.Random) -> set[int]:
    """1% of the frames."""
    return {number for number in range(1, count + 1) if chance.random() < 0.01}


def missed_in_bursts(count: int, chance: random.Random) -> set[int]:
    """Twelve spans of up to forty frames, as a capture loses them that cannot keep up."""
    missed: set[int] = set()
    for _ in range(12):
        start = chance.randrange(1, count)
        missed.update(range(start, start + chance.randrange(2, 40)))
    return missed


MISSED: dict[str, Callable[[int, random.Random], set[int]]] = {"random": missed_at_random, "bursts": missed_in_bursts}


def leave_out(source: Path, target: Path, how: str, seed: int) -> set[int]:
    """Writes the capture as one that missed frames; returns their numbers in the whole one. The handshakes are kept."""
    records = list(read_records(source))
    missed = MISSED[how](len(records), random.Random(seed))
    missed -= {frame.number for frame in read_frames(source) if frame.flags & SYN}
    write_records(source, target, [record for number, record in enumerate(records, 1) if number not in missed])
    return missed


def mirror(source: Path, target: Path, seed: int) -> None:
    """Writes the capture as a mirror port of both directions stores it: each frame again after 1 to 9 us."""
    chance = random.Random(seed)
    twice = []
    for record in read_records(source):
        twice += [record, record._replace(time_ns=record.time_ns + chance.randrange(1_000, 9_000))]
    write_records(source, target, sorted(twice, key=lambda record: record.time_ns))
