# SPDX-License-Identifier: Apache-2.0
"""A jump of the capture's clock is no wait, and a wait is no jump; packets that a filter left out are no drops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wiretale
from causes_captured import JUMPS, left_out, turns
from plain_wire import ACK, FIN, PSH, SYN, Connection, Wire


@pytest.mark.parametrize("late", JUMPS)
def test_only_a_jump_of_the_clock_is_no_wait(late: str, tmp_path: Path) -> None:
    trace = wiretale.analyze(turns(late).write(tmp_path))
    steps = [row["sentence"] for row in trace.causes if row["code"] == "clock-step"]
    if late.startswith("clock"):
        assert len(steps) == 1 and "forward by 1.5" in steps[0], steps
        assert trace.answer.cause == "clock-step", trace.answer.sentence
        assert not [row["code"] for row in trace.causes if row["waited_ns"]]
        assert max(trace.transfers.turns.waits.values()) < 5e9, trace.transfers.turns.waits
    else:
        assert not steps
        assert any(finding["code"] == JUMPS[late] for finding in trace.findings), trace.answer.sentence


@pytest.mark.parametrize(
    ("changed", "is_filtered"),
    [({}, True), ({"acks": True}, False), ({"opened": True}, False), ({"answers": 2}, False)],
)
def test_a_capture_filter_is_told_from_drops(changed: dict[str, Any], is_filtered: bool, tmp_path: Path) -> None:
    answer = wiretale.analyze(left_out(**changed).write(tmp_path / "capture.pcap")).answer
    assert answer.cause == "capture-drops", answer.sentence
    assert ("its filter passed only those with payload" in answer.sentence) == is_filtered
    assert ("Filter by host and port" in str(answer.advice)) == is_filtered


@pytest.mark.parametrize("is_told", [True, False])
def test_a_capture_of_flags_alone_is_told(is_told: bool, tmp_path: Path) -> None:
    wire = Wire()
    for number in range(6):
        start = 500.0 * number
        link = Connection(wire, 40_000 + number).open(start, 4.0)
        link.send(start + 300, 1, 90_000, flags=FIN | ACK, ack=120).send(
            start + 301, 0, 120, flags=FIN | ACK, ack=90_001
        )
    if is_told:  # without the handshake's last packets
        wire.packets = [(ms, frame) for ms, frame in wire.packets if frame[47] & (SYN | FIN)]
    answer = wiretale.analyze(wire.write(tmp_path / "capture.pcap")).answer
    assert answer.cause == "capture-drops", answer.sentence
    assert ("its filter passed only those with SYN, FIN or RST" in answer.sentence) == is_told, answer.sentence


@pytest.mark.parametrize(("count", "is_told"), [(30, True), (5, False)])
def test_segments_behind_their_acks_are_harmless(count: int, is_told: bool, tmp_path: Path) -> None:
    link = Connection(Wire()).open()
    for number in range(count):
        now = 100.0 + 50 * number
        link.send(now, 1, 0, ack=1000 * (number + 1)).send(now + 0.1, 0, 1000 * number, 1000, PSH | ACK)
    sentence = wiretale.analyze(link.wire.write(tmp_path / "capture.pcap")).answer.sentence
    assert (f"Harmless: {count} segments were stored by the capture after their ACKs" in sentence) == is_told, sentence
