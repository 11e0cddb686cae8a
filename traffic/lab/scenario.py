# SPDX-License-Identifier: Apache-2.0
"""A scenario: one flow of blocks over a lab's link, captured before and after the link."""

from __future__ import annotations

import json
import subprocess
import time
from math import floor
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.lab.capture import capture_drops, captures, check_captured
from wiretale.traffic.lab.hosts import ADDRESSES, part_tcp
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import link_summary, make_folder, write_truth
from wiretale.traffic.lab.profile import Profile, Scenario
from wiretale.traffic.lab.program import last_line, real_time
from wiretale.traffic.lab.state import Lab
from wiretale.traffic.program import find_program

PORT = 5001
GRACE_SECONDS = 60  # after the end of the flow
SENDER_PRIORITY = 5  # below the link's 10
# Bytes of an IP packet besides the block: IPv4 and UDP; IPv4, TCP and its timestamps.
HEADERS = {"udp": 28, "tcp": 52}


def block_bytes(scenario: Scenario) -> int:
    """Returns the block size that gives the study's IP packet."""
    return scenario.packet_bytes - HEADERS[scenario.protocol]


def packet_count(scenario: Scenario) -> int:
    """Returns the number of packets: one at the start, then one per interval."""
    if scenario.count is not None:
        return scenario.count
    return floor(scenario.seconds * scenario.rate_bps / (8 * scenario.packet_bytes)) + 1


def interval_ns(scenario: Scenario) -> float | None:
    """Returns the time between packets, if the sender controls it; TCP also waits for its window."""
    return 8e9 * scenario.packet_bytes / scenario.rate_bps if scenario.protocol == "udp" else None


def send_command(scenario: Scenario) -> list[str]:
    """Returns the sender's command: packets at the study's interval, so blocks at a lower bit rate."""
    rate = scenario.rate_bps * block_bytes(scenario) / scenario.packet_bytes
    options = {
        "--port": PORT,
        "--size": block_bytes(scenario),
        "--count": packet_count(scenario),
        "--rate": f"{rate:.3f}",
    }
    words = [str(word) for option in options.items() for word in option]
    protocol = ["--udp"] if scenario.protocol == "udp" else []
    return [find_program("wiretale-traffic"), "send", ADDRESSES["receiver"][0], *words, *protocol, "--json"]


def wait_for_port(lab: Lab, receiver: subprocess.Popen[str]) -> None:
    """Waits until the receiver listens for its control connection."""
    for _ in range(200):
        if receiver.poll() is not None:
            raise WiretaleError(f"the receiver ended early: {last_line(receiver.communicate()[1])}")
        pattern = f":{PORT:04X} "
        command = lab.inside("receiver", "cat", "/proc/net/tcp", "/proc/net/tcp6")
        said = subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
        if any(pattern in line and " 0A " in line for line in said.splitlines()):
            return
        time.sleep(0.05)
    raise WiretaleError(f"the receiver does not listen on port {PORT} after 10 s")


def last_object(text: str) -> dict[str, Any]:
    """Returns the JSON object at the end of a program's output."""
    try:
        said = json.loads(last_line(text))
    except ValueError:
        raise WiretaleError(f"wiretale-traffic: expected one JSON object, found {last_line(text)[:80]!r}") from None
    return said if isinstance(said, dict) else {}


def why_failed(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the program's error; the report of an aborted test contains it."""
    if done.stderr.strip():
        return last_line(done.stderr)
    report = last_object(done.stdout or "{}")
    return f"cut short: {report.get('stopped_by')} (exit code {done.returncode})"


def send_blocks(lab: Lab, scenario: Scenario) -> dict[str, Any]:
    """Runs receiver and sender until both end; returns the sender's report."""
    receive = [find_program("wiretale-traffic"), "receive", "--port", str(PORT), "--json", "--once"]
    receiver = subprocess.Popen(
        lab.inside("receiver", *receive),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=lab.environment(),
    )
    try:
        wait_for_port(lab, receiver)
        command = lab.inside("sender", *real_time(SENDER_PRIORITY), *send_command(scenario))
        limit = scenario.seconds + GRACE_SECONDS
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, stdin=subprocess.DEVNULL, env=lab.environment()
        )
        if done.returncode:
            raise WiretaleError(f"wiretale-traffic send: {why_failed(done)}")
        receiver.communicate(timeout=GRACE_SECONDS)
        return last_object(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise WiretaleError(f"wiretale-traffic did not end within {error.timeout:.0f} s") from None
    finally:
        receiver.kill()
        receiver.communicate()


def run_scenario(profile: Profile, scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Runs the scenario; afterwards the folder contains captures, truth.parquet and the programs' output."""
    make_folder(folder)
    with lab_for_run(profile, folder) as lab, captures(lab, folder) as places:
        if scenario.protocol == "udp":
            part_tcp(lab)
        sent = send_blocks(lab, scenario)
    check_captured(places)
    write_truth(folder, folder / "truth.parquet")
    return {
        "sender": sent,
        "link": link_summary(folder),
        "capture_drops": capture_drops(folder),
        "before": str(places["before"]),
        "after": str(places["after"]),
    }
