# SPDX-License-Identifier: Apache-2.0
"""Samples in which the capture itself matters: drops, offload, mirrors, tunnels."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw
from scapy.utils import checksum

from sample_files import in_time_order, save, truth_of
from simulation import MIDWAY, Fate
from tcp_connection import Connection, Script
from tcp_sender import SenderRules
from write_captures import MICROSECOND, ethernet, record
from write_truth import Sighting, Verdict

MSS = 1448
LOSSES = {(13, 0): Fate(lost="downstream"), (26, 0): Fate(lost="upstream")}
ROUTER = (0xA1, 0xA2)  # host numbers of the router's ports towards client and server


def copied(seen: list[Sighting], delay_ns: int) -> list[Sighting]:
    """Returns each packet once more, `delay_ns` later."""
    return [
        replace(s, record=(s.record[0] + delay_ns, *s.record[1:]), verdict=Verdict("mirror_duplicate", s.payload))
        for s in seen
    ]


def mirrored_connection() -> Connection:
    """An upload with a loss on either side of the capture point."""
    return Connection(Script([45 * MSS], distance=MIDWAY, fates=LOSSES))


def make_mirror_port(path: Path) -> None:
    """A port that is mirrored in both directions: every packet twice, 2 µs apart."""
    truth = truth_of(
        "A mirror port that copies ingress and egress: every packet is stored twice, 2 µs apart; one segment is "
        "lost upstream and one downstream.",
        [mirrored_connection()],
    )
    truth.seen = in_time_order([*truth.seen, *copied(truth.seen, 2 * MICROSECOND)])
    save(path, truth, tick_ns=1)


def with_hosts(s: Sighting, source: int, target: int, hops: int) -> Sighting:
    """Returns the same packet between other link-layer neighbors, `hops` routers later."""
    time_ns, data, length = s.record
    ip = bytearray(data[14:34])
    ip[8] -= hops
    ip[10:12] = bytes(2)
    ip[10:12] = struct.pack("!H", checksum(bytes(ip)))
    frame = bytes(ethernet(source, target))[:12] + data[12:14] + bytes(ip) + data[34:]
    return replace(s, record=(time_ns, frame, length))


def make_mirror_router(path: Path) -> None:
    """Both ports of a router are mirrored: every packet before and after it, 40 µs apart."""
    truth = truth_of(
        "Both ports of a router mirrored into one capture: every packet is stored before and after it, 40 µs "
        "apart, with other MAC addresses and a TTL lower by one; the losses are those of mirror_port.pcap.",
        [mirrored_connection()],
    )
    client, server = 0x10, 0x40
    before = [with_hosts(s, *((server, ROUTER[1]) if s.direction else (client, ROUTER[0])), 0) for s in truth.seen]
    behind = copied(truth.seen, 40 * MICROSECOND)
    behind = [with_hosts(s, *((ROUTER[0], client) if s.direction else (ROUTER[1], server)), 1) for s in behind]
    truth.seen = in_time_order([*before, *behind])
    save(path, truth)


def make_capture_drops(path: Path) -> None:
    """The capture drops segments and acknowledgments; the network loses only one segment."""
    drop = Fate(unstored=True)
    fates = {(number, 0): drop for number in (16, 17, 18, 43)} | {(70, 0): Fate(lost="downstream")}
    acks = {(number * MSS, 0): drop for number in (6, 22, 24)}
    connection = Connection(Script([100 * MSS], fates=fates, ack_fates=acks))
    about = (
        "A capture that dropped seven packets, by its own statistics: four segments are acknowledged and never stored, "
        "three acknowledgments are missing; fast retransmission recovers the only segment that the network lost."
    )
    save(path, truth_of(about, [connection]), pcapng=True, dropped=connection.point.dropped)


def make_super_segments(path: Path) -> None:
    """A capture at a sender whose network card splits up to 64 kB into packets."""
    rules = SenderRules(window_most=170, super_segment=45)
    connection = Connection(Script([700 * MSS + 500], rules=rules, every=1))
    about = "Super-segments of up to 65,160 bytes, captured before the network card splits them; one ACK per 1,448."
    save(path, truth_of(about, [connection]))


def in_tunnel(seen: list[Sighting], vni: int, vlan: int) -> list[Sighting]:
    """Puts each packet into VXLAN between two hypervisors, whose link has VLANs."""
    hosts = ("203.0.113.1", "203.0.113.2")
    inside = []
    for number, s in enumerate(seen):
        source, target = hosts[s.direction], hosts[1 - s.direction]
        # The source port is a hash of the inner flow (RFC 7348 section 5); no checksum, as in Linux over IPv4.
        udp = UDP(sport=49_152 + 311 * s.direction + vni % 97, dport=4789, chksum=0)
        outer = ethernet(0xB1 + s.direction, 0xB2 - s.direction) / Dot1Q(vlan=vlan)
        outer = outer / IP(src=source, dst=target, id=0x4000 + number, ttl=64) / udp / VXLAN(vni=vni, flags=8)
        time_ns, data, _ = s.record
        inside.append(replace(s, record=record(time_ns, outer / Raw(data))))
    return inside


def make_vxlan_loss(path: Path) -> None:
    """Two tenants with the same addresses and ports; the first loses two segments."""
    rules = SenderRules(mss=1398)  # the encapsulation takes 50 bytes
    scripts = [
        Script(distance=MIDWAY, rules=rules, fates={(15, 0): Fate(lost="downstream"), (44, 0): Fate(lost="upstream")}),
        Script(start_ns=300 * MICROSECOND, distance=MIDWAY, rules=rules),
    ]
    connections = [Connection(replace(script, writes=[60 * rules.mss])) for script in scripts]
    truth = truth_of(
        "VLAN 30 and VXLAN around two uploads between the same addresses and ports, at the same time: that with VNI "
        "7001 (flow 0) loses a segment downstream and one upstream, that with VNI 7002 none.",
        connections,
    )
    tunnelled = [in_tunnel([s for s in truth.seen if s.flow == flow], 7001 + flow, 30) for flow in (0, 1)]
    truth.seen = in_time_order([s for seen in tunnelled for s in seen])
    save(path, truth, snaplen=192)
