# SPDX-License-Identifier: Apache-2.0
"""Real connections in network namespaces, captured on all interfaces of a device: what one leg shows is what all legs show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import needs
import wiretale
from processes import wait_until
from routed_hosts import ENDS, ROUTER, capture, namespaces, run

pytestmark = [
    pytest.mark.xdist_group("counted"),
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


def transfer(place: str, folder: Path, stamps: int) -> tuple[Path, Path]:
    """Returns the captures of all interfaces of the device, and of that at the client."""
    inside, ends, server, _ = PLACES[place]
    every, near = folder / "any.pcap", folder / "near.pcap"
    with namespaces() as names:
        subprocess.run(["ip", "netns", "exec", names["d"], "sh", "-ec", inside], check=True, timeout=30)
        run(ends, **names)
        run(f"ip netns exec {{c}} sysctl -qw net.ipv4.tcp_timestamps={stamps}", **names)
        with capture(names["d"], "any", every, "tcp"), capture(names["d"], "left", near, "tcp"):
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
