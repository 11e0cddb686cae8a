# SPDX-License-Identifier: Apache-2.0
"""SYNs and FINs are no data segments; ACKs that were lost, and data that never arrived, have sentences of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import SCENARIOS
from scenario import captured, read_scenario
from scenario_wire import write_pcap
from wiretale.analyzer.diff.run import load_run


def findings(scenario: str, folder: Path) -> dict[str, dict[str, Any]]:
    frames = captured(read_scenario(SCENARIOS / f"{scenario}.txt", SCENARIOS), "ipv4")
    rows = wiretale.analyze(write_pcap(frames, folder / "case.pcap")).findings.rows()
    return {row["code"]: row for row in rows}


@pytest.mark.parametrize(
    ("scenario", "code", "words"),
    [
        ("open_close/fin_again", "lost-downstream", " lost 1 FIN, or its ACK, between"),
        ("open_close/fin_with_data_retransmitted", "lost-downstream", " lost 1 of 3 data segments (33.3%), or its ACK"),
        (
            "open_close/fin_lost_upstream_and_passed_by_an_ack",
            "lost-upstream",
            " lost 1 FIN between sender and capture point",
        ),
        (
            "open_close/fin_and_data_lost",
            "lost-downstream",
            " lost 1 of 3 data segments (33.3%) and 1 FIN, or their ACKs",
        ),
    ],
)
def test_a_fin_is_no_data_segment(scenario: str, code: str, words: str, tmp_path: Path) -> None:
    assert words in findings(scenario, tmp_path)[code]["sentence"]


def test_a_fin_is_in_no_share_of_a_run(tmp_path: Path) -> None:
    frames = captured(read_scenario(SCENARIOS / "open_close" / "fin_and_data_lost.txt", SCENARIOS), "ipv4")
    total = load_run(str(write_pcap(frames, tmp_path / "case.pcap"))).total
    assert (total["retransmissions"], total["lost_downstream"]) == (pytest.approx(100 / 3), 2)


@pytest.mark.parametrize(
    ("scenario", "count"),
    [
        ("acks_lost_behind_the_capture_point", "3 ACKs were"),
        ("one_ack_lost_before_more_data", "1 ACK was"),
        ("acks_that_were_late", None),
        ("one_ack_lost_or_late", None),
    ],
)
def test_lost_acks_are_named_only_if_they_are_known(scenario: str, count: str | None, tmp_path: Path) -> None:
    rows = findings(f"spurious/{scenario}", tmp_path)
    spurious, stalls = rows["spurious"], rows["timeout-stalls"]
    assert ("lost between the capture point and 10.0.0.1" in spurious["sentence"]) == (count is not None)
    assert ("lost after the capture point" in stalls["advice"]) == (count is not None)
    assert "Nothing was lost" not in stalls["advice"]
    if count:
        assert f"at least {count} lost" in spurious["sentence"] and "discard" in spurious["advice"]


def test_full_segments_that_never_arrive_suggest_the_path_mtu(tmp_path: Path) -> None:
    small = findings("sack/a_hole_that_nothing_fills", tmp_path)["never-arrived"]
    full = findings("sack/a_hole_of_full_segments", tmp_path)["never-arrived"]
    assert "1 kB of payload never arrived" in small["sentence"] and "MTU" not in small["sentence"]
    assert "path MTU" in full["sentence"] and "1.45 kB of payload each" in full["sentence"]
