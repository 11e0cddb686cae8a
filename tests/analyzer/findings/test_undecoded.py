# SPDX-License-Identifier: Apache-2.0
"""Protocols that are not decoded have a name and a share, and nothing is concluded from the packets that they hide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.all import ARP, DNS, DNSQR, GRE, IP, TCP, UDP, Ether, IPv6, Packet, Raw

import needs
import wiretale
from capture_files import write_pcap
from plain_wire import MSS, START_NS, Connection, Wire

ETHERNET = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
V4 = IP(src="10.1.1.1", dst="10.2.2.2")
INNER = IP(src="10.3.3.3", dst="10.4.4.4") / TCP(sport=1111, dport=80) / Raw(b"x" * 100)
INNER_6 = IPv6(src="fd00::3", dst="fd00::4") / TCP(sport=1111, dport=80) / Raw(b"x" * 100)
SHIM = bytes.fromhex("88b5 0001")  # a local experimental EtherType


def analyzed(path: Path, frames: list[bytes], link_type: int = 1) -> wiretale.Trace:
    times = ((START_NS + i * 10**6, frame) for i, frame in enumerate(frames))
    return wiretale.analyze(write_pcap(path / "wire.pcap", times, link_type=link_type))


def protocols_of(trace: wiretale.Trace) -> str | None:
    """Returns the protocols that may carry IP with their packets, the most frequent first."""
    return ", ".join(f"{row['protocol']}={row['packets']}" for row in trace.decode_stops if row["protocol"]) or None


def transfer(every: int) -> list[bytes]:
    """A transfer; each packet of the receiver, and each `every`th of the sender, is behind a shim."""
    talk = Connection(Wire()).open()
    for i in range(200):
        talk.data(30 + i, i * MSS).ack(30.5 + i, (i + 1) * MSS)
    frames, hidden = [], 0
    for number, (_, frame) in enumerate(sorted(talk.wire.packets, key=lambda packet: packet[0])):
        is_answer = frame[26:30] == bytes([10, 0, 0, 2])
        hidden += is_answer
        shim = SHIM if (every == 1 and is_answer) or (every > 1 and number % every == every - 1) else b""
        frames.append(frame[:12] + shim + frame[12:])
    return frames


def test_a_direction_behind_a_shim_is_not_missing(tmp_path: Path, wiretale_run: Any) -> None:
    trace = analyzed(tmp_path, transfer(1))
    findings = trace.findings.rows()
    assert (findings[0]["code"], findings[0]["severity"]) == ("undecoded", "warning")
    assert (
        "201 packets (49.9%)" in findings[0]["sentence"]
        and "EtherType 0x88b5 (experimental): 201" in findings[0]["sentence"]
    )
    assert trace.flows.column("one_way") == [True]  # the column is about the decoded packets
    assert not {"one-way", "capture-missed"} & set(trace.findings.column("code"))
    text = wiretale_run("analyze", tmp_path / "wire.pcap", "--all").stdout
    assert "problem is visible" not in text and text.index("undecoded") < text.index("Transfers")


def test_up_to_a_hundredth_is_a_note(tmp_path: Path) -> None:
    frames = [frame for frame in transfer(150) if frame[26:30] != bytes([10, 0, 0, 2])]
    findings = {row["code"]: row for row in analyzed(tmp_path, frames).findings.rows()}
    assert (findings["undecoded"]["severity"], findings["undecoded"]["cost"]) == ("info", 2)


@pytest.mark.parametrize("share", [0, 1, 5])
def test_one_way_needs_that_all_was_decoded(tmp_path: Path, share: int) -> None:
    frames = [bytes(ETHERNET / V4 / TCP(sport=4000, dport=80, flags="A", seq=i, ack=1) / b"x") for i in range(200)]
    frames += [bytes(ETHERNET)[:12] + SHIM + bytes(60)] * (2 * share)
    codes = analyzed(tmp_path, frames).findings.column("code")
    assert ("one-way" in codes) == (share < 2) and ("undecoded" in codes) == (share > 0)


TZSP = bytes.fromhex("01 00 0001 01")
STT = bytes(18) + bytes(ETHERNET / INNER)  # draft-davie-stt: a header, the frame, both counted in the sequence number
STT_SEQUENCE = len(STT) << 16  # the frame's length, and the offset of this piece
CASES: dict[str, tuple[Packet | bytes, str]] = {
    "an EtherType": (bytes(ETHERNET)[:12] + SHIM + bytes(INNER), "EtherType 0x88b5=1"),
    "in a VLAN": (bytes(ETHERNET)[:12] + bytes.fromhex("8100 0005") + SHIM + bytes(INNER), "EtherType 0x88b5=1"),
    "in GRE": (ETHERNET / V4 / GRE(proto=0x88B5) / INNER, "EtherType 0x88b5=1"),
    "an IP protocol": (
        ETHERNET / IP(src="10.1.1.1", dst="10.2.2.2", proto=115) / bytes(8) / ETHERNET / INNER,
        "IP protocol 115=1",
    ),
    "GUE": (ETHERNET / V4 / UDP(sport=60000, dport=6080) / bytes(4) / INNER, "UDP port 6080=1"),
    "GUE, IPv6": (ETHERNET / V4 / UDP(sport=60000, dport=6080) / bytes(4) / INNER_6, "UDP port 6080=1"),
    "STT": (ETHERNET / V4 / TCP(sport=50000, dport=7471, flags="A", seq=STT_SEQUENCE) / STT, "TCP port 7471=1"),
    "TZSP": (ETHERNET / V4 / UDP(sport=60000, dport=37008) / TZSP / ETHERNET / INNER, "UDP port 37008=1"),
}
NONE: dict[str, Packet | bytes] = {
    "ARP": ETHERNET / ARP(),
    "LLDP": bytes(ETHERNET)[:12] + bytes.fromhex("88cc") + bytes(46),
    "PTP": bytes(ETHERNET)[:12] + bytes.fromhex("88f7") + bytes(46),
    "spanning tree": bytes(ETHERNET)[:12] + bytes.fromhex("0026 424203") + bytes(43),
    "DNS to a port of LISP": ETHERNET / V4 / UDP(sport=53, dport=4341) / DNS(qd=DNSQR(qname="example.com")),
    "TCP to the port of STT": ETHERNET
    / V4
    / TCP(dport=7471, flags="A", seq=STT_SEQUENCE, options=[("NOP", None)] * 4)
    / b"x",
    "GRE keep-alive": ETHERNET / V4 / GRE(proto=0),
    "a wrong checksum": ETHERNET / V4 / UDP(dport=4341) / bytes(8) / IP(chksum=1, src="10.0.0.1") / TCP(),
}


@pytest.mark.parametrize("name", CASES)
def test_a_protocol_that_hides_ip_is_named(tmp_path: Path, name: str) -> None:
    frame, protocols = CASES[name]
    trace = analyzed(tmp_path, [bytes(frame)])
    assert (trace.interfaces["undecoded_packets"], protocols_of(trace)) == ([1], protocols)
    assert trace.findings.rows()[0]["code"] == "undecoded"


@pytest.mark.parametrize("name", NONE)
def test_a_protocol_without_ip_is_not(tmp_path: Path, name: str) -> None:
    trace = analyzed(tmp_path, [bytes(NONE[name])])
    assert (trace.interfaces["undecoded_packets"], protocols_of(trace)) == ([0], None)
    assert "undecoded" not in trace.findings.column("code")


@pytest.mark.parametrize(
    ("link_type", "frame", "protocols"),
    [
        (147, bytes(20), "link type 147=1"),
        (9, bytes.fromhex("ff03 003d") + bytes(20), "PPP protocol 0x003d=1"),
        (9, bytes.fromhex("ff03 c021") + bytes(20), None),
        (9, bytes.fromhex("ff03 002b") + bytes(20), None),
    ],
)
def test_link_types_and_ppp_protocols(tmp_path: Path, link_type: int, frame: bytes, protocols: str | None) -> None:
    trace = analyzed(tmp_path, [frame], link_type)
    assert protocols_of(trace) == protocols
    assert ("undecoded" in trace.findings.column("code")) == (protocols is not None)


def test_encrypted_packets_are_another_finding(tmp_path: Path) -> None:
    trace = analyzed(tmp_path, [bytes(ETHERNET / IP(proto=50) / Raw(bytes(40)))])
    assert trace.interfaces.total("undecoded_packets") == 0
    assert "not-understood" in trace.findings.column("code")


def test_many_protocols_are_counted_and_the_most_frequent_named(tmp_path: Path) -> None:
    frames = []
    for number in range(12):
        frames += [bytes(12) + bytes([0xB0, number]) + bytes(46)] * (20 - number)
    trace = analyzed(tmp_path, frames)
    assert trace.interfaces["undecoded_packets"] == [len(frames)] == [trace.decode_stops.total("packets")]
    assert protocols_of(trace) == ", ".join(
        ["others=42", *(f"EtherType 0x{0xB000 + number:04x}={20 - number}" for number in range(8))]
    )
    assert "; and others. IP" in trace.findings.rows()[0]["sentence"]


@pytest.mark.parametrize("name", ["tls_sgt.pcap", "vntag.pcap"])
def test_captures_with_shims(name: str) -> None:
    trace = wiretale.analyze(needs.shared(f"labelled/cases/{name}"))
    findings = {row["code"]: row for row in trace.findings.rows()}
    if trace.interfaces.total("undecoded_packets"):
        assert "one-way" not in findings and next(iter(findings)) == "undecoded"
    elif "one-way" in findings:  # of a few ports that were used again
        assert "of 6 TCP flows (7.32% of flows)" in findings["one-way"]["sentence"]
