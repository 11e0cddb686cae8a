# SPDX-License-Identifier: Apache-2.0
"""A jump of the capture's clock is no wait, and a wait is no jump; packets that a filter left out are no drops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wiretale
from causes_captured import JUMPS, left_out, turns
from plain_wire import ACK, PSH, Connection, Wire


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
    assert ("Its filter probably left them out" in answer.sentence) == is_filtered
    assert ("Filter by host and port" in str(answer.advice)) == is_filtered


@pytest.mark.parametrize(("count", "is_told"), [(30, True), (5, False)])
def test_segments_behind_their_acks_are_harmless(count: int, is_told: bool, tmp_path: Path) -> None:
    link = Connection(Wire()).open()
    for number in range(count):
        now = 100.0 + 50 * number
        link.send(now, 1, 0, ack=1000 * (number + 1)).send(now + 0.1, 0, 1000 * number, 1000, PSH | ACK)
    sentence = wiretale.analyze(link.wire.write(tmp_path / "capture.pcap")).answer.sentence
    assert (f"Harmless: {count} segments were stored by the capture after their ACKs" in sentence) == is_told, sentence
