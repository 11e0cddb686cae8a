# SPDX-License-Identifier: Apache-2.0
"""Network namespaces for sender, tracer and receiver, with two wiretale-link in a row between them and three captures.

A run writes into one folder: a capture of each point, the log of each link, the kernel trace of the sender and the change of
the TCP counters. Offloads are off, so that a packet in a capture is a segment."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from score.runs.host_talk import PORT
from score.runs.kernel_trace import kernel_trace
from score.runs.scenarios import Scenario
from shared import namespaces
from shared.namespaces import PathError, inside, listens, run, tcp_sockets, wait_until
from wiretale.traffic.program import find_program, program_path

SENDER, RECEIVER = "10.214.1.1", "10.214.1.2"
MACS = {SENDER: "02:00:0a:d6:01:01", RECEIVER: "02:00:0a:d6:01:02"}
POINTS = ("sender", "tracer", "receiver")  # of capture
SNAPLEN = 128
UDP_PORT = 41_901
TALK = Path(__file__).with_name("host_talk.py")
USUAL_SETTINGS = {
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_dsack": "1",
    "net.ipv4.tcp_recovery": "1",
    "net.ipv4.tcp_frto": "2",
    "net.ipv4.tcp_early_retrans": "3",
}  # of Linux
COUNTERS = {
    "sender": ("RetransSegs", "TCPTimeouts", "TCPLossProbes", "TCPFastRetrans", "TCPSlowStartRetrans"),
    "receiver": ("PAWSEstab",),
}


def missing() -> str | None:
    """Returns why there can be no such path, None if there can."""
    if not program_path("wiretale-link"):
        return "needs wiretale-link: make -C traffic/link"
    return namespaces.missing("test", "ip", "ethtool", "sysctl", "tcpdump", "iperf3")


def stop(process: subprocess.Popen[bytes], number: int = signal.SIGINT) -> None:
    process.send_signal(number)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=10)


class Testbed:
    """The namespaces. They serve all runs; each run starts its own links and captures."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.link = find_program("wiretale-link")
        self.links: list[subprocess.Popen[bytes]] = []
        #: namespace and interface of each capture file
        self.captures = {"sender": ("sender", "path"), "tracer": ("tracer", "behind"), "receiver": ("receiver", "path")}

    def inside(self, end: str, *command: str) -> list[str]:
        return inside(self.names[end], *command)

    def make(self) -> None:
        """Connects the hosts. No packet passes until the links start."""
        tracer = self.names["tracer"]
        run(*f"ip -n {tracer} link add before type veth peer name behind".split())
        ends = (("sender", "left", SENDER, RECEIVER), ("receiver", "right", RECEIVER, SENDER))
        for end, wire, address, peer in ends:
            self.connect(end, wire)
            run(*f"ip -n {self.names[end]} link set path address {MACS[address]}".split())
            self.bring_up(end, "path")
            run(*f"ip -n {self.names[end]} address add {address}/24 dev path".split())
            run(*f"ip -n {self.names[end]} neigh add {peer} lladdr {MACS[peer]} dev path nud permanent".split())
            run(*self.inside(end, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"))
        for wire in ("left", "before", "behind", "right"):
            self.bring_up("tracer", wire)

    def connect(self, end: str, wire: str) -> None:
        run(*f"ip -n {self.names[end]} link add path type veth peer {wire} netns {self.names['tracer']}".split())
        # One segment per packet, because the kernel would join retransmissions otherwise.
        run(*f"ip -n {self.names[end]} link set path gso_max_segs 1".split())

    def bring_up(self, end: str, wire: str) -> None:
        run(*self.inside(end, *f"ethtool -K {wire} tso off gso off gro off tx off rx off".split()))
        run(*f"ip -n {self.names[end]} link set {wire} up".split())

    def start_link(self, number: int, scenario: Scenario, folder: Path) -> None:
        wires = (("left", "before"), ("behind", "right"))[number]
        log = folder / f"link{number + 1}.log"
        arguments = ["--forward", scenario.spec(number, False), "--reverse", scenario.spec(number, True)]
        command = self.inside("tracer", self.link, *wires, *arguments, "--seed", str(scenario.seed + number))
        words = [*command, "--truth", str(folder / f"link{number + 1}.truth"), "--json"]
        with log.open("w") as errors, (folder / f"link{number + 1}.json").open("w") as summary:
            self.links.append(subprocess.Popen(words, stdout=summary, stderr=errors))
        wait_until(lambda: "linking" in log.read_text() or self.links[-1].poll() is not None, f"link {number + 1}")
        if self.links[-1].poll() is not None:
            raise PathError(f"wiretale-link: {log.read_text().strip()}")

    @contextlib.contextmanager
    def linked(self, scenario: Scenario, folder: Path) -> Iterator[None]:
        """Runs both links; at the end their logs are converted to CSV."""
        try:
            for number in range(2):
                self.start_link(number, scenario, folder)
            yield
        finally:
            for process in self.links:
                stop(process)
            self.links.clear()
        for number in (1, 2):
            truth = run(self.link, "--print-truth", str(folder / f"link{number}.truth"))
            (folder / f"link{number}.csv").write_text(truth)

    @contextlib.contextmanager
    def captured(self, name: str, folder: Path) -> Iterator[None]:
        """Writes a capture file. Raises PathError if tcpdump lost a packet."""
        end, wire = self.captures[name]
        log = folder / f"{name}.log"
        options = f"-i {wire} -n -p -U --immediate-mode -B 32768 -s {SNAPLEN} --time-stamp-precision=nano -Z root -w"
        command = self.inside(end, "tcpdump", *options.split(), str(folder / f"{name}.pcap"), "ip")
        with log.open("w") as errors:
            process = subprocess.Popen(command, stderr=errors)
        try:
            wait_until(lambda: "listening on" in log.read_text(), "tcpdump listens")
            yield
            time.sleep(0.2)  # until tcpdump has written the last packets
        finally:
            stop(process)
        lost = re.search(r"^(\d+) packets? dropped by kernel", log.read_text(), re.M)
        if not lost or int(lost[1]):
            raise PathError(f"tcpdump lost packets: {log.read_text().strip()}")

    def counters(self) -> dict[str, int]:
        counters: dict[str, int] = {}
        for end, names in COUNTERS.items():
            text = run(*self.inside(end, "cat", "/proc/net/snmp", "/proc/net/netstat"))
            lines = [line.split() for line in text.splitlines()]
            for heads, values in zip(lines[::2], lines[1::2], strict=True):
                counters |= {name: int(value) for name, value in zip(heads, values, strict=True) if name in names}
        return counters

    def set_up(self, scenario: Scenario) -> None:
        settings = {**USUAL_SETTINGS, **scenario.sysctl}
        for end in ("sender", "receiver"):
            run(*self.inside(end, "sysctl", "-qw", *(f"{name}={value}" for name, value in settings.items())))

    def talk(self, scenario: Scenario) -> None:
        talk = scenario.talk
        port = UDP_PORT if talk.udp_bps else PORT
        if talk.udp_bps:
            server = ["iperf3", "-s", "-1", "-p", str(UDP_PORT)]
            client = f"iperf3 -c {RECEIVER} -p {UDP_PORT} -u -b {talk.udp_bps} -l {talk.udp_bytes} -t {talk.seconds:g}"
            sending = [*client.split(), "--udp-counters-64bit"]
        else:
            order = json.dumps({**asdict(talk), "control": scenario.control})
            server = [sys.executable, "-u", str(TALK), "receive", "-", order]
            sending = [sys.executable, str(TALK), "send", RECEIVER, order]
        receiving = subprocess.Popen(self.inside("receiver", *server), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: listens(self.names["receiver"], port), "the receiver listens")
            run(*self.inside("sender", *sending))
            receiving.wait(timeout=20)
            wait_until(self.is_quiet, "the connections are closed", 15)
        finally:
            receiving.kill()
            receiving.communicate(timeout=10)

    def is_quiet(self) -> bool:
        """Returns whether all connections are closed at both ends (TIME_WAIT, CLOSE, LISTEN)."""
        sockets = (cells for end in ("sender", "receiver") for cells in tcp_sockets(self.names[end]))
        return all(cells[3] in ("06", "07", "0A") for cells in sockets)

    def carry_out(self, scenario: Scenario, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.set_up(scenario)
        before = self.counters()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.linked(scenario, folder))
            for name in self.captures:
                stack.enter_context(self.captured(name, folder))
            stack.enter_context(kernel_trace(folder / "kernel.txt"))
            self.talk(scenario)
        after = self.counters()
        counted = {name: after[name] - before[name] for name in after}
        (folder / "counters.json").write_text(json.dumps(counted))


@contextlib.contextmanager
def new_testbed() -> Iterator[Testbed]:
    with namespaces.namespaces("wtacc", *POINTS) as names:
        made = Testbed(names)
        made.make()
        yield made
