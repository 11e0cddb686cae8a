# SPDX-License-Identifier: Apache-2.0
"""Causes of retransmissions in captures of others (../shared/labelled): frames judged by hand, and the labels of TCPRS."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale

FAST, TIMEOUT = "fast_retransmission", "timeout_retransmission"
# By file and frame: kind, place and `spurious`.
JUDGED = {
    # Each follows the third duplicate ACK within 2 ms; the RTO, which had doubled, was not due.
    "discard.solaris.dmp.gz": dict.fromkeys((2466, 2483, 2505, 2529), (FAST, "downstream", False)),
    # SACK had left these bytes open; the ACK was too soon by less than a tick of the clock, 977 us.
    "psc.fddi.dmp.gz": dict.fromkeys((241, 263), (TIMEOUT, "downstream", False)),
}
# Time in us of two segments of this file, frames 376 and 761, that TCPRS labels as RTOs. The TSecr of each is the TSval of
# the third duplicate ACK (frames 371 and 746), whose SACK blocks report three segments above it. So that ACK was the last that
# the sender had received: it retransmitted because of it (RFC 5681 section 3.2). Later duplicate ACKs were still on their way.
MISLABELLED, FAST_AT = "loss-window-approximation", (1285864164969334, 1285864304563844)
RTO_LABEL = "1"


def retransmissions(capture: Path) -> list[dict[str, Any]]:
    return [row for row in wiretale.analyze(capture).events.rows() if "retransmission" in row["kind"]]


@pytest.mark.parametrize("name", JUDGED)
def test_frames_that_were_judged_by_hand(name: str) -> None:
    rows = retransmissions(needs.shared("labelled/cases") / name)
    verdicts = {
        row["frame"]: (row["kind"], row["place"], row["spurious"]) for row in rows if row["frame"] in JUDGED[name]
    }
    assert verdicts == JUDGED[name]


def test_round_trips_are_at_least_a_tick_of_a_coarse_clock() -> None:
    rows = wiretale.analyze(needs.shared("labelled/cases") / "psc.fddi.dmp.gz").directions.rows()
    assert [row["rtt_ns_min"] for row in rows] == [975_000, 975_000]


def test_timeouts_are_those_that_tcprs_labels() -> None:
    """All but three, and but two whose timestamps show that the label is wrong."""
    tally: Counter[str] = Counter()
    for log in sorted(needs.shared("labelled/tcprs").glob("*.tcpretransmissions.log")):
        name = log.name.split(".")[1]
        capture = log.with_name(f"{name}.pcap")
        if not capture.exists():
            continue
        kinds = {row["time_ns"] // 1000: row["kind"] for row in retransmissions(capture)}
        lines = [line.split("\t") for line in log.read_text().splitlines() if not line.startswith("#")]
        times = [round(float(line[0]) * 1_000_000) for line in lines if line[12] == RTO_LABEL]
        wrong = FAST_AT if name == MISLABELLED else ()
        tally.update(kinds.get(time, "none") for time in times if time not in wrong)
    assert tally == {TIMEOUT: 34, FAST: 3}


def test_a_retransmission_that_echoes_the_third_duplicate_ack_is_fast() -> None:
    rows = retransmissions(needs.shared(f"labelled/tcprs/{MISLABELLED}.pcap"))
    frame_kinds = {row["frame"]: row["kind"] for row in rows if row["time_ns"] // 1000 in FAST_AT}
    assert frame_kinds == {376: FAST, 761: FAST}
