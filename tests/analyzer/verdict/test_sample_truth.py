# SPDX-License-Identifier: Apache-2.0
"""The verdicts on every sample against its truth, which its script wrote down while it made the packets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wiretale

# Verdicts that one capture cannot show: docs/verdicts.md, "What cannot be determined".
TOLD_OTHERWISE = {("lost_tail", "timeout_retransmission"): "suspected_timeout"}
FRAME_VERDICTS = {
    *("fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission", "out_of_order"),
    *("network_duplicate", "mirror_duplicate", "keep_alive", "window_probe", "zero_window", "window_full"),
    *("acked_unseen_segment", "duplicate_ack", "keep_alive_ack"),
}


@pytest.fixture
def sample_truth(sample: Path) -> tuple[str, wiretale.Trace, dict[str, Any]]:
    return sample.stem, wiretale.analyze(sample), json.loads(sample.with_suffix(".truth.json").read_text())


def test_counts(sample_truth: tuple[str, wiretale.Trace, dict[str, Any]]) -> None:
    name, trace, truth = sample_truth
    told_otherwise = {kind for sample, kind in TOLD_OTHERWISE if sample == name}
    for counts in truth["counts"]:
        row = trace.directions.rows()[2 * counts["flow"] + counts["direction"]]
        wanted = {key: value for key, value in counts.items() if key in row}
        assert wanted and (told_otherwise or {key: row[key] for key in wanted} == wanted)


def test_frames(sample_truth: tuple[str, wiretale.Trace, dict[str, Any]]) -> None:
    name, trace, truth = sample_truth
    wanted = {
        (int(frame), TOLD_OTHERWISE.get((name, entry["verdict"]), entry["verdict"]))
        for frame, entry in truth["frames"].items()
        if entry["verdict"] in FRAME_VERDICTS
    }
    kinds = FRAME_VERDICTS | {"suspected_timeout"}
    found = {(row["frame"], row["kind"]): row for row in trace.events.rows() if row["kind"] in kinds}
    assert set(found) == wanted
    for (frame, kind), row in found.items():
        entry = truth["frames"][str(frame)]
        if kind.endswith("retransmission"):
            assert row["spurious"] == entry["spurious"]
            assert row["place"] == (None if row["spurious"] else entry["place"])
        if kind == "acked_unseen_segment":
            assert row["bytes"] == entry["bytes"]
