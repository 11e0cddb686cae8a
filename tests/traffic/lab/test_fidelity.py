# SPDX-License-Identifier: Apache-2.0
"""The fidelity line: a link that was held up is not valid, one that kept its times is."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from json_schema import check_schema
from lab_bench import NEEDED, NEEDS_TRAFFIC, SENDER, lab_of, last_json, wiretale_lab
from traffic_ends import undisturbed
from wiretale.reports.terminal.lab import fidelity_text
from wiretale.traffic.lab.hosts import processes_in
from wiretale.traffic.lab.link import link_summary
from wiretale.traffic.lab.state import Lab

pytestmark = [pytest.mark.xdist_group("live"), NEEDED]
PROFILE = '[both]\ndelay = "20ms"\n'
LINE = re.compile(
    r"fidelity: emulation error p99 ([\d.]+ [µm]?s), max ([\d.]+ [µm]?s), 0 overruns: (valid|not valid) "
    r"\(bounds: p99 1 ms, max 50 ms, no overrun\)"
)


def link_of(lab: Lab) -> int:
    """Process of the link."""
    (process,) = (pid for pid in processes_in(lab) if "wiretale-link" in Path(f"/proc/{pid}/cmdline").read_text())
    return process


def stop_for(pid: int, seconds: float) -> None:
    """Holds a process up."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


def fidelity_of(folder: Path, stopped: float = 0) -> dict[str, Any]:
    """Of a run of 500 packets, in which the link is stopped for so many seconds."""
    folder.mkdir()
    with lab_of(PROFILE, "trial", folder) as lab:
        command = lab.inside("sender", sys.executable, "-c", SENDER, "200", "500", "0.002")
        with subprocess.Popen(command) as sender:
            if stopped:
                time.sleep(0.3)
                stop_for(link_of(lab), stopped)
            assert not sender.wait(timeout=120)
        time.sleep(0.1)
    fidelity: dict[str, Any] = link_summary(folder)["fidelity"]
    return fidelity


def test_a_link_that_was_stopped_is_not_valid(tmp_path: Path) -> None:
    fidelity = fidelity_of(tmp_path / "run", stopped=0.3)
    assert fidelity["valid"] is False
    assert fidelity["error_ns_max"] > 200e6
    assert fidelity["error_ns_p50"] <= fidelity["error_ns_p99"] <= fidelity["error_ns_max"]
    match = LINE.fullmatch(fidelity_text(fidelity))
    assert match and match[3] == "not valid"


def test_packets_that_waited_longer_than_a_second_are_counted(tmp_path: Path) -> None:
    fidelity = fidelity_of(tmp_path / "run", stopped=1.6)
    assert fidelity["valid"] is False and fidelity["restamped"] > 0


def test_an_undisturbed_link_is_valid(tmp_path: Path) -> None:
    tries = itertools.count()

    def check() -> None:
        fidelity = fidelity_of(tmp_path / str(next(tries)))
        assert (fidelity["valid"], fidelity["overruns"], fidelity["restamped"]) == (True, 0, 0), fidelity
        assert fidelity["error_ns_p99"] <= fidelity["bound_ns_p99"]

    undisturbed(check)


def test_without_a_packet_validity_is_unknown(tmp_path: Path) -> None:
    with lab_of(PROFILE, "trial", tmp_path):
        pass
    summary = link_summary(tmp_path)
    assert check_schema(summary) == "wiretale.link/1"
    fidelity = summary["fidelity"]
    assert (fidelity["valid"], fidelity["error_ns_p99"]) == (None, None)
    assert "0 overruns: no packet left (bounds" in fidelity_text(fidelity)


def test_lab_down_prints_the_line(tmp_path: Path) -> None:
    name = f"f{os.getpid()}"
    (tmp_path / "slow.toml").write_text(PROFILE)
    up = wiretale_lab("up", str(tmp_path / "slow.toml"), name, "-o", str(tmp_path / "out"))
    try:
        assert up.returncode == 0, up.stderr
        sent = wiretale_lab("shell", name, "sender", "--", sys.executable, "-c", SENDER, "200", "50", "0")
        assert sent.returncode == 0, sent.stderr
        time.sleep(0.1)
    finally:
        down = wiretale_lab("down", name)
    assert LINE.search(down.stderr), down.stderr


@NEEDS_TRAFFIC
def test_a_plan_has_the_line_and_the_result_file(tmp_path: Path) -> None:
    done = wiretale_lab("run", "quick", "--profile", "same-host", "-o", str(tmp_path / "run"), "--json")
    assert done.returncode == 0, done.stderr
    row = last_json(done.stdout)
    assert row["fidelity"]["overruns"] >= 0 and row["fidelity"]["error_ns_p99"] is not None
    assert row == last_json((tmp_path / "run" / "result.json").read_text().replace("\n", " "))
