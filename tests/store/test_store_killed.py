# SPDX-License-Identifier: Apache-2.0
"""A store whose process is killed at any moment has each capture whole or not at all."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

from checkout import SAMPLES

NAMES = ("tcp_losses.pcap", "udp_blocks.pcap", "ip_fragments.pcap")
KILLS = 10
LATEST = 0.9  # of the time that an undisturbed run takes


def command(store: Path) -> list[str]:
    return [sys.executable, "-m", "wiretale", "store", "add", str(store), *(str(SAMPLES / name) for name in NAMES)]


def whole_flows(store: Path) -> list[tuple[str, int, int]]:
    """Name, flows and packets of each capture; the sums of its flows must be those of its row."""
    if not (store / "store.json").exists():
        return []
    with duckdb.connect() as connection:
        captures = connection.execute(
            f"""SELECT c.path, c.flows, count(f.flow), sum(f.packets) FROM
            read_parquet('{store}/day=*/capture_id=*/captures.parquet', hive_partitioning = true) AS c LEFT JOIN
            read_parquet('{store}/day=*/capture_id=*/flows.parquet', hive_partitioning = true) AS f USING (capture_id)
            GROUP BY c.path, c.flows ORDER BY c.path"""
        ).fetchall()
    assert all(flows == counted for _, flows, counted, _ in captures), captures
    return [(path, flows, packets) for path, flows, _, packets in captures]


def test_a_killed_process_leaves_no_part_of_a_capture(wiretale_run: Any, tmp_path: Path) -> None:
    draw = random.Random(0)
    began = time.monotonic()
    subprocess.run(command(tmp_path / "whole"), check=True, capture_output=True, timeout=120)
    took = time.monotonic() - began
    expected = whole_flows(tmp_path / "whole")
    assert len(expected) == len(NAMES)
    killed = 0
    for number in range(KILLS):
        store = tmp_path / f"{number // 2}"  # every second one begins with what the first left
        with subprocess.Popen(command(store), stderr=subprocess.DEVNULL) as process:
            time.sleep(draw.uniform(0.1, LATEST) * took)
            process.send_signal(signal.SIGKILL)
            killed += process.wait(timeout=60) == -signal.SIGKILL
        assert [capture for capture in whole_flows(store) if capture not in expected] == []
    assert killed
    for number in range(KILLS // 2):
        store = tmp_path / f"{number}"
        subprocess.run(command(store), check=True, capture_output=True, timeout=120)
        assert whole_flows(store) == expected
        assert wiretale_run("store", "check", store).stdout == "no problems\n"
