# SPDX-License-Identifier: Apache-2.0
"""Causes at an end, each beside its nearest rivals: captures whose truth is known packet by packet."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretale
from causes_ends import CASES, mute, requests_lost, starttls_behind_a_hole
from plain_wire import ACK, MSS, PSH, Connection, Wire, block
from wiretale.analyzer.causes.registry import CAUSES

RECEIVER, PASSED = (
    "reached 10.0.0.2: a loss that it reports is this host's own",
    "passed the capture point: a loss that it reports happened after",
)


def measurement(near: float, missing: int | None = None) -> Wire:
    """Numbered datagrams, and a connection of the same hosts that shows the round trip to the receiver, of 20 ms in all."""
    wire = Wire()
    talk = Connection(wire).open(rtt=20.0, near=20.0 - near)
    talk.send(21, 0, 0, 100, PSH | ACK).ack(21 + near, 100)
    talk.send(22 + near, 1, 0, 100, PSH | ACK, ack=100).send(42, 0, 100, ack=100)
    for number in range(200):
        if number != missing:
            wire.udp(50.0 + number, block(number, sent_ms=number))
    return wire


@pytest.mark.parametrize(
    "near, missing, says", [(0.02, None, RECEIVER), (20.0, None, PASSED), (8.0, None, PASSED), (0.02, 90, None)]
)
def test_a_measurement_of_which_nothing_is_missing(
    tmp_path: Path, near: float, missing: int | None, says: str | None
) -> None:
    sentence = wiretale.analyze(measurement(near, missing).write(tmp_path / "capture.pcap")).answer.sentence
    assert (says in sentence) if says else ("reports" not in sentence), sentence


OF_ENDS = {code for code, rule in CAUSES.items() if ".ends." in rule.matches.__module__}


@pytest.mark.parametrize("name", CASES)
def test_an_end_is_blamed_only_for_its_own(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    trace = wiretale.analyze(case.make().write(tmp_path / "capture.pcap"))
    rows = [row for row in trace.causes if row["code"] in OF_ENDS and row["severity"] != "info"]
    assert [row["code"] for row in rows[:1]] == ([case.code] if case.code else []), [row["sentence"] for row in rows]
    assert trace.answer.cause == case.code, trace.answer.sentence
    for row in rows[:1]:
        assert row["certainty"] == case.certainty
        assert all(words in row["sentence"] for words in case.says), row["sentence"]
        assert row["waited_ns"] > 0
        assert row["saving_ns"] is None or row["saving_ns"] <= row["waited_ns"]


def test_losses_that_cost_much_come_before_round_trips(tmp_path: Path) -> None:
    trace = wiretale.analyze(requests_lost(range(10, 70, 10)).write(tmp_path / "capture.pcap"))
    assert trace.answer.cause == "tail-loss" and "6 bursts" in trace.answer.sentence


@pytest.mark.parametrize("lost", [(), (20, 28, 29, 41)])
def test_a_late_answer_that_loses_segments_may_have_lost_its_beginning(lost: tuple[int, ...], tmp_path: Path) -> None:
    link = Connection(Wire()).open(rtt=40.0).send(41.0, 0, 0, 120, PSH | ACK).send(81.0, 1, 0, ack=120)
    for number in range(60):
        now = 1_130.0 + 0.5 * number
        if number not in lost:
            link.send(now, 1, number * MSS, MSS, ACK, 120)
            got = min([*(each for each in lost if each < number), number + 1])
            link.send(now + 0.1, 0, 120, ack=got * MSS)
    for place, number in enumerate(lost):
        link.send(1_240.0 + place, 1, number * MSS, MSS, ACK, 120)
        link.send(1_240.1 + place, 0, 120, ack=([*lost[place + 1 :], 60][0]) * MSS)
    sentence = wiretale.analyze(link.wire.write(tmp_path / "capture.pcap")).answer.sentence
    assert ("took 1.05 s to answer a request" in sentence) and (
        "unless the beginning of its answer was lost" in sentence
    ) == bool(lost)


def test_mail_of_which_only_syn_and_fin_were_captured_is_not_mute(tmp_path: Path) -> None:
    rows = wiretale.analyze(mute(993, unseen=500).write(tmp_path / "capture.pcap")).causes
    assert [row["code"] for row in rows] == ["capture-drops"]


def test_an_answer_behind_a_hole_is_no_greeting(tmp_path: Path) -> None:
    """The client seems to speak before it: the STARTTLS between was not captured."""
    rows = wiretale.analyze(starttls_behind_a_hole().write(tmp_path / "capture.pcap")).causes
    assert {"early-command", "late-greeting"}.isdisjoint(row["code"] for row in rows)
