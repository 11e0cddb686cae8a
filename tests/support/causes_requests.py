# SPDX-License-Identifier: Apache-2.0
"""Requests that a server cannot read as the client means them: cut short, behind a header, before a FIN."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from scapy.all import DNS, DNSQR, DNSRR, IP, TCP, UDP

from attempt_wire import RTT, Ends, many
from crafted import Timed, ether, tls_handshake
from finding_captures import Make, of_timed

ISNS = (1001, 5001)
BAD = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
LATE = BAD.replace(b"400 Bad Request", b"408 Request Timeout")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ADDRESSED = b"PROXY TCP4 192.0.2.7 203.0.113.9 50123 80\r\n"
BINARY = b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + struct.pack("!H4s4sHH", 12, bytes(4), bytes(4), 50123, 80)
GET = b"GET / HTTP/1.1\r\nHost: app.example\r\n\r\n"


class Word(NamedTuple):
    """What an end sends after a pause, s: bytes and flags."""

    pause: float
    back: bool
    data: bytes = b""
    flags: str = "PA"
    window: int = 8192
    ttl: int = 0


def talk(ends: Ends, at: float, words: list[Word], acked: bool = True) -> Timed:
    """A connection that carries these words, each acknowledged a round trip later."""
    timed, sent, now = [ends.syn(at), *ends.accepts(at + RTT)], list(ISNS), at + RTT + 0.001
    for word in words:
        now += word.pause
        fields: dict[str, Any] = {"seq": sent[word.back], "ack": sent[not word.back], "window": word.window}
        timed.append(ends.segment(now, word.back, word.flags, word.ttl, word.data, **fields))
        sent[word.back] += len(word.data) + word.flags.count("F")
        if acked and word.data:
            fields = {"seq": sent[not word.back], "ack": sent[word.back], "window": word.window}
            timed.append(ends.segment(now + RTT * (not word.back), not word.back, "A", **fields))
    return timed


def post(length: int | None, body: int, extra: bytes = b"") -> bytes:
    """A request that announces so many bytes of content, and has others."""
    announced = b"" if length is None else b"Content-Length: %d\r\n" % length
    return b"POST /in HTTP/1.1\r\nHost: app.example\r\n" + extra + announced + b"\r\n" + bytes(body)


GIVES_UP = [Word(3.0, False, flags="FA"), Word(RTT, True, flags="FA"), Word(RTT, False, flags="A")]
CLOSES = [Word(RTT + 0.001, True, flags="FA"), Word(0.0001, False, flags="FA"), Word(RTT, True, flags="A")]


def closed_after(wait: float, answer: bytes = b"") -> list[Word]:
    """The server closes after a wait, with or without an answer."""
    last = [Word(wait, True, answer)] if answer else []
    return [*last, Word(RTT if answer else wait, True, flags="FA"), *CLOSES[1:]]


def short_requests(
    length: int | None = 300,
    body: int = 200,
    wait: float = 30.0,
    answer: bytes = b"",
    extra: bytes = b"",
    window: int = 8192,
    is_open: bool = False,
    gives_up: bool = False,
    before: tuple[Word, ...] = (),
) -> Timed:
    """Uploads that announce a length, and what comes of them; requests to the same server that work."""
    timed: Timed = []
    for number, ends in enumerate(many(3)):
        words = [*before, Word(0.0, False, post(length, body, extra), window=window)]
        ending = GIVES_UP if gives_up else [] if is_open else closed_after(wait, answer)
        timed += talk(ends, 50.0 * number, words + ending)
    return timed + served(1.0 if is_open else 3.0) + (served(150.0 + wait, 41_000) if is_open else [])


def open_upload(at: float) -> Timed:
    """A request whose second half has not come when the capture ends."""
    return talk(Ends(), at, [Word(0.0, False, post(300, 200))])


def served(at: float, port: int = 42_000, count: int = 2, before: bytes = b"") -> Timed:
    """Requests that are answered."""
    words = [Word(0.0, False, before + GET), Word(RTT + 0.003, True, OK), *CLOSES[1:]]
    return [packet for i in range(count) for packet in talk(Ends(port + i), at + 7 * i, words)]


def proxied(
    before: bytes = ADDRESSED, answer: bytes = BAD, plain: int = 0, apart: bool = False, count: int = 3
) -> Timed:
    """Requests behind a header of the PROXY protocol, and others without it."""
    timed: Timed = []
    for number, ends in enumerate(many(count)):
        asks = [Word(0.0, False, before), Word(0.0002, False, GET)] if apart else [Word(0.0, False, before + GET)]
        answers = [Word(RTT + 0.001, True, answer)] if answer else []
        timed += talk(ends, 2.0 * number, [*asks, *answers, *CLOSES])
    return timed + served(1.0, count=plain)


def proxied_hello(is_greeted: bool) -> Timed:
    """ClientHellos behind a PROXY header: the server sends an alert, or a ServerHello, which the client refuses."""
    hello, greeting, *_ = [load for _, packet in tls_handshake(0.0) if (load := bytes(packet[TCP].payload))]
    timed: Timed = []
    for number in range(3):
        words = [Word(0.0, False, ADDRESSED + hello)]
        words += [Word(RTT + 0.001, True, greeting)] if is_greeted else []
        words += [Word(RTT + 0.01, not is_greeted, b"\x15\3\3\0\2\2\x30"), *CLOSES]
        timed += talk(Ends(40_000 + number, 443), 2.0 * number, words)
    return timed


def half_closed(
    answered: int = 2, server: str = "FA", pause: float = 0.0, answer: bytes = b"", count: int = 3
) -> Timed:
    """Clients that close their half a time after the request, and a server that closes then."""
    timed: Timed = []
    for number, ends in enumerate(many(count)):
        words = [Word(0.0, False, post(20, 20)), Word(RTT / 100 + pause, False, flags="FA")]
        words += [Word(RTT, True, answer)] if answer else []
        words += [Word(RTT, True, flags=server)] + ([Word(0.0001, False, flags="A")] if server == "FA" else [])
        timed += talk(ends, 3.0 * number, words)
    return timed + served(1.0, count=answered)


def resolves(at: float, name: str, kind: str, address: str) -> Timed:
    """A DNS question and its answer."""
    question = DNSQR(qname=name, qtype=kind)
    messages = (
        DNS(id=7, rd=1, qd=question),
        DNS(id=7, qr=1, qd=question, an=DNSRR(rrname=name, type=kind, rdata=address)),
    )
    ways = (("10.0.0.1", "10.0.0.53", 4000, 53), ("10.0.0.53", "10.0.0.1", 53, 4000))
    return [
        (at + 0.01 * i, ether(IP(src=source, dst=target) / UDP(sport=sport, dport=dport) / messages[i]))
        for i, (source, target, sport, dport) in enumerate(ways)
    ]


class Family(NamedTuple):
    """Addresses of client and server in one family."""

    client: str
    server: str


LOOPBACK = (Family("::1", "::1"), Family("127.0.0.1", "127.0.0.1"))
NETWORKS = (Family("fd00::9", "fd00::2"), Family("10.0.0.1", "10.2.0.2"))


def two_families(
    families: tuple[Family, Family] = LOOPBACK,
    syns: int = 5,
    after: float = 0.001,
    name: str = "",
    skipped: int = 0,
    strangers: int = 0,
) -> Timed:
    """Connections that the first address refuses, and the second one accepts; `skipped` of them give up instead, and the second
    one accepts so many strangers."""
    timed: Timed = []
    if name:
        kinds = (("AAAA", families[0]), ("A", families[1]))
        timed = [packet for kind, of in kinds for packet in resolves(0.1, name, kind, of.server)]
    for number in range(3):
        at, (refusing, accepting) = 1.0 + 10 * number, families
        first, second = Ends(50_000 + number, 8080, *refusing), Ends(51_000 + number, 8080, *accepting)
        for later in range(syns):
            syn_at = at + 0.5 * later
            timed += [first.syn(syn_at), first.segment(syn_at + 0.00002, True, "RA", seq=0, ack=1001)]
        if number >= skipped:
            timed += second.connects(at + 0.5 * (syns - 1) + after)
    return timed + [
        packet for n in range(strangers) for packet in Ends(52_000 + n, 8080, *families[1]).connects(0.3 + 0.4 * n)
    ]


def held_handshake(
    pause: float = 15.0,
    begins: float = 0.01,
    ladder: tuple[float, ...] = (0.0, 3.0, 9.0),
    name: str = "crl.example",
    port: int = 80,
) -> Timed:
    """A TLS client that pauses in the middle of a handshake, while a host answers none of its SYNs."""
    hello, answer, finished = [load for _, packet in tls_handshake(0.0) if (load := bytes(packet[TCP].payload))]
    words = [Word(0.0, False, hello), Word(RTT + 0.002, True, answer), Word(pause, False, finished)]
    words += [Word(RTT + 0.01, True, b"\x17\3\3\1\0" + bytes(256)), *CLOSES[1:]]
    timed = talk(Ends(40_000, 443), 1.0, words)
    began = 1.0 + 2 * RTT + 0.003
    timed += Ends(45_000, port, server="192.0.2.80").syns(began + begins, ladder) if ladder else []
    return timed + (resolves(began, name, "A", "192.0.2.80") if name else [])


def named_members(
    member: str = "127.0.0.1",
    port: int = 9092,
    begins: float = 0.5,
    member_port: int = 0,
    count: int = 3,
    third: bool = False,
) -> Timed:
    """A client that talks to a broker, and then tries another address: refused at loopback, elsewhere without an answer."""
    words = [Word(0.0, False, bytes(40)), Word(RTT + 0.003, True, bytes(90))]
    timed = talk(Ends(40_000, port), 1.0, words)
    timed += talk(Ends(40_001, port, server="10.2.0.3"), 1.2, words) if third else []
    for number in range(count):
        at, is_loopback = 1.0 + begins + 5 * number, member.startswith("127.")
        ends = Ends(45_000 + number, member_port or port, member if is_loopback else "10.0.0.1", member)
        timed += (
            [ends.syn(at), ends.segment(at + 0.00002, True, "RA", seq=0, ack=1001)] if is_loopback else ends.syns(at)
        )
    return timed


def unresolved(
    after: float = 0.002,
    lookups: int = 4,
    code: int = 3,
    port: int = 9092,
    suffixed: int = 3,
    members: int = 1,
    turns: int = 1,
) -> Timed:
    """A client that talks to a broker and then looks for a name, each time with and without a suffix: their answers have these
    codes. `members`: brokers that it reaches; `turns`: its requests."""
    words = [Word(0.0, False, bytes(40)), Word(RTT + 0.003, True, bytes(90))]
    words += [word for _ in range(turns - 1) for word in (Word(0.2, False, bytes(40)), words[1])]
    timed = [
        packet
        for n in range(members)
        for packet in talk(Ends(40_000 + n, port, server=f"10.2.0.{2 + n}"), 1.0 - 0.2 * n, words)
    ]
    began = 1.0 + 2 * RTT + 0.004 + after
    for number in range(lookups):
        for place, (name, rcode) in enumerate((("kafka-0.svc", code), ("kafka-0.svc.corp.example", suffixed))):
            message = DNS(id=2 * number + place, rd=1, qd=DNSQR(qname=name))
            records = [] if rcode else [DNSRR(rrname=name, rdata="10.2.0.9")]
            pair = (message, DNS(id=message.id, qr=1, rcode=rcode, qd=DNSQR(qname=name), an=records))
            for back, sent in enumerate(pair):
                ends = {"src": ("10.0.0.1", "10.2.0.53")[back], "dst": ("10.2.0.53", "10.0.0.1")[back]}
                ports = {"sport": (41_000 + number, 53)[back], "dport": (53, 41_000 + number)[back]}
                at = began + 1.1 * number + 0.004 * place + 0.001 * back
                timed.append((at, ether(IP(**ends) / UDP(**ports) / sent)))
    return timed


BEAT = b"\x08\0\0\0\0\0\0\xce"


def heartbeats(
    beats: int = 4,
    every: float = 10.0,
    quiet: float = 20.0,
    answered: bool = False,
    late: bool = True,
    port: int = 5672,
) -> Timed:
    """A broker delivers a job, sends heartbeats and closes after a silence of `quiet`; the client answers them, or only the job,
    `late`, when the connection is closed."""
    words = [Word(0.0, False, bytes(24)), Word(RTT + 0.003, True, bytes(400))]
    for _ in range(beats):
        words += [Word(every, True, BEAT), *([Word(RTT, False, BEAT)] if answered else [])]
    words += [Word(quiet, True, flags="FA"), Word(RTT, False, flags="A")]
    words += [Word(9.0, False, bytes(21)), Word(RTT, True, flags="R")] if late else []
    return talk(Ends(40_000, port), 1.0, words)


def referred(zone: str = "ForestDnsZones", port: int = 389, talked: bool = True, answers: bool = False) -> Timed:
    """Searches of a directory, after which the client looks up a name of its domain and tries LDAP there."""
    timed, words = [], [Word(0.0, False, bytes(60)), Word(RTT + 0.003, True, bytes(300))]
    for number in range(3):
        at, name = 1.0 + 10 * number, f"{zone}.example.com"
        timed += talk(Ends(40_000 + number, 389 if talked else 80), at, words)
        pair = (
            DNS(id=number, rd=1, qd=DNSQR(qname=name)),
            DNS(id=number, qr=1, qd=DNSQR(qname=name), an=DNSRR(rrname=name, rdata="192.168.9.9")),
        )
        ends = Ends(41_000 + number, 53, server="10.2.0.53")
        for back, message in enumerate(pair):
            hosts, ports = (ends.client, ends.server), (ends.port, 53)
            packet = IP(src=hosts[back], dst=hosts[1 - back]) / UDP(sport=ports[back], dport=ports[1 - back]) / message
            timed.append((at + 0.1 + 0.002 * back, ether(packet)))
        link = Ends(45_000 + number, port, server="192.168.9.9")
        timed += talk(link, at + 0.11, words) if answers else link.syns(at + 0.11)
    return timed


EXAMPLES: dict[str, Make] = {
    "ldap-referral": of_timed(referred),
    "short-request": of_timed(short_requests),
    "proxy-header": of_timed(proxied),
    "half-closed": of_timed(half_closed),
    "named-elsewhere": of_timed(named_members),
    "named-unresolved": of_timed(unresolved),
    "heartbeats-missed": of_timed(heartbeats),
    "other-family": of_timed(two_families),
    "revocation-blocked": of_timed(held_handshake),
}
