# SPDX-License-Identifier: Apache-2.0
"""Causes at an end, each beside its nearest rivals: captures whose truth is known packet by packet."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretale
from causes_ends import CASES
from wiretale.analyzer.causes.registry import CAUSES

OF_ENDS = {code for code, rule in CAUSES.items() if ".ends." in rule.matches.__module__}


@pytest.mark.parametrize("name", CASES)
def test_an_end_is_blamed_only_for_its_own(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    trace = wiretale.analyze(case.make().write(tmp_path / "capture.pcap"))
    rows = [row for row in trace.causes if row["code"] in OF_ENDS and row["severity"] != "info"]
    assert [row["code"] for row in rows[:1]] == ([case.code] if case.code else []), [row["sentence"] for row in rows]
    assert trace.answer.cause == case.code, trace.answer.sentence
    for row in rows[:1]:
        assert row["certainty"] == case.certainty
        assert all(words in row["sentence"] for words in case.says), row["sentence"]
        assert row["waited_ns"] > 0
        assert row["saving_ns"] is None or row["saving_ns"] <= row["waited_ns"]
