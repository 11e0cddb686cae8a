# SPDX-License-Identifier: Apache-2.0
"""Messages of DNS and TLS, and a TCP connection that carries any bytes, crafted byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from scapy.all import DNS, DNSQR, IP, TCP, UDP, Packet, Raw

import wiretale
from crafted import analyze_timed, ether

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
SYN, SYN_ACK, PSH_ACK = "S", "SA", "PA"
Row = dict[str, Any]
Timed = list[tuple[float, Packet]]


def datagram(message: bytes, back: bool = False, port: int = 4053, ip_id: int = 0, server: int = 53) -> Packet:
    ends = {"src": SERVER, "dst": CLIENT} if back else {"src": CLIENT, "dst": SERVER}
    ports = {"sport": server, "dport": port} if back else {"sport": port, "dport": server}
    return ether(IP(id=ip_id, **ends) / UDP(**ports) / Raw(message))


def question(number: int = 7, name: str = "www.example.org", kind: str = "A") -> bytes:
    return bytes(DNS(id=number, rd=1, qd=DNSQR(qname=name, qtype=kind)))


def answer(number: int = 7, name: str = "www.example.org", kind: str = "A", code: int = 0) -> bytes:
    return bytes(DNS(id=number, qr=1, rcode=code, qd=DNSQR(qname=name, qtype=kind)))


class Talk:
    """A TCP connection whose segments have any bytes; the first byte of each stream is position 0."""

    def __init__(self, port: int, handshake: bool = True) -> None:
        self.port, self.timed = port, list[tuple[float, Packet]]()
        if handshake:
            self.timed = [(0.0, self.segment(False, -1, b"", SYN)), (0.010, self.segment(True, -1, b"", SYN_ACK))]
            self.timed.append((0.010, self.segment(False, 0, b"", "A")))

    def segment(self, back: bool, position: int, data: bytes, flags: str = PSH_ACK) -> Packet:
        ends = {"src": SERVER, "dst": CLIENT} if back else {"src": CLIENT, "dst": SERVER}
        ports = {"sport": self.port, "dport": 40000} if back else {"sport": 40000, "dport": self.port}
        isn = 9000 if back else 0xFFFFFF00
        ack = {"ack": 0xFFFFFF01 if back else 9001} if flags != SYN else {}
        return ether(IP(**ends) / TCP(seq=(isn + 1 + position) % 2**32, flags=flags, **ports, **ack) / Raw(data))

    def send(self, at: float, data: bytes, back: bool = False, position: int = 0) -> Talk:
        self.timed.append((at, self.segment(back, position, data)))
        return self

    def analyze(self, folder: Path) -> wiretale.Trace:
        return analyze_timed(folder, sorted(self.timed, key=lambda packet: packet[0]))


def vector(data: bytes, size: int) -> bytes:
    return len(data).to_bytes(size, "big") + data


def extension(number: int, data: bytes) -> bytes:
    return struct.pack("!H", number) + vector(data, 2)


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("!BH", kind, 0x0303) + vector(body, 2)


def hello(kind: int, session: bytes, *extensions: bytes, random: bytes = bytes(32)) -> bytes:
    suites = vector(b"\x13\x01", 2) + vector(b"\0", 1) if kind == 1 else b"\x13\x01\0"
    body = b"\3\3" + random + vector(session, 1) + suites + vector(b"".join(extensions), 2)
    return record(22, bytes([kind]) + vector(body, 3))


SNI = extension(0, vector(b"\0" + vector(b"www.example.org", 2), 2))
ALPN = extension(16, vector(vector(b"h2", 1) + vector(b"http/1.1", 1), 2))
IS_13 = extension(43, b"\3\4")
CHANGE, SECRET = record(20, b"\1"), record(23, bytes(60))
