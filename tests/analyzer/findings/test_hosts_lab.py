# SPDX-License-Identifier: Apache-2.0
"""Real kernels at a bridge: a host that is not there, one that is switched off, and two with one address."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
import wiretale
from dropping_path import NamespacePath
from processes import output

pytestmark = [
    pytest.mark.xdist_group("counted"),
    needs.marked(needs.programs("ip", "ping", "tcpdump", "ethtool", "sysctl"), needs.network_namespaces()),
]

CLIENT, SERVER, ABSENT = "10.213.9.1", "10.213.9.2", "10.213.9.99"


class Bridged(NamespacePath):
    """Hosts at a bridge, each a namespace with the interface eth0; the first one is captured."""

    def __init__(self, *addresses: str) -> None:
        super().__init__("b", *(f"h{number}" for number in range(len(addresses))))
        self.addresses = addresses

    def make(self) -> None:
        self.add_namespaces()
        bridge, *hosts = self.names
        output("ip", "-n", bridge, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        output("ip", "-n", bridge, "link", "set", "br0", "up")
        for number, (host, address) in enumerate(zip(hosts, self.addresses, strict=True)):
            peer = f"peer p{number} netns {bridge}"
            output(*f"ip -n {host} link add eth0 type veth".split(), *peer.replace("peer", "peer name").split())
            output(*f"ip -n {bridge} link set p{number} master br0 up".split())
            output(*f"ip -n {host} address add {address}/24 dev eth0".split())
            output(*f"ip -n {host} link set eth0 up".split())

    def ping(self, target: str, count: int = 1) -> None:
        command = self.inside(self.names[1], *f"ping -n -c {count} -i 0.2 -W 4 {target}".split())
        subprocess.run(command, capture_output=True, timeout=60)

    def mac(self, number: int) -> str:
        return self.run(self.names[1 + number], "cat", "/sys/class/net/eth0/address").strip()


@pytest.fixture
def hosts() -> Iterator[Bridged]:
    bridged = Bridged(CLIENT, SERVER, SERVER)
    try:
        bridged.make()
        yield bridged
    finally:
        bridged.remove()


def test_hosts_of_real_kernels(hosts: Bridged, tmp_path: Path) -> None:
    """One capture of all, because each wait takes seconds."""
    client, server, twin = hosts.names[1:]
    file = tmp_path / "hosts.pcap"
    output("ip", "-n", twin, "link", "set", "eth0", "down")
    with hosts.capture(client, "eth0", file, packets="arp or icmp"):
        hosts.ping(SERVER, 5)
        hosts.ping(ABSENT)
        output("ip", "-n", twin, "link", "set", "eth0", "up")
        output("ip", "-n", client, "neigh", "flush", "all")
        hosts.ping(SERVER)
        output("ip", "-n", server, "link", "set", "eth0", "down")
        output("ip", "-n", twin, "link", "set", "eth0", "down")
        output("ip", "-n", client, "neigh", "flush", "all")
        hosts.ping(SERVER)
        output("ip", "-n", client, "neigh", "flush", "all")
        hosts.ping(ABSENT)
    rows = {(row["code"], row["sentence"].split()[0]): row for row in wiretale.analyze(file).findings}
    listing = output("tcpdump", "-n", "-r", str(file), "arp")
    absent, gone = rows["arp-unanswered", ABSENT], rows["arp-unanswered", SERVER]
    assert absent["sentence"].startswith(
        f"{ABSENT} answered none of {listing.count(f'who-has {ABSENT}')} ARP requests "
    )
    assert (absent["severity"], absent["failed"]) == ("warning", 1)
    assert gone["sentence"].startswith(f"{SERVER} answered none of ")
    assert gone["sentence"].endswith(", but it answered at other times.")
    (conflict,) = (row for (code, _), row in rows.items() if code == "duplicate-address")
    assert {hosts.mac(1), hosts.mac(2)} <= set(conflict["sentence"].split())
    assert rows["echo", SERVER]["sentence"].startswith(f"{SERVER} answered all 6 pings from {CLIENT} in ")
