# SPDX-License-Identifier: Apache-2.0
"""`wiretale store watch --open-flows`: a snapshot has the flows that the store lacks, whatever runs beside it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wiretale
from processes import refusal, wait_until
from rotated_files import publish, rotated, traffic, write_files
from running_rows import snapshot_rows, store_rows, trace_rows
from wiretale.analyzer.options import NO_OPTIONS
from wiretale.reports.live import snapshots
from wiretale.reports.live.snapshots import about
from wiretale.reports.store.watch import Notes, Watch

TABLES = ("flows", "directions", "events", "exchanges", "series")


def test_store_and_snapshot_are_one_analysis_of_the_files_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "is_alone", lambda: True)  # pytest's own threads do nothing
    folder, store, now = tmp_path / "captures", tmp_path / "store", tmp_path / "now"
    folder.mkdir()
    lines: list[str] = []
    watch = Watch(folder, store, NO_OPTIONS, Notes(lambda text: None, lines.append), now)
    assert watch.snapshots
    watch.open()
    versions = set()
    for number, (name, packets) in enumerate(rotated(traffic(11, 120, 60, 250), 40)[:8]):
        publish(folder, name, packets)
        watch.look()
        watch.publish(False)
        if number in (2, 7):
            watch.snapshots.wait()
            watch.snapshots.ask()
            watch.show_open_flows()
            assert watch.snapshots.wait(), lines
            versions.add((about(now) or {})["version"])
            trace = wiretale.analyze(folder)
            for table in TABLES:
                both = store_rows(store, table) + snapshot_rows(now, table)
                assert sorted(both, key=repr) == trace_rows(trace, table), (number, table)
    watch.close()
    assert lines == [] and len(versions) == 2 and not list(tmp_path.glob(".partial*"))


def test_a_snapshot_is_made_at_a_signal_and_a_killed_watch_can_start_again(wiretale_run: Any, tmp_path: Path) -> None:
    folder, now = tmp_path / "captures", tmp_path / "now"
    files = rotated(traffic(12, 60, 30, 100), 20)
    write_files(folder, files[:2])
    words = ["store", "watch", str(folder), "--store", str(tmp_path / "store"), "-q"]

    def version() -> int:
        return int((about(now) or {"version": 0})["version"])

    with subprocess.Popen([sys.executable, "-m", "wiretale", *words, "--open-flows", str(now)]) as watch:
        try:
            wait_until(version, "the first snapshot")
            first = version()
            watch.send_signal(signal.SIGUSR1)
            wait_until(lambda: version() > first, "another one")
        finally:
            watch.kill()
    assert wiretale_run(*words, "--once").returncode == 0
    (now / "mine.txt").write_text("not to be replaced")
    assert "mine.txt: expected a folder for snapshots alone" in refusal(wiretale_run(*words, "--open-flows", now), 2)
    assert "no flow is open after --once" in refusal(wiretale_run(*words, "--once", "--open-flows", now), 2)
    (now / "mine.txt").unlink()
    (now / snapshots.ABOUT_FILE).unlink()  # as the tables of `analyze -o` are
    text = "announcers.parquet: expected a folder for snapshots alone"
    assert text in refusal(wiretale_run(*words, "--open-flows", now), 2)
