# SPDX-License-Identifier: Apache-2.0
"""Samples of encapsulations: VLAN, QinQ, IPv6, a tunnel of raw IP; they have no loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrHopByHop,
    PadN,
)
from scapy.layers.l2 import Dot1AD, Dot1Q
from scapy.packet import Packet, Raw

from sample_files import WHOLE, in_time_order, save
from write_captures import (
    LINK_ETHERNET,
    LINK_RAW_IP,
    MICROSECOND,
    MILLISECOND,
    SECOND,
    START_NS,
    ethernet,
    interface_block,
    option,
    packet_block,
    pattern,
    record,
    section_block,
    statistics_block,
)
from write_truth import TCP_COLUMNS, Sighting, Truth

REQUEST = 180  # bytes from the client of a conversation


def count_conversation(truth: Truth, flow: int, reply: int) -> None:
    """Adds the sums of a TCP conversation without an anomaly."""
    for direction, length in enumerate((REQUEST, reply)):
        truth.sums[flow, direction] = dict.fromkeys(TCP_COLUMNS, 0) | {"unique_bytes": length}


def converse(ports: tuple[int, int], request: bytes, reply: bytes) -> Iterator[tuple[int, TCP, bytes]]:
    """Returns (direction, header, payload) of each packet: handshake, request, reply, close."""
    isn = (0x10000 * ports[0], 0x20000 * ports[1])
    after = (isn[0] + 1 + len(request), isn[1] + 1 + len(reply))
    syn = [("MSS", 1440), ("SAckOK", b""), ("NOP", None), ("WScale", 7)]
    steps: list[tuple[int, str, int, int, bytes]] = [
        (0, "S", isn[0], 0, b""),
        (1, "SA", isn[1], isn[0] + 1, b""),
        (0, "A", isn[0] + 1, isn[1] + 1, b""),
        (0, "PA", isn[0] + 1, isn[1] + 1, request),
        (1, "A", isn[1] + 1, after[0], b""),
        (1, "PA", isn[1] + 1, after[0], reply),
        (0, "A", after[0], after[1], b""),
        (0, "FA", after[0], after[1], b""),
        (1, "FA", after[1], after[0] + 1, b""),
        (0, "A", after[0] + 1, after[1] + 1, b""),
    ]
    for way, flags, seq, ack, payload in steps:
        source, target = ports if way == 0 else ports[::-1]
        options = syn if "S" in flags else []
        tcp = TCP(sport=source, dport=target, seq=seq, ack=ack, flags=flags, window=512, options=options)
        yield way, tcp, payload


@dataclass
class Route:
    """The encapsulation of two hosts' packets: frames around an IP packet."""

    addresses: tuple[str, str]
    tags: tuple[Packet, ...] = ()
    extensions: tuple[Packet, ...] = ()
    ip_ids: list[int] = field(default_factory=lambda: [0x1000, 0x9000])  # of the next packet, per direction

    def frame(self, way: int, inside: Packet) -> Packet:
        source, target = self.addresses if way == 0 else self.addresses[::-1]
        self.ip_ids[way] += 1
        v6 = ":" in source
        ip = IPv6(hlim=64) if v6 else IP(id=self.ip_ids[way], ttl=64)
        ip.src, ip.dst = source, target
        frame: Packet = ethernet(1 + way, 2 - way)
        for layer in (*self.tags, ip, *self.extensions, inside):
            frame = frame / layer.copy()
        return frame


def tcp_frames(route: Route, ports: tuple[int, int], length: int) -> list[Packet]:
    steps = converse(ports, pattern(REQUEST), pattern(length))
    return [route.frame(way, tcp / Raw(payload) if payload else tcp) for way, tcp, payload in steps]


def udp_frames(route: Route, ports: tuple[int, int], count: int) -> list[Packet]:
    """Returns `count` datagrams in each direction."""
    frames: list[Packet] = []
    for number in range(2 * count):
        source, target = ports if number % 2 == 0 else ports[::-1]
        frames.append(route.frame(number % 2, UDP(sport=source, dport=target) / Raw(pattern(200, number))))
    return frames


def make_vlan_ipv6(path: Path) -> None:
    """Seven interleaved conversations; two differ only by their VLAN."""
    v4 = ("10.0.0.1", "10.0.0.2")
    v6 = ("2001:db8:1::a", "2001:db8:2::b")
    options = (
        IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))]),
        IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))]),
    )
    conversations = [
        tcp_frames(Route(v4, tags=(Dot1Q(vlan=10),)), (40_000, 80), 1200),
        tcp_frames(Route(v4, tags=(Dot1Q(vlan=20),)), (40_000, 80), 700),
        udp_frames(Route(v4, tags=(Dot1AD(vlan=100), Dot1Q(vlan=30))), (6_000, 6_001), 6),
        tcp_frames(Route(v6), (51_000, 443), 1300),
        udp_frames(Route(v6, extensions=options), (53_535, 5_300), 4),
        tcp_frames(Route(v6, tags=(Dot1Q(vlan=10),)), (51_000, 443), 400),
        [
            Route(v6).frame(way, kind(id=0x77, seq=number, data=pattern(56)))
            for number in range(3)
            for way, kind in enumerate((ICMPv6EchoRequest, ICMPv6EchoReply))
        ],
    ]
    truth = Truth("Seven clean conversations over VLAN, QinQ and IPv6; two differ by their VLAN alone.", [])
    for number, frames in enumerate(conversations):
        for k, frame in enumerate(frames):
            time_ns = START_NS + k * 4 * MILLISECOND + number * 350 * MICROSECOND
            truth.seen.append(Sighting(record(time_ns, frame), number, k % 2))
    truth.seen = in_time_order(truth.seen)
    for flow, reply in ((0, 1200), (1, 700), (3, 1300), (5, 400)):
        count_conversation(truth, flow, reply)
    save(path, truth, snaplen=WHOLE)


def make_two_interfaces(path: Path) -> None:
    """Ethernet in µs and a tunnel of raw IP in ns, each with statistics that count dropped packets."""
    lan = tcp_frames(Route(("192.0.2.10", "192.0.2.80")), (41_234, 80), 1000)
    tunnel = [f[IP] for f in udp_frames(Route(("10.99.0.1", "10.99.0.2")), (7_000, 7_001), 12)]
    tunnel.append(
        IP(src="10.99.0.2", dst="10.99.0.1", id=9, ttl=64) / ICMP(type=3, code=3) / Raw(bytes(tunnel[0])[:28])
    )
    timed = [(START_NS + k * 3 * MILLISECOND + 417 * MICROSECOND, 0, frame) for k, frame in enumerate(lan)]
    timed += [(START_NS + k * 2 * MILLISECOND + 1_234_567, 1, frame) for k, frame in enumerate(tunnel)]
    blocks = [
        section_block(
            option(1, b"Two interfaces of one host"),
            option(2, b"x86_64"),
            option(3, b"Linux 6.12"),
            option(4, b"dumpcap 4.4"),
        ),
        interface_block(LINK_ETHERNET, 262_144, option(2, b"eth0"), option(3, b"office network"), option(9, b"\x06")),
        interface_block(LINK_RAW_IP, 65_535, option(2, b"tun0"), option(1, b"to the data centre"), option(9, b"\x09")),
    ]
    for number, (time_ns, interface, frame) in enumerate(sorted(timed, key=lambda t: t[:2])):
        ticks = time_ns if interface else time_ns // MICROSECOND
        comments = [option(1, "the first packet \u2192 look here".encode())] if number == 0 else []
        blocks.append(packet_block(interface, ticks, bytes(frame), *comments))
    end = START_NS + SECOND
    blocks.append(statistics_block(0, end // MICROSECOND, len(lan) + 3, 0, 3))
    blocks.append(statistics_block(1, end, len(tunnel) + 5, 5, 0))
    path.with_suffix(".pcapng").write_bytes(b"".join(blocks))
    seen = [Sighting(record(time_ns, frame), interface, 0) for time_ns, interface, frame in timed]
    truth = Truth("Two interfaces of one host with other link types and resolutions; nothing is amiss but drops.", seen)
    count_conversation(truth, 0, 1000)
    truth.write(path)
