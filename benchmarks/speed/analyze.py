# SPDX-License-Identifier: Apache-2.0
"""Measures `wiretale analyze` against tcptrace, tshark and a bare libpcap loop, on the same files in one run.

    make bench

Runs of the programs alternate, so that a slow period of the machine affects all; the best of up to three runs counts. tshark
reads a shorter file, because only its time per packet is compared. If a bound is exceeded, the exit status is 1; the machine
should be idle. Captures are made once and stay in build/bench.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from speed import made_capture
from speed.check import Check, print_checks
from speed.measured import run_measured

BUILD = Path("build/bench")
ROUNDS = 3
SLOW_SECONDS = 15.0  # a program is not run again after this time


@dataclass(frozen=True)
class Capture:
    """A capture to make, with the arguments of write_capture()."""

    name: str
    packets: int
    flows: int
    snaplen: int = 96
    ack_every: int = 2

    @property
    def path(self) -> Path:
        return BUILD / f"{self.name}.pcap"


MANY_PACKETS = Capture("packets-5M-flows-5k", 5_000_000, 5000)
QUARTER = Capture("packets-1.25M-flows-5k", 1_250_000, 5000)
MANY_FLOWS = Capture("packets-2M-flows-200k", 2_000_000, 200_000)
FULL_SIZE = Capture("packets-1M-full-size", 1_000_000, 200, snaplen=65_535, ack_every=16)
TSHARK_PART = Capture("packets-200k-flows-5k", 200_000, 5000)
CAPTURES = (MANY_PACKETS, QUARTER, MANY_FLOWS, FULL_SIZE, TSHARK_PART)


@dataclass
class Result:
    """Best time and highest memory of a program on a capture."""

    program: str
    capture: Capture
    command: list[str]
    seconds: float = float("inf")
    spent: float = 0.0
    memory: float = 0.0  # MB, of 10^6 bytes

    @property
    def packet_seconds(self) -> float:
        return self.seconds / self.capture.packets

    def run(self) -> None:
        if self.spent > SLOW_SECONDS:
            return
        used = run_measured(self.command)
        assert used
        self.spent += used.wall
        self.seconds = min(self.seconds, used.wall)
        self.memory = max(self.memory, used.memory)


@dataclass
class Bench:
    """Results by program and capture."""

    wiretale: str
    results: dict[tuple[str, str], Result] = field(default_factory=dict)

    def add(self, program: str, capture: Capture, *command: str) -> None:
        self.results[program, capture.name] = Result(program, capture, list(command))

    def of(self, program: str, capture: Capture) -> Result:
        return self.results[program, capture.name]

    def plan(self) -> None:
        for capture in (MANY_PACKETS, QUARTER, MANY_FLOWS, FULL_SIZE):
            path = str(capture.path)
            self.add("libpcap loop", capture, str(BUILD / "libpcap_loop"), path)
            self.add("wiretale --json", capture, self.wiretale, "analyze", "--json", path)
            if capture is not QUARTER:
                self.add("tcptrace", capture, "tcptrace", "-n", path)
        out = str(BUILD / "out")
        self.add("wiretale -o", MANY_FLOWS, self.wiretale, "analyze", "-o", out, str(MANY_FLOWS.path))
        self.add("wiretale -o", MANY_PACKETS, self.wiretale, "analyze", "-o", out, str(MANY_PACKETS.path))
        part = str(TSHARK_PART.path)
        self.add("tshark", TSHARK_PART, "tshark", "-n", "-q", "-z", "conv,tcp", "-r", part)

    def run(self) -> None:
        for number in range(ROUNDS):
            print(f"==> round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
            for result in self.results.values():
                result.run()

    def checks(self) -> Iterator[Check]:
        big = self.of("wiretale --json", MANY_PACKETS)
        flows = self.of("wiretale -o", MANY_FLOWS)
        tcptrace, tshark = self.of("tcptrace", MANY_PACKETS), self.of("tshark", TSHARK_PART)
        tcptrace_flows = self.of("tcptrace", MANY_FLOWS)
        quarter = self.of("wiretale --json", QUARTER)
        yield Check("5 M packets: time / tcptrace's", big.seconds / tcptrace.seconds, 0.6)
        yield Check(
            "5 M packets: time per packet / tshark's", big.packet_seconds / tshark.packet_seconds, 0.05, digits=3
        )
        yield Check("5 M packets: memory", big.memory, 160, "MB", 1)
        yield Check("200,000 flows, -o: time / tcptrace's", flows.seconds / tcptrace_flows.seconds, 1.5)
        yield Check("200,000 flows, -o: memory", flows.memory, 600, "MB", 1)
        growth = big.memory / quarter.memory
        yield Check("memory for 4 times the packets of the same flows, as a multiple", growth, 1.15)
        starts = filter(None, (run_measured([self.wiretale, "--version"]) for _ in range(10)))
        yield Check("wiretale --version", min(used.wall for used in starts) * 1000, 50, "ms", 1)


def make_capture(capture: Capture) -> None:
    """Makes a capture that is missing or older than made_capture.py."""
    if capture.path.exists() and capture.path.stat().st_mtime >= Path(made_capture.__file__).stat().st_mtime:
        return
    print(f"==> making {capture.path}", file=sys.stderr, flush=True)
    partial = capture.path.with_suffix(".partial")
    with partial.open("wb") as file:
        made_capture.write_capture(file, capture.packets, capture.flows, capture.snaplen, capture.ack_every)
    partial.rename(capture.path)


def make_captures() -> None:
    """Makes the captures in other processes, because the memory of this one counts for the programs that it starts."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        list(pool.map(make_capture, CAPTURES))


def warm_up() -> None:
    """Reads every file into the page cache, so that the first program does not wait for the disk."""
    for capture in CAPTURES:
        with capture.path.open("rb") as file:
            while file.read(1 << 24):
                pass


def print_table(heads: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]
    for row in [heads, ["-" * width for width in widths], *rows]:
        left = (cell.ljust(width) for cell, width in zip(row[:2], widths, strict=False))
        right = (cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True))
        print("  ".join((*left, *right)).rstrip())


def print_results(bench: Bench) -> None:
    rows = []
    for result in sorted(bench.results.values(), key=lambda r: (-r.capture.packets, r.capture.name, r.seconds)):
        loop = bench.results.get(("libpcap loop", result.capture.name))
        ratio = f"{result.seconds / loop.seconds:.2f}" if loop else ""
        speed = f"{1e-6 / result.packet_seconds:.3f}"
        cells = [f"{result.seconds:.3f}", speed, ratio, f"{result.memory:.0f}"]
        rows.append([result.capture.name, result.program, *cells])
    print_table(["capture", "program", "seconds", "M packets/s", "x libpcap", "MB"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description="make bench")
    parser.add_argument("--wiretale", default=shutil.which("wiretale"), help="program to measure")
    options = parser.parse_args()
    bench = Bench(options.wiretale)
    make_captures()
    warm_up()
    bench.plan()
    bench.run()
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    print_results(bench)
    print()
    passed = print_checks(bench.checks())
    ratio = bench.of("wiretale --json", MANY_PACKETS).seconds / bench.of("libpcap loop", MANY_PACKETS).seconds
    print(f"\nwiretale on 5 M packets takes {ratio:.2f} times as long as the libpcap loop (the goal is 1).")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
