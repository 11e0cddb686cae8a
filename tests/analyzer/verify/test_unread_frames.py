# SPDX-License-Identifier: Apache-2.0
"""Frames that Wireshark judges and wiretale did not read: each has the reason why, and none is unexplained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, UDP, Dot1Q, Ether, Packet, Raw, fragment, wrpcap

import needs
from wiretale.analyzer import _core
from wiretale.analyzer import trace as traces
from wiretale.analyzer.verify.file import compare_file
from wiretale.analyzer.verify.frame_events import unread_frames
from wiretale.analyzer.verify.tshark import Dissector

ETHERNET = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
HOSTS = IP(src="10.0.0.1", dst="10.0.0.2")
SEGMENT = TCP(sport=4000, dport=80, seq=1000, ack=1, flags="A") / Raw(bytes(1000))


def written(path: Path, packets: list[Packet]) -> str:
    """A capture of these packets, 10 ms apart."""
    for number, packet in enumerate(packets):
        packet.time = 1_700_000_000 + number / 100
    wrpcap(str(path), packets)
    return str(path)


def in_tags(packet: Packet, count: int) -> Packet:
    """In more VLAN tags than the decoder follows."""
    layers = ETHERNET
    for _ in range(count):
        layers = layers / Dot1Q(vlan=1)
    return layers / packet


def test_reasons_of_single_frames(tmp_path: Path) -> None:
    parts = fragment(HOSTS / SEGMENT, fragsize=400)
    packets = [ETHERNET / HOSTS / SEGMENT, ETHERNET / HOSTS / UDP(), in_tags(HOSTS / SEGMENT, 10)]
    path = written(tmp_path / "a.pcap", [*packets, ETHERNET / parts[0], ETHERNET / parts[1]])
    assert unread_frames(path, range(1, 7)) == {
        2: "IP protocol 17",
        3: "too-deep",
        4: "fragment",
        5: "fragment",
        6: "after the damage of the file",
    }
    assert unread_frames(path, [5, 1]) == {5: "fragment"} and unread_frames(path, []) == {}
    assert _core.frames([path], [1], 0) == [(("ok", 6, True, False), None)]


def test_a_wrong_call_is_an_exception(samples: Path) -> None:
    path = str(samples / "tcp_losses.pcap")
    wrong: list[tuple[Any, type[Exception]]] = [([-1], OverflowError), (["1"], TypeError), ((1,), TypeError)]
    for numbers, error in [*wrong, ([2**64], OverflowError)]:
        with pytest.raises(error):
            _core.frames([path], numbers, 0)
    assert _core.frames([path], [3, 2, 2**64 - 1], 0)[1:] == [None, None]  # not in rising order; above the last
    assert _core.frames([f"{path}.none"], [1], 0) == [None]


@needs.TSHARK
@pytest.mark.parametrize(("tags", "reason"), [(10, "not read: too-deep"), (1, None)])
def test_frames_that_were_not_read_have_their_reason(tmp_path: Path, tags: int, reason: str | None) -> None:
    path = written(tmp_path / "a.pcap", [in_tags(HOSTS / SEGMENT, tags) for _ in range(3)])
    comparison = compare_file(traces.analyze(path), path, Dissector(), None)
    assert {difference.frame for difference in comparison.differences if difference.rule == "not-read"} == (
        {2, 3} if reason else set()
    )
    assert not [difference for difference in comparison.differences if difference.rule is None]
    assert all(difference.reason.startswith(reason or "") for difference in comparison.differences)


def sent_twice_in_fragments() -> list[Packet]:
    """A segment and its retransmission in three fragments each."""
    again = HOSTS.copy()
    again.id = 2
    return [ETHERNET / part for hosts in (HOSTS, again) for part in fragment(hosts / SEGMENT, fragsize=400)]


@needs.TSHARK
def test_a_segment_in_fragments_is_judged_in_the_frame_that_completes_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", sent_twice_in_fragments())
    trace = traces.analyze(path)
    assert [(row["frame"], row["kind"]) for row in trace.events.rows()] == [(6, "retransmission")]
    assert compare_file(trace, path, Dissector(), None).differences == []


@needs.TSHARK
def test_wireshark_judges_no_fragments_that_were_cut(tmp_path: Path) -> None:
    packets = sent_twice_in_fragments()
    truncated = [Ether(bytes(packet)[:90]) for packet in packets]
    for packet, full in zip(truncated, packets, strict=True):
        packet.wirelen = len(full)
    path = written(tmp_path / "a.pcap", truncated)
    trace = traces.analyze(path)
    assert [(row["frame"], row["kind"]) for row in trace.events.rows()] == [(6, "retransmission")]
    (difference,) = compare_file(trace, path, Dissector(), None).differences
    assert (difference.frame, difference.rule, difference.wireshark) == (6, "fragment", None)
