# SPDX-License-Identifier: Apache-2.0
"""The true parts of a transfer's time by the links' logs: packets crafted so that each part is known."""

from __future__ import annotations

import pytest

import needs

needs.benchmarks()

from score.limits.link_log import TO_RECEIVER, TO_SENDER, Packet, bottleneck
from score.limits.page import limits_section, shortfalls
from score.limits.parts import PARTS, claimed_parts, true_parts
from score.limits.rows import Row
from score.limits.scenarios import SCENARIOS
from score.limits.talk import Sample
from score.limits.truth import BUFFER, COLUMNS

MS = 1_000_000
ONE_WAY, SERVICE = 5 * MS, MS  # of each link; 1,500 bytes in 1 ms, so the least round trip is 21 ms
FIRST, LAST = 4_294_960_000, 2_000_000  # initial numbers; those of the sender wrap
STATE = Sample(0, 0, 0, 0, 0, 0, 50_000, False, 10, 10, False, False, 20_000, 20_000)


class Path:
    """Both links, and a receiver that acknowledges each segment at once."""

    def __init__(self) -> None:
        self.first: list[Packet] = []
        self.second: list[Packet] = []
        self.free_ns = self.received = 0
        self.early: set[int] = set()

    def send(self, at_ms: float, number: int, lost: bool = False) -> None:
        """Sends a segment; the bottleneck queues it behind those before it."""
        in_ns, sequence = round(at_ms * MS), 1448 * number
        arrival = in_ns + ONE_WAY
        served = max(arrival, self.free_ns) + SERVICE
        self.first.append(self.packet(TO_RECEIVER, in_ns, arrival, sequence))
        queued = int(self.free_ns > arrival)
        self.second.append(self.packet(TO_RECEIVER, arrival, None if lost else served + ONE_WAY, sequence, queued))
        if lost:
            return
        self.free_ns = served
        self.early.add(number)
        while self.received in self.early:
            self.received += 1
        back = served + ONE_WAY
        self.second.append(self.packet(TO_SENDER, back, back + ONE_WAY, 0))
        self.first.append(self.packet(TO_SENDER, back + ONE_WAY, back + 2 * ONE_WAY, 0))

    def packet(self, way: int, in_ns: int, due_ns: int | None, sequence: int, queued: int = 0) -> Packet:
        size, payload, initial = (1500, 1448, FIRST) if way == TO_RECEIVER else (52, 0, LAST)
        acknowledgment = LAST if way == TO_RECEIVER else (FIRST + 1448 * self.received) % 2**32
        numbers = ((initial + sequence) % 2**32, acknowledgment)
        return Packet(way, due_ns is not None, in_ns, due_ns, due_ns, queued, size, payload, *numbers)

    def parts(self, begin_ms: float, end_ms: float, window: float = 0, busy: float = 1) -> dict[str, float]:
        link = bottleneck(
            sorted(self.first, key=lambda packet: packet.in_ns), sorted(self.second, key=lambda packet: packet.in_ns)
        )
        assert link and link.rtt_ns == 21 * MS
        times = [begin_ms + step * (end_ms - begin_ms) / 100 for step in range(101)]
        since = [round(1e3 * (time - begin_ms)) for time in times]
        samples = [
            STATE._replace(time_ns=round(time * MS), busy_us=round(us * busy), window_us=round(us * window))
            for time, us in zip(times, since, strict=True)
        ]
        return true_parts(samples, link)


def parts(**shares: float) -> object:
    return pytest.approx({part: shares.get(part, 0.0) for part in PARTS}, abs=0.02)


def test_a_single_segment_in_each_round_trip_waits_for_the_path() -> None:
    path = Path()
    for number in range(10):
        path.send(21 * number, number)
    path.send(210, 10)
    path.send(210, 11)  # the only packet that shows the rate
    assert path.parts(0, 210) == parts(path=1)
    assert path.parts(0, 210, window=0.4) == parts(path=0.6, window=0.4)
    assert path.parts(0, 210, busy=0.7) == parts(path=0.7, application=0.3)


def test_a_bottleneck_with_a_queue_is_busy_with_the_transfer() -> None:
    """Twenty segments leave at once. The third and later wait 2 ms or more, a sixteenth of the round trip."""
    path = Path()
    for number in range(20):
        path.send(0, number)
    assert path.parts(0, 40) == parts(path=22 / 40, transfer=18 / 40)


def test_a_window_over_a_queue_that_stands_is_transfer() -> None:
    path = Path()
    for number in range(20):
        path.send(0, number)
    assert path.parts(0, 40, window=1) == parts(window=22 / 40, transfer=18 / 40)


def test_a_short_queue_is_that_share_of_the_round_trip() -> None:
    """The second of two segments waits 1 ms: less than a sixteenth, so the time until its ACK is divided as its round trip is."""
    path = Path()
    for number in range(10):
        path.send(22 * (number // 2), number)
    assert path.parts(21, 22) == parts(path=21 / 22, queue=1 / 22)


def test_loss_lasts_from_the_first_duplicate_ack_to_the_ack_that_covers_the_segment() -> None:
    path = Path()
    for number in range(6):
        path.send(3 * number, number, lost=number == 1)
    path.send(30, 1)  # duplicate ACK at 27 ms, as soon as the third segment's ACK; covered at 51 ms
    path.send(60, 6)
    path.send(60, 7)
    assert path.parts(0, 81) == parts(loss=24 / 81, path=57 / 81)


def test_loss_begins_at_the_last_ack_before_an_rto() -> None:
    path = Path()
    path.send(0, 0)
    path.send(3, 1, lost=True)
    path.send(221, 1)  # the last ACK came at 21 ms; covered at 242 ms
    path.send(250, 2)
    path.send(250, 3)
    assert path.parts(0, 271) == parts(loss=221 / 271, path=50 / 271)


def test_a_bottleneck_that_stays_busy_loses_no_time_to_loss() -> None:
    path = Path()
    for number in range(60):
        path.send(0, number, lost=number == 1)
    path.send(25, 1)
    assert path.parts(24, 79) == parts(transfer=1)


def test_columns_become_parts() -> None:
    flow = {"time_transfer_ns": 30, "time_queue_ns": 5, "time_path_ns": 15}
    data = {"time_pause_ns": 10, "time_send_buffer_ns": 5, "time_delayed_ack_ns": None, "time_window_ns": 15}
    data |= {"time_loss_ns": 12, "suspected_ns": 8, "time_unknown_ns": 10}
    expected = {"application": 0.15, "window": 0.15, "loss": 0.2, "transfer": 0.3, "queue": 0.05, "path": 0.15}
    assert claimed_parts(flow, data) == pytest.approx(expected)
    assert claimed_parts(flow, {**data, "time_unknown_ns": 50}) is None
    assert claimed_parts(flow, {**data, "time_unknown_ns": None}) is None


def test_the_page_counts_the_largest_part_and_names_what_is_wrong() -> None:
    plain = next(case for case in SCENARIOS if not case.shaper)
    true, wrong = {**dict.fromkeys(PARTS, 0.0), "transfer": 1.0}, {**dict.fromkeys(PARTS, 0.0), "path": 1.0}
    limits = {**dict.fromkeys((*COLUMNS, BUFFER), 0.0), "path": 1.0}
    points = (("sender", true, true), ("tracer", true, None), ("receiver", true, wrong), ("receiver", None, wrong))
    rows = [Row(plain, point, limits, limits, log, claim) for point, log, claim in points]
    assert [row.parts_right for row in rows] == [True, None, False, None]
    section = limits_section(rows)
    assert "| parts of time, sender | 1 | 0 | 1 | 1.000 |" in section
    assert "| parts of time, receiver | 1 | 0 | 0 | 0.000 |" in section
    assert list(shortfalls(rows)) == [
        "- **parts of time, receiver**: 0 of 1 right (wrong: `path` (transfer taken for path) 1)"
    ]
