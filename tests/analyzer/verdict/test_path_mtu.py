# SPDX-License-Identifier: Apache-2.0
"""An ICMP error has the MTU of the path, which is the size of super-segments from then on (rule V13.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.all import ICMP, IP, TCP, Ether, ICMPv6PacketTooBig, IPerror, IPerror6, IPv6, Packet, Raw, TCPerror

import wiretale
from capture_files import write_pcap

ENDS = {4: ("10.0.0.1", "10.0.0.2", "10.9.9.9"), 6: ("fd00::1", "fd00::2", "fd00::99")}
HEADERS = {4: 40, 6: 60}
Row = dict[str, Any]


def packet(version: int, side: int, flags: str, at: int, ack: int, payload: int = 0, **more: Any) -> Packet:
    ends = ENDS[version][:2]
    layer = (IPv6 if version == 6 else IP)(src=ends[side], dst=ends[1 - side])
    ports = (40000, 80)
    tcp = TCP(sport=ports[side], dport=ports[1 - side], flags=flags, seq=1000 + at, ack=1000 + ack, **more)
    return layer / tcp / Raw(bytes(payload))


def too_big(version: int, mtu: int, sequence: int = 1001) -> Packet:
    """Quotes a packet of the initiator."""
    source, target, router = ENDS[version]
    quoted = TCPerror(sport=40000, dport=80, seq=sequence)
    if version == 6:
        return IPv6(src=router, dst=source) / ICMPv6PacketTooBig(mtu=mtu) / IPerror6(src=source, dst=target) / quoted
    return IP(src=router, dst=source) / ICMP(type=3, code=4, nexthopmtu=mtu) / IPerror(src=source, dst=target) / quoted


def handshake(version: int) -> list[Packet]:
    """Each SYN announces an MSS of 1,460 bytes."""
    syn = {"options": [("MSS", 1460), ("SAckOK", b""), ("NOP", None), ("WScale", 7)]}
    return [
        packet(version, 0, "S", 0, 0, **syn),
        packet(version, 1, "SA", 0, 1, **syn),
        packet(version, 0, "A", 1, 1),
    ]


def analyze(folder: Path, packets: list[Packet]) -> Row:
    """Returns the row of the initiator's direction; packets are 10 ms apart."""
    link = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    frames = ((10**18 + i * 10**7, bytes(link / packet)) for i, packet in enumerate(packets))
    row: Row = wiretale.analyze(write_pcap(folder / "wire.pcap", frames)).directions.rows()[0]
    return row


def sender(folder: Path, version: int, mtu: int | None, unit: int) -> Row:
    """Three super-segments of 10 units, the first before the error."""
    packets = handshake(version)
    packets.append(packet(version, 0, "A", 1, 1, 10 * unit))
    packets += [too_big(version, mtu)] if mtu else []
    packets += [packet(version, 0, "A", 1 + i * 10 * unit, 1, 10 * unit) for i in (1, 2)]
    packets.append(packet(version, 1, "A", 1, 1 + 30 * unit))
    return analyze(folder, packets)


@pytest.mark.parametrize("version", [4, 6])
def test_the_mtu_of_an_icmp_error_is_that_of_the_path(tmp_path: Path, version: int) -> None:
    row = sender(tmp_path, version, 1300, 1300 - HEADERS[version])
    assert (row["wire_mss"], row["wire_segments"]) == (1300 - HEADERS[version], 30)


@pytest.mark.parametrize("mtu", [None, 68, 0xFFFF])
def test_an_error_without_a_smaller_mtu_changes_nothing(tmp_path: Path, mtu: int | None) -> None:
    """An MTU of 68 is the least of RFC 791; no path has it, but an attacker may send it."""
    row = sender(tmp_path, 4, mtu, 1260)
    assert (row["wire_mss"], row["wire_segments"]) == (1460, 27)  # 9 for 12,600 bytes


def test_losses_that_are_taken_back_leave_none(tmp_path: Path) -> None:
    """Three retransmissions of 3,000 bytes are 8 segments of 1,260 together, and 3 each once they are proven spurious."""
    data = [packet(4, 0, "A", 1 + i * 3000, 1, 3000) for i in range(3)]
    edges = [(1001 + i * 3000, 4001 + i * 3000) for i in range(3)]
    reports = [packet(4, 1, "A", 1, 9001, options=[("NOP", None), ("NOP", None), ("SAck", edge)]) for edge in edges]
    row = analyze(tmp_path, [*handshake(4), *data, *data, too_big(4, 1300), packet(4, 1, "A", 1, 9001), *reports])
    assert (row["spurious_retransmissions"], row["lost_downstream"], row["wire_lost_downstream"]) == (3, 0, 0)
    assert (row["wire_retransmissions"], row["wire_spurious"], row["wire_unplaced"]) == (9, 9, 0)


@pytest.mark.parametrize(("sequence", "mss"), [(1001, 1260), (13601, 1260), (13602, 1460), (999, 1460), (2**31, 1460)])
def test_an_error_must_quote_data_that_was_sent(tmp_path: Path, sequence: int, mss: int) -> None:
    """RFC 5927 section 4.1: others cannot know the sequence numbers in flight."""
    data = [packet(4, 0, "A", 1 + i * 12600, 1, 12600) for i in range(2)]
    row = analyze(tmp_path, [*handshake(4), data[0], too_big(4, 1300, sequence), data[1], packet(4, 1, "A", 1, 25201)])
    assert row["wire_mss"] == mss
