# SPDX-License-Identifier: Apache-2.0
"""What the tracer recorded about its link and clock is said where it touches the packets, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

import transfer_wires as wires
import wiretale
from tracer_wire import CLOCK, LINK, Event, write_interrupted, write_stepped, write_told

LOST = "wiretale.link/1 event=carrier-lost losses=1"
BACK = "wiretale.link/1 event=carrier-back losses=0 down_ns=5000000"
STEP = "wiretale.clock/1 event=step step_ns=-2000000"
AFTER_ALL = 10_000.0  # ms, later than each packet


def upload() -> list[tuple[float, bytes]]:
    return wires.steady(wires.connection(), 40).packets


def codes(trace: wiretale.Trace) -> set[str]:
    return {row["code"] for row in trace.findings} & {"carrier-lost", "clock-set"}


def test_a_lost_carrier_is_a_caveat_with_its_proof(tmp_path: Path) -> None:
    trace = wiretale.analyze(write_interrupted(tmp_path / "capture.pcapng", wires.steady(wires.connection(), 200)))
    (row,) = [row for row in trace.causes if row["code"] == "carrier-lost"]
    assert row["certainty"] == "proven" and "so packets of that time are missing" in row["sentence"]
    assert "carrier-lost" in (trace.answer.cause or "") or "link" in (trace.answer.caveat or ""), trace.answer
    assert not [cause["code"] for cause in trace.causes if cause["code"] == "capture-drops"]


@pytest.mark.parametrize(("step_ms", "words"), [(1500.0, "was set forward by 1.5"), (-200.0, "was set back by 200")])
def test_a_recorded_step_is_one_proven_cause(step_ms: float, words: str, tmp_path: Path) -> None:
    trace = wiretale.analyze(write_stepped(tmp_path / "capture.pcapng", wires.steady(wires.connection(), 200), step_ms))
    (row,) = [row for row in trace.causes if row["code"] == "clock-step"]
    assert row["certainty"] == "proven" and words in row["sentence"]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], set(), id="nothing happened"),
        pytest.param([Event(0, -20.0, LOST), Event(0, -10.0, BACK)], set(), id="the link was down before"),
        pytest.param([Event(99, AFTER_ALL, LOST)], set(), id="and after"),
        pytest.param([Event(0, -20.0, LOST)], {"carrier-lost"}, id="it never came back"),
        pytest.param([Event(0, -20.0, STEP)], set(), id="the clock was set before"),
        pytest.param([Event(99, AFTER_ALL, STEP)], set(), id="and after"),
    ],
)
def test_only_what_touches_the_packets_is_said(events: list[Event], expected: set[str], tmp_path: Path) -> None:
    trace = wiretale.analyze(write_told(tmp_path / "capture.pcapng", upload(), events))
    assert codes(trace) == expected


@pytest.mark.parametrize(
    ("link", "clock", "columns"),
    [
        pytest.param(LINK, CLOCK, {"mtu": 1500, "duplex": "full", "clock_error_ns": 1_500_000}, id="as it is written"),
        pytest.param(
            "wiretale.link/1 mtu= mtu=x duplex=\x1b[2J =4 gro", CLOCK, {"mtu": None, "duplex": None}, id="strange words"
        ),
        pytest.param("wiretale.link/2 mtu=1500", "", {"mtu": None, "clock_synchronized": None}, id="another version"),
        pytest.param(f"wiretale.link/1 mtu={'9' * 40}", CLOCK, {"mtu": None}, id="a number without end"),
        pytest.param(
            LINK, "wiretale.clock/1 synchronized=no error_ns=5", {"clock_error_ns": None}, id="not synchronized"
        ),
        pytest.param(
            LINK,
            "wiretale.clock/1 synchronized=yes",
            {"clock_synchronized": True, "clock_error_ns": None},
            id="no bound",
        ),
    ],
)
def test_words_of_the_file_become_columns(link: str, clock: str, columns: dict[str, object], tmp_path: Path) -> None:
    (row,) = wiretale.analyze(
        write_told(tmp_path / "capture.pcapng", upload(), link=link, clock=clock)
    ).interfaces.rows()
    assert {name: row[name] for name in columns} == columns
