# SPDX-License-Identifier: Apache-2.0
"""Three network namespaces in a row, of which the middle one drops and delays; captures at both ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import needs
from processes import output, wait_until

SENDER, RECEIVER = "10.213.1.1", "10.213.2.1"
PORT = "41235"  # not registered
SNAPLEN = 128
PROGRAMS = ("ip", "nft", "tc", "ethtool", "sysctl", "tcpdump", "chrt", "taskset", "iperf3", "iperf")
COUNTED = re.compile(r"tcpdump: (\d+) packets? captured, (\d+) packets? received by filter, .*\n")
DONE = {"06", "07", "0A"}  # /proc/net/tcp: TIME_WAIT, CLOSE, LISTEN
RULES = "table inet path { counter dropped {}; chain forward { type filter hook forward priority 0; }; }"
# A sender that stays on one processor: packets that several pass on overtake each other, also between a capture and a
# socket behind it, whose orders would differ then.
ON_ONE = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
# The slow class delays: a packet in it waits for the one before it, and others overtake it.
QUEUE = "htb default 10"
CLASSES = f"""
qdisc add dev right root handle 1: {QUEUE}
class add dev right parent 1: classid 1:10 htb rate 40mbit burst 2k cburst 2k
class add dev right parent 1: classid 1:20 htb rate 2mbit burst 100 cburst 100
"""


def missing() -> str | None:
    """Why there can be no such path here; None when there can."""
    if reason := needs.first(needs.programs(*PROGRAMS), needs.network_namespaces()):
        return reason
    name = f"wt{os.getpid()}x"
    inside = ("ip", "netns", "exec", name)
    try:
        output("ip", "netns", "add", name)
        output(*inside, "chrt", "-f", "50", "nft", RULES)
        output(*inside, *f"tc qdisc add dev lo root handle 1: {QUEUE}".split())
    except AssertionError as error:
        return f"needs network namespaces, nftables and htb: {error}"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=10)
    return None


Kind = TypeVar("Kind", bound="NamespacePath")


class NamespacePath:
    """Network namespaces in a row, connected by pairs of interfaces; those between the ends drop packets."""

    def __init__(self, *names: str) -> None:
        self.names = tuple(f"wt{os.getpid()}{name}" for name in names)

    @staticmethod
    def inside(name: str, *command: str) -> list[str]:
        return ["ip", "netns", "exec", name, *command]

    def run(self, name: str, *command: str) -> str:
        return output(*self.inside(name, *command))

    def add_namespaces(self) -> None:
        for name in self.names:
            output("ip", "netns", "add", name)
            for which in ("all", "default"):  # no packets but those of the test
                self.run(name, "sysctl", "-qw", f"net.ipv6.conf.{which}.disable_ipv6=1")
            output("ip", "-n", name, "link", "set", "lo", "up")

    def make(self) -> None:
        self.add_namespaces()
        for name in self.names[1:-1]:
            self.run(name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
            self.run(name, "nft", RULES)

    def connect(self, left: tuple[str, str, str], right: tuple[str, str, str]) -> None:
        """Two ends: namespace, interface, address. Segments are packets: no offload."""
        peer = ("peer", right[1], "netns", right[0])
        output("ip", "-n", left[0], "link", "add", left[1], "type", "veth", *peer)
        for name, link, address in (left, right):
            self.run(name, *f"ethtool -K {link} tso off gso off gro off tx off".split())
            output(*f"ip -n {name} address add {address}/24 dev {link}".split())
            output(*f"ip -n {name} link set {link} up".split())

    def route(self, name: str, target: str, gateway: str) -> None:
        output("ip", "-n", name, "route", "add", target, "via", gateway)

    def remove(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)

    def drop(self, name: str, packets: str, mille: int) -> None:
        """From now on this namespace drops so many of 1000 packets from the left that match."""
        self.run(name, "nft", "flush chain inet path forward; reset counter inet path dropped")
        rule = f"add rule inet path forward iifname left {packets} numgen random mod 1000"
        self.run(name, "nft", f"{rule} < {mille} counter name dropped drop")

    def dropped_by(self, name: str) -> int:
        match = re.search(r"packets (\d+)", self.run(name, "nft", "list counter inet path dropped"))
        assert match
        return int(match[1])

    @contextlib.contextmanager
    def capture(self, name: str, link: str, file: Path, *options: str, packets: str = "ip") -> Iterator[None]:
        """A capture with all packets of the test; it is an error if it lost one."""
        log = file.with_suffix(".log")
        # Without --immediate-mode, libpcap would drop its buffer when it is stopped.
        always = f"-i {link} -n -p -U --immediate-mode -B 16384 -s {SNAPLEN} -Z root -w".split()
        with log.open("w") as errors:
            command = self.inside(name, "tcpdump", *options, *always, str(file), packets)
            process = subprocess.Popen(command, stderr=errors)
        try:
            wait_until(lambda: "listening on" in log.read_text(), "tcpdump listens")
            yield
            time.sleep(0.2)  # for the last packets
            wait_until(lambda: has_caught_up(process, log), "tcpdump has written what it took")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
        summary = log.read_text()
        counts = [int(count) for count in re.findall(r"^(\d+) packets", summary, re.M)]
        assert counts[0] == counts[1] and counts[2] == 0, summary  # captured, received, dropped


class DroppingPath(NamespacePath):
    """Sender, router and receiver."""

    def __init__(self) -> None:
        super().__init__(*"srd")
        self.sender, self.router, self.receiver = self.names

    def make(self) -> None:
        super().make()
        for name, there, address in ((self.sender, "left", SENDER), (self.receiver, "right", RECEIVER)):
            gateway = re.sub(r"\d+$", "254", address)
            self.connect((name, "path", address), (self.router, there, gateway))
            self.route(name, "default", gateway)
        for line in CLASSES.split("\n")[1:-1]:
            self.run(self.router, "tc", *line.split())

    def disturb(self, packets: str, *, dropped: int, slow: int = 0, last: str = "") -> None:
        """From now on, so many of 1000 packets to the receiver that match are dropped, or take the slow class.

        What is sent last always takes it: it overtakes nothing.
        """
        self.drop(self.router, packets, dropped)
        rule = "add rule inet path forward iifname left"
        self.run(self.router, "nft", f"{rule} {packets} numgen random mod 1000 < {slow} meta priority set 1:20")
        if last:
            self.run(self.router, "nft", f"{rule} {last} meta priority set 1:20")

    def dropped(self) -> int:
        """Packets dropped by the rule; queues must have dropped none."""
        queues = self.run(self.router, "tc", "-s", "qdisc", "show", "dev", "right")
        assert "(dropped 0," in queues, queues
        return self.dropped_by(self.router)

    def tcp_count(self, counter: str) -> int:
        """A counter of the sender's TCP since the path was made."""
        for file in ("snmp", "netstat"):
            lines = [line.split() for line in self.run(self.sender, "cat", f"/proc/net/{file}").splitlines()]
            for heads, values in zip(lines[::2], lines[1::2], strict=True):
                if counter in heads:
                    return int(values[heads.index(counter)])
        raise KeyError(counter)

    def listens(self) -> bool:
        """Whether a socket listens at the receiver's port."""
        files = ("/proc/net/tcp", "/proc/net/udp")
        return f":{int(PORT):04X} 00000000:0000" in self.run(self.receiver, "cat", *files)

    def is_quiet(self) -> bool:
        """Whether every TCP connection is over."""
        lines = (self.run(self.sender, "cat", "/proc/net/tcp") + self.run(self.receiver, "cat", "/proc/net/tcp")).split(
            "\n"
        )
        return all(line.split()[3] in DONE for line in lines if line and "local_address" not in line)

    def transfer(self, server: list[str], client: list[str]) -> tuple[str, str]:
        """One transfer to the receiver; returns both outputs. The server has priority, so that it counts in time."""
        command = self.inside(self.receiver, "chrt", "-f", "50", *server)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(self.listens, "the server listens")
            client_output = self.run(self.sender, *ON_ONE, *client)
            server_output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait(timeout=60)
        assert not process.returncode, errors
        wait_until(self.is_quiet, "the connections are closed")
        return server_output, client_output

    @contextlib.contextmanager
    def capturing_both(self, folder: Path) -> Iterator[tuple[Path, Path]]:
        """Captures at the sender and at the receiver."""
        files = folder / "sender.pcap", folder / "receiver.pcap"
        with self.capturing(self.sender, files[0]), self.capturing(self.receiver, files[1]):
            yield files

    def capturing(self, name: str, file: Path) -> contextlib.AbstractContextManager[None]:
        """A capture at an end."""
        return self.capture(name, "path", file)


def has_caught_up(tcpdump: subprocess.Popen[bytes], log: Path) -> bool:
    """Whether it has written all that its filter took so far: SIGUSR1 asks it, a line answers."""
    counts = COUNTED.findall(log.read_text())
    tcpdump.send_signal(signal.SIGUSR1)
    time.sleep(0.02)
    return bool(counts) and counts[-1][0] == counts[-1][1]


@contextlib.contextmanager
def made(path: Kind) -> Iterator[Kind]:
    """The path, which is removed in the end."""
    try:
        path.make()
        yield path
    finally:
        path.remove()
