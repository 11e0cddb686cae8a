# SPDX-License-Identifier: Apache-2.0
"""A sample of TCP within a tunnel."""

from __future__ import annotations

from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from event_clock import Clock
from packet_fate import MIDWAY, Fate
from sample_files import in_time_order, save_pcap, truth_of
from simulate_transfer import ethernet
from tcp_connection import Connection, Script
from tcp_sender import SenderRules
from write_captures import MICROSECOND
from write_truth import Sighting


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
        frame = bytes(outer / Raw(data))
        inside.append(Sighting((time_ns, frame, len(frame)), s.flow, s.direction, s.verdict, s.payload))
    return inside


def make_vxlan_loss(path: Path) -> None:
    """Two tenants with the same addresses and ports; the first loses two segments."""
    clock = Clock()
    rules = SenderRules(mss=1398)  # the encapsulation takes 50 bytes
    scripts = [
        Script(distance=MIDWAY, rules=rules, fates={(15, 0): Fate(lost="downstream"), (44, 0): Fate(lost="upstream")}),
        Script(300 * MICROSECOND, distance=MIDWAY, rules=rules),
    ]
    connections = [Connection(clock, script).write(60 * rules.mss) for script in scripts]
    clock.run()
    truth = truth_of(
        "VLAN 30 and VXLAN around two uploads between the same addresses and ports, at the same time: that with VNI "
        "7001 (flow 0) loses a segment downstream and one upstream, that with VNI 7002 none.",
        connections,
    )
    tunnelled = [in_tunnel([s for s in truth.seen if s.flow == flow], 7001 + flow, 30) for flow in (0, 1)]
    truth.seen = in_time_order([s for seen in tunnelled for s in seen])
    save_pcap(path, truth, snaplen=192)
