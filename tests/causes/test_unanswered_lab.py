# SPDX-License-Identifier: Apache-2.0
"""Nobody answers, by real kernels: a client, a router that drops or rejects, and a server, captured at the client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import needs
import wiretale
from processes import wait_until
from routed_hosts import ENDS, ROUTER, capture, namespaces, run

pytestmark = [
    pytest.mark.xdist_group("live"),
    needs.marked(needs.programs("ip", "nft", "tcpdump"), needs.network_namespaces()),
]

SERVER = "10.77.2.2"
PORT, CLOSED = 443, 8080
#: backlog, and whether it accepts
LISTENER = """
import socket, sys, time
listener = socket.create_server(("0.0.0.0", 443), backlog=int(sys.argv[1]))
while True:
    if sys.argv[2] == "accepts":
        connection = listener.accept()[0]
        connection.recv(100)
        connection.sendall(bytes(100))
        connection.close()
    else:
        time.sleep(1)
"""
#: address, port, connections, seconds until the client gives up
CLIENT = """
import socket, sys, threading, time
def connect(host, port, seconds):
    try:
        with socket.create_connection((host, port), timeout=seconds) as to:
            to.sendall(b"request")
            to.recv(100)
            time.sleep(0.05)
    except OSError:
        pass
host, port, count, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
threads = []
for _ in range(count):
    threads.append(threading.Thread(target=connect, args=(host, port, seconds)))
    threads[-1].start()
    time.sleep(0.2)
for thread in threads:
    thread.join()
"""
RULE = "nft add table ip f; nft add chain ip f c '{{ type filter hook forward priority 0; }}'; nft add rule ip f c {rule}\n"


class Fault(NamedTuple):
    """What the router does, what the client asks, and what the answer says."""

    rule: str  # of nft at the router, empty without one
    target: tuple[str, int, int, float]  # address, port, connections, seconds
    cause: str
    certainty: str
    texts: tuple[str, ...]
    listener: tuple[str, str] = ("64", "accepts")


FAULTS = {
    "closed port": Fault(
        "", (SERVER, CLOSED, 4, 2.0), "refused", "proven", ("Nothing listens on 10.77.2.2:8080", "4 connections")
    ),
    "rejected by RST": Fault(
        f"tcp dport {CLOSED} reject with tcp reset",
        (SERVER, CLOSED, 4, 2.0),
        "filtered",
        "likely",
        ("probably rejects",),
    ),
    "rejected by ICMP": Fault(
        f"tcp dport {CLOSED} reject with icmp type admin-prohibited",
        (SERVER, CLOSED, 3, 2.5),
        "filtered",
        "proven",
        ("A firewall at 10.77.1.1 blocks TCP 8080",),
    ),
    "dropped": Fault(
        f"tcp dport {CLOSED} drop",
        (SERVER, CLOSED, 3, 3.5),
        "filtered",
        "likely",
        ("probably drops TCP 8080", "port 443"),
    ),
    "no such host": Fault("", ("10.77.2.99", PORT, 2, 5.0), "host-down", "proven", ("10.77.2.99 is down", "10.77.1.1")),
    "nobody accepts": Fault(
        "", (SERVER, PORT, 6, 4.5), "accept-queue", "likely", ("accept queue is probably full",), ("0", "sleeps")
    ),
    "SYNs with ECN dropped": Fault(
        "'tcp flags & (ecn | cwr) == ecn | cwr' drop",
        (SERVER, PORT, 4, 5.0),
        "option-dropped",
        "proven",
        ("an offer of ECN", "4 of 4"),
    ),
}


@contextmanager
def listening(server: str, *arguments: str) -> Iterator[None]:
    enter = ["ip", "netns", "exec", server]
    program = subprocess.Popen([*enter, sys.executable, "-S", "-c", LISTENER, *arguments])
    try:
        sockets = [*enter, "cat", "/proc/net/tcp"]
        wait_until(
            lambda: f":{PORT:04X} 00000000:0000" in subprocess.run(sockets, capture_output=True, text=True).stdout,
            "the server listens",
        )
        yield
    finally:
        program.kill()
        program.wait()


def capture_of(fault: Fault, folder: Path) -> Path:
    """A connection that works if the server accepts, then those of the fault, captured at the client."""
    path = folder / "client.pcap"
    with namespaces() as names, listening(names["s"], *fault.listener):
        rule = RULE.format(rule=fault.rule) if fault.rule else ""
        subprocess.run(["ip", "netns", "exec", names["d"], "sh", "-ec", ROUTER + rule], check=True, timeout=30)
        run(ENDS, **names)
        if "ecn" in fault.rule:
            run("ip netns exec {c} sysctl -qw net.ipv4.tcp_ecn=1", **names)
        client = ["ip", "netns", "exec", names["c"], sys.executable, "-S", "-c", CLIENT]
        with capture(names["c"], "eth0", path, "ip or arp"):
            if fault.listener[1] == "accepts" and fault.cause != "option-dropped":
                subprocess.run([*client, SERVER, str(PORT), "1", "2"], check=True, timeout=30)
            subprocess.run([*client, *map(str, fault.target)], check=True, timeout=60)
    return path


@pytest.mark.parametrize("name", FAULTS)
def test_the_answer_names_what_the_router_or_the_server_did(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    answer = wiretale.analyze(capture_of(fault, tmp_path)).answer
    assert (answer.cause, answer.certainty) == (fault.cause, fault.certainty), answer.sentence
    assert all(text in answer.sentence for text in fault.texts), answer.sentence
