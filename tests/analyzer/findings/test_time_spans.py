# SPDX-License-Identifier: Apache-2.0
"""The table time_spans: the spans of a flow sum to its time_*_ns, and stand where the truth has them."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import SAMPLES, SCENARIOS
from limited_sender import POINTS, Sender
from limited_talk import BASE, MSS, LimitedTalk, closed_window
from scenario import captured, read_scenario
from scenario_wire import write_pcap
from wiretale.analyzer.findings.transfers import PARTS
from wiretale.analyzer.table import Table

MS = 1_000_000
SPANS_MOST = 1024  # MAX_TIME_SPANS


def sums(spans: Table, flow: int) -> Counter[str]:
    times: Counter[str] = Counter()
    before = 0
    for row in spans.rows():
        if row["flow"] == flow:
            assert row["end_ns"] > row["start_ns"] >= before
            times[row["part"]] += row["end_ns"] - row["start_ns"]
            before = row["end_ns"]
    return times


def check_sums(path: Path) -> int:
    """Checks every flow of a capture, and returns the number of spans."""
    trace = wiretale.analyze(path)
    spans = trace.time_spans()
    counts = Counter(row["flow"] for row in spans.rows())
    assert not counts or max(counts.values()) <= SPANS_MOST
    for row in trace.flows.rows():
        times = sums(spans, row["flow"]) if counts else Counter()
        columns: dict[str, Any] = {**row}
        expected = {part: columns[f"time_{part}_ns"] or 0 for part in PARTS}
        backward = expected.pop("unknown") - times.pop("unknown", 0)
        assert backward >= 0 and {part: times[part] for part in expected} == expected, (path.name, row["flow"])
    return len(spans)


@pytest.mark.filterwarnings("ignore::wiretale.DamagedInputWarning")
def test_spans_sum_to_the_times_of_every_sample() -> None:
    counts = {path.name: check_sums(path) for path in sorted(SAMPLES.glob("*.pcap*"))}
    assert sum(map(bool, counts.values())) >= 10, counts


def test_spans_sum_to_the_times_of_every_scenario(tmp_path: Path) -> None:
    count = 0
    for path in sorted(SCENARIOS.rglob("*.txt")):
        count += check_sums(write_pcap(captured(read_scenario(path, SCENARIOS), "ipv4"), tmp_path / "case.pcap"))
    assert count > 100


@pytest.mark.parametrize(("point", "timestamps"), list(product(POINTS, (True, False))))
def test_spans_sum_to_the_times_of_a_small_send_buffer(tmp_path: Path, point: str, timestamps: bool) -> None:
    wire = Sender(timestamps, POINTS[point], send_buffer=12 * 1460).wire()
    check_sums(wire.write(tmp_path / "wire.pcap"))
    times = sums(wiretale.analyze(tmp_path / "wire.pcap").time_spans(), 0)
    assert times["send_buffer"] > 0.5 * sum(times.values()), times


def test_too_many_spans_are_put_together_and_keep_their_sums(tmp_path: Path) -> None:
    path = Sender(True, 0.1, write=5 * 1460, pause=4.0, rtt=1.0, duration=8000.0).wire().write(tmp_path / "wire.pcap")
    assert 100 < check_sums(path) <= SPANS_MOST
    rows = wiretale.analyze(path).time_spans(0).rows()
    assert any(row["merged"] for row in rows)
    for part in ("idle", "path"):  # the pattern repeats every 4 ms, so each second has the same shares
        parts = [0] * 8
        for row in rows:
            if row["part"] == part:
                parts[int((row["start_ns"] - BASE * 10**9) // 10**9)] += row["end_ns"] - row["start_ns"]
        assert max(parts) - min(parts) < 0.1 * 10**9, (part, parts)


# --- crafted captures -----------------------------------------------------------------------------------------------


def spans_of(talk: LimitedTalk, folder: Path) -> list[tuple[str, float, float]]:
    path = talk.write(folder / "talk.pcap")
    check_sums(path)
    rows = wiretale.analyze(path).time_spans(0).rows()
    base = BASE * 10**9
    return [(row["part"], (row["start_ns"] - base) / MS, (row["end_ns"] - base) / MS) for row in rows]


def test_an_idle_application_stands_at_its_known_times(tmp_path: Path) -> None:
    talk = LimitedTalk()
    begins = [100.0, 400.0, 900.0]  # when the application writes
    ends = [talk.burst(ms, 10) for ms in begins]
    talk.burst(1000.0, 1)
    idle = [(start, end) for kind, start, end in spans_of(talk, tmp_path) if kind == "idle"]
    expected = list(zip([20.01, *ends], [*begins, 1000.0], strict=True))  # from the last ACK to the next write
    assert len(idle) == len(expected), idle
    for (start, end), (from_ms, to_ms) in zip(idle, expected, strict=True):
        assert abs(start - from_ms) <= 2 and abs(end - to_ms) <= 0.01, (idle, expected)  # an ACK is answered in 1 ms


def test_a_closed_window_stands_at_its_known_times(tmp_path: Path) -> None:
    talk, full, opened = closed_window()
    spans = spans_of(talk, tmp_path)
    window = [(start, end) for kind, start, end in spans if kind == "window"]
    assert len(window) == 1, spans
    ((start, end),) = window
    assert abs(start - full) <= 0.2 and abs(end - opened) <= 1, (window, full, opened)


def test_a_timeout_lasts_until_its_retransmission_is_acknowledged(tmp_path: Path) -> None:
    talk = LimitedTalk()
    talk.burst(100.0, 10)
    at, lost = 200.0, 500 + talk.sent
    talk.send(at, 1, "PA", lost, 100, MSS)
    talk.send(at + 250, 1, "PA", lost, 100, MSS)  # nothing came back
    talk.sent += MSS
    talk.send(at + 270, 0, "A", 100, 500 + talk.sent)
    talk.burst(at + 271, 5)
    losses = [(start, end) for kind, start, end in spans_of(talk, tmp_path) if kind == "loss"]
    assert losses == [(pytest.approx(at), pytest.approx(at + 270, abs=0.1))], (
        losses
    )  # until the ACK of the retransmission


def test_kept_packets_have_the_same_spans(tmp_path: Path) -> None:
    path = SAMPLES / "tcp_losses.pcap"
    with_packets, again = wiretale.analyze(path, keep_packets=True), wiretale.analyze(path)
    assert with_packets.time_spans().rows() == again.time_spans().rows() != []
    assert with_packets.time_spans([0]).rows() == again.time_spans(0).rows()
    assert len(again.query("SELECT part, sum(epoch_ns(end_ns) - epoch_ns(start_ns)) FROM time_spans GROUP BY part")) > 0


def test_spans_are_made_only_if_they_are_asked_for() -> None:
    trace = wiretale.analyze(SAMPLES / "tcp_losses.pcap")
    assert trace._core.table("time_spans").rows() == []
    trace.packets(0)
    assert trace._core.table("time_spans").rows() == []
