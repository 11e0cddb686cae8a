# SPDX-License-Identifier: Apache-2.0
"""A folder of captures with drawn packets, of which each host and port is known: inside VLANs, MPLS, PPPoE, tunnels, fragments,
ARP and ICMP errors."""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

IPV4, IPV6, VLAN, ARP, MPLS, PPPOE = 0x0800, 0x86DD, 0x8100, 0x0806, 0x8847, 0x8864
VXLAN, GENEVE, GTP = 4789, 6081, 2152
SECOND = 10**9
BEGIN = 1_700_000_000 * SECOND
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6


class Drawn(NamedTuple):
    """A packet with what it contains."""

    time_ns: int
    frame: bytes
    hosts: frozenset[bytes]
    ports: frozenset[int]

    def has(self, hosts: list[bytes], ports: list[int], nets: list[tuple[bytes, int]]) -> bool:
        in_nets = all(any(in_net(host, *net) for host in self.hosts) for net in nets)
        return in_nets and self.hosts.issuperset(hosts) and self.ports.issuperset(ports)


class Layer(NamedTuple):
    """A packet from its network header on."""

    kind: int
    body: bytes
    hosts: tuple[bytes, ...]
    ports: tuple[int, ...]


class Ring:
    """Draws files of packets, and questions about them."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.pools = [[self.draw.randbytes(size) for _ in range(count)] for size, count in ((4, 30), (16, 15))]
        self.ports = [self.draw.randrange(1, 65536) for _ in range(40)]
        self.packets: list[Drawn] = []
        self.clock = BEGIN

    def transport(self, is_ipv4: bool) -> tuple[int, int, bytes, tuple[int, ...]]:
        """Protocol, fragment offset, bytes and ports."""
        source, destination = self.draw.choice(self.ports), self.draw.choice(self.ports)
        payload = bytes(4) + self.draw.randbytes(self.draw.randrange(16, 1200))
        body = struct.pack(">HH", source, destination) + payload
        if is_ipv4 and self.draw.random() < 0.05:
            return 17, self.draw.randrange(1, 8000), body, ()
        return self.draw.choice((6, 17, 132)), 0, body, (source, destination)

    def tunnel(self, depth: int, is_ipv4: bool) -> tuple[int, bytes, Layer]:
        """Protocol and bytes around an inner packet."""
        inner = self.layer(depth + 1)
        form, kind, flag = self.draw.randrange(6), struct.pack(">H", inner.kind), self.draw.randrange(2)
        if form == 0:
            return 47, bytes(2) + kind + inner.body, inner
        if form in (1, 2, 3):
            port, head = {
                1: (VXLAN, b"\x08" + bytes(7) + bytes(12) + kind),
                2: (GENEVE, bytes((flag, 0)) + kind + bytes(4 + 4 * flag)),  # an option
                3: (GTP, bytes((0x30 + 2 * flag, 255)) + bytes(6 + 4 * flag)),  # a sequence number
            }[form]
            udp = struct.pack(">HHHH", 5000, port, 0, 0)
            return 17, udp + head + inner.body, inner._replace(ports=(*inner.ports, 5000, port))
        if form == 4 and (inner.kind == IPV4) == is_ipv4:  # an ICMP error
            protocol, head = (1, b"\x03\x01") if is_ipv4 else (58, b"\x01\x00")
            return protocol, head + bytes(6) + inner.body, inner
        return 4 if inner.kind == IPV4 else 41, inner.body, inner

    def layer(self, depth: int = 0) -> Layer:
        is_ipv4 = self.draw.random() < 0.7
        source, destination = (self.draw.choice(self.pools[not is_ipv4]) for _ in range(2))
        hosts: tuple[bytes, ...] = (source, destination)
        offset = 0
        if is_ipv4 and not depth and self.draw.random() < 0.05:
            body = struct.pack(">HHBBH", 1, IPV4, 6, 4, 1) + bytes(6) + source + bytes(6) + destination
            return Layer(ARP, body, hosts, ())
        if depth > 1 or self.draw.random() < 0.75:
            protocol, offset, body, ports = self.transport(is_ipv4)
        else:
            protocol, body, inner = self.tunnel(depth, is_ipv4)
            hosts, ports = hosts + inner.hosts, inner.ports
        if is_ipv4:
            length = (20 + len(body)) & 0xFFFF
            head = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, offset, 64, protocol, 0)
            return Layer(IPV4, head + source + destination + body, hosts, ports)
        head = struct.pack(">IHBB", 6 << 28, len(body) & 0xFFFF, protocol, 64)
        return Layer(IPV6, head + source + destination + body, hosts, ports)

    def on_link(self, layer: Layer) -> tuple[int, bytes]:
        """Type and bytes of a packet that may be in MPLS or PPPoE."""
        form = self.draw.randrange(10)
        if form == 0 and layer.kind != ARP:
            return MPLS, bytes((0, 16, 0, 64)) * self.draw.randrange(3) + bytes((0, 17, 1, 64)) + layer.body
        if form == 1 and layer.kind != ARP:
            protocol = 0x21 if layer.kind == IPV4 else 0x57
            return PPPOE, struct.pack(">BBHHH", 0x11, 0, 1, len(layer.body) + 2, protocol) + layer.body
        return layer.kind, layer.body

    def packet(self) -> Drawn:
        layer = self.layer()
        kind, body = self.on_link(layer)
        for _ in range(self.draw.choice((0, 0, 0, 1, 2))):
            kind, body = VLAN, struct.pack(">HH", 5, kind) + body
        self.clock += self.draw.randrange(2_000_000) * 1000
        if self.draw.random() < 0.1:
            self.clock -= 1_500_000
        frame = self.draw.randbytes(12) + struct.pack(">H", kind) + body
        return Drawn(self.clock, frame, frozenset(layer.hosts), frozenset(layer.ports))

    def write(self, path: Path, form: str, count: int) -> None:
        """Writes a file of drawn packets: `pcap`, or pcapng with ns or (`us`) microseconds, compressed if `zst`."""
        unit = 1000 if form == "us" else 1
        parts = [CLASSIC_HEADER] if form == "pcap" else [section(), interface("eth0", unit)]
        interfaces = 1
        for _ in range(count):
            packet = self.packet()
            self.packets.append(packet)
            if form == "pcap":
                size = len(packet.frame)
                head = struct.pack("<IIII", packet.time_ns // SECOND, packet.time_ns % SECOND, size, size)
                parts.append(head + packet.frame)
                continue
            if self.draw.random() < 0.01:
                parts.append(interface(f"if{self.draw.randrange(3)}", unit))
                interfaces += 1
            parts.append(packet_block(self.draw.randrange(interfaces), packet.time_ns // unit, packet.frame))
        path.write_bytes(b"".join(parts))
        if form == "zst":
            subprocess.run(["zstd", "-q", "--rm", path], check=True)

    def some(self, choices: list[bytes] | list[int], counts: tuple[int, ...]) -> list[Any]:
        return [self.draw.choice(choices) for _ in range(self.draw.choice(counts))]

    def conditions(self) -> tuple[list[str], Callable[[Drawn], bool]]:
        """Options of `find` without times, and whether a packet meets them."""
        hosts = self.some(self.pools[self.draw.random() < 0.3], (0, 1, 1, 2))
        ports = self.some(self.ports, (0, 0, 1, 2))
        nets = [(net, self.draw.randrange(33)) for net in self.some(self.pools[0], (0,) * 9 + (1,))]
        words = [word for host in hosts for word in ("--host", str(ip_address(host)))]
        words += [word for port in ports for word in ("--port", str(port))]
        words += [word for net, bits in nets for word in ("--host", f"{ip_address(net)}/{bits}")]
        return words, lambda packet: packet.has(hosts, ports, nets)

    def question(self) -> tuple[list[str], list[Drawn]]:
        """Options of `find`, and the packets that it should find."""
        words, has = self.conditions()
        begin, end = sorted(packet.time_ns for packet in self.draw.sample(self.packets, 2))
        expected = [packet for packet in self.packets if has(packet)]
        if self.draw.random() < 0.6 and begin < end:
            words += ["--start", seconds(begin), "--end", seconds(end)]
            expected = [packet for packet in expected if begin <= packet.time_ns < end]
        return words, expected


CLASSIC_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)


def seconds(time_ns: int) -> str:
    return f"{time_ns // SECOND}.{time_ns % SECOND:09}"


def in_net(host: bytes, net: bytes, bits: int) -> bool:
    shift = 32 - bits
    return len(host) == 4 and int.from_bytes(host, "big") >> shift == int.from_bytes(net, "big") >> shift


def block(kind: int, body: bytes) -> bytes:
    size = 12 + len(body)
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def section() -> bytes:
    return block(SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + option(4, b"test") + bytes(4))


def interface(name: str, unit: int) -> bytes:
    options = option(2, name.encode()) + option(9, bytes([6 if unit == 1000 else 9])) + bytes(4)
    return block(INTERFACE, struct.pack("<HHI", 1, 0, 0) + options)


def packet_block(number: int, ticks: int, frame: bytes) -> bytes:
    head = struct.pack("<IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
    return block(PACKET, head + frame + bytes(-len(frame) % 4) + option(1, b"said") + bytes(4))


def packets_of(path: Path) -> list[tuple[int, bytes]]:
    """Times and frames of a pcapng file, in its order."""
    data, at, units, packets = path.read_bytes(), 0, [], []
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == INTERFACE:
            units.append(1000 if option(9, b"\x06") in data[at : at + size] else 1)
        elif kind == PACKET:
            number, high, low, captured, _ = struct.unpack_from("<IIIII", data, at + 8)
            packets.append(((high << 32 | low) * units[number], data[at + 28 : at + 28 + captured]))
        at += size
    return packets
