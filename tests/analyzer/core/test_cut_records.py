# SPDX-License-Identifier: Apache-2.0
"""Records whose length on the wire was rewritten to that of the bytes in the file, timestamps that are none, and port 0."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from scapy.all import ICMP, IP, TCP, UDP, VXLAN, Dot1Q, Ether, IPv6, PPPoE, Raw, fragment
from scapy.layers.ppp import PPP

import wiretale
from capture_files import enhanced, interface, option, section, write_pcap
from plain_wire import ACK, FIN, MSS, START_NS, Connection, Wire, sack

KEPT = 100  # bytes of each frame
ETHERNET = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


def transfer() -> Wire:
    """A transfer of 40 segments with a loss behind the capture point."""
    talk = Connection(Wire(by_time=True)).open()
    for i in range(40):
        talk.data(30 + i, i * MSS)
        at = i + 1 if i < 10 else 10
        talk.ack(50 + i, at * MSS, options=sack((11 * MSS, (i + 1) * MSS)) if i > 10 else b"")
    talk.data(75, 10 * MSS)
    talk.ack(95, 40 * MSS)
    talk.send(100, 0, 40 * MSS, flags=FIN | ACK)
    return talk.wire


def write(path: Path, frames: Iterable[bytes], snap_length: int = KEPT, rewritten: bool = True) -> Path:
    """Frames 1 ms apart, cut to `kept` bytes; `rewritten`: the length on the wire is lost."""
    times = ((START_NS + i * 10**6, frame[:snap_length] if rewritten else frame) for i, frame in enumerate(frames))
    return write_pcap(path, times, snaplen=snap_length)


def frames(wire: Wire) -> list[bytes]:
    return [frame for _, frame in sorted(wire.packets, key=lambda packet: packet[0])]


def tables(trace: wiretale.Trace) -> dict[str, list[dict[str, Any]]]:
    return {name: getattr(trace, name).rows() for name in ("flows", "directions", "events", "series")}


def test_rewritten_lengths_change_no_row_of_a_flow(tmp_path: Path) -> None:
    lost = wiretale.analyze(write(tmp_path / "lost.pcap", frames(transfer())))
    unchanged = wiretale.analyze(write(tmp_path / "kept.pcap", frames(transfer()), rewritten=False))
    assert tables(lost) == tables(unchanged)
    assert lost.directions.rows()[0]["fast_retransmissions"] == 1
    codes = lost.findings.column("code")
    assert codes.count("lengths-cut") == 1 and not {"malformed", "capture-missed"} & set(codes)
    assert set(codes) - {"lengths-cut"} == set(unchanged.findings.column("code"))
    row = lost.interfaces.rows()[0]
    assert (row["lengths_cut"], row["length_cut_frame"], row["malformed"]) == (41, 4, 0)
    assert (
        "41 packets are longer than their records say" in lost.findings.rows()[codes.index("lengths-cut")]["sentence"]
    )


def test_data_that_is_missing_from_cut_records_is_no_asymmetric_routing(tmp_path: Path) -> None:
    stored = [frame for i, frame in enumerate(frames(transfer())) if i != 7]
    for rewritten in (True, False):
        trace = wiretale.analyze(write(tmp_path / "one.pcap", stored, rewritten=rewritten))
        assert ("capture-missed" in trace.findings.column("code")) != rewritten


V4, V6 = IP(src="10.1.1.1", dst="10.2.2.2"), IPv6(src="fd00::1", dst="fd00::2")
LARGE = UDP(sport=1111, dport=2222) / Raw(b"x" * 1000)
CUT = {
    "IPv4": ETHERNET / V4 / LARGE,
    "IPv6": ETHERNET / V6 / LARGE,
    "TCP": ETHERNET / V4 / TCP(sport=1111, dport=2222, options=[("Timestamp", (1, 2))]) / Raw(b"x" * 1000),
    "VLAN": ETHERNET / Dot1Q(vlan=5) / V4 / LARGE,
    "PPPoE": ETHERNET / PPPoE(sessionid=7) / PPP(proto=0x21) / V4 / LARGE,
    "fragment": ETHERNET / fragment(V4 / LARGE, fragsize=800)[0],
    "ICMP": ETHERNET / V4 / ICMP() / Raw(b"x" * 1000),
    "VXLAN": ETHERNET / V4 / UDP(dport=4789) / VXLAN(flags=8, vni=7) / ETHERNET / V4 / LARGE,
}


@pytest.mark.parametrize("name", CUT)
def test_a_cut_record_is_as_one_with_its_length(tmp_path: Path, name: str) -> None:
    frame = bytes(CUT[name])
    lost = wiretale.analyze(write(tmp_path / "lost.pcap", [frame], snap_length=120))
    unchanged = wiretale.analyze(write(tmp_path / "kept.pcap", [frame], snap_length=120, rewritten=False))
    assert tables(lost) == tables(unchanged)
    assert lost.flows.rows()[0]["payload_bytes"] > 700
    assert (lost.interfaces.total("lengths_cut"), lost.interfaces.total("malformed")) == (1, 0)


@pytest.mark.parametrize("right", [True, False])
def test_a_packet_that_was_cut_before_its_tunnel_needs_a_right_checksum(tmp_path: Path, right: bool) -> None:
    inner = bytearray(bytes(ETHERNET / V4 / LARGE)[:200])
    inner[24] ^= 0 if right else 1  # of the checksum
    mirrored = ETHERNET / V4 / UDP(dport=4789) / VXLAN(flags=8, vni=7) / Raw(bytes(inner))
    trace = wiretale.analyze(write(tmp_path / "one.pcap", [bytes(mirrored)], snap_length=2000))
    (row,) = trace.flows.rows()
    assert (row["path"], row["payload_bytes"]) == (("vxlan 7", 1000) if right else (None, 208))
    assert trace.interfaces.total("lengths_cut") == right


def test_a_record_with_its_length_is_not_counted(tmp_path: Path) -> None:
    trace = wiretale.analyze(write(tmp_path / "one.pcap", frames(transfer()), snap_length=5000))
    assert trace.interfaces.total("lengths_cut") == 0 and "lengths-cut" not in trace.findings.column("code")


# --- times


@pytest.mark.parametrize(
    ("options", "ticks"),
    [
        (b"", 18446744073 * 10**6),  # after 2262
        (b"", 5 * 10**9 * 10**6),  # after 2116
        (option(9, b"\0"), 2**63),  # seconds
        (option(14, struct.pack("<q", -(2**62))), 10**15),  # before 1677
    ],
)
def test_a_time_out_of_range_is_null(tmp_path: Path, options: bytes, ticks: int) -> None:
    frame = frames(Wire().udp(0, bytes(50)))[0]
    packets = [enhanced(START_NS // 1000, frame), *[enhanced(ticks, frame, number=1)] * 3]
    path = tmp_path / "wire.pcapng"
    path.write_bytes(section() + interface() + interface(options) + b"".join(packets))
    trace = wiretale.analyze(path)
    right, wrong = trace.interfaces.rows()
    assert (right["first_ns"], right["time_unknown"], right["time_out_of_range"]) == (START_NS, 0, 0)
    assert (wrong["first_ns"], wrong["last_ns"], wrong["packets"]) == (None, None, 3)
    assert (wrong["time_unknown"], wrong["time_out_of_range"], wrong["time_out_of_range_frame"]) == (3, 3, 2)
    (row,) = trace.flows.rows()
    assert (row["packets"], row["first_ns"], row["last_ns"]) == (4, START_NS, START_NS)
    codes = trace.findings.column("code")
    assert "time-out-of-range" in codes and "time-unknown" not in codes
    sentence = trace.findings.rows()[codes.index("time-out-of-range")]["sentence"]
    assert "no delays are computed from them, and rates use the times of the other packets" in sentence


# --- ports


@pytest.mark.parametrize("ports", [(0, 4059), (4059, 0), (0, 0)])
@pytest.mark.parametrize("layer", [UDP, TCP])
def test_port_0_is_a_port(tmp_path: Path, layer: Any, ports: tuple[int, int]) -> None:
    packet = ETHERNET / V4 / layer(sport=ports[0], dport=ports[1]) / Raw(b"x" * 40)
    trace = wiretale.analyze(write(tmp_path / "one.pcap", [bytes(packet)], snap_length=2000))
    (row,) = trace.flows.rows()
    assert (row["source_port"], row["destination_port"]) == ports
    assert [row["source_port"] for row in trace.directions.rows()] == list(ports)


def test_a_packet_without_ports_has_none(tmp_path: Path) -> None:
    later = fragment(V4 / LARGE, fragsize=800)[1]
    for packet in (ETHERNET / V4 / ICMP(), ETHERNET / later):
        (row,) = wiretale.analyze(write(tmp_path / "one.pcap", [bytes(packet)], snap_length=2000)).flows.rows()
        assert (row["source_port"], row["destination_port"]) == (None, None)
