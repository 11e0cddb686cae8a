# SPDX-License-Identifier: Apache-2.0
"""Measures wiretale-traffic against iperf3 and nuttcp, over a veth pair between two network namespaces.

    sudo PYTHONPATH=benchmarks python -m speed.traffic --program build/bin/wiretale-traffic

Runs of the programs alternate, so that a slow period of the machine affects all; the best of the rounds counts. Blocks are those
that the receiver counts; CPU time is that of both processes, from wait4(). The exit status is 1 if
wiretale is slower than iperf3 or uses more CPU time per byte; the machine should be idle. Namespaces are removed at the end, also
after an error.

A second pair has no tx-udp-segmentation, so the kernel segments joined datagrams before captures see them, and wiretale-traffic
uses that by default. All programs have the same buffers there. Blocks above the MTU leave as fragments, which are not joined: the
kernel determines their rates. `--real` measures only this pair.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from shared.namespaces import inside, listens, missing, namespaces, run, wait_until
from speed.check import Check, print_checks

SENDER, RECEIVER = "10.214.1.1", "10.214.1.2"
PORT = 5010
LISTENS_SECONDS = 5.0


@dataclass(frozen=True)
class Figures:
    """Payload and blocks at the receiver, and CPU time of both ends, of one run."""

    seconds: float
    payload: float  # bytes
    blocks: float
    lost: float
    cpu: float  # seconds
    sender_ns_per_block: float = 0  # CPU time; 0: unknown

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
    """TCP at full speed, or datagrams of one size."""

    name: str
    size: int = 0  # bytes of a datagram, 0 for TCP

    def wiretale(self) -> list[str]:
        return ["--udp", "--size", str(self.size)] if self.size else []

    def iperf3(self) -> list[str]:
        return ["-u", "-b", "0", "-l", str(self.size)] if self.size else []

    def nuttcp(self) -> list[str]:
        return ["-u", "-Ru", f"-l{self.size}"] if self.size else []


LOADS = (Load("TCP"), Load("UDP 64 B", 64), Load("UDP 1472 B", 1472))
REAL_LOADS = (*LOADS[1:], Load("UDP 8192 B", 8192), Load("UDP 60000 B", 60000))
MTU_MOST = 1472  # bytes of a block that leaves unfragmented


def figures_of_wiretale(output: str, size: int, cpu: float) -> Figures:
    report = json.loads(output)
    sent, got = report["sender"], report["receiver"]
    of_sender = (sent["cpu_user_s"] + sent["cpu_system_s"]) * 1e9 / sent["blocks_sent"]
    blocks, lost = got["blocks_received"], report["blocks_lost"]
    return Figures(got["elapsed_s"], got["bytes_received"], blocks, lost, cpu, of_sender)


def figures_of_iperf3(output: str, size: int, cpu: float) -> Figures:
    end = json.loads(output)["end"]
    if not size:
        got = end["sum_received"]
        return Figures(got["seconds"], got["bytes"], 0, 0, cpu)
    packets, lost = end["sum"]["packets"], end["sum"]["lost_packets"]
    return Figures(end["sum"]["seconds"], (packets - lost) * size, packets - lost, lost, cpu)


def figures_of_nuttcp(output: str, size: int, cpu: float) -> Figures:
    values = dict(word.split("=", 1) for word in output.split() if "=" in word)
    payload, seconds = float(values["megabytes"]) * 1048576, float(values["real_seconds"])
    lost = float(values.get("drop", 0))
    blocks = payload / size if size else 0
    # The server of nuttcp transfers in a child process that wait4() does not cover, so its own percentages are used.
    cpu = (float(values["tx_cpu"]) + float(values["rx_cpu"])) / 100 * seconds
    return Figures(seconds, payload, blocks, lost, cpu)


@dataclass
class Program:
    """Commands of a program, and its results by load."""

    name: str
    server: list[str]
    client: Callable[[Load], list[str]]
    read: Callable[[str, int, float], Figures]
    port: int
    results: dict[str, list[Figures]] = field(default_factory=dict)

    def best(self, load: Load) -> Figures:
        return max(self.results[load.name], key=lambda figures: (figures.blocks or figures.payload) / figures.seconds)

    def cheapest(self, load: Load) -> float:
        return min(figures.cpu_ns_per_byte for figures in self.results[load.name])

    def cheapest_block(self, load: Load) -> float:
        return min(figures.sender_ns_per_block for figures in self.results[load.name])


def wiretale_program(wiretale: str, seconds: float, name: str, *more: str) -> Program:
    client = [wiretale, "send", RECEIVER, "--port", str(PORT), "--json", "--time", f"{seconds:g}"]
    server = [wiretale, "receive", "--once", "--quiet", "--user", "root", "--port", str(PORT)]
    return Program(name, server, lambda load: [*client, *load.wiretale(), *more], figures_of_wiretale, PORT)


def iperf3(seconds: float, *more: str) -> Program:
    client = ["iperf3", "-c", RECEIVER, "-p", "5201", "-J", "-t", f"{seconds:g}"]
    server = ["iperf3", "-s", "-1", "-p", "5201"]
    return Program("iperf3", server, lambda load: [*client, *load.iperf3(), *more], figures_of_iperf3, 5201)


def programs(wiretale: str, seconds: float) -> list[Program]:
    return [
        wiretale_program(wiretale, seconds, "wiretale-traffic"),
        wiretale_program(wiretale, seconds, "  with --offload", "--offload"),
        iperf3(seconds),
        Program(
            "nuttcp",
            ["nuttcp", "-1"],
            lambda load: ["nuttcp", "-fparse", f"-T{seconds:g}", *load.nuttcp(), RECEIVER],
            figures_of_nuttcp,
            5000,
        ),
    ]


def real_programs(wiretale: str, seconds: float) -> list[Program]:
    """Returns the programs that send real datagrams, with the largest buffers that any user may have, up to 4 MiB."""
    limits = [int(Path(f"/proc/sys/net/core/{side}mem_max").read_text()) for side in "rw"]
    buffer = str(min(*limits, 4 << 20))
    return [
        wiretale_program(wiretale, seconds, "wiretale-traffic", "--buffer", buffer),
        wiretale_program(wiretale, seconds, "  with --no-offload", "--no-offload", "--buffer", buffer),
        iperf3(seconds, "-w", buffer),
    ]


@contextlib.contextmanager
def two_ends(segments: bool = True) -> Iterator[dict[str, str]]:
    """Yields namespaces of sender and receiver with a veth pair between them."""
    with namespaces("wtb", "sender", "receiver") as ends:
        run(*f"ip -n {ends['sender']} link add path type veth peer name path netns {ends['receiver']}".split())
        for end, address in (("sender", SENDER), ("receiver", RECEIVER)):
            run(*f"ip -n {ends[end]} address add {address}/24 dev path".split())
            run(*f"ip -n {ends[end]} link set path up".split())
            if not segments:
                run(*inside(ends[end], "ethtool", "-K", "path", "tx-udp-segmentation", "off"))
        yield ends


def cpu_of(process: subprocess.Popen[str]) -> float:
    """Waits for a process, and returns its CPU time in seconds."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def measure(ends: dict[str, str], program: Program, load: Load) -> Figures:
    """Runs one transfer with both ends."""
    serving = inside(ends["receiver"], *program.server)
    server = subprocess.Popen(serving, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    try:
        wait_until(lambda: listens(ends["receiver"], program.port), f"{program.name} listens", LISTENS_SECONDS)
        command = inside(ends["sender"], *program.client(load))
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert client.stdout
        output = client.stdout.read()
        cpu = cpu_of(client)
        client.stdout.close()
        if client.returncode:
            raise RuntimeError(f"{' '.join(command)}: exit code {client.returncode}\n{output}")
        cpu += cpu_of(server)
    finally:
        if server.returncode is None:
            server.kill()
            server.wait()
    return program.read(output, load.size, cpu)


def checks(plain: Program, offloaded: Program, iperf3: Program) -> Iterator[Check]:
    """Yields the bounds. For UDP the rate is checked with offload, because without it the kernel limits every program."""
    for load in LOADS:
        plain_best, iperf3_best = plain.best(load), iperf3.best(load)
        if load.size:
            most = offloaded.best(load).rate / iperf3_best.rate
            yield Check(f"{load.name} with --offload: blocks received / iperf3's", most, 1.5, at_least=True)
        else:
            yield Check(
                f"{load.name}: throughput / iperf3's", plain_best.gigabits / iperf3_best.gigabits, 1.0, at_least=True
            )
        cost = plain.cheapest(load) / iperf3.cheapest(load)
        yield Check(f"{load.name}: CPU per byte / iperf3's", cost, 1.0)


def real_checks(joined: Program, single: Program, iperf3: Program) -> Iterator[Check]:
    """Yields the bounds of real datagrams."""
    for load in REAL_LOADS:
        is_joined = load.size <= MTU_MOST
        if is_joined:
            cost = joined.cheapest_block(load) / single.cheapest_block(load)
            yield Check(f"{load.name}, real: sender's CPU per block / with --no-offload", cost, 0.7)
        most, least = joined.best(load).rate / iperf3.best(load).rate, 1.5 if is_joined else 0.8
        yield Check(f"{load.name}, real: blocks received / iperf3's", most, least, at_least=True)


def show(tools: list[Program], loads: tuple[Load, ...]) -> None:
    print(f"{'':12} {'program':18} {'Gbit/s':>9} {'blocks/s':>11} {'lost':>8} {'CPU ns/byte':>12}")
    for load in loads:
        for tool in tools:
            best = tool.best(load)
            share = f"{100 * best.lost / (best.lost + best.blocks):.1f}%" if best.blocks else ""
            blocks = f"{best.rate:,.0f}" if best.blocks else ""
            cost = tool.cheapest(load)
            print(f"{load.name:12} {tool.name:18} {best.gigabits:9.3f} {blocks:>11} {share:>8} {cost:12.3f}")


def measure_all(tools: list[Program], loads: tuple[Load, ...], rounds: int, segments: bool = True) -> None:
    with two_ends(segments) as ends:
        for number in range(rounds):
            print(f"==> round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            for load in loads:
                for tool in tools:
                    tool.results.setdefault(load.name, []).append(measure(ends, tool, load))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/wiretale-traffic")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--real", action="store_true")
    arguments = parser.parse_args()
    if problem := missing("bench", "ip", "ethtool", "iperf3", *([] if arguments.real else ["nuttcp"])):
        print(problem, file=sys.stderr)
        return 5
    program = os.path.abspath(arguments.program)
    tools, real = programs(program, arguments.seconds), real_programs(program, arguments.seconds)
    bounds: list[Check] = []
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}, best of {arguments.rounds}")
    if not arguments.real:
        measure_all(tools, LOADS, arguments.rounds)
        show(tools, LOADS)
        bounds += checks(*tools[:3])
    measure_all(real, REAL_LOADS, arguments.rounds, segments=False)
    show(real, REAL_LOADS)
    bounds += real_checks(*real)
    return 0 if print_checks(bounds) else 1


if __name__ == "__main__":
    sys.exit(main())
