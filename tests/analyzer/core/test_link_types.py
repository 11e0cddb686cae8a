# SPDX-License-Identifier: Apache-2.0
"""Link types of less common networks: the packet behind each link header, beside tshark where it reads the type."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from scapy.all import IP, UDP, Ether, IPv6, Raw
from scapy.layers.dot15d4 import Dot15d4, Dot15d4Data
from scapy.layers.sixlowpan import LoWPAN_IPHC

import needs
import wiretale
from capture_files import write_pcap
from plain_wire import START_NS

BODY = UDP(sport=1111, dport=2222) / Raw(b"x" * 40)
V4, V6 = bytes(IP(src="10.1.1.1", dst="10.2.2.2") / BODY), bytes(IPv6(src="fd00::1", dst="fd00::2") / BODY)
ADDRESSES = bytes.fromhex("020000000001 020000000002")
ETHERNET = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=0x800))
SNAP = bytes.fromhex("aaaa03 000000 0800")
RELAY = bytes.fromhex("1841")


def nflog(family: int, packet: bytes, order: str = "<") -> bytes:
    """NFLOG with a prefix and the packet, in the byte order of the capturing host."""
    prefix = struct.pack(order + "HH", 6, 10) + b"a\0\0\0"
    return struct.pack(">BBH", family, 0, 0) + prefix + struct.pack(order + "HH", 4 + len(packet), 9) + packet


# Name: link type, frame, path, whether tshark reads it.
FRAMES: dict[str, tuple[int, bytes, str | None, bool]] = {
    "fddi": (10, b"\x50" + ADDRESSES + SNAP + V4, None, True),
    "frame relay": (107, RELAY + b"\x03\xcc" + V4, None, True),
    "frame relay of Cisco": (107, RELAY + b"\x08\0" + V4, None, False),
    "frame relay, SNAP": (107, RELAY + bytes.fromhex("030080 000000 0800") + V4, None, True),
    "frame relay, bridged": (107, RELAY + bytes.fromhex("030080 0080c2 0007") + ETHERNET + V4, None, True),
    "frame relay, direction": (206, b"\0" + RELAY + b"\x03\xcc" + V4, None, False),
    "multilink frame relay": (182, b"\xc0\x01" + RELAY + b"\x03\xcc" + V4, None, False),
    "slip": (8, b"\0\x40" + bytes(14) + V4, None, False),
    "slip of BSD/OS": (102, bytes(24) + V4, None, False),
    "arcnet": (7, bytes.fromhex("0102 d4 00 0001") + V4, None, True),
    "arcnet of Linux": (129, bytes.fromhex("0102 0000 d4 00 0001") + V4, None, True),
    "ipnet": (226, struct.pack(">BBHI16x", 1, 2, 0, len(V4)) + V4, None, True),
    "ipnet, IPv6": (226, struct.pack(">BBHI16x", 1, 26, 0, len(V6)) + V6, None, True),
    "nflog": (239, nflog(2, V4), None, True),
    "nflog, IPv6": (239, nflog(10, V6), None, True),
    "nflog, big-endian": (239, nflog(2, V4, ">"), None, False),
    "ip over infiniband": (242, bytes(40) + b"\x08\0\0\0" + V4, None, True),
    "atm": (100, SNAP + V4, None, True),
    "atm, bridged": (100, bytes.fromhex("aaaa03 0080c2 0007 0000") + ETHERNET + V4, None, True),
    "atm, one protocol": (100, V4, None, False),
    "sunatm": (123, bytes.fromhex("82000064") + SNAP + V4, None, True),
    "sunatm, LAN emulation": (123, bytes.fromhex("01000064 0001") + ETHERNET + V4, None, False),
    "dsa": (284, ADDRESSES + bytes.fromhex("c0000005 0800") + V4, None, False),
    "dsa, vlan": (284, ADDRESSES + bytes.fromhex("e0000005 0800") + V4, "vlan 5", False),
    "edsa": (285, ADDRESSES + bytes.fromhex("dada0000 c0000005 0800") + V4, None, False),
    "broadcom": (281, ADDRESSES + bytes.fromhex("20000001 0800") + V4, None, False),
    "broadcom before": (282, bytes.fromhex("20000001") + ETHERNET + V4, None, False),
    "802.15.4": (230, bytes.fromhex("4188 01 cdab 0200 0100 41") + V6, None, True),
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_link_header_leads_to_its_packet(tmp_path: Path, name: str) -> None:
    link_type, frame, encapsulations, by_tshark = FRAMES[name]
    path = write_pcap(tmp_path / "one.pcap", [(START_NS, frame)], link_type=link_type)
    trace = wiretale.analyze(path)
    (row,) = trace.flows.rows()
    assert (row["protocol"], row["source_port"], row["destination_port"]) == ("udp", 1111, 2222)
    assert (row["payload_bytes"], row["path"]) == (40, encapsulations)
    (captured,) = trace.interfaces.rows()
    assert (len(trace.decode_stops), captured["lengths_cut"]) == (0, 0)
    if by_tshark and not needs.programs("tshark"):
        command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "udp.srcport", "-e", "udp.length"]
        tshark = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert tshark.stdout.split() == ["1111", "48"]


@pytest.mark.parametrize("link_type", [7, 129, 182])
def test_a_packet_in_several_frames_counts_once_and_whole(tmp_path: Path, link_type: int) -> None:
    packet = bytes(IP(src="10.1.1.1", dst="10.2.2.2") / UDP(sport=1111, dport=2222) / Raw(b"x" * 1000))
    heads = {
        7: (bytes.fromhex("0102 d4 01 0001"), bytes.fromhex("0102 d4 02 0001")),
        129: (bytes.fromhex("0102 0000 d4 01 0001"), bytes.fromhex("0102 0000 d4 02 0001")),
        182: (b"\x80\x01" + RELAY + b"\x03\xcc", b"\x40\x02"),
    }
    parts = [head + part for head, part in zip(heads[link_type], (packet[:504], packet[504:]), strict=True)]
    times = ((START_NS + i * 10**6, part) for i, part in enumerate(parts))
    trace = wiretale.analyze(write_pcap(tmp_path / "parts.pcap", times, link_type=link_type))
    (row,) = trace.flows.rows()
    assert (row["packets"], row["payload_bytes"]) == (1, 1000)
    (captured,) = trace.interfaces.rows()
    assert (trace.decode_stops["reason"], trace.decode_stops["packets"]) == (["link-fragment"], [1])
    assert captured["lengths_cut"] == 0


def test_compressed_6lowpan_is_counted_and_named(tmp_path: Path) -> None:
    inner = IPv6(src="fe80::1", dst="fe80::2") / UDP(sport=61616, dport=61617)
    frame = Dot15d4(fcf_panidcompress=True) / Dot15d4Data(dest_panid=1, dest_addr=2, src_addr=3) / LoWPAN_IPHC() / inner
    path = write_pcap(tmp_path / "wpan.pcap", [(START_NS + i, bytes(frame)) for i in range(3)], link_type=230)
    trace = wiretale.analyze(path)
    (stop,) = trace.decode_stops
    assert (stop["outcome"], stop["reason"], stop["protocol"], stop["packets"]) == (
        *("not_understood", "6lowpan", "6LoWPAN"),
        3,
    )
    assert "6LoWPAN: 3" in trace.findings.rows()[0]["sentence"]
