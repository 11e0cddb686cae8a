# SPDX-License-Identifier: Apache-2.0
"""Links that change over time, in a lab: departures by interval, and traces that are refused."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from lab_bench import NEEDED, Sent, send_through, wiretale_lab
from traffic_ends import undisturbed
from wiretale.traffic.lab.traces import TRACES, lines_of

pytestmark = [pytest.mark.xdist_group("live"), NEEDED]
HEADERS = 28


def folders(place: Path) -> Any:
    """Makes a new folder at each call."""
    numbers = itertools.count()

    def make() -> Path:
        made = place / str(next(numbers))
        made.mkdir()
        return made

    return make


def due_by(sent: Sent, ms: float) -> int:
    """Packets that were due until so many milliseconds after the first came."""
    origin = sent.truth[0]["in_ns"]
    return sum((row["due_ns"] - origin) / 1e6 <= ms for row in sent.truth if row["due_ns"])


@pytest.mark.alone
def test_the_rate_and_the_delay_change_at_their_times(tmp_path: Path) -> None:
    new = folders(tmp_path)

    def check() -> None:
        schedule = "schedule=300ms:rate=800kbit,600ms:rate=8Mbit,700ms:delay=100ms"
        sent = send_through(new(), f"rate=8Mbit queue=1000 {schedule}", size=1000 - HEADERS, count=600, gap=0)
        assert due_by(sent, 300.5) == pytest.approx(300, abs=1)
        assert due_by(sent, 600.5) - due_by(sent, 300.5) == pytest.approx(30, abs=1)
        assert due_by(sent, 700.5) - due_by(sent, 600.5) == pytest.approx(100, abs=1)
        assert due_by(sent, 799.5) == due_by(sent, 700.5)  # those after 700 ms take 100 ms longer
        assert due_by(sent, 900.5) - due_by(sent, 800.5) == pytest.approx(100, abs=1)

    undisturbed(check, 6)


@pytest.mark.alone
def test_the_loss_changes_at_its_time(tmp_path: Path) -> None:
    new = folders(tmp_path)

    def check() -> None:
        sent = send_through(new(), "schedule=100ms:loss=100%,200ms:loss=0", count=150, gap=0.002)
        origin = sent.truth[0]["in_ns"]
        lost = {row["index"] for row in sent.truth if row["fate"] == "random"}
        inside = {row["index"] for row in sent.truth if 100e6 <= row["in_ns"] - origin < 200e6}
        assert lost and len(lost ^ inside) <= 2  # two clocks are read one after the other

    undisturbed(check, 6)


@pytest.mark.alone
def test_a_trace_of_wiretale_gives_its_opportunities(tmp_path: Path) -> None:
    new = folders(tmp_path)
    opportunities = lines_of(*TRACES["saw"])

    def check() -> None:
        sent = send_through(new(), "trace=saw queue=1000", size=1500 - HEADERS, count=120, gap=0)
        for ms in (250, 500, 750):
            assert due_by(sent, ms + 0.5) == pytest.approx(sum(time <= ms for time in opportunities), abs=1)

    undisturbed(check, 6)


@pytest.mark.parametrize("text", ["", "0\n", "5\n4\n", "five\n", "1.5\n", "-3\n"])
def test_a_wrong_trace_is_one_line_and_leaves_nothing(tmp_path: Path, text: str) -> None:
    name = f"w{os.getpid()}"
    (tmp_path / "wrong.trace").write_text(text)
    (tmp_path / "wrong.toml").write_text('[both]\ntrace = "wrong.trace"\n')
    up = wiretale_lab("up", str(tmp_path / "wrong.toml"), name)
    assert (up.returncode, up.stderr.count("\n")) == (4, 1), up.stderr
    assert "wrong.trace: line " in up.stderr
    assert wiretale_lab("down", name).returncode == 2
