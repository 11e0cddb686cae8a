# SPDX-License-Identifier: Apache-2.0
"""Who is slow, beside the logs of a server that computes and a client that pauses for known times: over emulated links with
delay and loss, captured at the client, between the links and at the server.

Each part of a request or response is one segment, so that pacing and the congestion window delay none. At a point behind
the loss of a first transmission, nothing shows when it was sent: there the sum of the sender's times is compared, and null
is right.
"""

from __future__ import annotations

import csv
import io
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

import wiretale
from exchange_rows import turns_of
from turn_path import NEEDED, POINTS, Turn, turn_path
from wiretale.traffic.program import find_program

pytestmark = [NEEDED, pytest.mark.xdist_group("live")]
NEAR_NS, NEAR_SHARE = 5e6, 0.01
ON_TIME_NS = 2e6  # a packet may be so much later than its link's delay
PASSES = 4  # of a turn over a link: two links, there and back
ROUND_TRIP_NS = {"client": (0.0, 80e6), "middle": (40e6, 40e6), "server": (80e6, 0.0)}  # to client and server
TURNS, TRIALS = 20, 4
SIDES = (("pause", "request_pause"), ("server", "response_pause"))
Row = dict[str, Any]


def make_plan(seed: int) -> list[Turn]:
    """Requests and responses of one or two segments, with sleeps between them."""
    drawn = random.Random(seed)

    def parts(share: float) -> list[tuple[int, float]]:
        pause = drawn.uniform(0.02, 0.4)
        pause += 0.03 if 0.07 < pause < 0.1 else 0.0  # one as long as the RTT looks like waiting for an ACK
        second = [(drawn.randint(100, 1000), pause)]
        return [(drawn.randint(100, 1000), 0.0), *(second if drawn.random() < share else [])]

    return [(parts(0.3), drawn.uniform(0, 0.4), parts(0.4), drawn.uniform(0, 0.2)) for _ in range(TURNS)]


def link_truth(path: Path) -> list[Row]:
    """Every packet with its fate."""
    done = subprocess.run([find_program("wiretale-link"), "--print-truth", str(path)], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def lateness(truths: dict[str, list[Row]]) -> float:
    """The longest time by which this machine delayed a packet beyond the link's delay."""
    return max(float(row["out_ns"]) - int(row["due_ns"]) for rows in truths.values() for row in rows if row["out_ns"])


def lost_segments(truths: dict[str, list[Row]], link: str, direction: int, begin: int, end: int) -> int:
    """Segments with payload that a link lost in this time."""
    lost = (row for row in truths[link] if row["fate"] != "delivered" and int(row["payload_bytes"]))
    return sum(int(row["direction"]) == direction and begin <= int(row["in_ns"]) < end for row in lost)


class Compared:
    """The turns of one capture point beside the logs."""

    def __init__(self, point: str, path: Path, log: list[Row], truths: dict[str, list[Row]]) -> None:
        self.point, self.log, self.truths = point, log, truths
        self.rows = turns_of(wiretale.analyze(path))
        late = lateness(truths)
        self.near_ns = NEAR_NS + (PASSES * late if late > ON_TIME_NS else 0)
        self.wrong: list[str] = []

    def check(self, number: int, name: str, value: float | None, truth: float) -> None:
        if value is None or abs(value - truth) > self.near_ns + NEAR_SHARE * truth:
            self.wrong.append(f"{self.point} turn {number} {name}: {value} ns instead of {truth}")

    def upstream(self, side: int) -> list[str]:
        """The links between an end and this point."""
        order = ["near", "far"][:: -1 if side else 1]
        place = {"client": 0, "middle": 1, "server": 2}[self.point]
        return order[: 2 - place if side else place]

    def compare_side(self, number: int, side: int) -> None:
        """The times of one end: before its message, and within it."""
        row, logged = self.rows[number], self.log[number]
        before, within = SIDES[side]
        begin = logged["begin"] - int(logged["before"])
        hidden = any(lost_segments(self.truths, link, side, begin, logged["end"]) for link in self.upstream(side))
        waited = logged["server"] if side else logged["before"] if number else None
        values = [row[f"{before}_ns"], row[f"{within}_ns"]]
        if number == 0 and not side:
            assert values[0] is None
        elif not hidden:
            self.check(number, before, values[0], waited)
        elif None not in values:
            self.check(number, f"{before} and {within}", values[0] + values[1], waited + logged[within])
        if not hidden:
            self.check(number, within, values[1], logged[within])

    def compare(self) -> list[str]:
        assert len(self.rows) == TURNS
        for number, (row, logged) in enumerate(zip(self.rows, self.log, strict=True)):
            self.compare_side(number, 0)
            self.compare_side(number, 1)
            near, far = ROUND_TRIP_NS[self.point]
            self.check(number, "network", row["network_ns"], far)
            if number and row["pause_ns"] is not None:
                self.check(number, "client_network", row["client_network_ns"], near)
            self.compare_places(number, row, logged)
        return self.wrong

    def compare_places(self, number: int, row: Row, logged: Row) -> None:
        """A stall is charged to the side of its loss; the client's capture shows all of a turn."""
        for place, links in (("client", self.upstream(0)), ("server", self.upstream(1))):
            losses = sum(
                lost_segments(self.truths, link, side, logged["begin"] - int(logged["before"]), logged["end"])
                for link in links
                for side in (0, 1)
            )
            stall = row[f"retransmission_{place}_ns"]
            if not losses and stall:
                self.wrong.append(f"{self.point} turn {number}: {stall} ns charged to the {place} side without a loss")
        names = ["request", "network", "server", "response"]
        parts = [
            row[f"{name}_ns"] for name in (*names, *(f"retransmission_{at}" for at in ("client", "network", "server")))
        ]
        if self.point == "client" and None not in parts:
            self.check(number, "sum", sum(parts), logged["whole"])


def play(folder: Path, seed: int, loss: str) -> tuple[list[Row], dict[str, list[Row]]]:
    """Plays a plan, again if this machine delayed packets. Returns the logs and the links' truth of the trial that it delayed
    least: compared times may differ by these delays."""
    trials = []
    for trial in range(TRIALS):
        place = folder / str(trial)
        place.mkdir()
        with turn_path() as path:
            log = path.talk(make_plan(seed), (f"delay=20ms {loss}",) * 2, place, seed)
        truths = {link: link_truth(place / f"{link}.truth") for link in ("near", "far")}
        trials.append((lateness(truths), place, log, truths))
        if lateness(truths) <= ON_TIME_NS:
            break
    _, place, log, truths = min(trials, key=lambda entry: entry[0])
    for i, entry in enumerate(log):
        entry["before"] = log[i - 1]["pause"] if i else 0
        entry["end"] = entry["begin"] + entry["whole"]
    for point in POINTS:
        (place / f"{point}.pcap").rename(folder / f"{point}.pcap")
    return log, truths


@pytest.mark.parametrize(("seed", "loss"), [(1, ""), (2, "loss=2%"), (3, "loss=4%")])
def test_each_part_is_measured_at_each_point(tmp_path: Path, seed: int, loss: str) -> None:
    log, truths = play(tmp_path, seed, loss)
    wrong = [text for point in POINTS for text in Compared(point, tmp_path / f"{point}.pcap", log, truths).compare()]
    assert not wrong
    retransmitted = sum(row["fate"] != "delivered" and int(row["payload_bytes"]) > 0 for row in truths["near"])
    assert bool(loss) == bool(retransmitted)
