# SPDX-License-Identifier: Apache-2.0
"""Packets that Scapy crafts, in capture files."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from scapy.all import DNS, DNSQR, IP, TCP, UDP, Ether, Gen, Packet, PcapWriter, Raw, VolatileValue

import wiretale

START = 1_700_000_000
NEIGHBOR = "02:00:00:00:00:02"  # without it, Scapy asks the network for a MAC address and waits
Timed = list[tuple[float, Packet]]


def stacked(*layers: Packet) -> Packet:
    """Each layer in the one before it, as by `/`, which copies all of them each time: that takes four times as long."""
    for outer, inner in pairwise(layers):
        outer.add_payload(inner)
    return layers[0]


def ether(packet: Packet) -> Packet:
    """In a frame whose addresses Scapy need not ask the network for."""
    return stacked(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02"), packet)


def settle(packet: Packet) -> None:
    """Marks layers that stand for one packet: Scapy copies each of the others before it writes their bytes."""
    while packet and not any(isinstance(value, (Gen, VolatileValue)) for value in packet.fields.values()):
        packet.explicit = 1
        packet = packet.payload


def write_timed(path: Path, timed: Iterable[tuple[float, Packet]], **options: Any) -> Path:
    """A pcap file of packets with their times in seconds, in this order."""
    with PcapWriter(str(path), **options) as writer:
        for seconds, packet in timed:
            settle(packet)
            packet.time = START + seconds
            if not writer.header_present:
                writer.write_header(packet)
            writer.write_packet(packet)
        if not writer.header_present:
            writer.write_header(None)
    return path


def analyze_timed(folder: Path, timed: Iterable[tuple[float, Packet]], **options: Any) -> wiretale.Trace:
    return wiretale.analyze(write_timed(folder / "crafted.pcap", timed), **options)


def dns_query(at: float, number: int = 1, name: str = "a.example", port: int = 4000) -> tuple[float, Packet]:
    message = DNS(id=number, rd=1, qd=DNSQR(qname=name))
    return at, ether(IP(src="10.0.0.1", dst="10.0.0.53") / UDP(sport=port, dport=53) / message)


def dns_answer(
    at: float, number: int = 1, name: str = "a.example", port: int = 4000, code: int = 0
) -> tuple[float, Packet]:
    message = DNS(id=number, qr=1, rcode=code, qd=DNSQR(qname=name))
    return at, ether(IP(src="10.0.0.53", dst="10.0.0.1") / UDP(sport=53, dport=port) / message)


def tls_handshake(think: float, alert: bytes = b"") -> Timed:
    """A handshake of TLS 1.3 over a path of 10 ms whose server computes for a time, or its alert."""

    def segment(at: float, back: bool, position: int, data: bytes, flags: str = "PA") -> tuple[float, Packet]:
        ends = {"src": "10.0.0.2", "dst": "10.0.0.1"} if back else {"src": "10.0.0.1", "dst": "10.0.0.2"}
        ports = {"sport": 443, "dport": 4000} if back else {"sport": 4000, "dport": 443}
        seq, ack = (500, 100) if back else (100, 500)
        header = TCP(seq=seq + position, ack=0 if flags == "S" else ack + 1, flags=flags, **ports)
        return at, ether(stacked(IP(**ends), header, Raw(data)))

    client = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0"
    server = b"\3\3" + bytes(32) + b"\0" + b"\x13\1\0" + b"\0\6\0\x2b\0\2\3\4"
    first, second = (
        b"\x16\3\3" + (len(body) + 4).to_bytes(2, "big") + bytes([kind]) + len(body).to_bytes(3, "big") + body
        for kind, body in ((1, client), (2, server))
    )
    secret = b"\x17\3\3\0\x35" + bytes(53)  # a Finished with SHA-256
    opened = [segment(0, False, 0, b"", "S"), segment(0.01, True, 0, b"", "SA"), segment(0.01, False, 1, b"", "A")]
    hello = segment(0.02, False, 1, first)
    if alert:
        return [*opened, hello, segment(0.04, True, 1, alert)]
    return [
        *opened,
        hello,
        segment(0.03 + think, True, 1, second),
        segment(0.031 + think, False, 1 + len(first), secret),
    ]
