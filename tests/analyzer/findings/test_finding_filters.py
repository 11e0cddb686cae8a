# SPDX-License-Identifier: Apache-2.0
"""Every finding's display filter, run by Wireshark over the finding's file, selects frames."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import wiretale

pytestmark = pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")


def selected(capture: Path, display_filter: str) -> list[int]:
    """Numbers of the frames that Wireshark selects; its warnings about a damaged file are ignored."""
    command = ["tshark", "-n", "-r", str(capture), "-Y", display_filter, "-T", "fields", "-e", "frame.number"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0 or "malformed" in run.stderr or "damaged" in run.stderr or "cut short" in run.stderr, run
    return [int(line) for line in run.stdout.split()]


def filtered(capture: Path) -> list[dict[str, Any]]:
    return [row for row in wiretale.analyze(capture).findings.rows() if row["filter"]]


def test_each_filter_selects_frames(sample: Path) -> None:
    for row in filtered(sample):
        assert selected(sample, row["filter"]), (row["code"], row["filter"])


@pytest.mark.parametrize(
    ("name", "stalls"),
    [
        ("tcp_losses.pcap", [[337, 338]]),
        ("go_back_n.pcap", [[54, 59]]),
        ("lost_tail.pcap", [[37, 39]]),
        ("timeouts.pcap", [[208, 247], [127, 129], [61, 62]]),
    ],
)
def test_a_stall_is_its_first_and_last_frame(samples: Path, name: str, stalls: list[list[int]]) -> None:
    rows = [row for row in filtered(samples / name) if row["code"] == "timeout-stalls"]
    assert [[int(number) for number in re.findall(r"\d+", row["evidence"])] for row in rows] == stalls
    assert [selected(samples / name, row["filter"]) for row in rows] == stalls


def test_a_stall_lasts_from_the_one_frame_to_the_other(samples: Path) -> None:
    for name in ("tcp_losses.pcap", "go_back_n.pcap", "lost_tail.pcap", "timeouts.pcap"):
        trace = wiretale.analyze(samples / name)
        times = {row["frame"]: row["time_ns"] for row in trace.packets(range(len(trace.flows))).rows()}
        for row in trace.directions.rows():
            stalls = [tuple(map(int, pair.split("-"))) for pair in (row["stall_frames"] or "").split(", ") if pair]
            assert sum(times[last] - times[first] for first, last in stalls) == (row["limit_timeout_ns"] or 0)
