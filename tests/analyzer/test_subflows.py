# SPDX-License-Identifier: Apache-2.0
"""Subflows of multipath connections (MPTCP): crafted options whose tokens hashlib computes, and those of this kernel."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import needs
import several_legs as legs
import wiretale
from plain_wire import ACK, PSH, SYN, Connection, Wire, syn_options
from processes import wait_until
from routed_hosts import ENDS, ROUTER, capture, namespaces, run
from wiretale.reports.phrases import relation_texts

KEYS = bytes(range(1, 9)), bytes(range(101, 109))  # of the client and of the server
DIGESTS = (hashlib.sha1, hashlib.sha256)  # by version
CLIENT, SERVER, SECOND = "10.0.0.1", "10.0.0.2", "10.0.0.7"
DRAWN = legs.renumbered((0x3A5F_1D20, 0xC41B_77E2))


def token_of(key: bytes, version: int = 1) -> bytes:
    return DIGESTS[version](key).digest()[:4]


def option(subtype: int, low: int, body: bytes) -> bytes:
    """Kind 30, as long as it must be."""
    return bytes([30, 4 + len(body), subtype << 4 | low, 1]) + body


def begin(wire: Wire, version: int = 1, ms: float = 0.0, port: int = 40_000, answers: bool = True) -> Wire:
    """A connection whose handshake has the keys, as the version has them."""
    keys = [option(0, version, key) for key in (b"" if version else KEYS[0], KEYS[1], KEYS[0] + KEYS[1])]
    return shake(wire, (CLIENT, SERVER), port, ms, (keys[0], keys[1] if answers else b"", keys[2] if answers else b""))


def join(
    wire: Wire, token: bytes, ms: float = 100.0, port: int = 41_000, ends: tuple[str, str] = (SECOND, SERVER)
) -> Wire:
    nonce = bytes(4)
    return shake(
        wire, ends, port, ms, (option(1, 0, token + nonce), option(1, 0, bytes(8) + nonce), option(1, 0, bytes(20)))
    )


def shake(wire: Wire, ends: tuple[str, str], port: int, ms: float, options: tuple[bytes, bytes, bytes]) -> Wire:
    """A handshake with these options, and some data."""
    link = Connection(wire, port, ends)
    link.send(ms, 0, -1, flags=SYN, options=syn_options() + options[0])
    link.send(ms + 5, 1, -1, flags=SYN | ACK, ack=0, options=syn_options() + options[1])
    link.send(ms + 10, 0, 0, options=options[2])
    link.send(ms + 11, 0, 0, 500, PSH | ACK)
    return link.ack(ms + 16, 500).wire


def of_client(wire: Wire) -> Wire:
    """What a capture of one direction has."""
    return Wire([(ms, frame) for ms, frame in wire.packets if frame[26:30] != bytes((10, 0, 0, 2))])


def at_two_places(wire: Wire) -> Wire:
    return legs.at_two_places(wire, legs.tagged(10), legs.tagged(20))


TOKEN = token_of(KEYS[1])
SUBFLOW = (1, 0, "subflow")
CASES: dict[str, tuple[Callable[[], Wire], list[tuple[int, int, str]]]] = {
    "version 1": (lambda: join(begin(Wire()), TOKEN), [SUBFLOW]),
    "version 0": (lambda: join(begin(Wire(), 0), token_of(KEYS[1], 0)), [SUBFLOW]),
    "the server opens it": (
        lambda: join(begin(Wire()), token_of(KEYS[0]), ends=(SERVER, SECOND)),
        [SUBFLOW],
    ),
    "the digest of the other version": (lambda: join(begin(Wire()), token_of(KEYS[1], 0)), []),
    "a token of nobody": (lambda: join(begin(Wire()), bytes([9, 9, 9, 9])), []),
    "two that joined one that was not captured": (
        lambda: join(join(Wire(), TOKEN), TOKEN, 130.0, 41_001),
        [SUBFLOW],
    ),
    "two of one": (
        lambda: join(join(begin(Wire()), TOKEN), TOKEN, 130.0, 41_001),
        [SUBFLOW, (2, 0, "subflow")],
    ),
    "only the client was captured": (
        lambda: join(of_client(begin(Wire())), token_of(KEYS[0]), ends=(SERVER, SECOND)),
        [SUBFLOW],
    ),
    "a server without multipath, and another connection": (
        lambda: begin(begin(Wire(), 0, answers=False), 0, 50.0, 40_001, answers=False),
        [],
    ),
    "the same keys twice": (lambda: begin(begin(Wire()), 1, 50.0, 40_001), []),
    "a token that is cut": (
        lambda: shake(begin(Wire()), (SECOND, SERVER), 41_000, 100.0, (b"\x1e\x08\x10\1" + TOKEN, b"", b"")),
        [],
    ),
    "both at two places of their path": (
        lambda: at_two_places(join(begin(Wire()), TOKEN, ends=(CLIENT, "10.0.0.3"))),
        [(1, 0, "copy"), (2, 0, "subflow"), (3, 2, "copy")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_subflows(name: str, tmp_path: Path) -> None:
    make, expected = CASES[name]
    trace = wiretale.analyze(make().write(tmp_path / "subflows.pcap"))
    assert [(row["flow"], row["other"], row["kind"]) for row in trace.relations] == expected


def test_subflows_carry_other_data_and_are_judged_each(tmp_path: Path) -> None:
    trace = wiretale.analyze(join(begin(Wire()), TOKEN).write(tmp_path / "subflows.pcap"))
    (row,) = trace.relations
    assert (row["judged"], row["evidence"], row["delay_ns"]) == (None, "token", 100_000_000)
    assert trace.transfers.conversations == 2
    assert relation_texts(trace) == {1: "subflow of flow 0"}
    assert trace.flows["multipath_join"] == [False, True]
    tokens = [int.from_bytes(token_of(key), "big") for key in KEYS]
    assert trace.directions["multipath_token"] == [*tokens, None, tokens[1]]


CONNECTIONS, PORT, MPTCP = 4, 7_000, 262
SERVER_SCRIPT = f"""
import socket
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, {MPTCP})
listener.bind(("", {PORT}))
listener.listen(9)
while True:
    with listener.accept()[0] as link:
        while link.recv(65536):
            pass
"""
CLIENT_SCRIPT = f"""
import socket, time
for _ in range({CONNECTIONS}):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, {MPTCP}) as link:
        link.connect(("10.77.2.2", {PORT}))
        for _ in range(10):
            link.sendall(bytes(20_000))
            time.sleep(0.02)
    time.sleep(0.3)
"""
PATHS = """
for end in {c} {s}; do
    ip netns exec $end sysctl -qw net.mptcp.enabled=1
    ip -n $end mptcp limits set subflows 2 add_addr_accepted 2
done
ip -n {c} addr add 10.77.1.3/24 dev eth0
ip -n {c} mptcp endpoint add 10.77.1.3 dev eth0 subflow
"""


@pytest.mark.xdist_group("counted")
@needs.marked(
    needs.programs("ip", "tcpdump"),
    needs.network_namespaces(),
    None if Path("/proc/sys/net/mptcp/enabled").exists() else "needs a kernel with MPTCP",
)
def test_subflows_of_this_kernel(tmp_path: Path) -> None:
    path, enter = tmp_path / "left.pcap", ["ip", "netns", "exec"]
    with namespaces() as names:
        subprocess.run([*enter, names["d"], "sh", "-ec", ROUTER], check=True, timeout=30)
        run(ENDS + PATHS, **names)
        with capture(names["d"], "left", path, "tcp"):
            server = subprocess.Popen([*enter, names["s"], sys.executable, "-S", "-c", SERVER_SCRIPT])
            try:
                listens = [*enter, names["s"], "cat", "/proc/net/tcp"]
                wait_until(
                    lambda: f":{PORT:04X} " in subprocess.run(listens, capture_output=True, text=True).stdout,
                    "it listens",
                )
                client = [*enter, names["c"], sys.executable, "-S", "-c", CLIENT_SCRIPT]
                subprocess.run(client, check=True, timeout=60)
            finally:
                server.kill()
                server.wait()
    trace = wiretale.analyze(path)
    assert [row["kind"] for row in trace.relations] == ["subflow"] * CONNECTIONS
    pairs = [(trace.flows[row["flow"]], trace.flows[row["other"]]) for row in trace.relations]
    assert len({began["flow"] for _, began in pairs}) == CONNECTIONS
    for joined, began in pairs:
        assert (joined["source"], began["source"]) == ("10.77.1.3", "10.77.1.2")
        assert began["first_ns"] < joined["first_ns"] < began["last_ns"]
