# SPDX-License-Identifier: Apache-2.0
"""Measures wiretale-capture against tcpdump on a veth pair between two namespaces, packets of 64 bytes from trafgen.

    PYTHONPATH=benchmarks python -m speed.capture

Runs of both programs alternate, so that a slow period of the machine affects both. The lowest CPU time of the rounds counts,
because other processes can only add to it; but no round must lose a packet. The exit status is 1 if a bound is exceeded.
Namespaces and files are removed at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from shared.namespaces import PathError, inside, missing, namespaces, run, wait_until
from speed.check import Check, print_checks

PACKETS = 4_000_000
SIZE = 64
MILLION = 1_000_000
NOBODY = 65534  # user and group
STALL_SECONDS, STALL_RATE = 2.0, 200_000
FRAME = "{{ eth(da=02:00:00:00:00:02, sa=02:00:00:00:00:0{number}), fill(0x41, 50) }}"
SEPARATOR = re.compile(r"(?<=\d),(?=\d{3})")  # of thousands
DROPPED = re.compile(r"(\d+) (?:by the (?:kernel|interface|queue|disk)|packets dropped by kernel)")


@dataclass
class Run:
    """Messages, CPU time and files of one capture."""

    log: str
    cpu_seconds: float
    files: list[Path] = field(default_factory=list)

    @property
    def dropped(self) -> int:
        summary = self.log.splitlines()[-1] if "the queue" in self.log else self.log
        return sum(int(count) for count in DROPPED.findall(summary))

    @property
    def received(self) -> int:
        match = re.search(r"(\d+) packets (?:received,|captured)", self.log)
        return int(match[1]) if match else -1


@contextlib.contextmanager
def made_link() -> Iterator[dict[str, str]]:
    """Yields namespaces of sender and tracer with two veth pairs between them."""
    with namespaces("wtbench", "sender", "tracer") as ends:
        for number in range(2):
            link = ("ip", "-n", ends["sender"], "link")
            run(*link, "add", f"out{number}", "type", "veth", "peer", "name", f"in{number}", "netns", ends["tracer"])
            run(*link, "set", f"out{number}", "up")
            run("ip", "-n", ends["tracer"], "link", "set", f"in{number}", "up")
        yield ends


class Bench:
    """The measurements. Each adds to `checks` and `notes`."""

    def __init__(self, ends: dict[str, str], program: str, folder: Path, packets: int, rounds: int) -> None:
        self.ends, self.program, self.folder, self.packets, self.rounds = ends, program, folder, packets, rounds
        self.checks: list[Check] = []
        self.notes: list[str] = []

    def send(self, count: int, numbers: tuple[int, ...] = (0,)) -> float:
        """Sends on all interfaces at once at the full speed of trafgen, and returns the seconds."""
        begin, senders = time.monotonic(), []
        for number in numbers:
            frame = self.folder / f"frame{number}"
            frame.write_text(FRAME.format(number=number + 3))
            options = ["-o", f"out{number}", "-c", str(frame), "-n", str(count), "-P1", "-q"]
            command = inside(self.ends["sender"], "trafgen", *options)
            senders.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for sender in senders:
            sender.wait()
        return time.monotonic() - begin

    def begin(self, command: list[str], log: Path, stdout: int | None = None) -> subprocess.Popen[bytes]:
        with log.open("w") as errors:
            process = subprocess.Popen(inside(self.ends["tracer"], *command), stdout=stdout, stderr=errors)

        def has_begun() -> bool:
            if process.poll() is not None:
                raise PathError(f"{command[0]} did not begin: {log.read_text()}")
            return re.search("(?i)capturing|listening on", log.read_text()) is not None

        wait_until(has_begun, f"{command[0]} captures", 20)
        time.sleep(0.2)
        return process

    def end(self, process: subprocess.Popen[bytes], log: Path) -> Run:
        """Stops a capture. CPU time is that of its process and threads, without trafgen."""
        time.sleep(0.6)
        process.send_signal(signal.SIGINT)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        return Run(SEPARATOR.sub("", log.read_text()), usage.ru_utime + usage.ru_stime)

    def capture(self, command: list[str], count: int, numbers: tuple[int, ...] = (0,)) -> tuple[Run, float]:
        out, log = self.folder / "out", self.folder / "log"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(mode=0o755)
        os.chown(out, NOBODY, NOBODY)  # the daemon drops root, tcpdump does not
        process = self.begin(command, log)
        seconds = self.send(count, numbers)
        done = self.end(process, log)
        done.files = sorted(out.glob("[!.]*"))  # not their indexes
        return done, seconds

    def loss(self, what: str, runs: list[Run], count: int) -> None:
        self.checks.append(Check(f"{what}: packets dropped", max(done.dropped for done in runs), 0, digits=0))
        self.require(f"{what}: packets recorded", min(done.received for done in runs), count)

    def require(self, what: str, measured: float, least: float) -> None:
        self.checks.append(Check(what, measured, least, digits=0, at_least=True))

    def against_tcpdump(self) -> None:
        out = str(self.folder / "out")
        runs, tcpdump_runs, rates = [], [], []
        for number in range(self.rounds):
            print(f"==> round {number + 1} of {self.rounds}", file=sys.stderr, flush=True)
            done, seconds = self.capture([self.program, "-i", "in0", "-w", out], self.packets)
            runs.append(done)
            rates.append(self.packets / seconds)
            tcpdump_runs.append(
                self.capture(["tcpdump", "-i", "in0", "-Z", "root", "-w", f"{out}/x.pcap"], self.packets)[0]
            )
        self.loss(f"{self.packets / MILLION:g} M packets of {SIZE} B", runs, self.packets)
        cpu = min(done.cpu_seconds for done in runs) / self.packets * MILLION
        tcpdump = min(done.cpu_seconds for done in tcpdump_runs) / self.packets * MILLION
        self.checks.append(Check("CPU per packet", cpu, tcpdump, "µs of tcpdump", 3))
        self.notes.append(f"trafgen sent {min(rates):,.0f} to {max(rates):,.0f} packets/s")
        self.notes.append(
            f"CPU per packet is {cpu / tcpdump:.2f} of tcpdump's; all rounds: " + show_cpu(runs, tcpdump_runs)
        )
        self.notes.append(f"tcpdump with its default buffer dropped {max(done.dropped for done in tcpdump_runs):,}")

    def rotation(self) -> None:
        command = [self.program, "-i", "in0", "-w", str(self.folder / "out"), "-b", "filesize:64MB"]
        done, _ = self.capture(command, self.packets)
        self.loss(f"rotation every 64 MB ({len(done.files)} files)", [done], self.packets)
        counted = sum(count_packets(file) for file in done.files)
        self.require("rotation every 64 MB: packets in the files", counted, self.packets)

    def two_interfaces(self) -> None:
        half = self.packets // 2
        command = [self.program, "-i", "in0", "-i", "in1", "-w", str(self.folder / "out")]
        done, _ = self.capture(command, half, (0, 1))
        self.loss("two interfaces at once", [done], 2 * half)
        ordered = "Strict time order:   True" in run("capinfos", "-o", str(done.files[0]))
        self.require("two interfaces: packets in order of time", ordered, 1)

    def stalled_writer(self) -> None:
        """The reader of a pipe sleeps for at least 2 s, while packets arrive at 200,000/s."""
        count, log = int(STALL_SECONDS * STALL_RATE), self.folder / "log"
        for buffer in ("256M", "4M"):
            command = [self.program, "-i", "in0", "-w", "-", "--buffer", buffer]
            process = self.begin(command, log, stdout=subprocess.PIPE)
            begin = time.monotonic()
            self.send(count)
            time.sleep(max(0.0, STALL_SECONDS - (time.monotonic() - begin)))
            reader = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
            done = self.end(process, log)
            assert process.stdout
            process.stdout.close()
            reader.wait()
            if buffer == "256M":
                self.loss(f"writer stalled for {STALL_SECONDS:g} s, --buffer {buffer}", [done], count)
            else:
                self.notes.append(f"the same with --buffer {buffer} reports {done.dropped:,} of {count:,} dropped")


def show_cpu(runs: list[Run], tcpdump_runs: list[Run]) -> str:
    return ", ".join(f"{a.cpu_seconds:.2f}/{b.cpu_seconds:.2f} s" for a, b in zip(runs, tcpdump_runs, strict=True))


def count_packets(file: Path) -> int:
    match = re.search(r"Number of packets:\s+(\d+)", run("capinfos", "-Mc", str(file)))
    return int(match[1]) if match else -1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/wiretale-capture")
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if problem := missing("bench", "ip", "trafgen", "tcpdump", "capinfos"):
        sys.exit(problem)
    with tempfile.TemporaryDirectory(prefix="wiretale-bench-", dir="/var/tmp") as folder, made_link() as ends:
        bench = Bench(ends, str(Path(options.program).resolve()), Path(folder), options.packets, options.rounds)
        bench.against_tcpdump()
        bench.rotation()
        bench.two_interfaces()
        bench.stalled_writer()
    passed = print_checks(bench.checks)
    print(*(f"     {note}" for note in bench.notes), sep="\n")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
