# SPDX-License-Identifier: Apache-2.0
"""The parent of each exchange (exchanges.within): requests of a connection, and questions that were asked before it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scapy.all import DNS, DNSQR, DNSRR, IP, TCP, UDP, Packet, Raw

import wiretale
from crafted import analyze_timed, ether, write_timed

CLIENT, OTHER, NEAR, FAR = "10.0.0.1", "10.0.0.9", "10.0.0.2", "10.0.0.3"
NAME = "www.example.org"
Parents = dict[str, str | None]  # a question as `name type time`, a request as its kind: the server of its parent


class Scene:
    """Questions and connections of a few hosts, at times in seconds."""

    def __init__(self) -> None:
        self.timed, self.port = list[tuple[float, Packet]](), 30_000

    def ask(
        self,
        at: float,
        answered: float | None,
        *addresses: str,
        name: str = NAME,
        kind: str = "A",
        client: str = CLIENT,
    ) -> Scene:
        """A question, answered at a time or never."""
        self.port += 1
        asks = UDP(sport=self.port, dport=53) / DNS(id=self.port, rd=1, qd=DNSQR(qname=name, qtype=kind))
        self.timed.append((at, ether(IP(src=client, dst="10.0.0.53") / asks)))
        if answered is not None:
            alias = [DNSRR(rrname=name, type="CNAME", rdata=f"cdn.{name}")] if addresses else []
            records = [*alias, *(DNSRR(rrname=f"cdn.{name}", type=kind, rdata=address) for address in addresses)]
            message = DNS(id=self.port, qr=1, qd=DNSQR(qname=name, qtype=kind), an=records)
            self.timed.append(
                (answered, ether(IP(src="10.0.0.53", dst=client) / UDP(sport=53, dport=self.port) / message))
            )
        return self

    def connect(
        self, at: float, server: str = NEAR, host: str = "", client: str = CLIENT, wait: float = 0.01, syn: bool = True
    ) -> Scene:
        """A connection with a request and its response, of HTTP if it has a host; without its handshake if not `syn`."""
        self.port += 1
        ends, ports = {"src": client, "dst": server}, {"sport": self.port, "dport": 80}
        back, ports_back = {"src": server, "dst": client}, {"sport": 80, "dport": self.port}
        request = f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() if host else b"give me that\n"
        handshake = [
            (at, IP(**ends) / TCP(seq=100, flags="S", **ports)),
            (at + wait, IP(**back) / TCP(seq=500, ack=101, flags="SA", **ports_back)),
            (at + wait, IP(**ends) / TCP(seq=101, ack=501, flags="A", **ports)),
        ]
        talk = [
            (at + wait + 0.01, IP(**ends) / TCP(seq=101, ack=501, flags="PA", **ports) / Raw(request)),
            (
                at + wait + 0.02,
                IP(**back) / TCP(seq=501, ack=101 + len(request), flags="PA", **ports_back) / Raw(b"here\n"),
            ),
        ]
        self.timed += [(time, ether(packet)) for time, packet in (handshake if syn else []) + talk]
        return self


def parents(trace: wiretale.Trace) -> Parents:
    start = min(row["asked_ns"] for row in trace.exchanges)
    flows = trace.flows["destination"]
    return {
        row["kind"] if row["kind"] != "dns" else f"{row['name']} {row['type']} {(row['asked_ns'] - start) / 1e9:g}": (
            None if row["within"] is None else flows[row["within"]]
        )
        for row in trace.exchanges
        if row["kind"] != "connect"
    }


FIRST = f"{NAME} A 0"
CASES: dict[str, tuple[Callable[[Scene], Scene], Parents]] = {
    "both types, then the connection": (
        lambda scene: scene.ask(0, 0.02, NEAR).ask(0.001, 0.03, kind="AAAA").connect(0.04),
        {FIRST: NEAR, f"{NAME} AAAA 0.001": NEAR, "turn": NEAR},
    ),
    "one type is answered at the second try, for which the client waits": (
        lambda scene: scene.ask(0, 0.02, NEAR).ask(0.001, 5.1, kind="AAAA").ask(5, 5.02, NEAR, kind="A").connect(5.2),
        {FIRST: NEAR, f"{NAME} AAAA 0.001": NEAR, f"{NAME} A 5": NEAR, "turn": NEAR},
    ),
    "the first resolver is silent": (
        lambda scene: scene.ask(0, None).ask(5, 5.02, NEAR).connect(5.03),
        {FIRST: NEAR, f"{NAME} A 5": NEAR, "turn": NEAR},
    ),
    "the other type is answered while the SYN waits": (
        lambda scene: scene.ask(0, 0.02, NEAR).ask(0.5, 0.6, kind="AAAA").connect(0.03, wait=1.0),
        {FIRST: NEAR, f"{NAME} AAAA 0.5": NEAR, "turn": NEAR},
    ),
    "the other type is answered long before": (
        lambda scene: scene.ask(0, 1.5, NEAR).ask(0.001, 0.02, kind="AAAA").connect(1.51),
        {FIRST: NEAR, f"{NAME} AAAA 0.001": NEAR, "turn": NEAR},
    ),
    "the connection comes much later": (
        lambda scene: scene.ask(0, 0.02, NEAR).connect(3),
        {FIRST: None, "turn": NEAR},
    ),
    "asked long before, too": (
        lambda scene: scene.ask(0, 0.02, NEAR).ask(1, 1.02, NEAR).connect(1.03),
        {FIRST: None, f"{NAME} A 1": NEAR, "turn": NEAR},
    ),
    "another client connects": (
        lambda scene: scene.ask(0, 0.02, NEAR).connect(0.03, client=OTHER),
        {FIRST: None, "turn": NEAR},
    ),
    "another address is connected": (
        lambda scene: scene.ask(0, 0.02, NEAR).connect(0.03, FAR),
        {FIRST: None, "turn": FAR},
    ),
    "the second address of the answer": (
        lambda scene: scene.ask(0, 0.02, NEAR, FAR).connect(0.03, FAR),
        {FIRST: FAR, "turn": FAR},
    ),
    "two names of one address, and nobody says which": (
        lambda scene: scene.ask(0, 0.02, NEAR).ask(0.1, 0.12, NEAR, name="b.example").connect(0.13),
        {FIRST: None, "b.example A 0.1": None, "turn": NEAR},
    ),
    "two names of one address, and the Host of one": (
        lambda scene: scene.ask(0, 0.02, NEAR).ask(0.1, 0.12, NEAR, name="b.example").connect(0.13, host=f"{NAME}:80"),
        {FIRST: NEAR, "b.example A 0.1": None, "http": NEAR},
    ),
    "the Host of a name that was not asked": (
        lambda scene: scene.ask(0, 0.02, NEAR).connect(0.03, host="b.example"),
        {FIRST: None, "http": NEAR},
    ),
    "a connection from its middle": (
        lambda scene: scene.ask(0, 0.02, NEAR).connect(0.03, syn=False),
        {FIRST: None, "turn": None},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_parents(name: str, tmp_path: Path) -> None:
    make, expected = CASES[name]
    assert parents(analyze_timed(tmp_path, sorted(make(Scene()).timed, key=lambda timed: timed[0]))) == expected


def test_the_first_of_two_connections_waited_for_the_name(tmp_path: Path) -> None:
    timed = Scene().ask(0, 0.02, NEAR).connect(0.03).connect(0.031).timed
    trace = analyze_timed(tmp_path, sorted(timed, key=lambda packet: packet[0]))
    assert [(row["kind"], row["flow"], row["within"]) for row in trace.exchanges] == [
        ("dns", 0, 1),
        ("connect", 1, None),
        ("turn", 1, 1),
        ("connect", 2, None),
        ("turn", 2, 2),
    ]
    assert trace.exchanges[0]["addresses"] == NEAR


def test_a_run_and_a_store_have_the_same_parents(tmp_path: Path) -> None:
    scene = Scene()
    for number in range(20):
        at, server = 0.2 * number, f"10.0.1.{number}"
        scene.ask(at, at + 0.02, server, name=f"{number}.example").connect(at + 0.03, server)
    file = tmp_path / "captures" / "all.pcap"
    file.parent.mkdir()
    write_timed(file, sorted(scene.timed, key=lambda timed: timed[0]))
    names = ("flow", "kind", "name", "addresses", "within")
    rows = [tuple(row[name] for name in names) for row in wiretale.analyze(file).exchanges]
    assert len(rows) == 60 and sum(row[-1] is not None for row in rows) == 40
    assert stored(tmp_path, names) == sorted(rows, key=repr)


def stored(folder: Path, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The rows of a store that watched the captures."""
    command = [sys.executable, "-m", "wiretale", "store"]
    watch = [*command, "watch", str(folder / "captures"), "--store", str(folder / "store"), "--once", "-q"]
    subprocess.run(watch, check=True, capture_output=True)
    query = [*command, "query", str(folder / "store"), f"SELECT {', '.join(names)} FROM exchanges", "--json"]
    done = subprocess.run(query, check=True, capture_output=True, text=True)
    return sorted((tuple(row[name] for name in names) for row in json.loads(done.stdout)["rows"]), key=repr)
