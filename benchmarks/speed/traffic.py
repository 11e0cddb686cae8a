# SPDX-License-Identifier: Apache-2.0
"""Measures wiretale-traffic against iperf3 and nuttcp, over a veth pair between two network namespaces.

    sudo PYTHONPATH=benchmarks python -m speed.traffic --program build/bin/wiretale-traffic

Runs of the programs alternate, so that a slow moment of the machine hits all; the best of the rounds counts.
Blocks are those that the receiver had; CPU time is that of both processes, by wait4(). Exits with 1 when a
bound is broken. Namespaces are removed at the end, whatever happens.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

SENDER, RECEIVER = "10.214.1.1", "10.214.1.2"
PORT = 5010
LISTENS_SECONDS = 5.0


@dataclass(frozen=True)
class Figures:
    """Of one run: what the receiver had, and what it cost both ends."""

    seconds: float
    payload: float  # bytes
    blocks: float
    lost: float
    cpu: float  # seconds

    @property
    def rate(self) -> float:
        return self.blocks / self.seconds

    @property
    def gigabits(self) -> float:
        return self.payload * 8 / self.seconds / 1e9

    @property
    def cpu_ns_per_byte(self) -> float:
        return self.cpu * 1e9 / self.payload if self.payload else float("inf")


@dataclass(frozen=True)
class Load:
    """What is sent: over TCP as fast as possible, or datagrams of a size."""

    name: str
    size: int = 0  # of a datagram; 0: TCP

    def wiretale(self) -> list[str]:
        return ["--udp", "--size", str(self.size)] if self.size else []

    def iperf3(self) -> list[str]:
        return ["-u", "-b", "0", "-l", str(self.size)] if self.size else []

    def nuttcp(self) -> list[str]:
        return ["-u", "-Ru", f"-l{self.size}"] if self.size else []


LOADS = (Load("TCP"), Load("UDP 64 B", 64), Load("UDP 1472 B", 1472))


def figures_of_wiretale(said: str, size: int, cpu: float) -> Figures:
    report = json.loads(said)
    got = report["receiver"]
    return Figures(got["elapsed_s"], got["bytes_received"], got["blocks_received"], report["blocks_lost"], cpu)


def figures_of_iperf3(said: str, size: int, cpu: float) -> Figures:
    end = json.loads(said)["end"]
    if not size:
        got = end["sum_received"]
        return Figures(got["seconds"], got["bytes"], 0, 0, cpu)
    packets, lost = end["sum"]["packets"], end["sum"]["lost_packets"]
    return Figures(end["sum"]["seconds"], (packets - lost) * size, packets - lost, lost, cpu)


def figures_of_nuttcp(said: str, size: int, cpu: float) -> Figures:
    values = dict(word.split("=", 1) for word in said.split() if "=" in word)
    payload, seconds = float(values["megabytes"]) * 1048576, float(values["real_seconds"])
    lost = float(values.get("drop", 0))
    blocks = payload / size if size else 0
    # Its server works in a child that nobody waits for: what it says of itself, in percent.
    cpu = (float(values["tx_cpu"]) + float(values["rx_cpu"])) / 100 * seconds
    return Figures(seconds, payload, blocks, lost, cpu)


@dataclass
class Program:
    """How a program is run, and its results by load."""

    name: str
    server: list[str]
    client: Callable[[Load], list[str]]
    read: Callable[[str, int, float], Figures]
    port: int
    results: dict[str, list[Figures]] = field(default_factory=dict)

    def best(self, load: Load) -> Figures:
        return max(self.results[load.name], key=lambda one: (one.blocks or one.payload) / one.seconds)

    def cheapest(self, load: Load) -> float:
        return min(one.cpu_ns_per_byte for one in self.results[load.name])


def programs(wiretale: str, seconds: float) -> list[Program]:
    time_given = f"{seconds:g}"
    client = [wiretale, "send", RECEIVER, "--port", str(PORT)]
    return [
        Program(
            "wiretale-traffic",
            [wiretale, "receive", "--once", "--quiet", "--port", str(PORT)],
            lambda load: [*client, "--json", "--time", time_given, *load.wiretale()],
            figures_of_wiretale,
            PORT,
        ),
        Program(
            "  with --offload",
            [wiretale, "receive", "--once", "--quiet", "--port", str(PORT)],
            lambda load: [*client, "--json", "--time", time_given, *load.wiretale(), "--offload"],
            figures_of_wiretale,
            PORT,
        ),
        Program(
            "iperf3",
            ["iperf3", "-s", "-1", "-p", "5201"],
            lambda load: ["iperf3", "-c", RECEIVER, "-p", "5201", "-J", "-t", time_given, *load.iperf3()],
            figures_of_iperf3,
            5201,
        ),
        Program(
            "nuttcp",
            ["nuttcp", "-1"],
            lambda load: ["nuttcp", "-fparse", f"-T{time_given}", *load.nuttcp(), RECEIVER],
            figures_of_nuttcp,
            5000,
        ),
    ]


class Ends:
    """Two namespaces and the veth pair between them."""

    def __init__(self) -> None:
        self.sender, self.receiver = f"wtb{os.getpid()}s", f"wtb{os.getpid()}r"

    def make(self) -> None:
        for name in (self.sender, self.receiver):
            call("ip", "netns", "add", name)
            call("ip", "-n", name, "link", "set", "lo", "up")
        call(*f"ip -n {self.sender} link add path type veth peer name path netns {self.receiver}".split())
        for name, address in ((self.sender, SENDER), (self.receiver, RECEIVER)):
            call(*f"ip -n {name} address add {address}/24 dev path".split())
            call(*f"ip -n {name} link set path up".split())

    def remove(self) -> None:
        for name in (self.sender, self.receiver):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def listens(self, port: int) -> bool:
        command = ["ip", "netns", "exec", self.receiver, "cat", "/proc/net/tcp", "/proc/net/tcp6"]
        lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        return any(f":{port:04X} " in line and line.split()[3] == "0A" for line in lines if ":" in line)


@contextlib.contextmanager
def two_ends() -> Iterator[Ends]:
    ends = Ends()
    try:
        ends.make()
        yield ends
    finally:
        ends.remove()


def call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=20)


def cpu_of(process: subprocess.Popen[str]) -> float:
    """Of a process that has ended or is about to."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def run(ends: Ends, program: Program, load: Load) -> Figures:
    """One transfer: both ends, from start to end."""
    inside = ["ip", "netns", "exec"]
    server = subprocess.Popen(
        [*inside, ends.receiver, *program.server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )
    try:
        until = time.monotonic() + LISTENS_SECONDS
        while not ends.listens(program.port):
            if time.monotonic() > until:
                raise RuntimeError(f"{program.name} does not listen")
            time.sleep(0.02)
        command = [*inside, ends.sender, *program.client(load)]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert client.stdout
        said = client.stdout.read()
        cpu = cpu_of(client)
        client.stdout.close()
        if client.returncode:
            raise RuntimeError(f"{' '.join(command)}: exit code {client.returncode}\n{said}")
        cpu += cpu_of(server)
    finally:
        if server.returncode is None:
            server.kill()
            server.wait()
    return program.read(said, load.size, cpu)


@dataclass(frozen=True)
class Check:
    """A bound: `measured` must not be below it, or above when it is the most."""

    what: str
    measured: float
    bound: float
    at_most: bool = False

    @property
    def passed(self) -> bool:
        return self.measured <= self.bound if self.at_most else self.measured >= self.bound


def checks(ours: Program, offloaded: Program, iperf3: Program) -> Iterator[Check]:
    """Real datagrams cost the kernel what they cost, whoever sends them: the most is had with offload."""
    for load in LOADS:
        mine, theirs = ours.best(load), iperf3.best(load)
        if load.size:
            most = offloaded.best(load).rate / theirs.rate
            yield Check(f"{load.name} with --offload: blocks received / iperf3's", most, 1.5)
        else:
            yield Check(f"{load.name}: throughput / iperf3's", mine.gigabits / theirs.gigabits, 1.0)
        cost = ours.cheapest(load) / iperf3.cheapest(load)
        yield Check(f"{load.name}: CPU for a byte / iperf3's", cost, 1.0, at_most=True)


def show(tools: list[Program]) -> None:
    print(f"{'':12} {'program':18} {'Gbit/s':>9} {'blocks/s':>11} {'lost':>8} {'CPU ns/byte':>12}")
    for load in LOADS:
        for tool in tools:
            best = tool.best(load)
            share = f"{100 * best.lost / (best.lost + best.blocks):.1f}%" if best.blocks else ""
            blocks = f"{best.rate:,.0f}" if best.blocks else ""
            cost = tool.cheapest(load)
            print(f"{load.name:12} {tool.name:18} {best.gigabits:9.3f} {blocks:>11} {share:>8} {cost:12.3f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/wiretale-traffic")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    absent = [name for name in ("ip", "iperf3", "nuttcp") if not shutil.which(name)]
    if absent or os.geteuid():
        print(f"needs root and {', '.join(absent) or 'nothing more'}: .ci/packages bench", file=sys.stderr)
        return 5
    tools = programs(os.path.abspath(arguments.program), arguments.seconds)
    with two_ends() as ends:
        for number in range(arguments.rounds):
            print(f"==> round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
            for load in LOADS:
                for tool in tools:
                    tool.results.setdefault(load.name, []).append(run(ends, tool, load))
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}, best of {arguments.rounds}")
    show(tools)
    failed = False
    for check in checks(*tools[:3]):
        failed |= not check.passed
        sign = "<=" if check.at_most else ">="
        print(f"{'ok  ' if check.passed else 'FAIL'} {check.what}: {check.measured:.2f} {sign} {check.bound:g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
