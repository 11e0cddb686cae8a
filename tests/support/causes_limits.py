# SPDX-License-Identifier: Apache-2.0
"""Services that turn clients away for what they did before, or serve a part of what they ask for."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from scapy.all import IP, SCTP, Raw

from causes_broken import of_timed
from causes_refusals import CLIENT, SERVER, START, Said, datagrams, talk
from crafted import Timed, ether
from quic_wire import crypto, initial, varint
from quic_wire import hello as quic_hello

BLOCKED = b"Host '10.0.0.1' is blocked because of many connection errors; unblock with 'mysqladmin flush-hosts'"


def mysql_packet(number: int, data: bytes) -> bytes:
    return struct.pack("<I", len(data))[:3] + bytes([number]) + data


GREETING = Said(mysql_packet(0, b"\x0a8.0.36\0" + bytes(60)), True)
LOGIN = Said(mysql_packet(1, struct.pack("<IIB", 0x1FF3A685, 1 << 24, 33) + bytes(23) + b"app\0"))


def blocked(checks: int = 6, refusals: int = 5, error: int = 1129) -> Timed:
    """Connections that close after the greeting, then refusals in place of it."""
    timed: Timed = []
    for n in range(checks):
        timed += talk(3306, [GREETING], START + n, 41_000 + n)
    refusal = Said(mysql_packet(0, b"\xff" + struct.pack("<H", error) + BLOCKED), True)
    for n in range(refusals):
        timed += talk(3306, [refusal], START + 60 + n, 42_000 + n)
    return timed


def asked_often(kissed: Sequence[int] = (3, 6, 9), word: bytes = b"RATE", soon: float = 0.3) -> Timed:
    """Twelve requests for the time, one in 16 s; those of these numbers come soon after the one before, and get a kiss."""
    timed: Timed = []
    for n in range(12):
        at = START + 16.0 * (n - (n in kissed)) + (soon if n in kissed else 0.0)
        head = struct.pack("!BBBb", 0xDC if n in kissed else 0x1C, 0 if n in kissed else 2, 3, -20)
        answer = head + bytes(8) + (word if n in kissed else b"\x0a\1\1\1") + bytes(32)
        timed += datagrams((50_000 + n, 123), [Said(b"\x1b" + bytes(47)), Said(answer, True)], at)
    return sorted(timed, key=lambda each: each[0])


def registers(unit: int, address: int, answered: bool = True) -> list[Said]:
    request = Said(struct.pack("!HHHBBHH", 1, 0, 6, unit, 3, address, 2))
    return [request, Said(struct.pack("!HHHBBBHH", 1, 0, 7, unit, 3, 4, 7, 8), True)] if answered else [request]


def units(silent: int = 4, served: int = 3, units: tuple[int, int] = (255, 1)) -> Timed:
    """Requests for the registers of one unit that get no answer, and of another one that do."""
    timed: Timed = []
    for n in range(silent):
        timed += slowly(talk(502, registers(units[0], 100, answered=False), START + 5.0 * n, 43_000 + n))
    for n in range(served):
        timed += talk(502, registers(units[1], 100), START + 60 + 5.0 * n, 44_000 + n)
    return timed


def slowly(timed: Timed) -> Timed:
    """The same, ending half a second later."""
    return [(at + (0.5 if n >= len(timed) - 2 else 0.0), packet) for n, (at, packet) in enumerate(timed)]


def chunk(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    size = 4 + len(body)
    return struct.pack("!BBH", kind, flags, size) + body + bytes(-size % 4)


INIT, INIT_ACK, DATA, ABORT, COOKIE_ECHO, COOKIE_ACK, SHUTDOWN = 1, 2, 0, 6, 10, 11, 7


def sctp(at: float, back: bool, body: bytes, ports: tuple[int, int] = (36_412, 36_412)) -> Timed:
    ends = (SERVER, CLIENT) if back else (CLIENT, SERVER)
    pair = ports[::-1] if back else ports
    return [(at, ether(IP(src=ends[0], dst=ends[1]) / SCTP(sport=pair[0], dport=pair[1], tag=7) / Raw(body)))]


def begun(at: float, number: int, until: int = COOKIE_ACK) -> Timed:
    """The four messages with which an association begins, up to one of them."""
    head = struct.pack("!IIHHI", number, 65_536, 2, 2, number)
    words = [(INIT, head), (INIT_ACK, head + chunk(7, bytes(40))), (COOKIE_ECHO, bytes(40)), (COOKIE_ACK, b"")]
    timed: Timed = []
    for n, (kind, body) in enumerate(words):
        timed += sctp(at + 0.01 * n, bool(n % 2), chunk(kind, body))
        if kind == until:
            break
    return timed


def aborted(stage: int = COOKIE_ECHO, cause: bytes = b"", times: int = 4, by_client: bool = False) -> Timed:
    """Associations that the server, or the client, aborts in reply to this message."""
    timed: Timed = []
    for n in range(times):
        at = START + 20.0 * n
        timed += begun(at, n + 1, stage)
        timed += sctp(at + (5.0 if stage == COOKIE_ACK else 0.05), not by_client, chunk(ABORT, cause))
        timed += sctp(at + 6.0, not by_client, chunk(ABORT, cause))  # once more
    return timed


def closed(times: int = 3) -> Timed:
    """Associations that end as they should."""
    timed: Timed = []
    for n in range(times):
        timed += [*begun(START + 20.0 * n, n + 1), *sctp(START + 20.0 * n + 9, False, chunk(SHUTDOWN, bytes(4)))]
    return timed


NEW_VERSION, OLD_VERSION, OTHER_VERSIONS = 0xFF00001D, 0xFF000017, bytes.fromhex("ff00001751303530")


def quic_close(error: int | None, version: int, padding: int = 0) -> bytes:
    """The server's Initial that closes with an error, or acknowledges alone."""
    close = b"" if error is None else b"\x1c" + varint(error) + b"\x06\0"
    frames = b"\2\1\0\0\0" + close + bytes(padding)
    return initial(frames, 1, version, b"client", b"server12", b"original", 44 + len(frames), "server in")


def quic_refusals(
    error: int | None = 0x178, negotiated: bool = True, goes_on: bool = True, count: int = 3, padding: int = 0
) -> Timed:
    """QUIC handshakes: a version that the server refuses, another one that the client then takes, and the server's close."""
    timed: Timed = []
    for n in range(count):
        at, ports, version = START + 5.0 * n, (45_000 + n, 443), OLD_VERSION if negotiated else NEW_VERSION
        sent = crypto(0, quic_hello(b"a.example", (b"h3-29",)))
        words = [Said(initial(sent, 0, NEW_VERSION if negotiated else version, b"original", b"client"))]
        if negotiated:
            words.append(Said(b"\xca" + bytes(4) + b"\x06client\x08original" + OTHER_VERSIONS, True))
        if negotiated and goes_on:
            words.append(Said(initial(sent, 1, version, b"original", b"client")))
        if goes_on:
            words.append(Said(quic_close(error, version, padding), True))
        timed += datagrams(ports, words, at)
    return timed


EXAMPLES: dict[str, Callable] = {
    "host-blocked": of_timed(blocked),
    "time-limited": of_timed(asked_often),
    "unserved-requests": of_timed(units),
    "association-aborted": of_timed(aborted),
    "quic-refused": of_timed(quic_refusals),
}
