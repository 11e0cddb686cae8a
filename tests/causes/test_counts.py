# SPDX-License-Identifier: Apache-2.0
"""One number for one thing: the answer, the causes and the list of flows count losses and failures alike."""

from __future__ import annotations

from pathlib import Path

import wiretale
from checkout import ROOT
from crafted import analyze_timed
from neighbor_wire import asks
from plain_wire import MSS, Connection, Wire, sack
from wiretale.analyzer.causes.what_happened import lost_str
from wiretale.analyzer.findings.judged import judge
from wiretale.reports.terminal.screen.flows import sums_of


def merged_and_lost(path: Path) -> Path:
    """A sender whose adapter segments: one piece of three segments is lost, and sent again."""
    wire = Wire(by_time=True)
    link, piece = Connection(wire).open(), 3 * MSS
    for number in range(20):
        link.data(21 + number, piece * number, piece)
    for number in range(1, 20):
        if number <= 5:
            link.ack(41 + number, piece * number)
        else:
            link.ack(41 + number, piece * 5, options=sack((piece * 6, piece * (number + 1))))
    link.data(61, piece * 5, piece).ack(81, piece * 20)
    return wire.write(path)


def test_losses_are_counted_in_segments_on_the_wire(tmp_path: Path) -> None:
    trace = wiretale.analyze(merged_and_lost(tmp_path / "capture.pcap"))
    assert sum(row["lost_downstream"] or 0 for row in trace.directions) == 1
    assert lost_str(trace, judge(trace), False) == " and lost 3 segments"
    assert [flow.lost for flow in sums_of(trace, [0], True)] == [3]


def test_losses_on_both_sides_of_the_capture_point_are_told() -> None:
    trace = wiretale.analyze(ROOT / "sample_pcaps" / "mirror_port.pcap")
    assert "1 of 48 segments" in trace.answer.sentence and "and 1 more after it" in trace.answer.sentence
    assert [flow.lost for flow in sums_of(trace, [0], True)] == [2]


def test_a_host_that_is_down_failed_as_often_as_it_was_asked(tmp_path: Path) -> None:
    trace = analyze_timed(tmp_path, [asks(10.0 * i + j, "10.0.0.77") for i in range(3) for j in range(3)])
    row = next(row for row in trace.causes if row["code"] == "host-down")
    assert "9 ARP requests" in row["sentence"] and (row["failed"], row["attempts"]) == (9, 9)
