# SPDX-License-Identifier: Apache-2.0
"""The table limit_spans: the spans of a direction sum to its limit_*_ns, and stand where the truth has them."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import pytest

import wiretale
from checkout import SAMPLES, SCENARIOS
from limited_sender import POINTS, Sender
from limited_talk import BASE, MSS, LimitedTalk, closed_window
from scenario import captured, read_scenario
from scenario_wire import write_pcap
from wiretale.analyzer.table import Table

MS = 1_000_000
SPANS_MOST = 512  # MAX_LIMIT_SPANS
OWN = ("delayed_ack", "window", "recovery", "timeout", "slow_start", "network")


def sums(spans: Table, flow: int, direction: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in spans.rows():
        assert row["end_ns"] > row["start_ns"]
        if (row["flow"], row["direction"]) == (flow, direction):
            found[row["kind"]] += row["end_ns"] - row["start_ns"]
    return found


def check_sums(path: Path) -> int:
    """Checks every direction of a capture, and returns the number of spans."""
    trace = wiretale.analyze(path)
    spans = trace.limit_spans()
    counts = Counter((row["flow"], row["direction"]) for row in spans.rows())
    assert not counts or max(counts.values()) <= SPANS_MOST
    for row in trace.directions.rows():
        found = sums(spans, row["flow"], row["direction"]) if counts else Counter()
        expected = {"limit_idle_ns": found["idle"] + found["waiting"] + found["send_buffer"]}
        expected |= {"limit_waiting_ns": found["waiting"], "send_buffer_ns": found["send_buffer"]}
        expected |= {f"limit_{kind}_ns": found[kind] for kind in OWN}
        assert {name: row[name] or 0 for name in expected} == expected, (path.name, row["flow"], row["direction"])
    return len(spans)


@pytest.mark.filterwarnings("ignore::wiretale.DamagedInputWarning")
def test_spans_sum_to_the_limits_of_every_sample() -> None:
    found = {path.name: check_sums(path) for path in sorted(SAMPLES.glob("*.pcap*"))}
    assert sum(map(bool, found.values())) >= 10, found


def test_spans_sum_to_the_limits_of_every_scenario(tmp_path: Path) -> None:
    found = 0
    for path in sorted(SCENARIOS.rglob("*.txt")):
        found += check_sums(write_pcap(captured(read_scenario(path, SCENARIOS), "ipv4"), tmp_path / "case.pcap"))
    assert found > 100


@pytest.mark.parametrize(("point", "timestamps"), list(product(POINTS, (True, False))))
def test_spans_sum_to_the_limits_of_a_small_send_buffer(tmp_path: Path, point: str, timestamps: bool) -> None:
    wire = Sender(timestamps, POINTS[point], send_buffer=12 * 1460).wire()
    check_sums(wire.write(tmp_path / "wire.pcap"))
    found = sums(wiretale.analyze(tmp_path / "wire.pcap").limit_spans(), 0, 0)
    assert found["send_buffer"] > 0.5 * sum(found.values()), found


def test_too_many_spans_are_put_together_and_keep_their_sums(tmp_path: Path) -> None:
    path = Sender(True, 0.1, write=5 * 1460, pause=4.0, rtt=1.0, duration=8000.0).wire().write(tmp_path / "wire.pcap")
    assert 100 < check_sums(path) <= 2 * SPANS_MOST
    rows = wiretale.analyze(path).limit_spans(0).rows()
    assert any(row["merged"] for row in rows)
    for kind in ("idle", "slow_start"):  # the pattern repeats every 4 ms, so each second has the same shares
        parts = [0] * 8
        for row in rows:
            if row["kind"] == kind or (kind == "slow_start" and row["kind"] == "network"):
                parts[int((row["start_ns"] - BASE * 10**9) // 10**9)] += row["end_ns"] - row["start_ns"]
        assert max(parts) - min(parts) < 0.1 * 10**9, (kind, parts)


# --- crafted captures -----------------------------------------------------------------------------------------------


def spans_of(talk: LimitedTalk, folder: Path) -> list[tuple[str, float, float]]:
    path = talk.write(folder / "talk.pcap")
    check_sums(path)
    rows = wiretale.analyze(path).limit_spans(0).rows()
    base = BASE * 10**9
    return [(row["kind"], (row["start_ns"] - base) / MS, (row["end_ns"] - base) / MS) for row in rows]


def test_an_idle_application_stands_at_its_known_times(tmp_path: Path) -> None:
    talk = LimitedTalk()
    begins = [100.0, 400.0, 900.0]  # when the application writes
    ends = [talk.burst(ms, 10) for ms in begins]
    talk.burst(1000.0, 1)
    idle = [(start, end) for kind, start, end in spans_of(talk, tmp_path) if kind == "idle"]
    expected = list(zip(ends, [*begins[1:], 1000.0], strict=True))  # from the last ACK to the next write
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


def test_a_timeout_stands_before_its_retransmission(tmp_path: Path) -> None:
    talk = LimitedTalk()
    talk.burst(100.0, 10)
    at, lost = 200.0, 500 + talk.sent
    talk.send(at, 1, "PA", lost, 100, MSS)
    talk.send(at + 250, 1, "PA", lost, 100, MSS)  # nothing came back
    talk.sent += MSS
    talk.send(at + 270, 0, "A", 100, 500 + talk.sent)
    talk.burst(at + 271, 5)
    found = [(start, end) for kind, start, end in spans_of(talk, tmp_path) if kind == "timeout"]
    assert len(found) == 1 and abs(found[0][0] - at) < 0.1 and abs(found[0][1] - at - 250) < 0.1, found


def test_kept_packets_have_the_same_spans(tmp_path: Path) -> None:
    path = SAMPLES / "tcp_losses.pcap"
    kept, again = wiretale.analyze(path, keep_packets=True), wiretale.analyze(path)
    assert kept.limit_spans().rows() == again.limit_spans().rows() != []
    assert kept.limit_spans([0]).rows() == again.limit_spans(0).rows()
    assert len(again.query("SELECT kind, sum(end_ns - start_ns) FROM limit_spans GROUP BY kind")) > 0


def test_spans_are_made_only_if_they_are_asked_for() -> None:
    trace = wiretale.analyze(SAMPLES / "tcp_losses.pcap")
    assert trace._core.table("limit_spans").rows() == []
    trace.packets(0)
    assert trace._core.table("limit_spans").rows() == []
