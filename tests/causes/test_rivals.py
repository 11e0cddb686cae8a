# SPDX-License-Identifier: Apache-2.0
"""Devices that meet some packets alone, and ends that wait for something else: each cause beside its nearest rivals."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretale
from causes_devices import CASES as DEVICES
from causes_turns import CASES as TURNS
from causes_turns import pinged, woken
from causes_waits import CASES as WAITS

CASES = {**DEVICES, **TURNS, **WAITS}


@pytest.mark.parametrize("name", CASES)
def test_each_is_blamed_only_for_its_own(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    trace = wiretale.analyze(case.make().write(tmp_path / "capture.pcap"))
    if not case.is_there:
        assert case.code not in [row["code"] for row in trace.causes if row["severity"] != "info"], (
            trace.answer.sentence
        )
        return
    assert trace.answer.cause == case.code, trace.answer.sentence
    assert all(words in trace.answer.sentence for words in case.says), trace.answer.sentence
    assert (trace.answer.cost["waited_ns"] or 0) > 0


def test_lost_pings_are_said_beside_those_that_are_held(tmp_path: Path) -> None:
    trace = wiretale.analyze(pinged(woken, lost=(6, 16, 26)).write(tmp_path / "pings.pcap"))
    (row,) = [row for row in trace.causes if row["code"] == "held-pings"]
    assert "17 of 40 pings took up to" in row["sentence"] and "3 got no answer, and only" in row["sentence"]
