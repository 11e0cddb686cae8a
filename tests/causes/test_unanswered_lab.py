# SPDX-License-Identifier: Apache-2.0
"""Nobody answers, by real kernels: a client, a router that drops or rejects, and a server, captured at the client."""

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


def capture_of(fault: Fault, folder: Path) -> Path:
    """A connection that works if the server accepts, then those of the fault, captured at the client."""
    path = folder / "client.pcap"
    with namespaces() as names, listening(names["s"], PORT, LISTENER, *fault.listener):
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


#: server, SYNs of as many addresses, seconds
FLOOD = """
import socket, struct, sys, time
def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
target, count, seconds = socket.inet_aton(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
for i in range(count):
    source = socket.inet_aton("198.51.100.%d" % (1 + i % 250))
    tcp = struct.pack("!HHIIBBHHH", 1024 + i, 443, 1000 * i, 0, 5 << 4, 2, 64240, 0, 0)
    tcp = tcp[:16] + struct.pack("!H", checksum(source + target + struct.pack("!HH", 6, len(tcp)) + tcp)) + tcp[18:]
    raw.sendto(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, i, 0, 64, 6, 0, source, target) + tcp, (sys.argv[1], 0))
    time.sleep(seconds / count)
"""


def test_cookies_against_a_flood_take_window_scaling(tmp_path: Path) -> None:
    """Linux answers all SYNs by cookies, which without timestamps of the client hold no window scale."""
    path = tmp_path / "server.pcap"
    with namespaces() as names, listening(names["s"], PORT, LISTENER, "64", "accepts"):
        subprocess.run(["ip", "netns", "exec", names["d"], "sh", "-ec", ROUTER], check=True, timeout=30)
        run(ENDS + "ip -n {d} route add blackhole 198.51.100.0/24\n", **names)
        run("ip netns exec {s} sysctl -qw net.ipv4.tcp_syncookies=2", **names)
        run("ip netns exec {c} sysctl -qw net.ipv4.tcp_timestamps=0", **names)
        enter = ["ip", "netns", "exec", names["c"], sys.executable, "-S", "-c"]
        with capture(names["d"], "right", path, "tcp"):
            subprocess.run([*enter, FLOOD, SERVER, "600", "2"], check=True, timeout=60)
            subprocess.run([*enter, CLIENT, SERVER, str(PORT), "2", "2"], check=True, timeout=60)
    answer = wiretale.analyze(path).answer
    assert (answer.cause, answer.certainty) == ("syn-flood", "proven"), answer.sentence
    assert "600 SYNs of 250 addresses" in answer.sentence
    assert "without window scaling, as SYN cookies do" in answer.sentence


STATEFUL = """
nft add table ip f; nft add chain ip f c '{ type filter hook forward priority 0; }'
nft add rule ip f c ct state invalid drop; sysctl -qw net.netfilter.nf_conntrack_tcp_loose=0
"""
#: the server answers by a link of its own to the client
SHORT_CUT = """
ip -n {c} link add eth1 type veth peer name eth1 netns {s}; ip -n {c} link set eth1 up; ip -n {s} link set eth1 up
ip -n {c} addr add 10.77.3.1/24 dev eth1; ip -n {s} addr add 10.77.3.2/24 dev eth1
ip -n {s} route add 10.77.1.2/32 via 10.77.3.1
for which in all default eth0 eth1; do
    for end in {c} {s}; do ip netns exec $end sysctl -qw net.ipv4.conf.$which.rp_filter=0; done
done
"""


def test_answers_by_another_path_meet_a_stateful_firewall(tmp_path: Path) -> None:
    path = tmp_path / "firewall.pcap"
    with namespaces() as names, listening(names["s"], PORT, LISTENER, "64", "accepts"):
        subprocess.run(["ip", "netns", "exec", names["d"], "sh", "-ec", ROUTER + STATEFUL], check=True, timeout=30)
        run(ENDS + SHORT_CUT, **names)
        enter = ["ip", "netns", "exec", names["c"], sys.executable, "-S", "-c"]
        with capture(names["d"], "left", path, "tcp"):
            subprocess.run([*enter, CLIENT, SERVER, str(PORT), "3", "4"], check=True, timeout=60)
    trace = wiretale.analyze(path)
    assert (trace.answer.cause, trace.answer.certainty) == ("asymmetric-path", "likely"), trace.answer.sentence
    assert "3 connections hang" in trace.answer.sentence
