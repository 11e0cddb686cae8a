# SPDX-License-Identifier: Apache-2.0
"""Changes of captured packets that must change the tables in a known way, or not at all.

A packet is edited byte by byte, because Scapy would need seconds for each sample; checksums follow by RFC 1624, so that
copies of a packet stay copies. Frames are Ethernet, with or without VLAN tags.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

TAGS = (0x8100, 0x88A8)
IPV4, IPV6 = 0x0800, 0x86DD
TCP, UDP, HOP_BY_HOP, FRAGMENT, ICMPV6 = 6, 17, 0, 44, 58
CHECKSUM_AT = {TCP: 16, UDP: 6, ICMPV6: 2}
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Packet:
    """A record of a capture; `length` is that on the wire."""

    ns: int
    data: bytes
    length: int


class Place(NamedTuple):
    """Offsets in a packet; None if it has no such header, or if the header is not in the file."""

    ip: int
    version: int
    transport: int | None
    protocol: int


def read_pcap(path: Path) -> list[Packet]:
    """The packets of a pcap file, in either byte order, before any damage."""
    raw = path.read_bytes()
    order = "<" if raw[0] in (0xD4, 0x4D) else ">"
    unit = 1 if raw[:4] in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d") else 1000
    packets, at = [], 24
    while at + 16 <= len(raw):
        seconds, fraction, captured_length, length = struct.unpack_from(f"{order}IIII", raw, at)
        if at + 16 + captured_length > len(raw):
            break
        packets.append(Packet(seconds * 10**9 + fraction * unit, raw[at + 16 : at + 16 + captured_length], length))
        at += 16 + captured_length
    return packets


def write_packets(path: Path, packets: list[Packet], snaplen: int = 262_144) -> Path:
    """A pcap file with nanoseconds."""
    records = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snaplen, 1)]
    for packet in packets:
        data = packet.data[:snaplen]
        records.append(struct.pack("<IIII", *divmod(packet.ns, 10**9), len(data), packet.length) + data)
    path.write_bytes(b"".join(records))
    return path


def place_of(data: bytes) -> Place | None:
    """Where the headers are; None without IP."""
    at = 12
    while struct.unpack_from("!H", data, at)[0] in TAGS:
        at += 4
    kind, ip = struct.unpack_from("!H", data, at)[0], at + 2
    if kind == IPV4:
        later = struct.unpack_from("!H", data, ip + 6)[0] & 0x1FFF
        return Place(ip, 4, None if later else ip + 4 * (data[ip] & 15), data[ip + 9])
    if kind != IPV6:
        return None
    following, transport = data[ip + 6], ip + 40
    while following == HOP_BY_HOP:
        following, transport = data[transport], transport + 8 + 8 * data[transport + 1]
    return Place(ip, 6, None if following == FRAGMENT else transport, following)


def words(data: bytes) -> int:
    """The sum of 16-bit words."""
    return sum(struct.unpack(f"!{len(data) // 2}H", data))


def put(data: bytearray, at: int, new: bytes, *checksums: int) -> None:
    """Replaces bytes, and updates the checksums (RFC 1624), whose words may begin a byte before."""
    original, end = bytes(data), at + len(new)
    data[at:end] = new
    for place in checksums:
        start = at - (at - place) % 2
        span = slice(start, end + (end - start) % 2)
        old, changed = (bytes(part[span]) + b"\0" * (len(part[span]) % 2) for part in (original, data))
        before = struct.unpack_from("!H", data, place)[0] if place + 2 <= len(data) else 0
        if not before:  # none, as UDP may have
            continue
        total = (before ^ 0xFFFF) + words(bytes(byte ^ 0xFF for byte in old)) + words(changed)
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        struct.pack_into("!H", data, place, total ^ 0xFFFF)


def ip_checksums(data: bytes, place: Place) -> list[int]:
    """Offsets of the checksums that cover the addresses."""
    offsets = [place.ip + 10] if place.version == 4 else []
    if place.transport and place.protocol in CHECKSUM_AT:
        offsets.append(place.transport + CHECKSUM_AT[place.protocol])
    return offsets


# --- times, addresses, tags


def later(packets: list[Packet], ns: int) -> list[Packet]:
    return [replace(packet, ns=packet.ns + ns) for packet in packets]


def other_address(raw: bytes) -> bytes:
    """Another address of the same network; the order of any two is reversed."""
    prefix_length = 1 if len(raw) == 4 else 8
    return raw[:prefix_length] + bytes(byte ^ 0xFF for byte in raw[prefix_length:])


def other_address_text(text: str) -> str:
    return str(ip_address(other_address(ip_address(text).packed)))


def with_other_addresses(packet: Packet) -> Packet:
    data, place = bytearray(packet.data), place_of(packet.data)
    if place is None:
        return packet
    size, at = (4, place.ip + 12) if place.version == 4 else (16, place.ip + 8)
    for end in (at, at + size):
        put(data, end, other_address(bytes(data[end : end + size])), *ip_checksums(data, place))
    return replace(packet, data=bytes(data))


def in_vlan(packet: Packet, tag: int) -> Packet:
    """The packet with one more tag, outside of all others."""
    data = packet.data[:12] + struct.pack("!HH", TAGS[0], tag) + packet.data[12:]
    return replace(packet, data=data, length=packet.length + 4)


# --- numbers of TCP and IP


class Shift(NamedTuple):
    """Added to the numbers of one end."""

    sequence: int
    timestamp: int
    ip_id: int


def sender(data: bytes, place: Place) -> tuple[bytes, bytes]:
    """Who sends: address and port."""
    at, size = (place.ip + 12, 4) if place.version == 4 else (place.ip + 8, 16)
    assert place.transport
    return data[at : at + size], data[place.transport : place.transport + 2]


def receiver(data: bytes, place: Place) -> tuple[bytes, bytes]:
    """Who receives: address and port."""
    at, size = (place.ip + 16, 4) if place.version == 4 else (place.ip + 24, 16)
    assert place.transport
    return data[at : at + size], data[place.transport + 2 : place.transport + 4]


def tcp_options(data: bytes, tcp: int) -> Iterator[tuple[int, int, int]]:
    """Kind, offset and length of each option that is in the file."""
    at, end = tcp + 20, min(tcp + 4 * (data[tcp + 12] >> 4), len(data))
    while at < end and data[at]:
        length = 1 if data[at] == 1 else data[at + 1]
        if at + length > end:
            return
        yield data[at], at, length
        at += length


def add(data: bytearray, at: int, number: int, *checksums: int) -> None:
    """Adds to a 32-bit number."""
    put(data, at, struct.pack("!I", (struct.unpack_from("!I", data, at)[0] + number) % 2**32), *checksums)


def other_id(number: int, shift: int) -> int:
    """An IP ID further on; 0 stands for none and is skipped, as Linux does."""
    return (number + shift - 1) % 65535 + 1 if number else 0


def shifted(packets: list[Packet], shift_of: Callable[[tuple[bytes, bytes]], Shift]) -> list[Packet]:
    """TCP packets with other numbers, by the end that they belong to."""
    changed = []
    for packet in packets:
        place = place_of(packet.data)
        if place is None or place.protocol != TCP or place.transport is None:
            changed.append(packet)
            continue
        data, tcp = bytearray(packet.data), place.transport
        sender_shift, receiver_shift = shift_of(sender(packet.data, place)), shift_of(receiver(packet.data, place))
        check = tcp + 16
        if place.version == 4:
            number = struct.unpack_from("!H", data, place.ip + 4)[0]
            put(data, place.ip + 4, struct.pack("!H", other_id(number, sender_shift.ip_id)), place.ip + 10)
        add(data, tcp + 4, sender_shift.sequence, check)
        acknowledges = data[tcp + 13] & ACK
        if acknowledges:
            add(data, tcp + 8, receiver_shift.sequence, check)
        for kind, at, length in tcp_options(bytes(data), tcp):
            if kind == 8:
                add(data, at + 2, sender_shift.timestamp, check)
                if acknowledges:
                    add(data, at + 6, receiver_shift.timestamp, check)
            for edge in range(at + 2, at + length, 4) if kind == 5 else ():
                add(data, edge, receiver_shift.sequence, check)
        changed.append(replace(packet, data=bytes(data)))
    return changed


def numbers_of(packets: list[Packet]) -> Iterator[tuple[tuple[bytes, bytes], tuple[int, int | None, int]]]:
    """The sending end of each TCP packet with its sequence number, TSval (None without one) and IP ID (0 without one)."""
    for packet in packets:
        data, place = packet.data, place_of(packet.data)
        if place and place.protocol == TCP and place.transport:
            stamps = [at + 2 for kind, at, _ in tcp_options(data, place.transport) if kind == 8]
            number = struct.unpack_from("!H", data, place.ip + 4)[0] if place.version == 4 else 0
            sequence = struct.unpack_from("!I", data, place.transport + 4)[0]
            stamp = struct.unpack_from("!I", data, stamps[0])[0] if stamps else None
            yield sender(data, place), (sequence, stamp, number)
