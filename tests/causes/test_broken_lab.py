# SPDX-License-Identifier: Apache-2.0
"""Connections that break or end early, by real kernels: a client, a router that forgets, rejects or drops, and a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import needs
import wiretale
from routed_hosts import ENDS, ROUTER, capture, listening, namespaces, run

pytestmark = [
    pytest.mark.xdist_group("live"),
    needs.marked(needs.programs("ip", "nft", "tcpdump"), needs.network_namespaces()),
]

SERVER, PORT = "10.77.2.2", 443
#: what a server of one connection at a time does; each gets a request of 7 bytes and answers 100
SERVERS = {
    "answers": "serve(connection)",
    "hangs": "connection.recv(7); time.sleep(60)",
    "aborts": "connection.recv(3); linger(connection); connection.close()",
    "is slow": "connection.recv(7); time.sleep(1.5); connection.sendall(bytes(100)); time.sleep(1)",
    "never closes": "connection.recv(7); connection.sendall(bytes(100)); leaks.append(connection)",
    "closes idle": "connection.recv(7); connection.sendall(bytes(100)); time.sleep(1.2); connection.close()",
    "downloads": "connection.recv(7); connection.sendall(bytes(300_000)); time.sleep(8)",
}
LISTENER = """
import socket, struct, sys, threading, time
leaks = []
def serve(connection):
    while connection.recv(7):
        connection.sendall(bytes(100))
def linger(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
def handle(connection):
    try:
        {action}
    except OSError:
        pass
listener = socket.create_server(("0.0.0.0", 443), backlog=64)
while True:
    threading.Thread(target=handle, args=(listener.accept()[0],), daemon=True).start()
"""
#: what each connection of a client does
CLIENTS = {
    "asks again": "ask(to); time.sleep({pause}); ask(to)",
    "waits": "to.settimeout({pause}); ask(to)",
    "closes": "ask(to)",
    "asks a closed one": "ask(to); time.sleep({pause}); to.sendall(b'request'); to.sendall(b'request'); time.sleep(0.2)",
}
CLIENT = """
import socket, sys, threading, time
def ask(to):
    to.sendall(b"request")
    return to.recv(100)
def connect():
    try:
        with socket.create_connection(("10.77.2.2", 443), timeout=8) as to:
            {action}
    except OSError:
        pass
threads = []
for _ in range({count}):
    threads.append(threading.Thread(target=connect))
    threads[-1].start()
    time.sleep(0.15)
for thread in threads:
    thread.join()
time.sleep({after})
last = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
last.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
last.sendto(b"end of the capture", ("10.77.1.255", 9))
"""
FORGETS = (
    "sysctl -qw net.netfilter.nf_conntrack_tcp_timeout_established=2 net.netfilter.nf_conntrack_tcp_loose=0\n"
    "nft add table ip f; nft add chain ip f c '{{ type filter hook forward priority 0; }}'\n"
    "nft add rule ip f c meta l4proto tcp ct state invalid {action}\n"
    "nft add table ip n; nft add chain ip n p '{{ type nat hook postrouting priority 100; }}'\n"
    "nft add rule ip n p oifname right masquerade\n"
)
FILTERS = "nft add table ip f; nft add chain ip f c '{{ type filter hook forward priority 0; }}'; nft add rule ip f c '{rule}'\n"


class Fault(NamedTuple):
    """What the router does, what server and client do, and what the answer says."""

    router: str  # commands
    server: str
    client: str
    pause: float  # seconds
    count: int
    cause: str | None
    certainty: tuple[str, ...]
    texts: tuple[str, ...] = ()
    after: float = 0.0  # for which the capture goes on


FAULTS = {
    "a NAT that answers for forgotten connections": Fault(
        FORGETS.format(action="reject with tcp reset"),
        *("answers", "asks again", 5.5, 3, "idle-timeout", ("likely", "proven"), ("idle connections after 5.5",)),
    ),
    "a connection that idles, and nobody forgets": Fault("", "answers", "asks again", 5.5, 3, None, ()),
    "a server that hangs": Fault(
        "", "hangs", "waits", 1.5, 3, "hung-server", ("proven",), ("none of 3 requests", "got a reply in 1.5")
    ),
    "a server that aborts": Fault(
        "", "aborts", "waits", 3, 4, "reset-by-peer", ("proven",), ("itself reset 4 connections",)
    ),
    "a device that resets requests": Fault(
        FILTERS.format(rule="tcp dport 443 ip length 59-90 tcp flags psh reject with tcp reset"),
        *("answers", "waits", 3, 4, "reset-by-device", ("likely", "proven"), ("A device",)),
    ),
    "an impatient client": Fault(
        "", "is slow", "waits", 1.0, 3, "client-gave-up", ("proven",), ("gave up after 1", "its timeout", "3 of 3"), 1.5
    ),
    "a server that never closes": Fault(
        "", "never closes", "closes", 0, 4, "close-wait", ("proven",), ("FIN of 4 client connections",), 11.5
    ),
    "a server that closes idle connections": Fault(
        "",
        "closes idle",
        "asks a closed one",
        2.0,
        3,
        "idle-timeout",
        ("likely", "proven"),
        ("closes idle connections after 1.2",),
    ),
    "a server behind a small MTU": Fault(
        FILTERS.format(rule="ip length > 1400 drop"),
        *("downloads", "waits", 3, 1, "mtu-black-hole", ("likely",), ("never arrived",)),
    ),
}


def capture_of(fault: Fault, folder: Path) -> Path:
    """The connections of the client, captured at the client."""
    path = folder / "client.pcap"
    with namespaces() as names, listening(names["s"], PORT, LISTENER.format(action=SERVERS[fault.server])):
        subprocess.run(["ip", "netns", "exec", names["d"], "sh", "-ec", ROUTER + fault.router], check=True, timeout=30)
        run(ENDS, **names)
        action = CLIENTS[fault.client].format(pause=fault.pause)
        program = CLIENT.format(action=action, count=fault.count, after=fault.after)
        with capture(names["c"], "eth0", path, "ip or arp"):
            client = ["ip", "netns", "exec", names["c"], sys.executable, "-S", "-c", program]
            subprocess.run(client, check=True, timeout=60)
    return path


@pytest.mark.parametrize("name", FAULTS)
def test_the_answer_names_what_broke_the_connections(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    answer = wiretale.analyze(capture_of(fault, tmp_path)).answer
    assert answer.cause == fault.cause, answer.sentence
    assert fault.cause is None or answer.certainty in fault.certainty, answer.sentence
    assert all(text in answer.sentence for text in fault.texts), answer.sentence
