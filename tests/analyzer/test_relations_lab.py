# SPDX-License-Identifier: Apache-2.0
"""Real connections in network namespaces, captured on all interfaces of a device: what one leg shows is what all legs show."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import needs
import wiretale
from processes import wait_until

pytestmark = [
    pytest.mark.xdist_group("live"),
    needs.marked(needs.programs("ip", "nft", "tcpdump"), needs.network_namespaces()),
]

CONNECTIONS, PORT = 12, 8080
SERVER = """
import socket, sys, threading
def answer(one):
    with one:
        while one.recv(65536):
            one.sendall(bytes(20_000))
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=64)
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
"""
CLIENT = """
import socket, sys
for _ in range(int(sys.argv[3])):
    with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as to:
        for _ in range(3):
            to.sendall(b"request")
            got = 0
            while got < 20_000:
                got += len(to.recv(65536))
"""
ROUTER = """
ip addr add 10.77.1.1/24 dev left; ip addr add 10.77.2.1/24 dev right
sysctl -qw net.ipv4.ip_forward=1
"""
ENDS = """
ip netns exec {c} ip addr add 10.77.1.2/24 dev eth0; ip netns exec {c} ip route add default via 10.77.1.1
ip netns exec {s} ip addr add 10.77.2.2/24 dev eth0; ip netns exec {s} ip route add default via 10.77.2.1
"""
NFT = "nft add table ip t; nft add chain ip t {hook} '{{ type nat hook {hook} priority 0; }}'; nft add rule ip t {hook} {rule}\n"
#: device, commands in it, commands outside, address of the server for the client, kind of the relation
PLACES: dict[str, tuple[str, str, str, str | None]] = {
    "snat": (
        ROUTER + NFT.format(hook="postrouting", rule="oifname right masquerade"),
        ENDS,
        "10.77.2.2",
        "translation",
    ),
    "dnat": (
        ROUTER + NFT.format(hook="prerouting", rule=f"tcp dport {PORT} dnat to 10.77.2.2"),
        ENDS,
        "10.77.1.1",
        "translation",
    ),
    "router": (ROUTER, ENDS, "10.77.2.2", None),
}


def run(commands: str, **names: str) -> None:
    subprocess.run(["sh", "-ec", commands.format(**names)], check=True, capture_output=True, timeout=30)


@contextmanager
def namespaces() -> Iterator[dict[str, str]]:
    """Client, device and server; `left` and `right` of the device lead to them."""
    names = {name: f"rel{os.getpid()}{name}" for name in "cds"}
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
def capture(namespace: str, interface: str, path: Path) -> Iterator[None]:
    command = ["ip", "netns", "exec", namespace, "tcpdump", "-i", interface, "-s", "200", "-w", str(path), "-U"]
    with subprocess.Popen(
        [*command, "-Z", "root", "--immediate-mode", "tcp"], stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stderr is not None
        next(line for line in program.stderr if "listening" in line)
        yield
        time.sleep(1)  # the last packets are stored
        program.terminate()


def transfer(place: str, folder: Path, stamps: int) -> tuple[Path, Path]:
    """Returns the captures of all interfaces of the device, and of that at the client."""
    inside, ends, server, _ = PLACES[place]
    every, near = folder / "any.pcap", folder / "near.pcap"
    with namespaces() as names:
        subprocess.run(["ip", "netns", "exec", names["d"], "sh", "-ec", inside], check=True, timeout=30)
        run(ends, **names)
        run(f"ip netns exec {{c}} sysctl -qw net.ipv4.tcp_timestamps={stamps}", **names)
        with capture(names["d"], "any", every), capture(names["d"], "left", near):
            enter = ["ip", "netns", "exec"]
            listener = subprocess.Popen([*enter, names["s"], sys.executable, "-S", "-c", SERVER, str(PORT)])
            try:
                listens = [*enter, names["s"], "cat", "/proc/net/tcp"]
                wait_until(
                    lambda: (
                        f":{PORT:04X} 00000000:0000" in subprocess.run(listens, capture_output=True, text=True).stdout
                    ),
                    "the server listens",
                )
                client = [sys.executable, "-S", "-c", CLIENT, server, str(PORT), str(CONNECTIONS)]
                subprocess.run([*enter, names["c"], *client], check=True, timeout=60)
            finally:
                listener.kill()
                listener.wait()
    return every, near


@pytest.mark.parametrize("stamps", [1, 0], ids=["timestamps", "no timestamps"])
@pytest.mark.parametrize("place", PLACES)
def test_legs_of_a_device_are_one_conversation(place: str, stamps: int, tmp_path: Path) -> None:
    every, near = (wiretale.analyze(path) for path in transfer(place, tmp_path, stamps))
    kind = PLACES[place][3]
    assert len(near.flows) == CONNECTIONS
    assert every.transfers.conversations == CONNECTIONS
    kinds = every.relations.column("kind")
    assert kinds == ([kind] * CONNECTIONS if kind else []), every.relations
    judged = [flow for flow in range(len(every.flows)) if flow not in every.transfers.legs]
    sums = [
        sorted(trace.directions[2 * flow + side]["unique_bytes"] or 0 for flow in flows for side in (0, 1))
        for trace, flows in ((every, judged), (near, range(CONNECTIONS)))
    ]
    assert sums[0] == sums[1]
    assert "shared-queue" not in every.findings.column("code")
