# SPDX-License-Identifier: Apache-2.0
"""Flows that are one conversation: which are related, which only look so, and that findings and sums count it once."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import needs
import several_legs as legs
import transfer_wires as wires
import wiretale
from plain_wire import SYN, Connection, Wire, syn_options
from wiretale.analyzer.causes.answer import entries
from wiretale.analyzer.relations.relate import Flows
from wiretale.reports.phrases import relation_texts

DRAWN = legs.renumbered((0x3A5F_1D20, 0xC41B_77E2))  # initial sequence numbers as a kernel draws them
NAT = legs.translated("192.0.2.1", 61_000)
STAMPS = bytes([1, 1, 8, 10]) + struct.pack("!II", 0x1234_5678, 0)


def both(first: legs.Frame, second: legs.Frame) -> legs.Frame:
    return lambda frame: second(first(frame))


def upload(count: int = 40) -> Wire:
    return wires.steady(wires.connection(), count)


def lossy() -> Wire:
    return wires.lossy(60, count=300)


def through_nat() -> Wire:
    return legs.at_two_places(upload(), DRAWN, both(DRAWN, NAT))


def replayed(later_ms: float) -> Wire:
    """Two connections to a server with the same sequence numbers, as a traffic generator makes them."""
    first = [(ms, DRAWN(frame)) for ms, frame in upload().packets]
    second = [(ms + later_ms, NAT(DRAWN(frame))) for ms, frame in upload().packets]
    return Wire(first + second)


def syns(options: bytes, later_ms: float = 0.02) -> Wire:
    """A SYN without an answer on both sides of a NAT."""
    syn = Connection(Wire()).send(0, 0, -1, flags=SYN, options=syn_options() + options).wire
    return legs.at_two_places(syn, DRAWN, both(DRAWN, NAT), later_ms)


def datagrams(target: str) -> Wire:
    wire = Wire()
    for number in range(20):
        wire.udp(10 * number, bytes(200), target=target)
    return legs.at_two_places(wire, legs.tagged(10), legs.tagged(20))


def from_the_middle() -> Wire:
    """Both sides of a router; the capture of one begins some segments later."""
    wire = legs.at_two_places(upload(), both(DRAWN, legs.tagged(10)), both(DRAWN, legs.tagged(20)))
    return Wire([(ms, frame) for ms, frame in wire.packets if ms > (50 if frame[15] == 10 else 59)])


def related(trace: wiretale.Trace) -> list[tuple[int, int, str, int | None]]:
    return [(row["flow"], row["other"], row["kind"], row["judged"]) for row in trace.relations]


LEG = (1, 0, "copy", 0)
CASES: dict[str, tuple[Callable[[], Wire], list[tuple[int, int, str, int | None]]]] = {
    "both sides of a router": (lambda: legs.at_two_places(upload(), legs.tagged(10), legs.tagged(20)), [LEG]),
    "a tag on one side of a bridge": (lambda: legs.at_two_places(upload(), legs.unchanged, legs.tagged(20)), [LEG]),
    "begun in the middle": (from_the_middle, [LEG]),
    "a NAT": (through_nat, [(1, 0, "translation", 0)]),
    "a NAT, without an answer": (lambda: syns(STAMPS), [(1, 0, "translation", 0)]),
    "datagrams in two VLANs": (lambda: datagrams("10.0.0.2"), [LEG]),
    "multicast in two VLANs": (lambda: datagrams("224.0.0.251"), []),
    "crafted numbers": (lambda: legs.at_two_places(upload(), legs.unchanged, NAT), []),
    "a generator that repeats its numbers": (lambda: replayed(1.0), []),
    "a scanner that repeats its number": (lambda: syns(b""), []),
    "two unanswered SYNs 50 ms apart": (lambda: syns(STAMPS, 50.0), []),
    "the same SYN again": (wires.ports_again, [(1, 0, "reuse", None)]),
    "two connections": (lambda: Wire(upload().packets + wires.steady(wires.connection(port=40001), 9).packets), []),
}


@pytest.mark.parametrize("name", CASES)
def test_related_flows(name: str, tmp_path: Path) -> None:
    make, expected = CASES[name]
    assert related(wiretale.analyze(make().write(tmp_path / "legs.pcap"))) == expected


@pytest.mark.parametrize(("later_ms", "runs"), [(500, [[0, 1]]), (86_400_000, [])])
def test_only_flows_that_lived_at_once_are_compared(later_ms: float, runs: list[list[int]], tmp_path: Path) -> None:
    flows = Flows(wiretale.analyze(replayed(later_ms).write(tmp_path / "days.pcap")))
    assert list(flows.by_numbers()) == [[0, 1]]
    assert flows.at_once(flows.by_numbers()) == runs


def test_evidence_is_words_and_the_router_is_counted(tmp_path: Path) -> None:
    (row,) = wiretale.analyze(through_nat().write(tmp_path / "nat.pcap")).relations
    assert row["evidence"].split() == ["sequence", "order", "time", "hops"]
    assert (row["delay_ns"], row["hops"]) == (20_000, 1)


def figures(trace: wiretale.Trace) -> list[tuple[Any, ...]]:
    """What the findings say, without the one about the legs."""
    names = ("code", "severity", "sentence", "cost", "waited_ns", "members", "bytes", "impact")
    return [tuple(row[name] for name in names) for row in trace.findings if row["code"] != "several-places"]


@pytest.mark.parametrize(
    ("near", "far"), [(legs.tagged(10), legs.tagged(20)), (DRAWN, both(DRAWN, NAT))], ids=["router", "NAT"]
)
def test_findings_and_sums_are_those_of_the_leg(near: legs.Frame, far: legs.Frame, tmp_path: Path) -> None:
    wire = lossy()
    alone = wiretale.analyze(legs.near_leg(wire, near).write(tmp_path / "leg.pcap"))
    trace = wiretale.analyze(legs.at_two_places(wire, near, far).write(tmp_path / "legs.pcap"))
    assert len(trace.flows) == 2 and trace.transfers.conversations == 1
    assert figures(trace) == figures(alone)
    assert trace.answer.sentence == alone.answer.sentence
    assert trace.transfers.turns.split == alone.transfers.turns.split


def test_two_legs_share_no_queue(tmp_path: Path) -> None:
    wire = legs.at_two_places(lossy(), DRAWN, both(DRAWN, NAT))
    codes = [row["code"] for row in wiretale.analyze(wire.write(tmp_path / "legs.pcap")).findings]
    assert "shared-queue" not in codes and "several-places" in codes


def test_flow_tables_name_the_leg(tmp_path: Path) -> None:
    trace = wiretale.analyze(through_nat().write(tmp_path / "nat.pcap"))
    assert relation_texts(trace) == {1: "flow 0 behind a NAT"}


def test_a_port_used_again_costs_the_time_until_the_next_syn(tmp_path: Path) -> None:
    trace = wiretale.analyze(wires.ports_again().write(tmp_path / "again.pcap"))
    (row,) = (row for row in trace.findings if row["code"] == "port-reuse")
    assert (row["cost"], row["cost_unit"], row["waited_ns"], row["members"]) == (1.0, "seconds", 10**9, 2)
    assert "10.0.0.2" in row["sentence"] and "1 s later" in row["sentence"]


@pytest.mark.parametrize("tags", [(3875, None), (None, 3875), (10, 11)], ids=str)
def test_halves_under_two_tags_are_one_flow(tags: tuple[int | None, int | None], tmp_path: Path) -> None:
    out, back = (legs.unchanged if tag is None else legs.tagged(tag) for tag in tags)
    trace = wiretale.analyze(legs.by_direction(lossy(), out, back).write(tmp_path / "halves.pcap"))
    (flow,) = trace.flows
    paths = [None if tag is None else f"vlan {tag}" for tag in tags]
    assert (flow["path"], flow["path_back"], flow["one_way"]) == (paths[0], paths[1] or "none", False)
    alone = wiretale.analyze(lossy().write(tmp_path / "alone.pcap"))
    sums = ("packets", "unique_bytes", "retransmissions", "lost_downstream", "rtt_samples", "rtt_ns_median")
    assert [[row[name] for name in sums] for row in trace.directions] == [
        [row[name] for name in sums] for row in alone.directions
    ]
    assert not len(trace.relations)


def test_a_copy_in_one_direction_is_no_half(tmp_path: Path) -> None:
    """Both directions in one VLAN, and the packets of one host again in another: its flow has that direction alone."""
    wire = legs.at_two_places(lossy(), legs.tagged(10), legs.tagged(20))
    packets = [(ms, frame) for ms, frame in wire.packets if frame[15] == 10 or frame[30:34] == bytes((10, 0, 0, 1))]
    trace = wiretale.analyze(Wire(packets).write(tmp_path / "copy.pcap"))
    assert trace.flows.column("path_back") == [None, None] and trace.flows.column("one_way") == [False, True]
    assert related(trace) == [(1, 0, "copy", 0)]


def test_directions_that_do_not_answer_each_other_are_named(tmp_path: Path) -> None:
    wire = legs.by_direction(upload(), legs.tagged(3875), DRAWN)
    trace = wiretale.analyze(wire.write(tmp_path / "halves.pcap"))
    assert related(trace) == [(1, 0, "half", None)]
    sentences = [entry.sentence for entry in entries(trace)]
    assert any("Both directions of 1 TCP connection" in text and "(vlan 3875 and none)" in text for text in sentences)


QUESTIONS = "labelled/questions/vlan_span_routed.pcap.gz"


def test_a_routed_copy_of_a_real_transfer_is_one() -> None:
    trace = wiretale.analyze(needs.shared(QUESTIONS))
    assert related(trace) == [(1, 0, "copy", 0)] and trace.transfers.conversations == 1
    assert trace.answer.cause == "copies" and "2,498 packets were captured twice" in trace.answer.sentence
