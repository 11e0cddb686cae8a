# SPDX-License-Identifier: Apache-2.0
"""Measures how evenly wiretale-traffic, iperf3, nuttcp and sockperf send 10,000 datagrams a second, by a capture at the sender.

    sudo PYTHONPATH=benchmarks python -m speed.pacing --program build/bin/wiretale-traffic

The programs alternate between two network namespaces; the median of the rounds counts. A gap's error is its difference from
100 µs. wiretale-traffic takes real-time priority itself. The exit status is 1 if 99% of its gaps are not within 100 µs of that,
or if another program is more even; the machine must be idle.
"""

from __future__ import annotations

import argparse
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

from shared.namespaces import inside, listens, missing, wait_until
from speed.check import Check, print_checks
from speed.traffic import LISTENS_SECONDS, PORT, RECEIVER, two_ends

PER_SECOND, SIZE = 10_000, 200
GAP_NS = 1_000_000_000 // PER_SECOND
BITS = PER_SECOND * SIZE * 8
LEAST_BYTES = SIZE  # of a captured packet: others are the control connection's
SKIPPED_NS = 200_000_000  # at the beginning
BOUND_US = 100.0
NANOSECONDS, RECORD = 0xA1B23C4D, struct.Struct("<IIII")


@dataclass
class Program:
    """Commands of a program, and of each round the packets a second and the errors of the gaps in µs."""

    name: str
    server: list[str]
    client: list[str]
    port: int | None  # TCP; None: there is none to wait for
    rates: list[float] = field(default_factory=list)
    middle: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)  # 99th percentile


def programs(wiretale: str, seconds: int) -> list[Program]:
    time, size = str(seconds), str(SIZE)
    paced = ["--udp", "--size", size, "--rate", f"{PER_SECOND}pps", "--time", time]
    return [
        Program(
            "wiretale-traffic",
            [wiretale, "receive", "--once", "--quiet", "--user", "root", "--port", str(PORT)],
            [wiretale, "send", RECEIVER, "--port", str(PORT), "--quiet", *paced],
            PORT,
        ),
        Program(
            "iperf3",
            ["iperf3", "-s", "-1", "-p", "5201"],
            ["iperf3", "-c", RECEIVER, "-p", "5201", "-u", "-l", size, "-b", str(BITS), "-t", time],
            5201,
        ),
        Program(
            "nuttcp",
            ["nuttcp", "-1"],
            ["nuttcp", "-u", f"-l{SIZE}", f"-Ri{BITS // 1000}", f"-T{time}", RECEIVER],
            5000,
        ),
        Program(
            "sockperf",
            ["sockperf", "server", "-i", RECEIVER, "-p", "11111"],
            ["sockperf", "throughput", "-i", RECEIVER, "-p", "11111", "-t", time, "-m", size, "--mps", str(PER_SECOND)],
            None,
        ),
    ]


def stamps(capture: Path) -> Iterator[int]:
    """Yields the times of the datagrams in a capture of tcpdump, in ns."""
    data = capture.read_bytes()
    if len(data) < 24 or int.from_bytes(data[:4], "little") != NANOSECONDS:
        raise RuntimeError(f"{capture}: expected a pcap file with nanoseconds")
    at = 24
    while at + RECORD.size <= len(data):
        seconds, ns, captured, length = RECORD.unpack_from(data, at)
        at += RECORD.size + captured
        if length >= LEAST_BYTES:
            yield seconds * 1_000_000_000 + ns


def start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(ends: dict[str, str], program: Program, folder: Path) -> None:
    """Runs a program for one round."""
    capture = folder / "path.pcap"
    words = [
        "tcpdump",
        "-i",
        "path",
        "-Q",
        "out",
        "-s",
        "64",
        "-U",
        "--time-stamp-precision=nano",
        "-w",
        str(capture),
        "udp",
    ]
    server, tracer = start(inside(ends["receiver"], *program.server)), start(inside(ends["sender"], *words))
    try:
        if program.port:
            wait_until(lambda: listens(ends["receiver"], program.port or 0), f"{program.name} listens", LISTENS_SECONDS)
        wait_until(lambda: capture.exists() and capture.stat().st_size >= 24, "tcpdump captures", LISTENS_SECONDS)
        if code := start(inside(ends["sender"], *program.client)).wait(timeout=60):
            raise RuntimeError(f"{program.name}: exit code {code}")
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        server.kill()
        server.wait()
    times = list(stamps(capture))
    capture.unlink()
    times = [time for time in times if time - times[0] >= SKIPPED_NS]
    errors = sorted(abs(after - before - GAP_NS) / 1000 for before, after in pairwise(times))
    program.rates.append(len(errors) * 1e9 / (times[-1] - times[0]))
    program.middle.append(errors[len(errors) // 2])
    program.most.append(errors[len(errors) * 99 // 100])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/wiretale-traffic")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    arguments = parser.parse_args()
    if problem := missing("bench", "ip", "tcpdump", "iperf3", "nuttcp", "sockperf"):
        print(problem, file=sys.stderr)
        return 5
    tools = programs(os.path.abspath(arguments.program), arguments.seconds)
    with two_ends() as ends, tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for tool in tools:
                measure(ends, tool, Path(folder))
    print(f"{PER_SECOND:,} datagrams of {SIZE} bytes a second; error of the gaps, median of {arguments.rounds} rounds")
    print(f"{'program':18} {'sent/s':>10} {'50%, µs':>10} {'99%, µs':>10}")
    for tool in tools:
        print(f"{tool.name:18} {median(tool.rates):10,.0f} {median(tool.middle):10.1f} {median(tool.most):10.1f}")
    wiretale_error, *other_errors = (median(tool.most) for tool in tools)
    checks = [
        Check("error of 99% of the gaps, µs", wiretale_error, BOUND_US),
        Check("the same / the most even other program's", wiretale_error / min(other_errors), 1.0),
    ]
    return 0 if print_checks(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
