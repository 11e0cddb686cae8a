# SPDX-License-Identifier: Apache-2.0
"""ARP, neighbor discovery and pings, packet by packet."""

from __future__ import annotations

from scapy.all import (
    ARP,
    ICMP,
    IP,
    Dot1Q,
    Ether,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
    Packet,
    Raw,
)

from crafted import stacked

CLIENT, SERVER, ABSENT, GATEWAY = "10.0.4.10", "10.0.4.50", "10.0.4.99", "10.0.4.1"
MACS = {
    CLIENT: "02:00:00:00:00:0a",
    SERVER: "00:1a:2b:3c:4d:5e",
    GATEWAY: "02:00:00:00:00:01",
    "fd00::10": "02:00:00:00:00:0a",
    "fd00::50": "00:1a:2b:3c:4d:5e",
}
OTHER_MAC = "00:50:56:9a:11:22"
BROADCAST = "ff:ff:ff:ff:ff:ff"
Timed = tuple[float, Packet]


def frame(source: str, target: str, vlan: int | None) -> Packet:
    ethernet = Ether(src=source, dst=target)
    return stacked(ethernet, Dot1Q(vlan=vlan)) if vlan else ethernet


def asks(at: float, target: str, client: str = CLIENT, vlan: int | None = None, mac: str = "") -> Timed:
    """A broadcast ARP request."""
    mac = mac or MACS[client]
    return at, stacked(frame(mac, BROADCAST, vlan), ARP(op=1, hwsrc=mac, psrc=client, pdst=target))


def answers(at: float, source: str, client: str = CLIENT, vlan: int | None = None, mac: str = "") -> Timed:
    """Its reply."""
    mac = mac or MACS[source]
    arp = ARP(op=2, hwsrc=mac, psrc=source, hwdst=MACS[client], pdst=client)
    return at, stacked(frame(mac, MACS[client], vlan), arp)


def announces(at: float, source: str, mac: str, operation: int = 2) -> Timed:
    return at, frame(mac, BROADCAST, None) / ARP(op=operation, hwsrc=mac, psrc=source, hwdst=BROADCAST, pdst=source)


def solicits(at: float, target: str, client: str = "fd00::10") -> Timed:
    """A neighbor solicitation to the solicited-node group."""
    group = "ff02::1:ff00:" + target.split(":")[-1]
    body = ICMPv6ND_NS(tgt=target) / ICMPv6NDOptSrcLLAddr(lladdr=MACS[client])
    return at, frame(MACS[client], "33:33:ff:00:00:50", None) / IPv6(src=client, dst=group, hlim=255) / body


def advertises(at: float, source: str, client: str = "fd00::10", mac: str = "", hop_limit: int = 255) -> Timed:
    mac = mac or MACS[source]
    body = ICMPv6ND_NA(tgt=source, S=1) / ICMPv6NDOptDstLLAddr(lladdr=mac)
    return at, frame(mac, MACS[client], None) / IPv6(src=source, dst=client, hlim=hop_limit) / body


def ping(at: float, sequence: int, client: str = CLIENT, server: str = SERVER, ttl: int = 64, ident: int = 7) -> Timed:
    network = IP(src=client, dst=server, ttl=ttl, id=100 + sequence)
    echo = stacked(network, ICMP(type=8, id=ident, seq=sequence), Raw(b"x" * 48))
    return at, stacked(Ether(src=MACS[CLIENT], dst=MACS[SERVER]), echo)


def pong(at: float, sequence: int, client: str = CLIENT, server: str = SERVER, ident: int = 7) -> Timed:
    echo = stacked(IP(src=server, dst=client, id=900 + sequence), ICMP(type=0, id=ident, seq=sequence), Raw(b"x" * 48))
    return at, stacked(Ether(src=MACS[SERVER], dst=MACS[CLIENT]), echo)


def ping_error(at: float, sequence: int, kind: int, code: int, router: str = GATEWAY, server: str = SERVER) -> Timed:
    """An ICMP error of a router that quotes a ping."""
    quoted = ping(at, sequence, server=server)[1][IP]
    packet = IP(src=router, dst=CLIENT) / ICMP(type=kind, code=code) / bytes(quoted)[:28]
    return at, Ether(src=MACS[GATEWAY], dst=MACS[CLIENT]) / packet


def ping6(at: float, sequence: int, reply: bool = False) -> Timed:
    ends = ("fd00::50", "fd00::10") if reply else ("fd00::10", "fd00::50")
    kind = ICMPv6EchoReply if reply else ICMPv6EchoRequest
    packet = IPv6(src=ends[0], dst=ends[1]) / kind(id=9, seq=sequence, data=b"x" * 48)
    return at, Ether(src=MACS[ends[0]], dst=MACS[ends[1]]) / packet
