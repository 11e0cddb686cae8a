# SPDX-License-Identifier: Apache-2.0
"""Frames of scenarios, byte by byte, and the capture files that hold them.

Checksums are right, because wiretale compares them to distinguish a duplicate packet from a retransmission.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from ipaddress import ip_address
from pathlib import Path

from capture_files import enhanced, interface, section
from numbered_payloads import blocks_stream, numbered

START_NS = 1_700_000_000 * 10**9
PATTERN = bytes(range(251)) * 262
TCP, UDP, FRAGMENT, HOP_BY_HOP = 6, 17, 44, 0
DONT_FRAGMENT, MORE_FRAGMENTS = 0x4000, 0x2000
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
PORTS = {"tcp": (40000, 80), "udp": (4000, 4001), "frag": (5000, 6000)}
FLAG_BITS = "FSRPAUEC"
ETHERTYPES = {4: 0x0800, 6: 0x86DD}
PCAP = struct.Struct("<IIII")


@dataclass
class Fields:
    """The fields of one packet; None stands for the value that the end would send."""

    ms: float
    side: int  # 0: sent by the initiator
    flags: str = "A"
    at: int = 0  # position of the first payload byte in the stream; 0 follows the SYN
    size: int = 0
    ack: int | None = None
    sack: list[tuple[int, int]] = field(default_factory=list)
    tsval: int | None = None
    tsecr: int | None = None
    id: int | None = None
    ttl: int = 64
    tos: int = 0
    win: int = 8192
    options: list[tuple[str, str]] = field(default_factory=list)
    datagram: list[str] = field(default_factory=list)  # a fragment or a UDP payload
    checksum: str = ""  # damaged, partial or 0, in place of the right one
    isn: tuple[int, int] = (0, 0)  # of this end and the other


@dataclass
class Frame:
    """One captured frame."""

    ns: int
    side: int
    data: bytes
    version: int
    length: int = 0  # on the wire, if it was cut
    events: str = ""  # as the scenario has them
    is_segment: bool = False  # of TCP
    number: int = 0  # of the packet whose copy it is
    group: int = 0  # fragments of one packet have the same; 0 for a fragment that comes again alone

    def copy(self, after_ms: str | float, changes: Sequence[str]) -> Frame:
        """The same frame later; `changes` are pairs of a field and its value."""
        data = bytearray(self.data)
        for name, value in zip(changes[::2], changes[1::2], strict=True):
            if name == "ttl" and self.version == 4:
                data[22] = int(value)
                data[24:26] = b"\0\0"
                data[24:26] = struct.pack("!H", checksum(bytes(data[14:34])))
            elif name == "ttl":
                data[21] = int(value)
            elif name == "vlan":
                data[14:16] = struct.pack("!H", int(value))
            else:
                start = {"to": 0, "from": 6}[name]
                data[start : start + 6] = mac(value)
        return replace(self, ns=self.ns + round(float(after_ms) * 1e6), data=bytes(data))


@cache
def mac(text: str) -> bytes:
    """The bytes of a link address."""
    return bytes.fromhex(text.replace(":", ""))


@cache
def addresses(version: int, side: int) -> bytes:
    """Source and destination."""
    ends = ("10.0.0.1", "10.0.0.2") if version == 4 else ("fd00::1", "fd00::2")
    return ip_address(ends[side]).packed + ip_address(ends[1 - side]).packed


def checksum(data: bytes) -> int:
    """RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def with_checksum(body: bytes, place: int, version: int, side: int, protocol: int) -> bytes:
    """A TCP or UDP packet with its checksum at `place`."""
    pseudo = addresses(version, side) + struct.pack("!II", len(body), protocol)
    value = checksum(pseudo + body)
    return body[:place] + struct.pack("!H", value or 0xFFFF * (protocol == UDP)) + body[place + 2 :]


def with_other_checksum(body: bytes, place: int, packet: Fields, version: int, protocol: int) -> bytes:
    """A packet with the checksum at `place` that it has instead of the right one: damaged after it was computed, left to the
    adapter (the sum of the pseudo-header alone), or 0."""
    if packet.checksum == "damaged":
        return body[:-1] + bytes([body[-1] ^ 0x10])
    if not packet.checksum:
        return body
    pseudo = addresses(version, packet.side) + struct.pack("!II", len(body), protocol)
    value = ~checksum(pseudo) & 0xFFFF if packet.checksum == "partial" else int(packet.checksum)
    return body[:place] + struct.pack("!H", value) + body[place + 2 :]


def ipv4_header(
    length: int, protocol: int, ends: bytes, ip_id: int = 1, fragment: int = 0, tos: int = 0, ttl: int = 64
) -> bytes:
    """With its checksum, before so many bytes."""
    head = struct.pack("!BBHHHBBH", 0x45, tos, 20 + length, ip_id % 65536, fragment, ttl, protocol, 0) + ends
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:]


def ip_frame(packet: Fields, version: int, protocol: int, body: bytes, fragment: int = 0, ip_id: int = 0) -> Frame:
    """An IP packet in Ethernet."""
    if version == 4:
        ends, marks = addresses(4, packet.side), (packet.tos, packet.ttl)
        head = ipv4_header(len(body), protocol, ends, ip_id, fragment, *marks)
    else:
        head = struct.pack("!IHBB", 6 << 28 | packet.tos << 20, len(body), protocol, packet.ttl) + addresses(
            6, packet.side
        )
    link = mac(MACS[1 - packet.side]) + mac(MACS[packet.side]) + struct.pack("!H", ETHERTYPES[version])
    return Frame(START_NS + round(packet.ms * 1e6), packet.side, link + head + body, version)


def tcp_options(packet: Fields) -> bytes:
    """The options as Linux pads them."""
    encoded = b""
    for name, value in packet.options:
        if name == "mss":
            encoded += struct.pack("!BBH", 2, 4, int(value))
        elif name == "sackok":
            encoded += b"\4\2"
        elif name == "wscale":
            encoded += bytes([3, 3, int(value)])
        else:
            kind, _, data = value.partition(":")
            encoded += bytes([int(kind)]) + (b"" if kind == "1" else bytes([2 + len(data) // 2]) + bytes.fromhex(data))
    if packet.tsval is not None:
        encoded += struct.pack("!BBBBII", 1, 1, 8, 10, packet.tsval, packet.tsecr)
    if packet.sack:
        base = packet.isn[1] + 1
        edges = [(base + edge) % 2**32 for block in packet.sack for edge in block]
        encoded += struct.pack(f"!BBBB{len(edges)}I", 1, 1, 5, 2 + 4 * len(edges), *edges)
    return encoded + b"\0" * (-len(encoded) % 4)


def build_frame(packet: Fields, version: int, blocks: int) -> Frame:
    """A frame of these fields; so many blocks are the content of the stream, or else the pattern."""
    if packet.datagram:
        return datagram_frame(packet, version)
    side, at = packet.side, packet.at
    ack = 0 if "A" not in packet.flags else (packet.isn[1] + 1 + (packet.ack or 0)) % 2**32
    content = blocks_stream(blocks)[at : at + packet.size] if blocks else PATTERN[at % 251 : at % 251 + packet.size]
    options = tcp_options(packet)
    bits = sum(1 << FLAG_BITS.index(flag) for flag in packet.flags)
    sequence = (packet.isn[0] + ("S" not in packet.flags) + at) % 2**32
    header = struct.pack(
        "!HHIIBBHHH", *ports("tcp", side), sequence, ack, (20 + len(options)) // 4 << 4, bits, packet.win, 0, 0
    )
    body = with_checksum(header + options + content, 16, version, side, TCP)
    body = with_other_checksum(body, 16, packet, version, TCP)
    return replace(ip_frame(packet, version, TCP, body, DONT_FRAGMENT, packet.id or 0), is_segment=True)


def ports(kind: str, side: int) -> tuple[int, int]:
    """Source and destination."""
    pair = PORTS[kind]
    return pair[side], pair[1 - side]


def udp(kind: str, packet: Fields, version: int, content: bytes) -> bytes:
    """A datagram."""
    header = struct.pack("!HHHH", *ports(kind, packet.side), 8 + len(content), 0)
    return with_checksum(header + content, 6, version, packet.side, UDP)


def datagram_frame(packet: Fields, version: int) -> Frame:
    """A numbered packet, or a fragment: `frag ID FROM:TO of SIZE [more] [hopopt]`."""
    kind, *words = packet.datagram
    if kind == "udp":
        body = with_other_checksum(udp(kind, packet, version, numbered(words)), 6, packet, version, UDP)
        return ip_frame(packet, version, UDP, body, ip_id=1)
    first, end = map(int, words[1].split(":"))
    part = udp(kind, packet, version, (PATTERN * 2)[: int(words[3]) - 8])[first:end]
    more = "more" in words
    if version == 4:
        return ip_frame(packet, 4, UDP, part, first // 8 | MORE_FRAGMENTS * more, int(words[0]))
    part = struct.pack("!BBHI", UDP, 0, first | more, int(words[0])) + part
    if "hopopt" in words:
        return ip_frame(packet, 6, HOP_BY_HOP, bytes([FRAGMENT, 0, 1, 4, 0, 0, 0, 0]) + part)
    return ip_frame(packet, 6, FRAGMENT, part)


# --- encapsulation and truncation


def inside(frame: Frame, where: str) -> Frame:
    """The frame's IP packet in `where`: vlan N, qinq N vlan N, mpls N N [back N], gre, gtp-u, sgt, loopback."""
    ethertype, packet = frame.data[12:14], frame.data[14:]
    words = where.split()
    if words[0] == "loopback":  # the sum of both IPv4 addresses is the same, so checksums stay right
        packet = packet[:12] + bytes([127, 0, 11, 1]) * 2 + packet[20:]
    elif words[0] == "gre":
        body = struct.pack("!HH", 0, ETHERTYPES[frame.version]) + packet
        packet = ipv4_header(len(body), 47, bytes([192, 0, 2, 8, 192, 0, 2, 9])) + body
        ethertype = b"\x08\0"
    elif words[0] == "gtp-u":  # each direction has its own tunnel
        body = struct.pack("!BBHI", 0x30, 255, len(packet), 7 + frame.side) + packet
        body = struct.pack("!HHHH", 2152, 2152, 8 + len(body), 0) + body
        packet = ipv4_header(len(body), UDP, bytes([192, 0, 2, 8, 192, 0, 2, 9])) + body
        ethertype = b"\x08\0"
    elif words[0] == "sgt":  # the port tags the frames of the initiator alone
        if frame.side == 0:
            packet, ethertype = bytes.fromhex("010100010002") + ethertype + packet, b"\x89\x09"
    elif words[0] == "mpls":
        there, _, back = where.removeprefix("mpls").partition("back")
        labels = (back if frame.side and "back" in words else there).split()
        for place, label in enumerate(labels, 1):
            packet_label = struct.pack("!I", int(label) << 12 | (place == len(labels)) << 8)
            packet = packet[: 4 * (place - 1)] + packet_label + packet[4 * (place - 1) :]
        ethertype = b"\x88\x47" if labels else ethertype
    else:
        for kind, tag in reversed(list(zip(words[::2], words[1::2], strict=True))):
            packet = struct.pack("!H", int(tag)) + ethertype + packet
            ethertype = {"vlan": b"\x81\0", "qinq": b"\x88\xa8"}[kind]
    link = mac("02:00:00:00:00:06") + mac("02:00:00:00:00:05")
    return replace(frame, data=link + ethertype + packet)


def in_vxlan(frame: Frame) -> Frame:
    """The frame inside VLAN 12 and VXLAN 7, so that only the innermost packet is the conversation's."""
    length = frame.length or len(frame.data)
    body = struct.pack("!HHHH", 50000, 4789, 16 + length, 0) + struct.pack("!II", 8 << 24, 7 << 8)
    head = ipv4_header(16 + length, UDP, bytes([192, 0, 2, 1, 192, 0, 2, 2]))
    link = mac("02:00:00:00:01:02") + mac("02:00:00:00:01:01") + bytes.fromhex("8100000c0800")
    outer = link + head + body
    return replace(frame, data=outer + frame.data, length=frame.length and len(outer) + frame.length)


def cut(frame: Frame, behind_ip: int) -> Frame:
    """The frame as a snap length leaves it: so many bytes behind the IP header."""
    header = 20 if frame.version == 4 else 48 if frame.data[20] == FRAGMENT else 40
    keep = 14 + header + behind_ip
    return replace(frame, data=frame.data[:keep], length=len(frame.data))


# --- files


def write_pcap(frames: Sequence[Frame], path: Path) -> Path:
    """A pcap file with microseconds."""
    records = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)]
    for frame in frames:
        seconds, us = divmod(round(frame.ns / 1000), 10**6)
        records.append(PCAP.pack(seconds, us, len(frame.data), frame.length or len(frame.data)) + frame.data)
    path.write_bytes(b"".join(records))
    return path


def write_pcapng(frames: Sequence[Frame], path: Path) -> Path:
    """A pcapng file with one interface."""
    packets = (enhanced(round(frame.ns / 1000), frame.data, length=frame.length) for frame in frames)
    path.write_bytes(section() + interface() + b"".join(packets))
    return path


def file_length(frames: Sequence[Frame]) -> int:
    """The frames of each of three files, as a ring of files holds them."""
    return len(frames) // 3 + 1


def write_rotated(frames: Sequence[Frame], folder: Path) -> list[Path]:
    """Three files."""
    length = file_length(frames)
    parts = [frames[start : start + length] for start in range(0, len(frames), length)]
    return [write_pcap(part, folder / f"case-{place}.pcap") for place, part in enumerate(parts)]


WRITERS: dict[str, Callable[[Sequence[Frame], Path], list[Path]]] = {
    "pcap": lambda frames, folder: [write_pcap(frames, folder / "case.pcap")],
    "pcapng": lambda frames, folder: [write_pcapng(frames, folder / "case.pcapng")],
    "vxlan": lambda frames, folder: [write_pcap([in_vxlan(frame) for frame in frames], folder / "case.pcap")],
    "rotated": write_rotated,
}
