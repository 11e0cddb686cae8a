# SPDX-License-Identifier: Apache-2.0
"""A client and a server in network namespaces with a device between them, and captures at each interface."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROUTER = """
ip addr add 10.77.1.1/24 dev left; ip addr add 10.77.2.1/24 dev right
sysctl -qw net.ipv4.ip_forward=1
"""
ENDS = """
ip netns exec {c} ip addr add 10.77.1.2/24 dev eth0; ip netns exec {c} ip route add default via 10.77.1.1
ip netns exec {s} ip addr add 10.77.2.2/24 dev eth0; ip netns exec {s} ip route add default via 10.77.2.1
"""


def run(commands: str, **names: str) -> None:
    subprocess.run(["sh", "-ec", commands.format(**names)], check=True, capture_output=True, timeout=30)


@contextmanager
def namespaces() -> Iterator[dict[str, str]]:
    """Client, device and server; `left` and `right` of the device lead to them."""
    names = {name: f"wt{os.getpid()}{name}" for name in "cds"}
    try:
        run(
            "".join(f"ip netns add {{{name}}}; ip netns exec {{{name}}} ip link set lo up; " for name in names), **names
        )
        for end, side in (("c", "left"), ("s", "right")):
            run(f"ip -n {{d}} link add {side} type veth peer name eth0 netns {{{end}}}", **names)
            run(f"ip -n {{d}} link set {side} up; ip -n {{{end}}} link set eth0 up", **names)
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=30)


@contextmanager
def capture(namespace: str, interface: str, path: Path, packets: str) -> Iterator[None]:
    """Captures packets that pass a filter."""
    command = ["ip", "netns", "exec", namespace, "tcpdump", "-i", interface, "-s", "200", "-w", str(path), "-U"]
    with subprocess.Popen(
        [*command, "-Z", "root", "--immediate-mode", packets], stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stderr is not None
        next(line for line in program.stderr if "listening" in line)
        yield
        time.sleep(1)  # the last packets are stored
        program.terminate()
