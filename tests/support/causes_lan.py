# SPDX-License-Identifier: Apache-2.0
"""Routers and ports of a LAN: an example of each cause, and its rivals."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from scapy.all import (
    ARP,
    BOOTP,
    DHCP,
    ICMP,
    IP,
    STP,
    TCP,
    UDP,
    VRRP,
    Dot1Q,
    Dot3,
    Ether,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6ND_RA,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptPrefixInfo,
    IPv6,
    Raw,
    VRRPv3,
    mac2str,
)

from attempt_wire import Ends
from causes_broken import of_timed
from crafted import Timed
from dhcp_wire import DHCP_SERVER, LEASE, lease, message
from neighbor_wire import GATEWAY, OTHER_MAC, SERVER, advertises, answers, asks, solicits

STATION, SWITCH, PORTS_GROUP = "02:00:00:00:00:0a", "02:00:00:00:00:01", "01:80:c2:00:00:03"


def advertisement(at: float, router: str, priority: int, group: int = 10, virtual: str = "10.0.0.1") -> Timed:
    frame = Ether(src=f"00:00:5e:00:01:{group:02x}", dst="01:00:5e:00:00:12") / IP(
        src=router, dst="224.0.0.18", ttl=255, proto=112
    )
    return [(at, frame / VRRP(version=2, vrid=group, priority=priority, addrlist=[virtual], ipcount=1, adv=1))]


def masters(second_from: float = 0.0, first_until: float = 60.0, groups: tuple[int, int] = (10, 10)) -> Timed:
    """Two routers that advertise every second; `first_until`: then the first one resigns."""
    timed: Timed = []
    for n in range(60):
        if n < first_until:
            timed += advertisement(n + 0.1, "10.0.0.2", 150, groups[0])
        elif n - 1 < first_until:
            timed += advertisement(n + 0.1, "10.0.0.2", 0, groups[0])
        if n >= second_from:
            timed += advertisement(n + 0.6, "10.0.0.3", 100, groups[1], f"10.0.0.{groups[1] - 9}")
    return timed


def namesakes(first: str = "10.0.0.2", second: str = "10.0.0.3", beside: bool = True) -> Timed:
    """Masters of two virtual routers with one number, side by side or one after the other."""
    timed: Timed = []
    for n in range(30):
        timed += advertisement(n + 0.1, first, 100, 1, "10.0.0.1")
        timed += advertisement(n + (0.6 if beside else 40.0), second, 100, 1, "10.0.0.100")
    return timed


def denied(flags: Sequence[int] = (0, 0, 0), lifetime: int = 1800, target: str = "fe80::1") -> Timed:
    """A router that advertises itself, and answers neighbor solicitations with these router flags."""
    timed = [each for each in routers((("2001:db8:1::",), ()), (lifetime, 0)) if each[1][IPv6].src == "fe80::1"]
    for n, flag in enumerate(flags):
        frame = Ether(src="02:00:00:00:00:01", dst=STATION) / IPv6(src="fe80::1", dst="fe80::a", hlim=255)
        timed.append((5.0 + 10 * n, frame / ICMPv6ND_NA(R=flag, S=1, O=0, tgt=target)))
    return sorted(timed, key=lambda each: each[0])


def bridge(changes: Sequence[float], until: float = 600.0, repeated: float = 35.0, notified: bool = False) -> Timed:
    """The BPDUs of a bridge every 2 s, with the flag of a change for a time after each; or notifications of another one."""
    timed: Timed = []
    for n in range(int(until / 2)):
        flag = not notified and any(0 <= 2.0 * n - at < repeated for at in changes)
        body = STP(bpduflags=int(flag), rootid=4096, rootmac=SWITCH, bridgeid=4096, bridgemac=SWITCH, maxage=20)
        frame = Dot3(src=SWITCH, dst="01:80:c2:00:00:00", len=38) / Raw(bytes.fromhex("424203"))
        timed.append((2.0 * n, frame / Raw(bytes(body) + bytes(8))))
    for at in changes if notified else ():
        frame = Dot3(src=STATION, dst="01:80:c2:00:00:00", len=7) / Raw(bytes.fromhex("42420300000080") + bytes(39))
        timed += [(at, frame), (at + 2.0, frame)]
    return sorted(timed, key=lambda each: each[0])


def flooded(changes: Sequence[float], begins: Sequence[float], until: float = 1200.0) -> Timed:
    """The BPDUs of changes, and connections of which only the packets of the client pass."""
    timed = bridge(changes, until)
    for n, at in enumerate(begins):
        timed += [each for each in Ends(port=40000 + n).connects(at) if each[1][TCP].dport == 80]
    return sorted(timed, key=lambda each: each[0])


def per_vlan(changes: Sequence[float]) -> Timed:
    """The same of PVST+: SNAP of Cisco in place of LLC."""
    timed = bridge(changes)
    head = bytes.fromhex("aaaa0300000c010b")
    return [
        (at, Dot3(src=SWITCH, dst="01:00:0c:cc:cc:cd", len=50) / Raw(head + bytes(packet.payload)[3:]))
        for at, packet in timed
    ]


def named_request(at: float, xid: int, server: str = DHCP_SERVER) -> Timed:
    """A Request that names its server, as a client sends after an Offer."""
    boot = BOOTP(op=1, xid=xid, chaddr=mac2str(STATION))
    options = [("message-type", "request"), ("server_id", server), ("requested_addr", LEASE), "end"]
    frame = Ether(src=STATION, dst="ff:ff:ff:ff:ff:ff") / IP(src="0.0.0.0", dst="255.255.255.255")
    return [(at, frame / UDP(sport=68, dport=67) / boot / DHCP(options=options))]


def stranger_nak(at: float, xid: int, server: str) -> Timed:
    boot = BOOTP(op=2, xid=xid, chaddr=mac2str(STATION))
    frame = Ether(src="02:00:00:00:00:66", dst="ff:ff:ff:ff:ff:ff") / IP(src=server, dst="255.255.255.255")
    options = [("message-type", "nak"), ("server_id", server), "end"]
    return [(at, frame / UDP(sport=67, dport=68) / boot / DHCP(options=options))]


def contested(times: int = 4, stranger: str = "10.66.0.1", again: bool = True, confirms: bool = True) -> Timed:
    """Requests to one server that another one refuses; `again`: the client then begins anew."""
    timed: Timed = []
    for n in range(times):
        at, xid = 6.0 * n if again else 3600.0 * n, n + 1
        timed += [message(at, "discover", xid, STATION, name="sensor"), message(at + 0.03, "offer", xid, STATION)]
        timed += named_request(at + 0.04, xid)
        timed += stranger_nak(at + 0.042, xid, stranger)
        timed += [message(at + 0.05, "ack", xid, STATION)] if confirms else []
    return timed


def version_3() -> Timed:
    frame = Ether(src="00:00:5e:00:01:0a", dst="01:00:5e:00:00:12")
    packets = [
        frame
        / IP(src=router, dst="224.0.0.18", ttl=255, proto=112)
        / VRRPv3(vrid=10, priority=100, addrlist=["10.0.0.1"])
        for router in ("10.0.0.2", "10.0.0.3")
    ]
    return [(n + 0.2 * i, packet) for n in range(9) for i, packet in enumerate(packets)]


def carp() -> Timed:
    """CARP of two hosts: the protocol and group of VRRP, and another format."""
    body = bytes([0x21, 10, 0, 7, 0, 1, 0, 0]) + bytes(28)
    frame = Ether(src="00:00:5e:00:01:0a", dst="01:00:5e:00:00:12")
    hosts = [
        frame / IP(src=host, dst="224.0.0.18", ttl=255, proto=112) / Raw(body) for host in ("10.0.0.2", "10.0.0.3")
    ]
    return [(n + 0.2 * i, host) for n in range(9) for i, host in enumerate(hosts)]


def leads_nowhere(silent: int = 3, working: int = 3, both: int = 0) -> Timed:
    """The same, and attempts to connect from the second network that nobody answers; `both`: others that are answered."""
    own, other = ("2001:db8:1::10", "2001:db8:2::10")
    server = "2001:db8:ff::80"
    timed = [packet for n in range(working) for packet in Ends(40_000 + n, 80, own, server).connects(5.0 + 2 * n)]
    timed += [packet for n in range(silent) for packet in Ends(41_000 + n, 80, other, server).syns(12.0 + 8 * n)]
    timed += [packet for n in range(both) for packet in Ends(42_000 + n, 80, other, server).connects(9.0 + n)]
    return sorted([*routers(), *timed], key=lambda each: each[0])


def routers(
    prefixes: Sequence[Sequence[str]] = (("2001:db8:1::",), ("2001:db8:2::",)),
    lifetimes: tuple[int, int] = (1800, 1800),
) -> Timed:
    """Two routers that advertise every 10 s."""
    timed: Timed = []
    for n in range(6):
        for i, (nets, lifetime) in enumerate(zip(prefixes, lifetimes, strict=True)):
            packet = Ether(src=f"02:00:00:00:00:0{i + 1}", dst="33:33:00:00:00:01") / IPv6(
                src=f"fe80::{i + 1}", dst="ff02::1", hlim=255
            )
            packet /= ICMPv6ND_RA(routerlifetime=lifetime)
            for prefix in nets:
                packet /= ICMPv6NDOptPrefixInfo(prefix=prefix, prefixlen=64)
            timed.append((10.0 * n + i, packet))
    return timed


def pauses(count: int = 40, quanta: int = 0xFFFF) -> Timed:
    frame = Ether(src=STATION, dst="01:80:c2:00:00:01", type=0x8808)
    return [(0.1 * n, frame / Raw(struct.pack("!HH", 1, quanta) + bytes(42))) for n in range(count)]


def eapol(at: float, kind: int, body: bytes = b"", up: bool = True) -> Timed:
    frame = Ether(src=STATION if up else SWITCH, dst=PORTS_GROUP, type=0x888E)
    return [(at, frame / Raw(struct.pack("!BBH", 2, kind, len(body)) + body + bytes(42)))]


def eap(at: float, code: int, up: bool, method: int = 1) -> Timed:
    size = 5 if code < 3 else 4
    return eapol(at, 0, struct.pack("!BBH", code, 1, size) + bytes([method])[: size - 4], up)


def starts(count: int = 3, answered: bool = False) -> Timed:
    timed = [packet for n in range(count) for packet in eapol(1 + 30.0 * n, 1)]
    if answered:
        timed += [*eap(61.1, 1, False), *eap(61.2, 2, True), *eap(61.5, 3, False)]
    return [*timed, *eapol(80, 2)]


def refused(again: bool = False) -> Timed:
    timed = [*eapol(1, 1), *eap(1.1, 1, False), *eap(1.2, 2, True), *eap(1.9, 4, False)]
    return [*timed, *(eap(9.1, 1, False) + eap(9.2, 2, True) + eap(9.5, 3, False) if again else [])]


def strangers(
    targets: tuple[str, ...] = ("10.0.9.5", "10.0.9.7", "10.0.20.33"), heard: str = "", local: bool = True
) -> Timed:
    """A client that asks by ARP for hosts beyond its network, without a reply, and for its neighbors; `heard` answers, too."""
    talk = [asks(0.0, GATEWAY), answers(0.001, GATEWAY), asks(1.0, SERVER)]
    talk += [answers(1.001, SERVER)] if local else [asks(2.0, SERVER), asks(3.0, SERVER)]
    for i, target in enumerate(targets):
        talk += [asks(10.0 * (i + 1) + j, target) for j in range(3)]
    if heard:
        talk += [asks(60.0, heard), answers(60.001, heard, mac="02:00:00:00:00:77")]
    return talk


def redirects(other: int | None = None, count: int = 4) -> Timed:
    """Pings of a host through a router that names a better one each time; a further ICMP error of a code, or none."""
    talk: Timed = []
    for number in range(count):
        ping = IP(src="10.0.4.10", dst="10.3.71.7") / ICMP(id=5, seq=number) / Raw(bytes(56))
        head = IP(src=GATEWAY, dst="10.0.4.10", ttl=255)
        reply = IP(src="10.3.71.7", dst="10.0.4.10", ttl=63) / ICMP(type=0, id=5, seq=number) / Raw(bytes(56))
        talk += [(float(number), Ether() / ping), (number + 0.002, Ether() / reply)]
        talk.append((number + 0.0005, Ether() / head / ICMP(type=5, code=1, gw="10.0.4.254") / Raw(bytes(ping)[:28])))
        if other is not None:
            talk.append((number + 0.0006, Ether() / head / ICMP(type=3, code=other) / Raw(bytes(ping)[:28])))
    return sorted(talk, key=lambda packet: packet[0])


def redirected_server() -> Timed:
    """A server whose answers to a client of another network a router sends back to the LAN."""
    ends = Ends(client="198.51.100.7", server="10.0.4.10")
    talk = ends.connects(0.0)
    head, answer = IP(src=GATEWAY, dst="10.0.4.10", ttl=255), bytes(talk[1][1][IP])[:28]
    redirect = Ether() / head / ICMP(type=5, code=1, gw="10.0.4.254") / Raw(answer)
    return sorted([*talk, (talk[1][0] + 0.0005, redirect)], key=lambda packet: packet[0])


def two_cards(apart: int = 1, count: int = 4) -> Timed:
    """Two MAC addresses, so far apart, that answer each ARP request for a server."""
    macs = [f"00:25:90:aa:bb:{0x10 + card * apart:02x}" for card in (0, 1)]
    return [
        packet
        for n in range(count)
        for packet in (
            asks(10.0 * n, SERVER),
            *(answers(10.0 * n + 0.001 + i / 10_000, SERVER, mac=mac) for i, mac in enumerate(macs)),
        )
    ]


def declined(times: int = 3, then: bool = False) -> Timed:
    """A client that gets addresses, finds each in use by an ARP probe, and declines them; `then`: the last one it keeps."""
    timed, mac = [], "02:00:00:00:00:0c"
    for n in range(times + then):
        timed += lease(10.0 * n, n + 1, mac)
        if n < times:
            probe = asks(10.0 * n + 0.1, LEASE, client="0.0.0.0", mac=mac)
            at, decline = message(10.0 * n + 0.3, "decline", n + 1, mac)
            decline[DHCP].options = [
                ("message-type", "decline"),
                ("server_id", DHCP_SERVER),
                ("requested_addr", LEASE),
                "end",
            ]
            reply = Ether(src="02:00:00:00:00:77", dst=mac) / ARP(
                op=2, hwsrc="02:00:00:00:00:77", psrc=LEASE, hwdst=mac
            )
            timed += [probe, (10.0 * n + 0.1001, reply), (at, decline)]
    return timed


def detected(holder: str = OTHER_MAC, after: float = 0.002, address: str = "fd00::50", vlan: int = 0) -> Timed:
    """Hosts ask whether anybody has the address that they are to take; for one, another host, or itself, says so."""
    timed: Timed = []
    for n, (mac, target) in enumerate(((STATION, address), (SWITCH, "fd00::51"))):
        head = Ether(src=mac, dst="33:33:ff:00:00:50")
        head = head / Dot1Q(vlan=vlan) if vlan else head
        timed.append((1 + 10.0 * n, head / IPv6(src="::", dst="ff02::1:ff00:50", hlim=255) / ICMPv6ND_NS(tgt=target)))
    head = Ether(src=holder, dst="33:33:00:00:00:01")
    head = head / Dot1Q(vlan=vlan) if vlan else head
    body = ICMPv6ND_NA(tgt=address, R=0, S=0, O=1) / ICMPv6NDOptDstLLAddr(lladdr=holder)
    timed.append((1 + after, head / IPv6(src=address, dst="ff02::1", hlim=255) / body))
    return sorted(timed, key=lambda each: each[0])


def declined_alone() -> Timed:
    """The same without the server in it and without a reply of ARP; minutes later another host has that address."""
    timed = [(at, packet) for at, packet in declined(times=1) if ARP not in packet or packet[ARP].op == 1]
    timed[-1][1][DHCP].options = [("message-type", "decline"), ("requested_addr", LEASE), "end"]
    return [*timed, asks(400.0, DHCP_SERVER, client=LEASE, mac="02:00:00:00:00:99")]


def slow_neighbor(times: int = 4, tries: int = 8, quick: int = 0, replies: bool = True) -> Timed:
    """A host that answers so many tries of a neighbor, 1 s apart, and others at once."""
    timed, counts = [], [tries] * times + [1] * quick
    for number, count in enumerate(counts):
        at = 40.0 * number
        timed += [solicits(at + attempt, "fd00::50") for attempt in range(count)]
        timed += [advertises(at + count - 1 + 0.001, "fd00::50")] if replies else []
    return timed


EXAMPLES: dict[str, Callable] = {
    "late-neighbor": of_timed(slow_neighbor),
    "address-in-use": of_timed(detected),
    "arp-flux": of_timed(two_cards),
    "dhcp-declined": of_timed(declined),
    "redirected": of_timed(redirects),
    "wrong-mask": of_timed(strangers),
    "two-masters": of_timed(masters),
    "shared-group": of_timed(namesakes),
    "router-denied": of_timed(denied),
    "topology-changes": of_timed(lambda: bridge([30.0 + 70 * n for n in range(8)])),
    "foreign-nak": of_timed(contested),
    "second-router": of_timed(routers),
    "pause-frames": of_timed(pauses),
    "port-login": of_timed(starts),
}
