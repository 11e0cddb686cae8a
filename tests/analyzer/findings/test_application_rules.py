# SPDX-License-Identifier: Apache-2.0
"""Rules about DNS and TLS: a capture that shows each, with its cost, and one that nearly does and must not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crafted import Timed, analyze_timed
from crafted import dns_answer as answered
from crafted import dns_query as query
from crafted import tls_handshake as handshake

Row = dict[str, Any]


def findings_of(folder: Path, timed: Timed) -> dict[str, Row]:
    rows = analyze_timed(folder, sorted(timed, key=lambda packet: packet[0])).findings.rows()
    return {row["code"]: row for row in rows if row["code"].startswith(("dns-", "tls-"))}


def test_slow_answers_cost_the_time_waited(tmp_path: Path) -> None:
    timed = [query(0), query(0.1, 2, "b.example"), answered(0.6), answered(0.8, 2, "b.example")]  # 0.8 s in all
    timed += [query(5, 3), query(6, 3), answered(6.5, 3), query(8, 4), answered(8.09, 4)]
    row = findings_of(tmp_path, timed)["dns-slow"]
    assert row["cost"] == pytest.approx(2.3, abs=0.001) and row["severity"] == "warning"
    assert row["sentence"].startswith(
        "3 DNS answers of 10.0.0.53 took 100 ms or longer, 1.50 s at most (1 of them was asked again)"
    )


def test_fast_answers_are_no_finding(tmp_path: Path) -> None:
    assert not findings_of(tmp_path, [query(0), answered(0.099), query(1, 2), answered(1.02, 2)])


def test_questions_without_an_answer(tmp_path: Path) -> None:
    timed = [
        query(0),
        answered(0.01),
        query(1, 2, "lost.example", 4001),
        query(3, 2, "lost.example", 4001),
        query(20, 9),
        answered(20.1, 9),
    ]
    row = findings_of(tmp_path, timed)["dns-unanswered"]
    assert (row["cost"], row["cost_unit"], row["severity"]) == (1.0, "queries", "warning")
    assert row["sentence"] == "1 DNS question to 10.0.0.53 got no answer after 2 queries: lost.example (A)."


def test_one_direction_shows_no_unanswered_question(tmp_path: Path) -> None:
    assert not findings_of(tmp_path, [query(0), query(1, 2), query(20, 3)])


def test_errors_warn_and_missing_names_inform(tmp_path: Path) -> None:
    timed = [
        query(0),
        answered(0.05, code=2),
        query(1, 2, "no.example", 4001),
        answered(1.02, 2, "no.example", 4001, 3),
    ]
    rows = [row for row in analyze_timed(tmp_path, timed).findings.rows() if row["code"] == "dns-failed"]
    assert [(row["severity"], row["cost"]) for row in rows] == [
        ("warning", pytest.approx(0.05, abs=0.001)),
        ("info", pytest.approx(0.02, abs=0.001)),
    ]
    assert "SERVFAIL" in rows[0]["sentence"] and "NXDOMAIN" in rows[1]["sentence"]


def test_a_slow_handshake_costs_what_the_ends_took(tmp_path: Path) -> None:
    row = findings_of(tmp_path, handshake(1.2))["tls-handshake-slow"]
    assert row["cost"] == pytest.approx(1.2, abs=0.005) and row["severity"] == "warning"
    assert "TLS 1.3 handshake took 1.21 s with 1 round trip" in row["sentence"]


def test_a_fast_handshake_is_no_finding(tmp_path: Path) -> None:
    assert not findings_of(tmp_path, handshake(0.09))


def test_alerts_are_findings_except_of_the_end(tmp_path: Path) -> None:
    row = findings_of(tmp_path, handshake(0, b"\x15\3\3\0\2\2\x46"))["tls-alert"]
    assert (row["cost"], row["cost_unit"]) == (1.0, "connections")
    assert row["sentence"] == "1 TLS handshake was ended by the alert protocol_version of the server."
    assert not findings_of(tmp_path, handshake(0, b"\x15\3\3\0\2\1\0"))
