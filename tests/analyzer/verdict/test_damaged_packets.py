# SPDX-License-Identifier: Apache-2.0
"""Rules V14 beside a kernel, which discards damaged packets and counts them, and in packets that are no TCP segments."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment
from scapy.layers.l2 import GRE, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

import damaged_link
import needs
import wiretale

ETHERNET, V4 = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02"), IP(src="10.0.0.1", dst="10.0.0.2")
V6 = IPv6(src="fd00::1", dst="fd00::2")
COLUMNS = ("checksum_errors", "checksums_verified", "checksums_offloaded")
ECHO, DATAGRAM = ICMP(id=7) / (b"echo" * 100), UDP(sport=4000, dport=5000) / (b"data" * 100)
CASES: dict[str, tuple[Packet, tuple[int | None, int, int]]] = {
    "ICMP": (V4 / ECHO, (1, 10, 0)),
    "ICMPv6": (V6 / ICMPv6EchoRequest(id=7, data=b"echo" * 100), (1, 10, 0)),
    "UDP over IPv6": (V6 / DATAGRAM, (1, 10, 0)),
    "an odd length": (V4 / UDP(sport=4000, dport=5000) / (b"d" * 101), (1, 10, 0)),
    "a short one": (V4 / UDP(sport=4000, dport=5000) / b"d", (1, 10, 0)),
    "in a VLAN": (Dot1Q(vlan=5) / V4 / DATAGRAM, (1, 10, 0)),
    "in GRE": (V4 / GRE() / IP(src="10.1.0.1", dst="10.1.0.2") / DATAGRAM, (1, 10, 0)),
    "UDP without a checksum": (V4 / UDP(sport=4000, dport=5000, chksum=0) / (b"data" * 100), (None, 0, 0)),
    "TCP that is longer than a segment": (V4 / TCP(flags="A") / bytes(3000), (0, 9, 1)),
    "IP options": (IP(src="10.0.0.1", dst="10.0.0.2", options=[b"\x94\x04\0\0"]) / DATAGRAM, (None, 0, 0)),
    "an extension header": (V6 / IPv6ExtHdrDestOpt() / DATAGRAM, (None, 0, 0)),
    "a fragment": (V6 / IPv6ExtHdrFragment(id=1, m=1) / DATAGRAM, (None, 0, 0)),
    "SCTP": (IP(src="10.0.0.1", dst="10.0.0.2", proto=132) / Raw(bytes(400)), (None, 0, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_one_of_ten_packets_is_damaged(name: str, tmp_path: Path) -> None:
    packet, expected = CASES[name]
    frames = [bytearray(bytes(ETHERNET / packet)) for _ in range(10)]
    frames[4][-1] ^= 0x10
    path = tmp_path / "ten.pcap"
    wrpcap(str(path), [Ether(bytes(frame)) for frame in frames], linktype=1)
    rows = [row for row in wiretale.analyze(path).directions.rows() if row["packets"]]
    assert [tuple(row[column] for column in COLUMNS) for row in rows] == [expected]


INNER = ETHERNET / IP(src="10.1.0.1", dst="10.1.0.2") / DATAGRAM
VXLAN = bytes.fromhex("0800000000000700") + bytes(INNER)
GENEVE = bytes.fromhex("0000655800000700") + bytes(INNER)
OUTER = UDP(sport=50000, dport=4789)
TUNNELS: dict[str, tuple[Packet, int, tuple[int | None, int, int]]] = {
    "VXLAN": (V4 / OUTER / VXLAN, 40, (1, 10, 0)),
    "Geneve in a VLAN": (Dot1Q(vlan=5) / V4 / UDP(sport=50000, dport=6081) / GENEVE, 44, (1, 10, 0)),
    "VXLAN over IPv6": (V6 / OUTER / VXLAN, 60, (1, 10, 0)),
    "VXLAN, and the inner datagram has no checksum": (
        V4 / OUTER / VXLAN[:8] / ETHERNET / IP(src="10.1.0.1", dst="10.1.0.2") / UDP(chksum=0) / (b"data" * 100),
        40,
        (1, 10, 0),
    ),
    "VXLAN without a checksum": (V4 / UDP(sport=50000, dport=4789, chksum=0) / VXLAN, 0, (0, 10, 0)),
}


@pytest.mark.parametrize("name", TUNNELS)
def test_a_tunnel_has_a_wrong_checksum_around_a_right_one(name: str, tmp_path: Path) -> None:
    packet, place, expected = TUNNELS[name]
    frames = [bytearray(bytes(ETHERNET / packet)) for _ in range(10)]
    frames[4][place] ^= 0x10 if place else 0
    path = tmp_path / "ten.pcap"
    wrpcap(str(path), [Ether(bytes(frame)) for frame in frames], linktype=1)
    rows = [row for row in wiretale.analyze(path).directions.rows() if row["packets"]]
    assert [tuple(row[column] for column in COLUMNS) for row in rows] == [expected]


def test_a_tunnel_that_leaves_its_checksum_to_the_adapter_is_not_damaged(tmp_path: Path) -> None:
    frame = bytearray(bytes(ETHERNET / V4 / OUTER / VXLAN))
    frame[40:42] = (sum(struct.unpack("!4H", frame[26:34])) + 17 + len(frame) - 34).to_bytes(4)[2:]
    path = tmp_path / "partial.pcap"
    wrpcap(str(path), [Ether(bytes(frame))] * 10, linktype=1)
    assert tuple(wiretale.analyze(path).directions.rows()[0][column] for column in COLUMNS) == (0, 10, 0)


def test_padding_and_a_cut_packet_are_no_damage(tmp_path: Path) -> None:
    short, path = bytes(ETHERNET / V4 / UDP(sport=4000, dport=5000) / b"d"), tmp_path / "short.pcap"
    cut = Ether(short[:-1])
    cut.wirelen = len(short)
    wrpcap(str(path), [Ether(short + b"\xff" * 17), cut])
    row = wiretale.analyze(path).directions.rows()[0]
    assert tuple(row[column] for column in COLUMNS) == (0, 1, 0)


@needs.marked(needs.network_namespaces(), needs.programs("unshare", "ip"))
def test_damaged_packets_are_those_that_the_kernel_discards(tmp_path: Path) -> None:
    path = tmp_path / "damaged.pcap"
    run = ["unshare", "-n", sys.executable, damaged_link.__file__, str(path)]
    counted: dict[str, int] = json.loads(subprocess.run(run, check=True, capture_output=True, timeout=60).stdout)
    trace = wiretale.analyze(path)
    protocols = trace.flows.column("protocol")
    rows: dict[str, Any] = {
        protocols[row["flow"]]: row for row in trace.directions.rows() if row["source"] == damaged_link.PEER
    }
    assert min(counted.values()) >= 3
    assert {name: rows[name]["checksum_errors"] for name in counted} == counted
    segments = rows["tcp"]
    again = (segments["retransmissions"], segments["checksum_retransmissions"])
    assert again == (counted["tcp"], counted["tcp"])
    assert (segments["lost_upstream"], segments["lost_downstream"], segments["unplaced_retransmissions"]) == (0, 0, 0)
    answers = [row for row in trace.directions.rows() if row["source"] == damaged_link.HOST and row["packets"]]
    assert [row["checksum_errors"] for row in answers] == [0] * len(answers)
    codes = {row["code"] for row in trace.findings}
    assert "damaged-packets" in codes and not codes & {"lost-downstream", "lost-upstream"}


def test_damage_is_the_headline_where_recovery_from_it_took_the_time() -> None:
    trace = wiretale.analyze(needs.shared("labelled/questions") / "corruption_full.pcap.gz")
    codes = [row["code"] for row in trace.findings.rows()]
    row = trace.directions.rows(0, 1)[0]
    assert codes[0] == "damaged-packets"
    assert (row["checksum_errors"], row["checksum_retransmissions"], row["lost_downstream"]) == (11, 11, 0)
