# SPDX-License-Identifier: Apache-2.0
"""Makes the sample captures beside this file, byte for byte the same every time.

python sample_pcaps/make_samples.py [FOLDER]
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    PadN,
)
from scapy.layers.l2 import Dot1AD, Dot1Q
from scapy.packet import Packet, Raw

from simulate_transfer import START_NS, ethernet, make_transfer, pattern, record
from write_captures import (
    LINK_ETHERNET,
    LINK_RAW_IP,
    MICROSECOND,
    MILLISECOND,
    SECOND,
    Record,
    interface_block,
    option,
    packet_block,
    section_block,
    statistics_block,
    write_pcap,
)


def make_tcp_losses(path: Path) -> None:
    """300 kB; segment 70 is lost and sent again fast, the last is lost and sent again after a timeout."""
    length = 300_000
    write_pcap(path, make_transfer(length, frozenset({70, (length - 1) // 1448})), snaplen=96)


FRAGMENT = 1480  # payload of a fragment on an MTU of 1,500, a multiple of 8
FRAGMENT_V6 = 1448  # with the fragment header


def udp_bytes(source: str, target: str, ports: tuple[int, int], payload: bytes) -> bytes:
    """UDP header and payload with the right checksum for these addresses."""
    ip = IPv6 if ":" in source else IP
    packet = ip(src=source, dst=target) / UDP(sport=ports[0], dport=ports[1]) / Raw(payload)
    return bytes(packet)[40 if ip is IPv6 else 20 :]


def fragments_v4(source: str, target: str, ip_id: int, datagram: bytes) -> list[Packet]:
    """The frames of one IPv4 datagram, in order."""
    frames: list[Packet] = []
    for start in range(0, len(datagram), FRAGMENT):
        part = datagram[start : start + FRAGMENT]
        more = "MF" if start + FRAGMENT < len(datagram) else 0
        ip = IP(src=source, dst=target, proto=17, id=ip_id, flags=more, frag=start // 8, ttl=64)
        frames.append(ethernet(1, 2) / ip / Raw(part))
    return frames


def fragments_v6(source: str, target: str, identification: int, datagram: bytes) -> list[Packet]:
    """The frames of one IPv6 datagram, in order."""
    frames: list[Packet] = []
    for start in range(0, len(datagram), FRAGMENT_V6):
        part = datagram[start : start + FRAGMENT_V6]
        more = int(start + FRAGMENT_V6 < len(datagram))
        header = IPv6ExtHdrFragment(nh=17, offset=start // 8, m=more, id=identification)
        frames.append(ethernet(1, 2) / IPv6(src=source, dst=target, hlim=64) / header / Raw(part))
    return frames


def make_udp_fragments(path: Path) -> None:
    """16 IPv4 datagrams and an IPv6 one; the fifth misses a fragment, the ninth comes last fragment first."""
    records: list[Record] = []
    for number in range(16):
        datagram = udp_bytes("10.20.0.1", "10.20.0.2", (47_001, 5_001), pattern(8192, number))
        frames = fragments_v4("10.20.0.1", "10.20.0.2", 0x5100 + number, datagram)
        if number == 4:
            del frames[2]
        if number == 8:
            frames.insert(0, frames.pop())
        begin = START_NS + number * 5 * MILLISECOND
        records += [record(begin + k * 13 * MICROSECOND, frame) for k, frame in enumerate(frames)]
    datagram = udp_bytes("2001:db8:20::1", "2001:db8:20::2", (47_006, 5_001), pattern(8192))
    frames = fragments_v6("2001:db8:20::1", "2001:db8:20::2", 0x0BADCAFE, datagram)
    begin = START_NS + 90 * MILLISECOND
    records += [record(begin + k * 13 * MICROSECOND, frame) for k, frame in enumerate(frames)]
    write_pcap(path, records)


def converse(ports: tuple[int, int], request: bytes, reply: bytes) -> Iterator[tuple[int, TCP, bytes]]:
    """(direction, header, payload) of a TCP conversation: handshake, request, reply, close."""
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
    """How two hosts' packets lie on the wire: frames around an IP packet."""

    addresses: tuple[str, str]
    tags: tuple[Packet, ...] = ()
    extensions: tuple[Packet, ...] = ()
    ip_ids: list[int] = field(default_factory=lambda: [0x1000, 0x9000])  # the next of each direction

    def frame(self, way: int, inside: Packet) -> Packet:
        """The frame in that direction."""
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
    """A short TCP conversation on that route."""
    steps = converse(ports, pattern(180), pattern(length))
    return [route.frame(way, tcp / Raw(payload) if payload else tcp) for way, tcp, payload in steps]


def udp_frames(route: Route, ports: tuple[int, int], count: int) -> list[Packet]:
    """`count` datagrams each way."""
    frames: list[Packet] = []
    for number in range(2 * count):
        source, target = ports if number % 2 == 0 else ports[::-1]
        frames.append(route.frame(number % 2, UDP(sport=source, dport=target) / Raw(pattern(200, number))))
    return frames


def make_vlan_ipv6(path: Path) -> None:
    """Seven conversations, interleaved; two differ by their VLAN alone."""
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
    records = []
    for number, frames in enumerate(conversations):
        for k, frame in enumerate(frames):
            time_ns = START_NS + k * 4 * MILLISECOND + number * 350 * MICROSECOND
            records.append(record(time_ns, frame))
    write_pcap(path, sorted(records, key=lambda r: r[0]))


def make_two_interfaces(path: Path) -> None:
    """Ethernet with µs and a tunnel of raw IP with ns, each with its statistics; packets were dropped."""
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
    path.write_bytes(b"".join(blocks))


def make_damaged(path: Path) -> None:
    """A transfer's first 60 packets, then a record that claims 1.8 GB and holds 200 bytes of it."""
    records = make_transfer(60_000)[:60]
    seconds = records[-1][0] // SECOND
    lie = struct.pack("<IIII", seconds, 999_999, 0x6B6B6B6B, 0x6B6B6B6B)
    write_pcap(path, records, snaplen=96, tail=lie + pattern(200))


SAMPLES: dict[str, Callable[[Path], None]] = {
    "tcp_losses.pcap": make_tcp_losses,
    "udp_fragments.pcap": make_udp_fragments,
    "vlan_ipv6.pcap": make_vlan_ipv6,
    "two_interfaces.pcapng": make_two_interfaces,
    "damaged.pcap": make_damaged,
}


def make_all(folder: Path) -> None:
    """Writes every sample into the folder."""
    for name, make in SAMPLES.items():
        make(folder / name)


if __name__ == "__main__":
    make_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
