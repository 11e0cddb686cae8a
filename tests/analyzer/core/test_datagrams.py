# SPDX-License-Identifier: Apache-2.0
"""Fragmented datagrams, against fragments crafted one by one."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, UDP, IPv6, IPv6ExtHdrFragment, Packet, Raw, fragment, fragment6, raw, wrpcap

import wiretale
from checkout import Run
from crafted import analyze_timed, ether
from plain_wire import Wire

ETHERNET, ENDS = bytes(6) + b"\2" + bytes(5) + b"\x08\0", bytes([10, 0, 0, 1, 10, 0, 0, 2])
Analyze = Callable[[Sequence[tuple[float, Packet]]], wiretale.Trace]


@pytest.fixture
def analyze(tmp_path: Path) -> Analyze:
    return lambda timed: analyze_timed(tmp_path, [(seconds, ether(ip)) for seconds, ip in timed])


def datagram(size: int, number: int = 1) -> list[Packet]:
    """A UDP datagram of `size` payload bytes in IPv4 fragments of 1480."""
    ip = IP(src="10.0.0.1", dst="10.0.0.2", id=number)
    return fragment(ip / UDP(sport=5000, dport=6000) / Raw(b"x" * size), 1480)


def datagram6(size: int, number: int = 1) -> list[Packet]:
    ip = IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrFragment(id=number)
    return fragment6(ip / UDP(sport=5000, dport=6000) / Raw(b"x" * size), 1500)


def spread(packets: Sequence[Packet], start: float = 0) -> list[tuple[float, Packet]]:
    return [(start + i / 1000, p) for i, p in enumerate(packets)]


def only(trace: wiretale.Trace) -> dict[str, Any]:
    (row,) = trace.datagrams.rows()
    return row


@pytest.mark.parametrize("make", [datagram, datagram6])
@pytest.mark.parametrize("order", ["in order", "reversed", "shuffled"])
def test_a_whole_datagram_is_complete_in_any_order(
    analyze: Analyze, make: Callable[[int], list[Packet]], order: str
) -> None:
    pieces = make(10_000)
    if order == "reversed":
        pieces.reverse()
    if order == "shuffled":
        random.Random(1).shuffle(pieces)
    trace = analyze(spread(pieces))
    row = only(trace)
    assert (row["state"], row["bytes"], row["missing_bytes"], row["missing"]) == ("complete", 10_008, 0, None)
    assert (row["fragments"], row["duplicates"], row["overlaps"], row["late"]) == (len(pieces), 0, 0, 0)
    assert (row["out_of_order"] > 0) == (order != "in order")
    (flow,) = trace.flows.rows()  # the first fragment gives the others their flow
    assert (flow["source_port"], flow["destination_port"], flow["packets"]) == (5000, 6000, len(pieces))
    out = trace.directions.rows()[0]
    assert (out["fragments"], out["fragmented_datagrams"], out["incomplete_datagrams"]) == (len(pieces), 1, 0)
    assert (out["payload_bytes"], out["data_packets"]) == (10_000, 1)


def test_overhead_is_the_size_of_the_later_fragments_headers(analyze: Analyze) -> None:
    pieces = datagram(10_000)
    trace = analyze(spread(pieces))
    each = 14 + 20 + 24  # Ethernet and IPv4 headers; preamble, FCS and gap
    assert only(trace)["overhead_bytes"] == each * (len(pieces) - 1)
    assert trace.directions.rows()[0]["fragment_overhead_bytes"] == each * (len(pieces) - 1)


def test_a_missing_middle_and_a_missing_end(analyze: Analyze) -> None:
    pieces = datagram(8000)
    middle = only(analyze(spread(pieces[:2] + pieces[3:])))
    assert (middle["state"], middle["missing"], middle["missing_bytes"]) == ("incomplete", "2960-4439", 1480)
    end = only(analyze(spread(pieces[:-1])))
    assert end | {"state": "incomplete", "missing": "7400-", "missing_bytes": None, "bytes": None} == end


def test_a_missing_first_fragment_leaves_the_ports_unknown(analyze: Analyze) -> None:
    trace = analyze(spread(datagram(8000)[1:]))
    (flow,) = trace.flows.rows()
    assert flow | {"protocol": "udp", "source_port": None, "destination_port": None, "packets": 5} == flow
    assert only(trace)["missing"] == "0-1479"
    out = trace.directions.rows()[0]
    assert (out["incomplete_datagrams"], out["goodput_bps"]) == (1, 0)


def test_copies_and_overlaps_are_distinguished(analyze: Analyze) -> None:
    pieces = datagram(5000)
    copied = only(analyze(spread([pieces[0], pieces[1], pieces[1], *pieces[2:]])))
    assert (copied["duplicates"], copied["overlaps"], copied["state"]) == (1, 0, "complete")
    shifted = IP(src="10.0.0.1", dst="10.0.0.2", id=1, proto=17, frag=100, flags="MF") / Raw(b"y" * 1480)
    trace = analyze(spread([pieces[0], shifted, *pieces[1:]]))
    assert only(trace)["overlaps"] >= 1
    assert "fragment_overlap" in trace.events.column("kind")


def test_a_fragment_after_the_reassembly_time_is_late(analyze: Analyze) -> None:
    pieces = datagram(5000)
    row = only(analyze([*spread(pieces[:3]), (31.0, pieces[3])]))
    assert row["late"] == 1


def test_an_identification_used_again_is_another_datagram(analyze: Analyze) -> None:
    trace = analyze(spread(datagram(5000, 7)) + spread(datagram(5000, 7), 4.0))
    assert trace.datagrams.column("state") == ["complete", "complete"]
    assert trace.directions.rows()[0]["fragmented_datagrams"] == 2


def test_two_datagrams_interleaved_keep_their_fragments(analyze: Analyze) -> None:
    first, second = datagram(5000, 1), datagram(9000, 2)
    mixed = [p for pair in zip(first, second, strict=False) for p in pair] + second[len(first) :]
    rows = analyze(spread(mixed)).datagrams.rows()
    assert {r["identification"]: (r["state"], r["bytes"]) for r in rows} == {
        1: ("complete", 5008),
        2: ("complete", 9008),
    }


def test_a_fragmented_tcp_segment_fills_its_stream(analyze: Analyze) -> None:
    segment = IP(src="10.0.0.1", dst="10.0.0.2", id=9) / TCP(sport=1, dport=2, flags="A", seq=1000, ack=1)
    pieces = fragment(segment / Raw(b"x" * 4000), 1480)
    after = (
        IP(src="10.0.0.1", dst="10.0.0.2", id=10) / TCP(sport=1, dport=2, flags="A", seq=5000, ack=1) / Raw(b"y" * 100)
    )
    for order in (pieces, pieces[::-1]):
        out = analyze([*spread(order), (1.0, after)]).directions.rows()[0]
        assert (out["unique_bytes"], out["retransmitted_bytes"], out["gap_bytes"]) == (4100, 0, 0)


def segment(number: int, at: int, size: int = 2000, port: int = 1) -> list[Packet]:
    """A TCP segment of a stream in IPv4 fragments of 1480, and an ID of its own."""
    ip = IP(src="10.0.0.1", dst="10.0.0.2", id=number)
    return fragment(ip / TCP(sport=port, dport=2, flags="A", seq=1000 + at, ack=1) / Raw(b"x" * size), 1480)


def acknowledgment(number: int, at: int) -> Packet:
    return IP(src="10.0.0.2", dst="10.0.0.1", id=number) / TCP(sport=2, dport=1, flags="A", seq=1, ack=1000 + at)


def test_a_fragment_that_comes_again_behind_the_next_one_ends_no_command(tmp_path: Path, wiretale_run: Run) -> None:
    parts = [segment(number, 2000 * number) for number in range(4)]
    frames = [ether(part) for part in (*parts[0], *parts[1], parts[2][0], parts[1][1], parts[2][1], *parts[3])]
    for place, frame in enumerate(frames):
        frame.time = 1_700_000_000 + place * 0.0003
    path = tmp_path / "again.pcap"
    wrpcap(str(path), frames)
    for command in (("analyze", path), ("verify", path), ("cut", path, "-o", tmp_path / "cut.pcap")):
        assert wiretale_run(*command).returncode == 0, command
    row = wiretale.analyze(path).directions.rows()[0]
    assert (row["payload_bytes"], row["unique_bytes"], row["retransmissions"]) == (8540, 8000, 0)
    assert (row["duplicate_bytes"], row["network_duplicates"], row["mirror_duplicates"]) == (540, 0, 0)


def test_a_segment_of_which_a_fragment_is_missing_was_lost_as_a_whole(analyze: Analyze) -> None:
    sent = [segment(n, 2000 * n) for n in range(5)]
    del sent[1][1]
    acks = [(0.02 + n / 10_000, acknowledgment(n, 2000)) for n in range(4)]
    again = spread(segment(5, 2000), 0.03)
    trace = analyze(
        [*spread([part for parts in sent for part in parts]), *acks, *again, (0.05, acknowledgment(9, 10_000))]
    )
    kinds = [(row["kind"], row["bytes"], row["place"]) for row in trace.events.rows() if row["direction"] == 0]
    assert kinds == [("gap", 2000, None), ("fast_retransmission", 2000, "upstream")]
    row = trace.directions.rows()[0]
    assert (row["retransmissions"], row["lost_upstream"], row["lost_downstream"]) == (1, 1, 0)
    assert (row["unique_bytes"], row["retransmitted_bytes"], row["incomplete_datagrams"]) == (10_000, 0, 1)
    assert row["payload_bytes"] - row["unique_bytes"] == 1460  # of the fragment that came in vain


@pytest.mark.parametrize("port", [1, 7])
def test_an_identification_again_at_once_is_another_segment(analyze: Analyze, port: int) -> None:
    """As of two connections with a counter each, or of a sender with a constant ID."""
    trace = analyze(spread([*segment(9, 0), *segment(9, 2000, port=port)]))
    assert trace.datagrams.column("state") == ["complete", "complete"]
    assert sum(trace.directions.column("unique_bytes")[::2]) == 4000


def test_a_first_fragment_that_cannot_hold_its_header_makes_no_flow(analyze: Analyze) -> None:
    tiny = IP(src="10.0.0.1", dst="10.0.0.2", id=3, proto=6, flags="MF") / Raw(raw(TCP(sport=1, dport=2))[:8])
    trace = analyze([(0, tiny)])
    out = trace.directions.rows()[0]
    assert (out["packets"], out["payload_bytes"], out["unique_bytes"]) == (1, None, None)


def test_a_storm_of_fragments_stays_within_its_bound(tmp_path: Path) -> None:
    def crumb(number: int) -> bytes:
        """In the middle of a datagram: others come before and after it."""
        place = 0x2000 | (number // 65536 + 5)
        head = struct.pack("!BBHHHBBH", 0x45, 0, 28, number % 65536, place, 64, 17, 0) + ENDS
        return ETHERNET + head + b"z" * 8

    wire = Wire([(i / 1000, crumb(i)) for i in range(70_000)])
    trace = wiretale.analyze(wire.write(tmp_path / "crafted.pcap"))
    assert trace.totals["packets"] == 70_000
    assert sum(trace.datagrams.column("fragments")) == 70_000
