# SPDX-License-Identifier: Apache-2.0
"""A jump of the capture's clock is no wait, and a wait is no jump."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretale
from causes_captured import JUMPS, turns


@pytest.mark.parametrize("late", JUMPS)
def test_only_a_jump_of_the_clock_is_no_wait(late: str, tmp_path: Path) -> None:
    trace = wiretale.analyze(turns(late).write(tmp_path))
    steps = [row["sentence"] for row in trace.causes if row["code"] == "clock-step"]
    if late.startswith("clock"):
        assert len(steps) == 1 and "forward by 1.5" in steps[0], steps
        assert trace.answer.cause == "clock-step", trace.answer.sentence
        assert not [row["code"] for row in trace.causes if row["waited_ns"]]
        assert max(trace.transfers.turns.waits.values()) < 5e9, trace.transfers.turns.waits
    else:
        assert not steps
        assert any(finding["code"] == JUMPS[late] for finding in trace.findings), trace.answer.sentence
