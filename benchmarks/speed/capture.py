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

from speed.check import Check, print_checks, remove_namespaces, run

PACKETS = 4_000_000
SIZE = 64
MILLION = 1_000_000
NOBODY = 65534  # user and group
STALL_SECONDS, STALL_RATE = 2.0, 200_000
FRAME = "{{ eth(da=02:00:00:00:00:02, sa=02:00:00:00:00:0{number}), fill(0x41, 50) }}"
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
        found = re.search(r"(\d+) packets (?:received,|captured)", self.log)
        return int(found[1]) if found else -1


class Link:
    """Namespaces of sender and tracer with two veth pairs between them."""

    def __init__(self) -> None:
        self.sender, self.tracer = (f"wtbench{os.getpid()}{end}" for end in "st")

    def make(self) -> None:
        for name in (self.sender, self.tracer):
            run("ip", "netns", "add", name)
            for which in ("all", "default"):
                run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv6.conf.{which}.disable_ipv6=1")
        for number in range(2):
            link, peer = ("ip", "-n", self.sender, "link"), ("peer", "name", f"in{number}", "netns", self.tracer)
            run(*link, "add", f"out{number}", "type", "veth", *peer)
            run(*link, "set", f"out{number}", "up")
            run("ip", "-n", self.tracer, "link", "set", f"in{number}", "up")

    def remove(self) -> None:
        remove_namespaces(self.sender, self.tracer)

    def send(self, count: int, folder: Path, numbers: tuple[int, ...] = (0,)) -> float:
        """Sends on all interfaces at once at the full speed of trafgen, and returns the seconds."""
        begin, senders = time.monotonic(), []
        for number in numbers:
            frame = folder / f"frame{number}"
            frame.write_text(FRAME.format(number=number + 3))
            options = ["-o", f"out{number}", "-c", str(frame), "-n", str(count), "-P1", "-q"]
            inside = ["ip", "netns", "exec", self.sender, "trafgen", *options]
            senders.append(subprocess.Popen(inside, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for sender in senders:
            sender.wait()
        return time.monotonic() - begin


@contextlib.contextmanager
def made_link() -> Iterator[Link]:
    link = Link()
    try:
        link.make()
        yield link
    finally:
        link.remove()


class Bench:
    """The measurements. Each adds to `checks` and `notes`."""

    def __init__(self, link: Link, program: str, folder: Path, packets: int, rounds: int) -> None:
        self.link, self.program, self.folder, self.packets, self.rounds = link, program, folder, packets, rounds
        self.checks: list[Check] = []
        self.notes: list[str] = []

    def begin(self, command: list[str], log: Path, **pipes: object) -> subprocess.Popen[bytes]:
        with log.open("w") as errors:
            inside = ["ip", "netns", "exec", self.link.tracer, *command]
            process: subprocess.Popen[bytes] = subprocess.Popen(inside, stderr=errors, **pipes)  # type: ignore[call-overload]
        until = time.monotonic() + 20
        while not re.search("capturing|listening on", log.read_text()):
            if time.monotonic() > until or process.poll() is not None:
                sys.exit(f"{command[0]} did not begin: {log.read_text()}")
            time.sleep(0.02)
        time.sleep(0.2)
        return process

    def end(self, process: subprocess.Popen[bytes], log: Path) -> Run:
        """Stops a capture. CPU time is that of its process and threads, without trafgen."""
        time.sleep(0.6)
        process.send_signal(signal.SIGINT)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        return Run(log.read_text(), usage.ru_utime + usage.ru_stime)

    def capture(self, command: list[str], count: int, numbers: tuple[int, ...] = (0,)) -> tuple[Run, float]:
        out, log = self.folder / "out", self.folder / "log"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(mode=0o755)
        os.chown(out, NOBODY, NOBODY)  # the daemon drops root, tcpdump does not
        process = self.begin(command, log)
        seconds = self.link.send(count, self.folder, numbers)
        done = self.end(process, log)
        done.files = sorted(out.iterdir())
        return done, seconds

    def loss(self, what: str, runs: list[Run], count: int) -> None:
        self.checks.append(Check(f"{what}: packets dropped", max(done.dropped for done in runs), 0, digits=0))
        self.require(f"{what}: packets recorded", min(done.received for done in runs), count)

    def require(self, what: str, measured: float, least: float) -> None:
        self.checks.append(Check(what, measured, least, digits=0, at_least=True))

    def against_tcpdump(self) -> None:
        out = str(self.folder / "out")
        own, others, rates = [], [], []
        for number in range(self.rounds):
            print(f"==> round {number + 1} of {self.rounds}", file=sys.stderr, flush=True)
            done, seconds = self.capture([self.program, "-i", "in0", "-w", out], self.packets)
            own.append(done)
            rates.append(self.packets / seconds)
            others.append(self.capture(["tcpdump", "-i", "in0", "-Z", "root", "-w", f"{out}/x.pcap"], self.packets)[0])
        self.loss(f"{self.packets / MILLION:g} M packets of {SIZE} B", own, self.packets)
        cpu = min(done.cpu_seconds for done in own) / self.packets * MILLION
        tcpdump = min(done.cpu_seconds for done in others) / self.packets * MILLION
        self.checks.append(Check("CPU per packet", cpu, tcpdump, "µs of tcpdump", 3))
        self.notes.append(f"trafgen sent {min(rates):,.0f} to {max(rates):,.0f} packets/s")
        self.notes.append(f"CPU per packet is {cpu / tcpdump:.2f} of tcpdump's; all rounds: " + show_cpu(own, others))
        self.notes.append(f"tcpdump with its default buffer dropped {max(done.dropped for done in others):,}")

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
            self.link.send(count, self.folder)
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


def show_cpu(own: list[Run], others: list[Run]) -> str:
    return ", ".join(f"{a.cpu_seconds:.2f}/{b.cpu_seconds:.2f} s" for a, b in zip(own, others, strict=True))


def count_packets(file: Path) -> int:
    found = re.search(r"Number of packets:\s+(\d+)", run("capinfos", "-Mc", str(file)))
    return int(found[1]) if found else -1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/wiretale-capture")
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if os.geteuid():
        sys.exit("needs root, for network namespaces")
    if absent := [name for name in ("ip", "trafgen", "tcpdump", "capinfos") if not shutil.which(name)]:
        sys.exit(f"missing: {', '.join(absent)} (Debian: iproute2 netsniff-ng tcpdump wireshark-common)")
    with tempfile.TemporaryDirectory(prefix="wiretale-bench-", dir="/var/tmp") as folder, made_link() as link:
        bench = Bench(link, str(Path(options.program).resolve()), Path(folder), options.packets, options.rounds)
        bench.against_tcpdump()
        bench.rotation()
        bench.two_interfaces()
        bench.stalled_writer()
    passed = print_checks(bench.checks)
    print(*(f"     {note}" for note in bench.notes), sep="\n")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
