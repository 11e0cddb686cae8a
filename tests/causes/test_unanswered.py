# SPDX-License-Identifier: Apache-2.0
"""Nobody answers: each cause beside its nearest rivals, in captures that differ in the fact that decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from scapy.all import ICMP, IP, UDP, ICMPv6DestUnreach, IPv6, Raw

import wiretale
from attempt_wire import COOKIE, ECN, RTT, SERVER, Ends, many
from causes_ends import web_answers
from causes_unanswered import (
    active_mode,
    all_of,
    asks_name,
    at_the_host,
    contested,
    dead_first_server,
    deaf_service,
    deaf_to_a_port,
    elsewhere,
    full_queue,
    gateway,
    half_open_vpn,
    held_ports,
    high_ports,
    ignored_refusals,
    mostly_refused,
    mostly_resolved,
    no_mail,
    one_port,
    one_type,
    other_address,
    overloaded,
    passive_mode,
    refused_by_turns,
    refused_data,
    refused_offers,
    scattered,
    search_list,
    sent_back,
    silent_data,
    silent_port,
    stale_backends,
    stuck_ports,
    tells_name,
    two_dhcp_servers,
    without_router,
)
from crafted import Timed, analyze_timed, ether
from dhcp_wire import lease, message
from neighbor_wire import answers, asks, ping, ping_error, pong
from quic_wire import crypto, hello, initial, sized


class Said(NamedTuple):
    """A capture, and what the answer says: cause, certainty, texts of the sentence and rivals that are excluded."""

    make: Callable[[], Timed]
    cause: str | None
    certainty: str | None = None
    texts: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def refused_bodies() -> Timed:
    """Uploads that the server refuses by status 413 and closes, while the client still sends."""
    talk: Timed = []
    head = b"POST /up HTTP/1.1\r\nHost: files.example\r\nContent-Length: 90000\r\n\r\n"
    reply = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    for i, ends in enumerate(many(3)):
        at, sent = 5.0 * i, 1001 + len(head)
        talk += [ends.syn(at), *ends.accepts(at + RTT)]
        talk.append(ends.segment(at + RTT + 0.001, False, "PA", data=head, seq=1001, ack=5001))
        talk.append(ends.segment(at + 2 * RTT, True, "PA", data=reply, seq=5001, ack=sent))
        talk.append(ends.segment(at + 2 * RTT + 0.0001, True, "FA", seq=5001 + len(reply), ack=sent))
        talk += [
            ends.segment(at + 2 * RTT + 0.002 + n / 1e4, False, "A", data=bytes(1000), seq=sent + 1000 * n, ack=5001)
            for n in range(5)
        ]
        talk.append(ends.segment(at + 3 * RTT, True, "R", seq=5002 + len(reply)))
    return talk


def forbidden(router: str, code: int, port: int = 3306) -> Callable[[], Timed]:
    return lambda: all_of(
        Ends(45000, 443).connects(0.2),
        *(ends.forbidden(1 + i, router, code) for i, ends in enumerate(many(3, server_port=port))),
    )


def refused(ttl: int, beside: Timed) -> Timed:
    return all_of(beside, *(ends.refused(1 + i, ttl) for i, ends in enumerate(many(3, server_port=8080))))


def beside_own_ttl(server_port: int, ttl: int) -> Timed:
    """Refused connections, and others of that host whose socket sets the TTL, as BGP does."""
    talk = [(at, packet.copy()) for at, packet in Ends(45000, server_port).connects(0.2)]
    for _, packet in talk:
        if packet["IP"].src == SERVER:
            packet["IP"].ttl = ttl
    return refused(64, talk)


def one_of_many_lost() -> Timed:
    """One attempt of 40 stays without an answer: its client gave up after one SYN."""
    return all_of(*(ends.connects(i) for i, ends in enumerate(many(40))), [Ends(45000).syn(20)])


def offers(extra: bool, passed: int, flags: str = "S", count: int = 4) -> Timed:
    """Connections that are answered after a repeat without the option; `passed` others with it at once."""
    options = [COOKIE] if extra else []
    dropped = [
        [ends.syn(3.0 * i, None, options, flags), *ends.connects(3.0 * i + 1)] for i, ends in enumerate(many(count))
    ]
    return all_of(
        *dropped, *(ends.connects(20.0 + i, None, options, flags) for i, ends in enumerate(many(passed, 42000)))
    )


def untaken(times: Iterable[float]) -> Timed:
    """Discovers with an Offer each, and no Request."""
    return [message(at + later, kind) for at in times for later, kind in ((0, "discover"), (0.01, "offer"))]


def clients(ahead: bool, count: int = 4) -> Timed:
    """As behind a NAT; the ignored one's clock is ahead of the other's, or behind."""
    talk: Timed = []
    for i in range(count):
        talk += Ends(40000 + i).connects(2.0 * i, 9_000_000 + 2000 * i)
        talk += Ends(41000 + i).syns(2.0 * i + 1, (0.0, 0.3), (20_000_000 if ahead else 100_000) + 2000 * i)
    return talk


def lossy() -> Timed:
    """SYNs and data are lost alike: handshakes come late, and each response is sent twice."""
    talk: Timed = []
    for i, ends in enumerate(many(8)):
        at = 5.0 * i
        talk += [*([ends.syn(at)] if i % 2 else []), *ends.connects(at + 1)[:4]]
        talk += [
            ends.segment(at + 1.1 + later, True, "PA", data=bytes(400), seq=5001, ack=1101) for later in (0.0, 0.4, 1.2)
        ]
    return talk


def late_syns(count: int, open_ones: int = 0) -> Timed:
    """Connections whose first SYN is lost, others that come about at once, and some that stay open all the time."""
    return all_of(
        *([ends.syn(0.0), *ends.accepts(RTT)] for ends in many(open_ones, 45000)),
        *([ends.syn(3.0 * i + 1), *ends.connects(3.0 * i + 2)] for i, ends in enumerate(many(count))),
        *(ends.connects(30.0 + i) for i, ends in enumerate(many(4, 43000))),
    )


def limited_syns() -> Timed:
    """Every second attempt is given up without an answer, every other one comes about after a lost SYN."""
    return all_of(
        *(
            ends.syns(5.0 * i, (0.0, 1.0)) if i % 2 else [ends.syn(5.0 * i), *ends.connects(5.0 * i + 1)]
            for i, ends in enumerate(many(8))
        )
    )


def one_direction() -> Timed:
    """The client's packets alone of connections that work."""
    return [
        packet for i, ends in enumerate(many(3)) for packet in ends.connects(20.0 * i) if packet[1]["IP"].src != SERVER
    ]


def family(both: bool, hosts: Iterable[str] = ("5::1", "6::1", "7::1"), ladder: Iterable[float] = (0.0, 1.0)) -> Timed:
    """Attempts over IPv6 to hosts without an answer, and connections over IPv4 that follow at once or 7 s later."""
    talk: Timed = []
    for i, host in enumerate(hosts):
        talk += Ends(42000 + i, 443, "2001:db8:1::1", f"2001:db8:{host}").syns(10.0 * i, ladder)
        talk += Ends(43000 + i, 443, server=f"10.2.0.{5 + i}").connects(10.0 * i + (0.25 if both else 7.0))
    return talk


def in_turn() -> Timed:
    """Two addresses over IPv6 that a router reports as unreachable after 3 s each, then IPv4."""
    talk: Timed = []
    for i in range(2):
        for host in range(2):
            at, ends = (
                20.0 * i + 3.1 * host,
                Ends(42000 + 2 * i + host, 443, "2001:db8:1::1", f"2001:db8:{5 + host}::1"),
            )
            talk += ends.syns(at, (0.0, 1.0))
            error = IPv6(src="2001:db8:1::ff", dst=ends.client) / ICMPv6DestUnreach(code=3)
            talk.append((at + 3.0, ether(error / Raw(bytes(ends.syn(at)[1][IPv6])))))
        talk += Ends(43000 + i, 443, server="10.2.0.5").connects(20.0 * i + 6.2)
    return talk


def strays(rejected: bool, rounds: int = 2, target: str = "10.0.0.53", peers: int = 0) -> Timed:
    """Questions to a port of one address that another one answers; the client rejects the answers by ICMP or not, and may send to
    more addresses from the same port."""
    talk = elsewhere()
    for i in range(rounds):
        for n, host in enumerate([target, *(f"10.6.0.{k}" for k in range(peers))]):
            talk.append(
                (5.0 * i + n / 100, ether(IP(src="10.0.0.1", dst=host) / UDP(sport=4000, dport=161) / Raw(b"q" * 30)))
            )
        answer = IP(src="10.7.0.7", dst="10.0.0.1") / UDP(sport=161, dport=4000) / Raw(b"a" * 40)
        talk.append((5.0 * i + 0.02, ether(answer)))
        if rejected:
            error = IP(src="10.0.0.1", dst="10.7.0.7") / ICMP(type=3, code=3) / Raw(bytes(answer))
            talk.append((5.0 * i + 0.0201, ether(error)))
    return talk


def old_connection(opened: bool, step: int = 0) -> Timed:
    """SYNs that an ACK of an old connection answers, each followed by a RST; the last one opens a connection or not. Their
    numbers are the same, or `step` apart."""
    ends, talk = Ends(), elsewhere(count=3)
    for turn, at in enumerate((0.0, 1.0, 3.0)):
        syn = ends.syn(at)
        syn[1]["TCP"].seq += step * (3 - turn)
        talk += [syn, ends.segment(at + RTT, True, "A", seq=77_000, ack=900_000)]
        talk += [ends.segment(at + RTT + 0.0001, False, "R", seq=900_000)]
    return [*talk, *(ends.connects(7.0) if opened else [])]


def names(answered: bool, reverse: bool = False) -> Timed:
    """Questions that a server leaves open; `answered`: it answers others."""
    talk = [asks_name(float(5 * i + j), i, name=f"{i}.example", port=4000 + i) for i in range(3) for j in range(3)]
    return all_of(
        elsewhere(), talk, [asks_name(1.5, 99, port=4900), tells_name(1.51, 99, port=4900)] if answered else []
    )


def forwarded(with_client: bool = True) -> Timed:
    """Questions that a resolver hands on to a server that answers none, in a capture at the resolver; `with_client`: and those of
    its client."""
    resolver, client = "10.0.0.5", "10.0.0.1"
    questions = [asks_name(2.0 * i, i, port=4000 + i, client=client, server=resolver) for i in range(6)]
    handed_on = [asks_name(2.0 * i + 0.1, 9 + i, port=5000 + i, client=resolver, server="9.9.9.10") for i in range(6)]
    return all_of(questions, handed_on) if with_client else handed_on


def truncated(tcp_works: bool) -> Timed:
    ends = [Ends(46000 + i, 53, server="10.0.0.53") for i in range(2)]
    questions = [
        packet
        for i in range(2)
        for packet in (
            asks_name(5.0 * i, i, port=4000 + i),
            tells_name(5.0 * i + 0.01, i, port=4000 + i, truncated=True),
        )
    ]
    return all_of(
        questions, *((each.connects if tcp_works else each.syns)(5.0 * i + 0.02) for i, each in enumerate(ends))
    )


def mixed_types() -> Timed:
    """As `one_type`, but it is either type that is lost."""
    swapped = {1: 28, 28: 1}
    talk = one_type()
    for _, packet in talk[len(talk) // 2 :]:
        question = packet["DNS"].qd[0]
        question.qtype = swapped[question.qtype]
    return talk


def pinged(answered: bool) -> Timed:
    pings = [ping(float(i), i, "10.0.0.1", SERVER) for i in range(4)]
    return all_of(
        silent_port()[10:], pings, [pong(i + 0.02, i, "10.0.0.1", SERVER) for i in range(4)] if answered else []
    )


def pings_beside(server: str = SERVER, times: int = 1, at: float = 1.0) -> Timed:
    """Pings of a host without an answer, from a time on, and a connection to the web server."""
    pings = [ping(at + i, i, "10.0.0.1", server) for i in range(6)]
    for _, packet in pings:
        packet["Raw"].load *= times
    return all_of(Ends(45000, 443).connects(0.0), pings)


def unacknowledged(at: float) -> Timed:
    """A connection on which the client sends data from 1 s on, and again and again, without an ACK."""
    ends = Ends(45002, 22)
    opening = [ends.syn(at), *ends.accepts(at + 0.02)]
    return [*opening, *(ends.segment(at + 2**i, False, "PA", data=bytes(50), seq=1001, ack=5001) for i in range(4))]


def nobody(hosts: int = 3) -> Timed:
    """A client that tries several hosts, of which none answers."""
    return all_of(*(Ends(40000 + i, server=f"10.2.0.{2 + i}").syns(i / 2) for i in range(hosts)))


def unheard_answers(repeats: bool) -> Timed:
    """SYN-ACKs pass; the client repeats its SYN, or does not."""
    talk: Timed = []
    for i, ends in enumerate(many(3)):
        for later in (0.0, 1.0, 3.0):
            talk += [ends.syn(5 * i + later)] if repeats or not later else []
            talk.append(ends.accepts(5 * i + later + 0.001)[0])
    return all_of(elsewhere(), talk)


def udp_443(blocked: bool) -> Timed:
    """QUIC to two hosts, without an answer, and TLS over TCP to them at once."""
    talk: Timed = []
    for i, host in enumerate(("10.2.0.5", "10.2.0.6")):
        message = initial(crypto(0, hello(b"www.example.org")))
        for later in (0.0, 0.2):
            datagram = IP(src="10.0.0.1", dst=host) / UDP(sport=47000 + i, dport=443) / Raw(message)
            talk.append((10.0 * i + later, ether(datagram)))
        if not blocked:
            talk.append(
                (10.0 * i + 0.02, ether(IP(src=host, dst="10.0.0.1") / UDP(sport=443, dport=47000 + i) / Raw(message)))
            )
        ends = Ends(48000 + i, 443, server=host)
        tls = b"\x16\x03\x01" + sized(hello(b"www.example.org"))
        request = ends.segment(10.0 * i + 0.35, False, "PA", data=tls, seq=1001, ack=5001)
        answer = ends.segment(10.0 * i + 0.37, True, "PA", data=tls, seq=5001, ack=1001 + len(tls))
        talk += [ends.syn(10.0 * i + 0.3), *ends.accepts(10.0 * i + 0.32), request, answer]
    return talk


def ignored_type() -> Timed:
    """AAAA from another port than A, never answered."""
    talk: Timed = []
    for i in range(4):
        at, name = 10.0 * i, f"{i}.example"
        talk += [asks_name(at, 2 * i, "A", name, 4000 + i), tells_name(at + 0.01, 2 * i, "A", name, 4000 + i)]
        talk += [asks_name(at + later, 2 * i + 1, "AAAA", name, 4100 + i) for later in (0.001, 2.0, 5.0)]
    return talk


def unknown_names(beside: Timed) -> Timed:
    answers = [
        (asks_name(float(i), i, name="nmae.example"), tells_name(i + 0.01, i, name="nmae.example", code=3))
        for i in range(2)
    ]
    return all_of(*map(list, answers), beside)


def no_dns_process() -> Timed:
    talk: Timed = []
    for i in range(3):
        question = asks_name(float(i), i, port=4000 + i)
        error = IP(src="10.0.0.53", dst="10.0.0.1") / ICMP(type=3, code=3) / Raw(bytes(question[1][IP])[:28])
        talk += [question, (i + 0.001, ether(error))]
    return talk


SAID = {
    # host-down beside filtered
    "router reports no host": Said(
        forbidden("10.1.0.1", 1),
        "host-down",
        "proven",
        ("10.2.0.2 is down or not there", "10.1.0.1", "3 connections failed"),
        ("filtered",),
    ),
    "no route": Said(forbidden("10.1.0.1", 0), "host-down", "proven", ("cannot be reached", "no route")),
    "silent, and nothing of it": Said(
        lambda: all_of(elsewhere(), silent_port()[8:]), "host-down", "likely", ("probably down", "9 SYNs")
    ),
    "silent, but another port answers": Said(
        silent_port, "filtered", "likely", ("probably drops TCP 3306 of 10.2.0.2", "port 443"), ("host-down", "refused")
    ),
    "silent, but pings are answered": Said(
        lambda: pinged(True), "filtered", "likely", ("probably drops",), ("host-down",)
    ),
    "one SYN at the end": Said(lambda: all_of(elsewhere(), [Ends().syn(1.0)]), None),
    # filtered beside refused
    "forbidden by a router": Said(
        forbidden("10.1.0.1", 13),
        "filtered",
        "proven",
        ("A firewall at 10.1.0.1 blocks TCP 3306", "administratively"),
        ("host-down",),
    ),
    "forbidden by the host": Said(
        forbidden(SERVER, 10), "filtered", "proven", ("The firewall of the host itself blocks",)
    ),
    "rejected as most firewalls do": Said(forbidden("10.1.0.1", 3), "filtered", "proven", ("port unreachable",)),
    "refused with the TTL of the host": Said(
        lambda: refused(61, Ends(45000, 443).connects(0.2)),
        "refused",
        "proven",
        ("Nothing listens on 10.2.0.2:8080", "3 connections"),
        ("filtered",),
    ),
    "refused with another TTL": Said(
        lambda: refused(63, Ends(45000, 443).connects(0.2)),
        "filtered",
        "proven",
        ("firewall before the host", "63", "61"),
        ("refused",),
    ),
    "refused with a TTL one less": Said(
        lambda: refused(60, Ends(45000, 443).connects(0.2)), "filtered", "likely", ("probably rejects",)
    ),
    "refused, and nothing else of the host": Said(
        lambda: refused(61, elsewhere()), "refused", "likely", ("Probably nothing listens", "or a firewall before it")
    ),
    "refused by RSTs that acknowledge nothing": Said(
        ignored_refusals,
        "reset-ignored",
        "proven",
        ("refuses 2 connections", "repeats its SYN 3 times, and waits 7.02 s instead"),
        ("refused",),
    ),
    "refused, and tried again": Said(lambda: ignored_refusals(wrong=0), "refused", "proven"),
    "refused once by a RST that acknowledges nothing": Said(lambda: ignored_refusals(ladder=(0.0,)), "refused"),
    "refused beside BGP": Said(
        lambda: beside_own_ttl(179, 1), "refused", "likely", ("Probably nothing listens", "or a firewall before it")
    ),
    "refused beside a socket of TTL 1": Said(
        lambda: beside_own_ttl(443, 1), "refused", "likely", ("Probably nothing listens",)
    ),
    "refused beside a socket of TTL 255": Said(
        lambda: beside_own_ttl(443, 255), "refused", "likely", ("Probably nothing listens",)
    ),
    "refused by another system": Said(lambda: beside_own_ttl(443, 125), "filtered", "proven", ("64", "125")),
    "refused until it came": Said(
        lambda: refused(61, Ends(45000, 8080).connects(9.0)),
        "refused",
        "proven",
        ("listened for a time", "3 connections of 4"),
    ),
    "refused for a time": Said(
        lambda: refused(61, Ends(45000, 8080).connects(0.2)),
        "refused",
        "proven",
        ("listens any more", "3 connections of 4"),
    ),
    "refused while another one is open": Said(
        lambda: refused(61, Ends(45000, 8080).connects(0.2)[:-3]),
        "refused",
        "likely",
        ("8080 takes no further connections", "while 1 other stayed open"),
    ),
    "UDP port without a process": Said(
        no_dns_process, "refused", "proven", ("Nothing listens on UDP 10.0.0.53:53", "port unreachable")
    ),
    "no host answers the client": Said(
        nobody, "host-down", "likely", ("Nothing answers 10.0.0.1", "3 hosts", "9 SYNs")
    ),
    "ARP alone": Said(
        lambda: [asks(float(i), "10.0.4.99") for i in range(4)],
        "host-down",
        "likely",
        ("probably not on this network",),
    ),
    "port that stopped": Said(
        lambda: all_of(
            *(ends.connects(i) for i, ends in enumerate(many(4))),
            *(ends.syns(20 + i) for i, ends in enumerate(many(4, 42000))),
            Ends(45000, 443).connects(30.0),
        ),
        "filtered",
        "likely",
        ("probably drops TCP 80", "4 connections to it opened before"),
    ),
    "host that stopped": Said(
        lambda: all_of(
            *(ends.connects(i) for i, ends in enumerate(many(4))),
            *(ends.syns(20 + i) for i, ends in enumerate(many(4, 42000))),
            elsewhere(30.0),
        ),
        "host-down",
        "likely",
        ("10.2.0.2 stopped answering", "12 SYNs"),
    ),
    "pings alone": Said(
        lambda: all_of(elsewhere(), [ping(float(i), i, "10.0.0.1", SERVER) for i in range(6)]),
        "host-down",
        "possible",
        ("answers no ping", "firewall drops pings"),
    ),
    "pings that a router answers": Said(
        lambda: [packet for i in range(4) for packet in (ping(float(i), i), ping_error(i + 0.5, i, 3, 1))],
        "host-down",
        "proven",
        ("10.0.4.50 is down or not there", "4 pings"),
    ),
    "two machines, of which one refuses": Said(
        lambda: all_of(
            [
                asks(0.0, "10.0.4.50"),
                answers(0.0005, "10.0.4.50"),
                answers(0.001, "10.0.4.50", mac="02:00:00:00:00:77"),
            ],
            *(Ends(45000 + i, client="10.0.4.10", server="10.0.4.50").refused(0.1 + i) for i in range(3)),
        ),
        "duplicate-address",
        "proven",
        ("Two machines claim 10.0.4.50",),
    ),
    "DHCP Offers that a client ignores": Said(
        lambda: untaken((0, 3, 6, 9)),
        "dhcp-no-lease",
        "likely",
        (
            "takes no Offer of 10.1.0.1",
            "4 Discovers in 9 s",
            "no Request followed. The Offers probably do not reach it",
        ),
    ),
    "DHCP Offers that a client ignores in two rounds": Said(
        lambda: untaken((0, 4, 12, 60, 64, 72)),
        "dhcp-no-lease",
        "likely",
        ("takes no Offer of 10.1.0.1", "6 Discovers in 72 s"),
    ),
    "UDP service without an answer": Said(
        deaf_service,
        "udp-silent",
        "proven",
        ("10.0.0.53:123 answers none of 5 NTP requests of 10.0.0.1",),
        ("refused",),
    ),
    "WireGuard without an answer": Said(
        lambda: deaf_service(51_820, 148), "udp-silent", "proven", ("5 WireGuard handshake initiations",)
    ),
    "VPN without an answer over UDP, and with one over TCP": Said(
        lambda: deaf_service(1194, 42, tcp=Ends(50_001, 1194, "10.0.0.1", "10.0.0.53")),
        "udp-silent",
        "proven",
        ("although it answers over TCP 1194", "a firewall probably drops UDP 1194"),
    ),
    "NTP without an answer of a host whose packets take another way": Said(
        lambda: deaf_service(tcp=Ends(50_001, 443, "10.0.0.1", "10.0.0.53"), both=False),
        "one-direction",
        None,
        ("only one direction of 1 TCP connection",),
    ),
    "VPN without an answer, whose host has another port": Said(
        lambda: deaf_service(1194, 42, tcp=Ends(50_001, 443, "10.0.0.1", "10.0.0.53")),
        "udp-silent",
        "proven",
        ("although it sends other packets.",),
    ),
    "UDP service of which another server answers": Said(lambda: deaf_service(other=True), None),
    "NTP requests of one port without an answer": Said(
        deaf_to_a_port,
        "udp-silent",
        "likely",
        ("none of 5 NTP requests of 10.0.0.1 from port 123", "while it answers 3 other ports", "to or from port 123"),
    ),
    "NTP requests of one port without an answer of any server": Said(
        lambda: deaf_to_a_port(each=False, also=("10.0.0.54", "10.0.0.55")),
        "udp-silent",
        "likely",
        (
            "10.0.0.53:123, like 2 other servers, answers none of 15 NTP requests of 10.0.0.1 from port 123",
            "while 10.0.0.53 answers 1 other port of that client: the way probably drops",
        ),
    ),
    "NTP requests of one port without an answer beside one answer": Said(lambda: deaf_to_a_port(tries=1), None),
    "NTP requests of one port without an answer until the server works": Said(lambda: deaf_to_a_port(False), None),
    "SNMP of which another device answers": Said(
        lambda: deaf_service(161, other=True),
        "udp-silent",
        "proven",
        ("10.0.0.53:161 answers none of 5 SNMP requests",),
    ),
    "one of three servers refuses": Said(
        refused_by_turns,
        "refused",
        "likely",
        ("One of several servers behind 10.2.0.2:80 probably does not listen", "6 connections of 18 were refused"),
    ),
    "a server that stops for a time": Said(
        lambda: refused_by_turns(6), "refused", "proven", ("Nothing listens any more on 10.2.0.2:80",)
    ),
    "FTP data in active mode": Said(
        active_mode,
        "ftp-active-blocked",
        "likely",
        ("Active FTP fails: 2 connections of the server 198.51.100.21 from port 20 to 10.0.0.1 (8 SYNs",),
        ("host-down",),
    ),
    "FTP data in active mode from a high port": Said(
        high_ports,
        "ftp-active-blocked",
        "likely",
        ("Active FTP fails: 2 connections of the server 198.51.100.21 to 10.0.0.1 (8 SYNs",),
        ("host-down",),
    ),
    "answers to SYNs that nobody sent": Said(
        scattered,
        "backscatter",
        "likely",
        ("10.0.0.1 gets 12 SYN-ACKs of 198.51.100.80", "does no harm"),
        ("asymmetric-path",),
    ),
    "a server without its router": Said(
        without_router,
        "no-gateway",
        "likely",
        (
            "10.0.4.1, probably the default gateway of 10.0.4.50",
            "cannot answer 3 connections of clients of other networks",
        ),
        ("host-down",),
    ),
    "IKE whose large messages get no answer": Said(
        half_open_vpn,
        "udp-silent",
        "likely",
        (
            "none of 9 fragmented IKE messages",
            "answered the short IKE_SA_INIT before",
            "fragments are probably dropped",
        ),
    ),
    "IKE whose second message gets no answer": Said(
        lambda: half_open_vpn(900),
        "udp-silent",
        "likely",
        ("answered IKE_SA_INIT before: they are dropped on the way",),
    ),
    "DNS of one port": Said(
        one_port,
        "dns-one-port",
        "likely",
        ("None of the 5", "from port 53211", "all 5"),
        ("dns-silent", "dns-one-type"),
    ),
    "FTP data to an address of the server's site": Said(
        passive_mode,
        "ftp-wrong-address",
        "likely",
        ("The FTP server 198.51.100.21 probably names", "10.44.0.9", "2 data connections"),
    ),
    "FTP data to a port that is closed": Said(
        refused_data,
        "ftp-data-refused",
        "likely",
        ("Passive FTP fails: 198.51.100.21 refuses 2 data connections of 10.0.0.1 to ports 4501 to 4502",),
        ("ftp-wrong-address",),
    ),
    "FTP data to a port that is silent": Said(
        silent_data,
        "ftp-passive-blocked",
        "likely",
        ("Passive FTP fails: 2 data connections of 10.0.0.1 to 198.51.100.21", "probably drops its passive ports"),
        ("host-down",),
    ),
    "SYNs that a NAT sends back": Said(
        sent_back,
        "hairpin-nat",
        "proven",
        ("10.0.0.1 cannot reach itself by 198.51.100.9:8443", "its 9 SYNs", "3 connections"),
        ("host-down",),
    ),
    "DHCP server that never confirms": Said(
        lambda: [
            *(message(at, kind) for at, kind in ((0, "discover"), (0.01, "offer"), (1, "request"), (5, "request"))),
            asks(30, "10.0.4.50"),
        ],
        "dhcp-no-lease",
        "proven",
        ("10.1.0.1 offers", "never confirms it: 2 Requests in 7 s got no ACK"),
        ("one-direction",),
    ),
    "one DHCP client of two": Said(
        lambda: [
            *(message(at, "discover", 9, "02:00:00:00:00:0b", name="phone") for at in (0, 4, 12, 28)),
            *lease(40.0),
        ],
        "dhcp-no-lease",
        "proven",
        ("4 Discovers",),
    ),
    # accept-queue beside loss, options, timestamps
    "full queue": Said(
        full_queue, "accept-queue", "likely", ("4 of 7 connections", "3 others"), ("paws-refused", "option-dropped")
    ),
    "late SYNs to a busy port": Said(
        lambda: late_syns(4, 3),
        "accept-queue",
        "likely",
        ("4 of 11 connections", "accepts too slowly"),
        ("random-loss",),
    ),
    "a server that is overloaded": Said(
        overloaded,
        "accept-queue",
        "likely",
        ("4 of 8 connections", "is probably full", "and it took 779 ms to answer each of 8 requests"),
    ),
    "a server that is slow, and late SYNs": Said(lambda: overloaded(12.0), "slow-server"),
    "a proxy before a silent server": Said(
        gateway,
        "error-answers",
        "proven",
        ("2 of 3 HTTP requests got status 504", "10.3.0.9:8080 behind it left 2 requests unans"),
    ),
    "a proxy before a host that is down": Said(
        lambda: gateway("dropped"), "error-answers", "proven", ("because 10.3.0.9:8080 behind it answers no SYN",)
    ),
    "a proxy before a port that is closed": Said(
        lambda: gateway("refused", status=b"502 Bad Gateway"),
        "error-answers",
        "proven",
        ("10.3.0.9:8080 behind it refuses",),
    ),
    "a proxy before a server that closes idle connections": Said(
        stale_backends,
        "error-answers",
        "proven",
        ("2 of 6 HTTP requests got status 502", "because 10.3.0.9:8080 behind it closed an idle connection as"),
    ),
    "a proxy that reaches its server after its error": Said(
        lambda: stale_backends(lag=0.1), "error-answers", "proven", ("status 502 within 6 ms (shop.example).",)
    ),
    "a proxy beside a server that hangs at other times": Said(
        lambda: gateway("elsewhere", later=1.5), "error-answers", "proven", ("status 504 after 4 s (app.example).",)
    ),
    "the first of two DNS servers is down": Said(
        dead_first_server, "dns-silent", "likely", ("4 questions got no answer; after 2 s each another one was asked",)
    ),
    "the second server is asked for another reason": Said(
        lambda: dead_first_server(after=60.0),
        "dns-silent",
        "likely",
        ("5 questions got no answer; it is probably down",),
    ),
    "SYNs that the host itself drops": Said(
        at_the_host,
        "filtered",
        "likely",
        ("The host itself probably drops TCP 8443", "9 SYNs of 10.0.0.1", "within 20 µs"),
    ),
    "SYNs that something before the host drops": Said(
        lambda: at_the_host(0.0004), "filtered", "likely", ("A firewall probably drops TCP 8443 of 10.2.0.2",)
    ),
    "late SYNs to an idle port": Said(
        lambda: late_syns(4), "setup-lost", "likely", ("4 of 8 connections", "the other 4 at once"), ("accept-queue",)
    ),
    "one late SYN": Said(lambda: late_syns(1), None),
    "one of many": Said(one_of_many_lost, None),
    "option separates": Said(
        lambda: offers(True, 0), "option-dropped", "proven", ("Fast Open cookie", "4 of 4"), ("accept-queue",)
    ),
    "option separates two": Said(
        lambda: offers(True, 0, count=2), "option-dropped", "likely", ("probably dropped", "2 of 2")
    ),
    "ECN separates": Said(lambda: offers(False, 0, ECN), "option-dropped", "proven", ("an offer of ECN",)),
    "ECN is refused": Said(
        refused_offers, "option-refused", "proven", ("an offer of ECN: all 4 got a RST within 20 ms",), ("refused",)
    ),
    "ECN is refused twice": Said(
        lambda: refused_offers(2, refused=2), "option-refused", "likely", ("probably refuses", "both got a RST")
    ),
    "ECN is refused, or the port was closed": Said(
        lambda: refused_offers(0, 4), "option-refused", "possible", ("possibly", "Or nothing listened there for a time")
    ),
    "one client is refused, whose SYNs offer ECN": Said(lambda: refused_offers(client="10.0.0.9"), "refused"),
    "plain SYNs are refused by turns": Said(lambda: refused_offers(offered=False), "refused", "likely"),
    "ECN on a closed port": Said(lambda: refused_offers(0), "refused"),
    "option passes elsewhere": Said(lambda: offers(True, 4), "setup-lost", "likely"),
    "timestamp separates": Said(
        lambda: clients(False), "paws-refused", "proven", ("all 4 unanswered", "all 4 that"), ("accept-queue",)
    ),
    "timestamp separates two": Said(lambda: clients(False, 2), "paws-refused", "likely", ("probably ignores",)),
    "timestamp does not separate": Said(
        lambda: clients(True), "bad-member", "likely", ("4 of 8 connections",), ("accept-queue",)
    ),
    "ports of one connection": Said(
        stuck_ports,
        "stale-entry",
        "likely",
        ("1 of 7 connections to 10.2.0.2:80 hangs", "5 SYNs", "6 others", "source port 40000"),
        ("accept-queue", "random-loss"),
    ),
    "a few connections among refusals": Said(
        mostly_refused, "refused", "likely", ("One of several servers", "24 connections of 30 were refused")
    ),
    "a UDP port that answers by turns": Said(
        mostly_resolved, "refused", "likely", ("One of several servers behind UDP", "6 of 26 flows")
    ),
    "a UDP port that is closed at first": Said(
        lambda: mostly_resolved(first=6), "refused", "proven", ("Nothing listens on UDP",)
    ),
    "ports used again too soon": Said(
        held_ports,
        "time-wait",
        "likely",
        ("all 3 attempts", "closed 49", "6 connections from other ports", "TIME_WAIT"),
        ("accept-queue", "bad-member"),
    ),
    "one port used again too soon": Said(
        lambda: held_ports(1, ladder=(0.0, 1.0, 3.0, 7.0, 15.0)),
        "time-wait",
        "likely",
        ("ignored 5 SYNs", "from a port that had closed", "it or a firewall probably still held the old one"),
        ("accept-queue", "bad-member"),
    ),
    "answers that go to the other machine": Said(
        contested, "duplicate-address", "proven", ("3 connection attempts from it got no answer",)
    ),
    "port that no network answers": Said(
        no_mail,
        "egress-filtered",
        "likely",
        ("Outbound TCP 25 of 10.0.0.1", "4 connections to 4 hosts", "12 SYNs"),
        ("host-down",),
    ),
    "other port that no network answers": Said(lambda: no_mail(port=27017), "egress-filtered", "likely"),
    "names with a search list": Said(
        search_list,
        "search-list",
        "proven",
        ("8 of 12 DNS questions", "api.example.cluster", "40 ms of each lookup"),
    ),
    "two DHCP servers": Said(
        two_dhcp_servers,
        "second-dhcp",
        "likely",
        ("Two DHCP servers", "10.20.0.5 gave 10.20.1.x to 2 clients", "192.168.1.1 gave 192.168.1.x to 2 clients"),
    ),
    "requests that are too large": Said(
        refused_bodies,
        "error-answers",
        "proven",
        ("3 of 3 HTTP requests got status 413 (too large a body)", "still sent"),
    ),
    # names
    "no answer at all": Said(
        lambda: names(False), "dns-silent", "likely", ("3 questions (9 queries", "no name"), ("dns-one-type",)
    ),
    "a resolver whose server answers nothing": Said(
        forwarded, "dns-silent", "likely", ("The DNS server 9.9.9.10 answers nothing: 3 questions",)
    ),
    "truncated, TCP silent": Said(
        lambda: truncated(False), "dns-tcp-blocked", "proven", ("2 answers", "6 SYNs"), ("filtered",)
    ),
    "truncated, TCP works": Said(lambda: truncated(True), None),
    "AAAA late": Said(one_type, "dns-one-type", "proven", ("4 of 4 lookups", "5.01 s"), ("dns-silent", "random-loss")),
    "truncated, TCP refused": Said(
        lambda: all_of(
            truncated(False)[:4], *(Ends(46000 + i, 53, server="10.0.0.53").refused(5.0 * i + 0.02) for i in range(2))
        ),
        "dns-tcp-blocked",
        "proven",
        ("2 answers", "was refused"),
    ),
    "AAAA ignored": Said(
        ignored_type, "dns-one-type", "proven", ("although A of the same name", "4 of 4 lookups got no answer")
    ),
    "names that do not exist": Said(lambda: unknown_names([]), "error-answers", "proven", ("NXDOMAIN", "nmae.example")),
    # paths
    "SYN-ACKs do not arrive": Said(
        lambda: unheard_answers(True),
        "asymmetric-path",
        "likely",
        ("do not reach 10.0.0.1", "9 SYN-ACKs"),
        ("syn-flood",),
    ),
    "SYN-ACKs of another address": Said(
        other_address,
        "answer-elsewhere",
        "proven",
        ("10.2.0.2:80 answers from another address", "3 connections", "10.2.0.77", "resets"),
        ("host-down", "refused"),
    ),
    "answers of another address that the client rejects": Said(
        lambda: strays(True), "answer-elsewhere", "proven", ("2 answers came from 10.7.0.7", "rejects"), ("refused",)
    ),
    "IPv6 of one network": Said(
        lambda: family(True, ("5::1", "5::2")), "broken-family", "likely", ("IPv6 is probably dead",)
    ),
    "addresses over IPv6 in turn": Said(
        in_turn, "broken-family", "proven", ("none of 4", "'address unreachable'", "6.20 s")
    ),
    "port used again in vain": Said(
        lambda: old_connection(False), "port-reuse", "proven", ("reused 1 port", "no connection opened in 3 s")
    ),
    "port used again": Said(
        lambda: old_connection(True), "port-reuse", "proven", ("reused 1 port", "the connection opened 7 s later")
    ),
    "port used again with new numbers": Said(
        lambda: old_connection(True, 70_000),
        "port-reuse",
        "proven",
        ("reused 1 port", "the connection opened 7 s later"),
    ),
    "IPv4 once the next SYN was due": Said(
        lambda: family(False, ladder=(0.0, 1.0, 3.0)), "broken-family", "proven", ("IPv6 is dead", "7 s")
    ),
    "pings after a connection": Said(
        pings_beside,
        "ping-filtered",
        "likely",
        ("is probably up, but it or a firewall drops pings", "none of 4 pings"),
        ("host-down",),
    ),
    "pings while a connection is open": Said(
        lambda: all_of(pings_beside(), Ends(45001, 443).connects(3.5)),
        "ping-filtered",
        "proven",
        ("is up, but it or a firewall drops pings", "2 connections of"),
    ),
    "QUIC blocked": Said(lambda: udp_443(True), "broken-family", "proven", ("UDP 443 (QUIC) is blocked", "300 ms")),
    "both families": Said(lambda: family(True), "broken-family", "proven", ("IPv6 is dead", "250 ms")),
}
NOT = {
    "one attempt among late ones": (lambda: stuck_ports(late=2), "stale-entry"),
    "one attempt of few SYNs": (lambda: stuck_ports(ladder=(0.0, 1.0, 3.0)), "stale-entry"),
    "one attempt among few": (lambda: stuck_ports(working=3), "stale-entry"),
    "ports used again after minutes": (lambda: held_ports(since=300.0), "time-wait"),
    "a monitor of DHCP": (lambda: untaken((0, 60, 120, 180)), "dhcp-no-lease"),
    "one port used again beside none": (lambda: held_ports(1, others=0, ladder=(0.0, 1.0, 3.0, 7.0)), "time-wait"),
    "one port used again, three SYNs": (lambda: held_ports(1), "time-wait"),
    "other ports without an answer": (lambda: held_ports(vain=2), "time-wait"),
    "one suffix": (lambda: search_list(("cluster",)), "search-list"),
    "two lookups": (lambda: search_list(lookups=2), "search-list"),
    "names that do not exist either": (lambda: search_list(exists=False), "search-list"),
    "two DHCP servers of one network": (lambda: two_dhcp_servers(("10.20.1", "10.20.1")), "second-dhcp"),
    "two DHCP servers behind a relay": (lambda: two_dhcp_servers(relayed=True), "second-dhcp"),
    "several hosts of one network": (lambda: no_mail(networks=1), "egress-filtered"),
    "two hosts": (lambda: no_mail(hosts=2), "egress-filtered"),
    "port that another host serves": (lambda: no_mail(served=(443, 25)), "egress-filtered"),
    "peers at several ports": (lambda: no_mail(port=6881, beside=51413), "egress-filtered"),
    "SYN-ACKs after the attempt": (lambda: other_address(later=6.0), "answer-elsewhere"),
    "one answer of another address": (lambda: strays(False, 1), "answer-elsewhere"),
    "answers to a multicast question": (lambda: strays(False, 2, "239.255.255.250"), "answer-elsewhere"),
    "peers at one port": (lambda: strays(False, 2, peers=3), "answer-elsewhere"),
    "answers to a socket that is gone": (lambda: strays(True), "refused"),
    "UDP that wants no answer": (lambda: deaf_service(514, 60), "udp-silent"),
    "FTP servers that reach out without a control connection": (lambda: active_mode(False), "ftp-active-blocked"),
    "FTP in active mode to a client that has left": (lambda: active_mode(until=1.0), "ftp-active-blocked"),
    "SYNs of an FTP server from another port": (lambda: active_mode(port=41_000), "ftp-active-blocked"),
    "SYNs of an FTP server long after a command": (lambda: high_ports(2.0), "ftp-active-blocked"),
    "SYNs of an FTP server after another command": (lambda: high_ports(command=b"NOOP\r\n"), "ftp-active-blocked"),
    "answers to a scan": (lambda: scattered(0, asked=12), "backscatter"),
    "a scan of which the capture missed SYNs": (lambda: scattered(asked=12), "backscatter"),
    "a server with which the host talks": (lambda: scattered(of="198.51.100.80"), "backscatter"),
    "the end of a scan that began before the capture": (lambda: scattered(every=0.01), "backscatter"),
    "a server that leaves neighbors unanswered, too": (lambda: without_router(inside=True), "no-gateway"),
    "a server that reaches other networks": (lambda: without_router(reaches="198.51.100.7"), "no-gateway"),
    "a server whose router answers": (lambda: without_router(replies=True), "no-gateway"),
    "two datagrams": (lambda: deaf_service(count=2), "udp-silent"),
    "DNS of several ports": (lambda: one_port(False), "dns-one-port"),
    "silent ports of a host without FTP": (lambda: silent_data(False), "ftp-passive-blocked"),
    "closed ports of a host without FTP": (lambda: refused_data(False), "ftp-data-refused"),
    "SYNs that a NAT sends back with its own address": (lambda: sent_back("10.0.0.254"), "hairpin-nat"),
    "silent host without FTP": (lambda: passive_mode(command=False), "ftp-wrong-address"),
    "DHCP server that confirms late": (
        lambda: [*lease(0)[:3], message(4, "request"), message(4.1, "ack"), asks(30, "10.0.4.50")],
        "dhcp-no-lease",
    ),
    "DHCP Offer and ACK to the client alone": (
        lambda: [message(0, "discover"), message(1, "request"), message(5, "request"), asks(30, "10.0.4.50")],
        "dhcp-no-lease",
    ),
    "SYN scan": (lambda: unheard_answers(False), "asymmetric-path"),
    "QUIC answered": (lambda: udp_443(False), "broken-family"),
    "one name of several": (lambda: unknown_names(elsewhere()), "error-answers"),
    "some host answers": (lambda: all_of(nobody(), elsewhere(5.0)), "refused"),
    "lossy path": (lossy, "accept-queue"),
    "lossy path that drops SYNs": (lossy, "setup-lost"),
    "a limit of SYNs": (limited_syns, "bad-member"),
    "one direction": (one_direction, "asymmetric-path"),
    "IPv4 comes much later": (lambda: family(False), "broken-family"),
    "the server answers other names": (lambda: names(True), "dns-silent"),
    "a resolver of which nothing shows that answers are captured": (lambda: forwarded(False), "dns-silent"),
    "either type": (mixed_types, "dns-one-type"),
    "pings without an answer": (lambda: pinged(False), "filtered"),
    "pings that are answered": (lambda: pinged(True), "ping-filtered"),
    "pings that test the path MTU": (lambda: pings_beside(times=30), "ping-filtered"),
    "pings long after a connection": (lambda: pings_beside(at=90.0), "ping-filtered"),
    "pings of a host that acknowledges data no more": (
        lambda: all_of(pings_beside(at=10.0), unacknowledged(8.0)),
        "ping-filtered",
    ),
    "pings of a host that is silent": (lambda: pings_beside("10.2.0.99"), "ping-filtered"),
}


@pytest.mark.parametrize("name", SAID)
def test_the_answer_names_the_cause_that_the_facts_leave(name: str, tmp_path: Path) -> None:
    expected = SAID[name]
    trace = analyze_timed(tmp_path, sorted(expected.make(), key=lambda packet: packet[0]))
    answer = trace.answer
    assert answer.cause == expected.cause, answer.sentence
    assert expected.certainty is None or answer.certainty == expected.certainty, answer.sentence
    assert all(text in answer.sentence for text in expected.texts), answer.sentence
    rivals = {row["rival"] for row in trace.cause_rivals if row["cause"] == answer.number and row["excluded"]}
    assert rivals >= set(expected.excluded)


@pytest.mark.parametrize("name", NOT)
def test_a_rival_is_not_taken_for_the_cause(name: str, tmp_path: Path) -> None:
    make, code = NOT[name]
    trace = analyze_timed(tmp_path, sorted(make(), key=lambda packet: packet[0]))
    assert len(trace.exchanges) and code not in trace.causes.column("code")


def test_an_attempt_belongs_to_one_cause(tmp_path: Path) -> None:
    """Failed operations of all causes are no more than the attempts that failed."""
    talk = all_of(
        silent_port(), full_queue(), *(ends.syns(2.0, ()) or [ends.syn(2.0)] for ends in many(2, 47000, server_port=99))
    )
    trace = analyze_timed(tmp_path, sorted(talk, key=lambda packet: packet[0]))
    failed = sum(row["failed"] or 0 for row in trace.causes)
    silent = sum(row["outcome"] in ("unanswered", "cut_off") for row in trace.exchanges if row["kind"] == "connect")
    assert 0 < failed <= silent and RTT


@pytest.mark.parametrize(
    ("statuses", "code", "says"),
    [
        (
            [200, 200, 502, 200, 504, *[200] * 7],
            "error-answers",
            "2 of 12 HTTP requests got status 502 (1), 504 (1) after 24 ms",
        ),
        ([200] * 8 + [504] * 4, "error-answers", "4 of 12 HTTP requests got status 504 after 30 s (app.example)"),
        ([200] * 10 + [429] * 8, "error-answers", "8 of 18 HTTP requests got status 429 (too many requests)"),
        ([200] * 4 + [403] * 6, "error-answers", "6 of 10 HTTP requests got status 403 (no permission)"),
        ([401, 401, 401], "error-answers", "3 of 3 HTTP requests got status 401 (no valid login)"),
        ([401, 200] * 12, "login-each-request", "refuses 12 of 24 HTTP requests with status 401 first"),
        ([401, 401, *[200] * 10], None, "12 HTTP requests were answered"),
        ([302] * 20, "redirect-loop", "in a circle: it answers 20 HTTP requests one after another with status 302"),
        (
            [*[200] * 9, 0, *[302] * 20, 0, *[302] * 21, 0, 200],
            "redirect-loop",
            "in a circle (2 times): it answers 21 HTTP",
        ),
        ([*[302] * 12, 200], None, "13 HTTP requests were answered"),
        ([*[302] * 5, 0] * 4, None, "20 HTTP requests were answered"),
        ([302] * 70, None, "70 HTTP requests were answered"),  # a test of load
        ([*[200] * 10, 404, *[304] * 8], None, "19 HTTP requests were answered"),
    ],
)
def test_the_status_of_each_answer_of_a_connection_counts(
    statuses: list[int], code: str | None, says: str, tmp_path: Path
) -> None:
    wire = web_answers(statuses, lambda status: 30_000.0 if status == 504 else 4.0 if status == 502 else 3.0)
    answer = wiretale.analyze(wire.write(tmp_path / "capture.pcap")).answer
    assert (answer.cause, says in answer.sentence) == (code, True), answer.sentence


def test_redirects_to_another_server_are_no_circle(tmp_path: Path) -> None:
    trace = wiretale.analyze(web_answers([302] * 30, target="10.0.0.3").write(tmp_path / "capture.pcap"))
    assert "60 HTTP requests were answered" in trace.answer.sentence, trace.answer.sentence


@pytest.mark.parametrize(
    ("port", "says"), [(443, "port 443 wants TLS and got plain HTTP"), (8080, "a malformed request")]
)
def test_plain_requests_to_a_port_of_tls(port: int, says: str, tmp_path: Path) -> None:
    trace = wiretale.analyze(web_answers([400] * 3, port=port).write(tmp_path / "capture.pcap"))
    assert says in trace.answer.sentence, trace.answer.sentence
