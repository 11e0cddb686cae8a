# SPDX-License-Identifier: Apache-2.0
"""Verdicts for which a scenario has no words: their evidence, and captures with several interfaces or very many packets."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from scapy.all import CookedLinuxV2, wrpcap, wrpcapng

import needs
import wiretale
from checkout import SCENARIOS
from scenario import captured, read_scenario
from scenario_wire import write_pcap
from talk import SEGMENT, Talk

EVIDENCE = {
    "reordering/reordered_by_four_and_resent": [
        ("out_of_order", 9, 5, "timestamps"),
        ("fast_retransmission", 15, None, "dsack"),
    ],
    "duplicate/network_duplicate": [("network_duplicate", 5, 4, "dsack")],
    "going_back/held_above_a_gap": [
        ("fast_retransmission", 16, 5, "acks"),
        ("timeout_retransmission", 17, 16, "time"),
        *(("timeout_retransmission", frame, 17, "time") for frame in (19, 20, 22, 23)),
    ],
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_events_name_their_evidence_and_the_frame_that_they_repeat(name: str, tmp_path: Path) -> None:
    capture = write_pcap(captured(read_scenario(SCENARIOS / f"{name}.txt", SCENARIOS), "ipv4"), tmp_path / "case.pcap")
    rows = wiretale.analyze(capture).events.rows()
    events = [(row["kind"], row["frame"], row["related_frame"], row["evidence"]) for row in rows if row["evidence"]]
    assert events == EVIDENCE[name]


def test_a_copy_by_the_network_is_not_counted_at_the_interfaces(tmp_path: Path) -> None:
    talk = Talk().open()
    talk.data(30, 0).copy(0.05).data(30.1, SEGMENT)
    talk.ack(50, SEGMENT).ack(50.05, SEGMENT, (0, SEGMENT)).ack(50.1, 2 * SEGMENT)
    for packet in talk.packets:
        packet.sniffed_on = "there" if packet["TCP"].sport == 40000 else "back"
    wrpcapng(str(tmp_path / "case.pcapng"), talk.in_order())
    rows = wiretale.analyze(tmp_path / "case.pcapng").interfaces.rows()
    assert {row["name"]: row["mirror_duplicates"] for row in rows if row["packets"]} == {"there": 0, "back": 0}


def test_a_copy_long_ago_is_judged_when_it_is_forgotten(tmp_path: Path) -> None:
    """More verdicts follow than are kept: a DSACK for the copy can come no more, and event and count must agree."""
    talk = Talk(sack=False).open()
    for k in range(6):
        talk.data(30 + k / 10, k * SEGMENT)
    talk.copy(0.05, 5).ack(50, 6 * SEGMENT)
    for k in range(100):
        for ms in (1000, 1400):
            talk.data(ms + 1000 * k, (6 + k) * SEGMENT)
        talk.ack(1420 + 1000 * k, (7 + k) * SEGMENT)
    trace = wiretale.analyze(talk.write(tmp_path))
    out = trace.directions.rows()[0]
    assert (out["retransmissions"], out["mirror_duplicates"], out["unknown_duplicates"]) == (100, 0, 1)
    assert [row["frame"] for row in trace.events.rows() if row["kind"] == "unknown_duplicate"] == [7]
    assert trace.interfaces.column("mirror_duplicates") == [0]


def test_copies_at_all_interfaces_of_a_host_are_duplicates_of_the_capture(tmp_path: Path) -> None:
    """`tcpdump -i any` on a bridge: the link addresses are the same at each interface."""
    talk = Talk().open()
    talk.data(30, 0).ack(50, SEGMENT)
    packets = []
    for packet in talk.in_order():
        for port in range(3):
            address = bytes.fromhex("0200000000010000")
            cooked = struct.pack(">HHIHBB", 0x800, 0, port + 2, 1, 0, 6) + address + bytes(packet["IP"])
            copy = CookedLinuxV2(cooked)
            copy.time = float(packet.time) + port * 3e-6
            packets.append(copy)
    packets.sort(key=lambda packet: float(packet.time))
    wrpcap(str(tmp_path / "any.pcap"), packets, linktype=276)
    out, back = wiretale.analyze(tmp_path / "any.pcap").directions.rows(0, 2)
    assert [(row["mirror_duplicates"], row["network_duplicates"]) for row in (out, back)] == [(6, 0), (4, 0)]


def of_scenario(name: str, folder: Path) -> wiretale.Trace:
    packets = captured(read_scenario(SCENARIOS / f"duplicate/{name}.txt", SCENARIOS), "ipv4")
    return wiretale.analyze(write_pcap(packets, folder / "case.pcap"))


def test_one_finding_names_both_sides_of_a_router(tmp_path: Path) -> None:
    trace = of_scenario("router_copies_after_a_round_trip", tmp_path)
    sentences = [row["sentence"] for row in trace.findings.rows() if row["code"] == "mirror-duplicates"]
    assert len(sentences) == 1
    assert sentences[0].startswith(
        "The capture stored 23 packets of 1 TCP flow more than once: on both sides of a router, from 02:"
    )
    assert " with TTL 64 and from 02:00:00:00:00:11 to 02:00:00:00:00:12 with TTL 63, up to 6 ms apart." in sentences[0]
    assert not {"network-duplicates", "unknown-duplicates"} & set(trace.findings.column("code"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mirror_of_both_directions", ": a mirror of two ports, or of both directions of one."),
        ("mirror_of_four_ports", ": at two ports, from "),
    ],
)
def test_a_mirror_is_one_finding(name: str, words: str, tmp_path: Path) -> None:
    rows = of_scenario(name, tmp_path).findings.rows()
    (finding,) = [row for row in rows if row["code"] == "mirror-duplicates"]
    assert words in finding["sentence"] and finding["scope"] == "capture"


#: captures of others beside the repository: retransmissions (data again with a new IP ID), and packets stored again with
#: their IP ID, another TTL and other link addresses
OTHERS = {"hardware_dups.dmp.gz": (0, 486), "discard.solaris.dmp.gz": (74, 44)}


@pytest.mark.parametrize("name", OTHERS)
def test_router_copies_of_others_are_no_retransmissions(name: str) -> None:
    trace = wiretale.analyze(needs.shared(f"labelled/cases/{name}"))
    counts = {
        name: trace.directions.total(name)
        for name in ("retransmissions", "mirror_duplicates", "network_duplicates", "lost_upstream", "lost_downstream")
    }
    assert (counts["retransmissions"], counts["mirror_duplicates"]) == OTHERS[name]
    assert counts["network_duplicates"] == 0
    assert counts["lost_upstream"] + counts["lost_downstream"] <= counts["retransmissions"]
    sentences = [row["sentence"] for row in trace.findings.rows() if row["code"] == "mirror-duplicates"]
    assert len(sentences) == 1 and "on both sides of a router, from " in sentences[0]
