# SPDX-License-Identifier: Apache-2.0
"""A scenario: one flow of blocks over the link of a lab, captured before and after it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import floor
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.lab.capture import capture_drops, captures, check_captured
from wiretale.traffic.lab.hosts import ADDRESSES, part_tcp
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import lab_summary, make_folder, write_truths
from wiretale.traffic.lab.process import last_line, real_time
from wiretale.traffic.lab.profile import Profile, Scenario
from wiretale.traffic.lab.state import Lab
from wiretale.traffic.lab.topology.cross import check_cross, cross_results, cross_traffic
from wiretale.traffic.program import TRUSTED, find_program

PORT = 5001
GRACE_SECONDS = 60  # after the planned end of the flow
SENDER_PRIORITY = 5  # the link's is 10
# Bytes of headers in an IP packet: IPv4 and UDP; IPv4, TCP and its timestamps.
HEADERS = {"udp": 28, "tcp": 52}


def block_bytes(scenario: Scenario) -> int:
    """Returns the block size that gives the IP packet of the study."""
    return scenario.packet_bytes - HEADERS[scenario.protocol]


def packet_count(scenario: Scenario) -> int:
    """Returns the number of packets: one at the start, then one per interval for the duration of the study."""
    if scenario.count is not None:
        return scenario.count
    return floor(scenario.seconds * scenario.rate_bps / (8 * scenario.packet_bytes)) + 1


def interval_ns(scenario: Scenario) -> float | None:
    """Returns the time between packets for UDP; None for TCP, which also waits for its window."""
    return 8e9 * scenario.packet_bytes / scenario.rate_bps if scenario.protocol == "udp" else None


def send_command(scenario: Scenario) -> list[str]:
    """Returns the sender. Its rate counts blocks, and must be lower than that of the packets."""
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
    """Waits until the receiver listens for its control connection. WiretaleError if it ends before."""
    for _ in range(200):
        if receiver.poll() is not None:
            raise WiretaleError(f"the receiver ended at once: {last_line(receiver.communicate()[1])}")
        pattern = f":{PORT:04X} "
        command = lab.inside("receiver", "cat", "/proc/net/tcp", "/proc/net/tcp6")
        sockets = subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
        if any(pattern in line and " 0A " in line for line in sockets.splitlines()):
            return
        time.sleep(0.05)
    raise WiretaleError(f"the receiver does not listen on port {PORT} after 10 s")


def last_object(text: str) -> dict[str, Any]:
    """Returns the JSON object in the last line of an output."""
    try:
        last = json.loads(last_line(text))
    except ValueError:
        raise WiretaleError(f"wiretale-traffic: expected one JSON object, found {last_line(text)[:80]!r}") from None
    return last if isinstance(last, dict) else {}


def why_failed(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the error of a sender: on stderr, or in the report of a test that was stopped."""
    if done.stderr.strip():
        return last_line(done.stderr)
    report = last_object(done.stdout or "{}")
    return f"cut short: {report.get('stopped_by')} (exit code {done.returncode})"


@contextmanager
def receiving(lab: Lab) -> Iterator[subprocess.Popen[str]]:
    """Runs a receiver for one test, which listens when the body begins."""
    program = [find_program("wiretale-traffic"), "receive", "--port", str(PORT), "--json", "--once", *TRUSTED]
    command, pipe = lab.inside("receiver", *program), subprocess.PIPE
    receiver = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=lab.environment()
    )
    try:
        wait_for_port(lab, receiver)
        yield receiver
    except subprocess.TimeoutExpired as error:
        raise WiretaleError(f"wiretale-traffic did not end within {error.timeout:.0f} s") from None
    finally:
        receiver.kill()
        receiver.communicate()


def run_sender(lab: Lab, command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Runs a sender of a planned duration to its end."""
    return subprocess.run(
        lab.inside("sender", *command),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds + GRACE_SECONDS,
        env=lab.environment(),
    )


def send_blocks(lab: Lab, scenario: Scenario) -> dict[str, Any]:
    """Runs receiver and sender to their end, and returns the report of the sender."""
    with receiving(lab) as receiver:
        done = run_sender(lab, [*real_time(SENDER_PRIORITY), *send_command(scenario)], scenario.seconds)
        if done.returncode:
            raise WiretaleError(f"wiretale-traffic send: {why_failed(done)}")
        receiver.communicate(timeout=GRACE_SECONDS)
        return last_object(done.stdout)


def run_scenario(profile: Profile, scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Runs a scenario. Captures, truth.parquet and logs are in `folder` afterwards."""
    check_cross(profile)
    make_folder(folder)
    with lab_for_run(profile, folder) as lab, captures(lab, folder) as places:
        if scenario.protocol == "udp":
            part_tcp(lab)
        with cross_traffic(lab, profile, folder) as codes:
            sent = send_blocks(lab, scenario)
    check_captured(places)
    write_truths(lab, folder)
    return {
        "sender": sent,
        "link": lab_summary(lab, folder),
        "cross": cross_results(profile, folder, codes),
        "capture_drops": capture_drops(folder),
        "before": str(places["before"]),
        "after": str(places["after"]),
    }
