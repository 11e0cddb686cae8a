# SPDX-License-Identifier: Apache-2.0
"""Healthy or merely busy captures have no cause above a note, and their answer says what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretale
from healthy_captures import HEALTHY, healthy

HAPPENED = ("carried", "answered")


@pytest.mark.parametrize(("kind", "rtt", "at"), HEALTHY)
def test_nothing_is_blamed(tmp_path: Path, kind: str, rtt: float, at: float) -> None:
    trace = wiretale.analyze(healthy(kind, rtt, at).write(tmp_path / "healthy.pcap"))
    assert [row for row in trace.causes if row["severity"] != "info"] == []
    assert trace.answer.cause is None and trace.answer.findings == [], trace.answer.sentence
    assert any(word in trace.answer.sentence for word in HAPPENED), trace.answer.sentence
