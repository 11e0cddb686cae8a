# SPDX-License-Identifier: Apache-2.0
"""Four network namespaces in a row: sender, a router that drops, a tracer that captures and then drops too, receiver."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from dropping_path import has_caught_up, output, wait_until

NAMES = ("sender", "router", "tracer", "receiver")
SENDER, RECEIVER, PORT = "10.214.1.1", "10.214.3.2", 6000
RULES = "table inet path { counter dropped {}; chain forward { type filter hook forward priority 0; }; }"
CAPTURED = {"sender": "right", "tracer": "left", "receiver": "left"}  # interfaces towards the way that packets come


class TracedPath:
    """The namespaces; packets to the receiver are dropped by two of them, each counting."""

    def __init__(self) -> None:
        self.spaces = {name: f"wtcmp{os.getpid()}-{name}" for name in NAMES}

    def inside(self, name: str, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.spaces[name], *command]

    def run(self, name: str, *command: str) -> str:
        return output(*self.inside(name, *command))

    def make(self) -> None:
        for name, space in self.spaces.items():
            output("ip", "netns", "add", space)
            self.run(name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
            output("ip", "-n", space, "link", "set", "lo", "up")
        for number, (left, right) in enumerate(pairwise(NAMES), start=1):
            self.connect(left, right, f"10.214.{number}")
        for name in ("router", "tracer"):
            self.run(name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
            self.run(name, "nft", RULES)
        routes = (("sender", "default", 1, 2), ("router", "10.214.3.0/24", 2, 2), ("tracer", "10.214.1.0/24", 2, 1))
        for name, target, net, end in (*routes, ("receiver", "default", 3, 1)):
            output(*f"ip -n {self.spaces[name]} route add {target} via 10.214.{net}.{end}".split())

    def connect(self, left: str, right: str, net: str) -> None:
        """A pair of interfaces: `right` of the one, `left` of the other. Segments are packets: no offload."""
        a, b = self.spaces[left], self.spaces[right]
        output(*f"ip -n {a} link add right type veth peer left netns {b}".split())
        for name, link, end in ((left, "right", 1), (right, "left", 2)):
            self.run(name, *f"ethtool -K {link} tso off gso off gro off tx off".split())
            output(*f"ip -n {self.spaces[name]} address add {net}.{end}/24 dev {link}".split())
            output(*f"ip -n {self.spaces[name]} link set {link} up".split())

    def remove(self) -> None:
        for space in self.spaces.values():
            subprocess.run(["ip", "netns", "del", space], capture_output=True, timeout=20)

    def drop(self, name: str, what: str, mille: int) -> None:
        """So many of 1000 packets that come from the left and match are dropped here from now on."""
        self.run(name, "nft", "flush chain inet path forward; reset counter inet path dropped")
        rule = f"add rule inet path forward iifname left {what} numgen random mod 1000 < {mille}"
        self.run(name, "nft", f"{rule} counter name dropped drop")

    def dropped(self, name: str) -> int:
        said = re.search(r"packets (\d+)", self.run(name, "nft", "list counter inet path dropped"))
        assert said
        return int(said[1])

    @contextlib.contextmanager
    def capturing(self, folder: Path) -> Iterator[list[Path]]:
        """Captures at the three points, in the order of the way; it is an error if one lost a packet."""
        files = {name: folder / f"{name}.pcap" for name in CAPTURED}
        processes = {}
        options = [
            "-n",
            "-p",
            "-U",
            "--immediate-mode",
            "-B",
            "16384",
            "-s",
            "128",
            "-Z",
            "root",
            "--time-stamp-precision",
            "nano",
        ]
        try:
            for name, file in files.items():
                with file.with_suffix(".log").open("w") as log:
                    command = self.inside(name, "tcpdump", "-i", CAPTURED[name], *options, "-w", str(file), "ip")
                    processes[name] = subprocess.Popen(command, stderr=log)
            for file in files.values():
                log_file = file.with_suffix(".log")
                wait_until(lambda log_file=log_file: "listening on" in log_file.read_text(), "tcpdump listens")
            yield list(files.values())
            time.sleep(0.3)  # for the last packets
            for name, process in processes.items():
                log_file = files[name].with_suffix(".log")
                wait_until(lambda p=process, log=log_file: has_caught_up(p, log), "tcpdump has written what it took")
        finally:
            for process in processes.values():
                process.send_signal(signal.SIGINT)
            for process in processes.values():
                process.wait(timeout=60)
        for file in files.values():
            assert "\n0 packets dropped by kernel" in file.with_suffix(".log").read_text()


@contextlib.contextmanager
def traced_path() -> Iterator[TracedPath]:
    """Made, and removed at the end."""
    path = TracedPath()
    try:
        path.make()
        yield path
    finally:
        path.remove()
