# SPDX-License-Identifier: Apache-2.0
"""Captures in which nobody answers: one example for each cause."""

from __future__ import annotations

from itertools import chain

from scapy.all import BOOTP, DHCP, DNS, DNSQR, DNSRR, ICMP, IP, TCP, UDP, Packet, Raw, fragment

from attempt_wire import COOKIE, ECN, LADDER, RTT, Ends, many
from crafted import Timed, ether
from dhcp_wire import lease
from finding_captures import CAPTURES, Make, of_timed
from neighbor_wire import answers, asks, ping

NAMESERVER = "10.0.0.53"


def asks_name(
    at: float,
    number: int,
    kind: str = "A",
    name: str = "a.example",
    port: int = 4000,
    client: str = "10.0.0.1",
    server: str = NAMESERVER,
) -> tuple[float, Packet]:
    """A DNS question."""
    message = DNS(id=number, rd=1, qd=DNSQR(qname=name, qtype=kind))
    return at, ether(IP(src=client, dst=server) / UDP(sport=port, dport=53) / message)


def tells_name(
    at: float,
    number: int,
    kind: str = "A",
    name: str = "a.example",
    port: int = 4000,
    client: str = "10.0.0.1",
    code: int = 0,
    truncated: bool = False,
    server: str = NAMESERVER,
) -> tuple[float, Packet]:
    """Its answer."""
    message = DNS(id=number, qr=1, rcode=code, tc=int(truncated), qd=DNSQR(qname=name, qtype=kind))
    return at, ether(IP(src=server, dst=client) / UDP(sport=53, dport=port) / message)


def elsewhere(at: float = 0.5, count: int = 1) -> Timed:
    """Connections to another host that work."""
    return [packet for i in range(count) for packet in Ends(50000 + i, 443, server="10.9.0.9").connects(at + i)]


def all_of(*talks: Timed) -> Timed:
    return list(chain.from_iterable(talks))


def dead_first_server(after: float = 2.0, count: int = 5) -> Timed:
    """Lookups that ask a server without an answer first, and another one a time later."""
    talk: Timed = elsewhere()
    for i in range(count):
        at, name, port = 1.0 + 10 * i, f"{i}.example", 4000 + i
        talk += [
            asks_name(at, i, name=name, port=port),
            asks_name(at + after, i, name=name, port=port, server="10.0.0.54"),
        ]
        talk.append(tells_name(at + after + 0.01, i, name=name, port=port, server="10.0.0.54"))
    return talk


def at_the_host(reply: float = 0.00002) -> Timed:
    """SYNs to a port that answers nobody, and pings of another client that the host answers in a time."""
    pings = [packet for i in range(3) for packet in pings_of(i + 1.0, i, reply)]
    return all_of(pings, *(ends.syns(i) for i, ends in enumerate(many(3, server_port=8443))))


def pings_of(at: float, number: int, reply: float) -> Timed:
    """A ping and its reply a time later."""
    there = IP(src="10.2.0.1", dst="10.2.0.2") / ICMP(type=8, id=9, seq=number) / Raw(bytes(40))
    back = IP(src="10.2.0.2", dst="10.2.0.1") / ICMP(type=0, id=9, seq=number) / Raw(bytes(40))
    return [(at, ether(there)), (at + reply, ether(back))]


def far_host_down() -> Timed:
    return all_of(elsewhere(), *(ends.syns(i) for i, ends in enumerate(many(3))))


def silent_port() -> Timed:
    ends = many(3, server_port=3306)
    return all_of(Ends(45000, 443).connects(0.2), *(each.syns(i) for i, each in enumerate(ends)))


def closed_port() -> Timed:
    return all_of(
        Ends(45000, 443).connects(0.2), *(each.refused(1 + i) for i, each in enumerate(many(3, server_port=8080)))
    )


def ignored_refusals(count: int = 2, wrong: int = 1, ladder: tuple[float, ...] = (0.0, 1.0, 3.0, 7.0)) -> Timed:
    """Attempts whose SYNs are answered by RSTs, and repeated nevertheless. Their acknowledgment number is off by `wrong`."""
    talk = Ends(45000, 443).connects(0.2)
    for i, ends in enumerate(many(count, server_port=8080)):
        for later in ladder:
            at = 1 + 20 * i + later
            talk += [ends.syn(at), ends.segment(at + RTT, True, "RA", seq=0, ack=1001 - wrong)]
    return talk


def refused_by_turns(each: int = 1, count: int = 18) -> Timed:
    """Connections of which two are accepted for each that is refused, in turn or in rows as long."""
    return all_of(
        *(ends.refused(1.0 + i) if i // each % 3 == 2 else ends.connects(1.0 + i) for i, ends in enumerate(many(count)))
    )


def mostly_refused(count: int = 30, each: int = 5) -> Timed:
    """Connections of which every fifth is accepted."""
    return all_of(*((ends.refused if i % each else ends.connects)(1.0 + i) for i, ends in enumerate(many(count))))


def mostly_resolved(count: int = 30, each: int = 5, first: int = 0) -> Timed:
    """Questions of which every fifth finds the port closed, or all up to `first`."""
    talk: Timed = []
    for i in range(count):
        query = IP(src="10.0.0.1", dst="10.2.0.53") / UDP(sport=40_000 + i, dport=53)
        question = query / DNS(id=i, rd=1, qd=DNSQR(qname="a.example"))
        if i < first or (not first and i % each == 0):
            reply = IP(src="10.2.0.53", dst="10.0.0.1") / ICMP(type=3, code=3) / Raw(bytes(question))
        else:
            back = IP(src="10.2.0.53", dst="10.0.0.1") / UDP(sport=53, dport=40_000 + i)
            reply = back / DNS(id=i, qr=1, qd=DNSQR(qname="a.example"), an=DNSRR(rrname="a.example", rdata="10.2.0.9"))
        talk += [(1.0 + i, ether(question)), (1.001 + i, ether(reply))]
    return talk


def full_queue() -> Timed:
    """Three connections that stay open, and four that get no SYN-ACK."""
    occupied = [packet for i, ends in enumerate(many(3)) for packet in [ends.syn(i / 10), *ends.accepts(i / 10 + RTT)]]
    return all_of(occupied, *(ends.syns(1 + i / 10) for i, ends in enumerate(many(4, 41000))))


def overloaded(work: float = 0.8) -> Timed:
    """A server that works on one request at a time, for so long; every other connection is accepted only at its second SYN."""
    talk: Timed = []
    for i, ends in enumerate(many(8)):
        at, tries = 0.5 * i, 1 + i % 2
        talk += [ends.syn(at + later) for later in range(tries)]
        opened = at + tries - 1 + RTT
        talk += ends.accepts(opened)
        talk.append(ends.segment(opened + 0.001, False, "PA", data=bytes(100), seq=1001, ack=5001))
        talk.append(ends.segment(opened + 0.021, True, "A", seq=5001, ack=1101))
        talk.append(ends.segment(opened + work, True, "PA", data=bytes(400), seq=5001, ack=1101))
        talk.append(ends.segment(opened + work + 0.001, False, "FA", seq=1101, ack=5401))
        talk.append(ends.segment(opened + work + 0.021, True, "FA", seq=5401, ack=1102))
        talk.append(ends.segment(opened + work + 0.022, False, "A", seq=1102, ack=5402))
    return talk


def gateway(behind: str = "silent", later: float = 0.001, status: bytes = b"504 Gateway Time-out") -> Timed:
    """A proxy answers two requests of three with an error after 4 s, because a server behind it is silent, cannot be reached or
    refuses, asked a time after the proxy was; or `behind` is another client's server, which is slow at another time."""
    request: bytes = b"GET / HTTP/1.1\r\nHost: app.example\r\n\r\n"
    talk: Timed = []
    for i, waits in enumerate((0.02, 4.0, 4.0)):
        at, front = 10.0 * i, Ends(40_000 + i, 80)
        back = Ends(51_000 + i, 8080, "10.2.0.2", "10.3.0.9")
        talk += [front.syn(at), *front.accepts(at + 0.002)]
        since = at + 0.003
        line = b"HTTP/1.1 " + (status if waits > 1 else b"200 OK") + b"\r\nContent-Length: 0\r\n\r\n"
        answered = since + (0.001 if behind == "refused" and waits > 1 else waits)
        talk.append(front.segment(since, False, "PA", data=request, seq=1001, ack=5001))
        talk.append(front.segment(answered, True, "PA", data=line, seq=5001, ack=1001 + len(request)))
        if behind == "refused" and waits > 1:
            talk += back.refused(since + 0.0001, after=0.0008)
        elif behind == "dropped" and waits > 1:
            talk += back.syns(since + later, (0.0, 1.0, 3.0))
        elif behind in ("silent", "elsewhere"):
            begin = since + later
            talk += [back.syn(begin), *back.accepts(begin + 0.001)]
            talk.append(back.segment(begin + 0.0015, False, "PA", data=request, seq=1001, ack=5001))
            talk.append(back.segment(begin + 0.0025, True, "A", seq=5001, ack=1001 + len(request)))
            end = begin + waits - 0.004
            if waits < 1:
                talk.append(back.segment(end - 0.001, True, "PA", data=line, seq=5001, ack=1001 + len(request)))
            got = len(line) if waits < 1 else 0
            talk.append(back.segment(end, False, "FA", seq=1001 + len(request), ack=5001 + got))
            talk.append(back.segment(end + 0.001, True, "FA", seq=5001 + got, ack=1002 + len(request)))
            talk.append(back.segment(end + 0.0011, False, "A", seq=1002 + len(request), ack=5002 + got))
    return talk


def stale_backends(met: int = 2, pause: float = 5.0, lag: float = 0.002) -> Timed:
    """A proxy sends its second requests on connections that the server behind it closes just then, of which it meets `met`, and
    tells its clients 502."""
    request, page = (
        b"POST /pay HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    )
    error, size = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", len(request)
    talk: Timed = []
    for i in range(3):
        at, front, back = 20.0 * i, Ends(40_000 + i, 80), Ends(51_000 + i, 8080, "10.2.0.2", "10.3.0.9")
        talk += [front.syn(at), *front.accepts(at + 0.002), back.syn(at + 0.003), *back.accepts(at + 0.004)]
        for turn, begin in enumerate((at + 0.01, at + 0.014 + pause)):
            is_stale, position, received = turn == 1 and i < met, 1001 + turn * size, 5001 + turn * len(page)
            talk.append(front.segment(begin, False, "PA", data=request, seq=position, ack=received))
            talk.append(back.segment(begin + lag, False, "PA", data=request, seq=position, ack=received))
            if is_stale:
                talk.append(back.segment(begin + lag + 0.0004, True, "FA", seq=received, ack=position))
                talk.append(back.segment(begin + lag + 0.0005, False, "FA", seq=position + size, ack=received + 1))
                talk.append(back.segment(begin + lag + 0.002, True, "R", seq=received + 1))
            else:
                talk.append(back.segment(begin + lag + 0.002, True, "PA", data=page, seq=received, ack=position + size))
            talk.append(
                front.segment(
                    begin + 0.006, True, "PA", data=error if is_stale else page, seq=received, ack=position + size
                )
            )
    return talk


def clients_behind_nat() -> Timed:
    """Two clients with clocks of their own in turn; the server ignores the one whose clock is behind."""
    talk: Timed = []
    for i in range(4):
        talk += Ends(40000 + i).connects(2.0 * i, 9_000_000 + 2000 * i)
        talk += Ends(41000 + i).syns(2.0 * i + 1, (0.0, 0.3), 100_000 + 2000 * i)
    return talk


def fast_open_dropped() -> Timed:
    talk: Timed = []
    for i, ends in enumerate(many(4)):
        talk += [ends.syn(3.0 * i, extra=[COOKIE]), *ends.connects(3.0 * i + 1)]
    return talk


def one_bad_link() -> Timed:
    """Every second connection gets no answer to any SYN, though no other one is open."""
    return all_of(
        *((ends.syns if i % 2 else ends.connects)(5.0 * i) for i, ends in enumerate(many(8))),
    )


def held_ports(
    count: int = 3, since: float = 50.0, others: int = 6, vain: int = 0, ladder: tuple[float, ...] = LADDER
) -> Timed:
    """Ports that are used again so many s after their connection closed, without an answer until the client gives up; beside them
    other ports that connect, or not."""
    talk = all_of(*(ends.connects(1.0 * i) for i, ends in enumerate(many(count))))
    for i, ends in enumerate(many(count)):
        syn = {"seq": 77_000, "options": [("MSS", 1460), ("WScale", 7)]}
        talk += [ends.segment(since + i + later, False, "S", **syn) for later in ladder]
        talk.append(ends.segment(since + i + 25, False, "R", seq=77_001))
    talk += all_of(*(ends.connects(since + i) for i, ends in enumerate(many(others, 41000))))
    return talk + all_of(*(ends.syns(since + i) for i, ends in enumerate(many(vain, 43000))))


def contested(hosts: int = 3) -> Timed:
    """A host whose address another one claims, too: the answers to its SYNs go there."""
    machines = [
        answers(at, "10.0.4.50", mac=mac) for at, mac in ((0.0005, "02:00:00:00:00:50"), (0.001, "02:00:00:00:00:77"))
    ]
    attempts = (Ends(45000 + i, 443, "10.0.4.50", f"203.0.113.{9 + i}").syns(1.0 + i) for i in range(hosts))
    return all_of([asks(0.0, "10.0.4.50"), *machines], *attempts)


def stuck_ports(working: int = 6, ladder: tuple[float, ...] = (0.0, 1.0, 3.0, 7.0, 15.0), late: int = 0) -> Timed:
    """An attempt without an answer to any SYN, and connections of the same client, the last `late` of them at a repeated SYN."""
    talk = Ends(40000).syns(0.0, ladder)
    for i, ends in enumerate(many(working, 41000)):
        lost = [ends.syn(1.0 + 2.0 * i)] if i >= working - late else []
        talk += [*lost, *ends.connects(1.0 + 2.0 * i + len(lost))]
    return talk


def no_mail(
    hosts: int = 4, networks: int = 4, port: int = 25, served: tuple[int, ...] = (443,), beside: int = 0
) -> Timed:
    """SYNs to one port of hosts in so many networks, and connections to other ports that come about; `beside`: a second port of
    another host that does not answer either."""
    talk = all_of(*(Ends(50000 + i, each, server="10.9.0.9").connects(0.5 + i) for i, each in enumerate(served)))
    for i in range(hosts):
        talk += Ends(42000 + i, port, server=f"198.{18 + i % networks}.0.{5 + i}").syns(2.0 * i)
    return talk + (Ends(44000, beside, server="203.0.113.9").syns(3.0) if beside else [])


def flood() -> Timed:
    """A connection with window scaling, 200 SYNs in a second that nobody completes, and one without scaling meanwhile."""
    talk = Ends(50000).connects(0.0)
    for i in range(200):
        ends = Ends(1024 + i, client=f"198.51.{100 + i // 100}.{i % 100}")
        talk += [ends.syn(1 + i / 200), ends.accepts(1.0005 + i / 200)[0]]
    late = Ends(50001)
    return [*talk, late.syn(1.5), *late.accepts(1.5 + RTT, scale=False), *late.talks(1.53)]


def other_way_back() -> Timed:
    """Connections whose SYN-ACKs do not pass here, and whose data nobody acknowledges."""
    talk: Timed = []
    for i, ends in enumerate(many(3)):
        talk += [ends.syn(20.0 * i), ends.segment(20.0 * i + RTT, False, "A", seq=1001, ack=5001)]
        talk += [
            ends.segment(20.0 * i + RTT + later, False, "PA", data=bytes(300), seq=1001, ack=5001)
            for later in (0.001, 0.2, 0.6, 1.4, 3.0)
        ]
    return talk


def dead_family() -> Timed:
    talk: Timed = []
    for i, host in enumerate(("2001:db8:5::1", "2001:db8:6::1", "2001:db8:7::1")):
        talk += Ends(42000 + i, 443, "2001:db8:1::1", host).syns(10.0 * i, (0.0, 1.0))
        talk += Ends(43000 + i, 443, server=f"10.2.0.{5 + i}").connects(10.0 * i + 0.25)
    return talk


def other_address(count: int = 3, later: float = 0.0, ack: int = 1001) -> Timed:
    """SYNs to one address whose SYN-ACKs come from another one, so that the client resets them; `ack`: what they acknowledge."""
    talk = elsewhere()
    for i, ends in enumerate(many(count)):
        at, other = 10.0 * i, ends._replace(server="10.2.0.77")
        talk += [*ends.syns(at), other.segment(at + later + RTT, True, "SA", seq=5000, ack=ack)]
        talk += [other.segment(at + later + RTT + 0.0001, False, "R", seq=ack)]
    return talk


def deaf_service(
    port: int = 123, size: int = 48, count: int = 5, other: bool = False, tcp: Ends | None = None, both: bool = True
) -> Timed:
    """Datagrams to a UDP service that answers none; another host answers the client, `other`: of that service, too. A TCP
    connection works; `both`: with its directions both in the capture."""
    question = IP(src="10.0.0.1", dst="10.0.0.53") / UDP(sport=41_000, dport=port) / Raw(bytes(size))
    ends = {"src": "10.0.0.1", "dst": "10.9.0.9"}, {"src": "10.9.0.9", "dst": "10.0.0.1"}
    ports = {"sport": 41_001, "dport": port}, {"sport": port, "dport": 41_001}
    served = [
        (5.0 + i / 50, ether(IP(**ends[i]) / UDP(**ports[i]) / Raw(bytes(size)))) for i in range(2 if other else 0)
    ]
    datagrams = [(2.0 * i, ether(question)) for i in range(count)]
    talk = [each for each in (tcp.connects(12.0) if tcp else []) if both or each[1][IP].src == "10.0.0.1"]
    return all_of(elsewhere(), datagrams, served, talk)


def deaf_to_a_port(
    meanwhile: bool = True, source: int = 123, tries: int = 3, each: bool = True, also: tuple[str, ...] = ()
) -> Timed:
    """NTP requests of one port without an answer, while those of other ports get one, or later; `each` of a port of its own.
    `also`: other servers that answer the first port not at all."""
    talk, server = elsewhere(), "10.0.0.53"
    for at, port, answered, host in (
        *((4.0 * i, source, False, server) for i in range(5)),
        *((4.0 * i + 1, source, False, other) for i in range(5) for other in also),
        *((5.0 + 4 * i + 40 * (not meanwhile), 50_001 + i * each, True, server) for i in range(tries)),
    ):
        hosts = ("10.0.0.1", host)
        talk.append((at, ether(IP(src=hosts[0], dst=hosts[1]) / UDP(sport=port, dport=123) / Raw(ntp_head(3)))))
        if answered:
            packet = IP(src=hosts[1], dst=hosts[0]) / UDP(sport=123, dport=port) / Raw(ntp_head(4))
            talk.append((at + 0.03, ether(packet)))
    return talk


def ntp_head(mode: int) -> bytes:
    """A message of NTP version 4: of a client (3), or of a server of stratum 2 (4)."""
    return bytes([4 << 3 | mode, 2 if mode == 4 else 0, 6, 0xEC]) + bytes(44)


def half_open_vpn(bytes_each: int = 2300, answered: bool = True) -> Timed:
    """IKE_SA_INIT, answered or not, and IKE_AUTH of a size that gets no answer, in fragments if it must."""
    talk = elsewhere()
    for i in range(3):
        start = bytes([i + 1] * 8)
        for at, back, exchange, size in ((0.0, False, 34, 400), (0.03, True, 34, 380), (0.05, False, 35, bytes_each)):
            if back and not answered:
                continue
            ends, port = ("10.0.0.1", "10.0.0.53")[:: -1 if back else 1], 500 if exchange == 34 else 4500
            spi = bytes([9] * 8) if back or exchange == 35 else bytes(8)
            head = start + spi + bytes([33, 0x20, exchange, 0x20 if back else 8]) + bytes([0, 0, 0, exchange - 34])
            text = (
                bytes(4 if port == 4500 else 0)
                + head
                + (28 + size).to_bytes(4, "big")
                + bytes(2)
                + size.to_bytes(2, "big")
            )
            packet = (
                IP(src=ends[0], dst=ends[1], id=7 * i + exchange)
                / UDP(sport=port, dport=port)
                / Raw(text + bytes(size - 4))
            )
            for again in (0.0, 2.0, 5.6) if exchange == 35 else (0.0,):
                parts = fragment(packet, 1480)
                talk += [(20.0 * i + at + again + 0.00001 * n, ether(part)) for n, part in enumerate(parts)]
    return sorted(talk, key=lambda each: each[0])


def one_port(alone: bool = True, count: int = 5) -> Timed:
    """DNS queries from one port without an answer, others of that client from other ports with one; or all of them alike."""
    talk: Timed = []
    for i in range(count):
        talk.append(asks_name(2.0 * i, 2 * i, ("A", "AAAA")[i % 2], f"{i}.example", 53_211))
        talk += [asks_name(2.0 * i + 1, 2 * i + 1, "A", "b.example", 4100 + i)]
        if alone or i % 2:
            talk.append(tells_name(2.0 * i + 1.002, 2 * i + 1, "A", "b.example", 4100 + i))
    return talk


def passive_mode(host: str = "10.44.0.9", command: bool = True) -> Timed:
    """An FTP control connection, whose commands are answered, and a data connection to an address of the server's site."""
    control = Ends(45_000, 21, server="198.51.100.21")
    talk: Timed = [control.syn(0.0), *control.accepts(RTT)]
    for i in range(2):
        at = 10.0 + 60.0 * i
        if command:
            talk.append(control.segment(at, False, "PA", data=b"PASV\r\n", seq=1001 + 6 * i, ack=5001 + 40 * i))
            talk.append(control.segment(at + RTT, True, "PA", data=bytes(40), seq=5001 + 40 * i, ack=1007 + 6 * i))
        talk += Ends(45_010 + i, 4501 + i, server=host).syns(at + RTT + 0.001)
    return talk


def refused_data(command: bool = True) -> Timed:
    """An FTP control connection, whose commands are answered, and data connections to its host, which refuses them."""
    talk = [
        packet
        for packet in passive_mode("198.51.100.21", command)
        if packet[1][TCP].dport < 4000 or packet[1][TCP].sport == 21
    ]
    for i in range(2):
        ends, at = Ends(45_010 + i, 4501 + i, server="198.51.100.21"), 10.0 + 60.0 * i + RTT + 0.001
        talk += [ends.syn(at), ends.segment(at + RTT, True, "RA", ack=1001)]
    return talk


def silent_data(command: bool = True) -> Timed:
    """An FTP control connection, whose commands are answered but for LIST, and data connections to its host without an answer."""
    talk = passive_mode("198.51.100.21", command)
    control = Ends(45_000, 21, server="198.51.100.21")
    if command:
        talk.append(control.segment(70.0 + RTT + 0.002, False, "PA", data=b"LIST\r\n", seq=1013, ack=5081))
        talk.append(control.segment(70.0 + 2 * RTT + 0.002, True, "A", seq=5081, ack=1019))
        talk.append(control.segment(95.0, False, "FA", seq=1019, ack=5081))
        talk.append(control.segment(95.0 + RTT, True, "A", seq=5081, ack=1020))
    return talk


def sent_back(source: str | None = None) -> Timed:
    """SYNs to the outer address of a NAT, which sends them back to their host; `source`: with a source of its own."""
    talk = elsewhere()
    for i in range(3):
        outer = Ends(45_000 + i, 8443, server="198.51.100.9")
        back = outer._replace(server=outer.client, client=source or outer.client)
        for later in (0.0, 1.0, 3.0):
            fields = {
                "seq": 300_000_000 * (i + 1),
                "options": [("MSS", 1460), ("Timestamp", (900_000 * (i + 1), 0)), ("WScale", 7)],
            }
            at = 5.0 + 9 * i + later
            talk += [outer.segment(at, False, "S", **fields), back.segment(at + 1e-4, False, "S", 63, **fields)]
    return talk


def active_mode(control: bool = True, port: int = 20, until: float = 40.0) -> Timed:
    """An FTP client whose commands are answered until a time, and SYNs of the server to it; or without commands."""
    link = Ends(45_000, 21, "10.0.0.1", "198.51.100.21")
    talk = [link.syn(0.0), *link.accepts(RTT), *link.talks(until)] if control else elsewhere()
    for i in range(2):
        talk += Ends(port, 61_000 + i, "198.51.100.21", "10.0.0.1").syns(5.0 + 20 * i, (0.0, 1.0, 3.0, 7.0))
    return talk


def high_ports(lag: float = 0.5, command: bytes = b"LIST\r\n") -> Timed:
    """An FTP server in active mode that opens data connections from a high port, so long after a command of its client."""
    link, failure = Ends(45_000, 21, "10.0.0.1", "198.51.100.21"), b"425 Cannot open data connection\r\n"
    talk = [link.syn(0.0), *link.accepts(RTT)]
    for i in range(2):
        at, sent, heard = 5.0 + 20 * i, 1001 + i * len(command), 5001 + i * len(failure)
        talk.append(link.segment(at, False, "PA", data=command, seq=sent, ack=heard))
        talk += Ends(41_000 + i, 61_000 + i, "198.51.100.21", "10.0.0.1").syns(at + lag, (0.0, 1.0, 3.0, 7.0))
        talk.append(link.segment(at + 10, True, "PA", data=failure, seq=heard, ack=sent + len(command)))
        talk.append(link.segment(at + 10.1, False, "A", seq=sent + len(command), ack=heard + len(failure)))
    return talk


def scattered(count: int = 12, asked: int = 0, every: float = 3.0, of: str = "10.9.0.9") -> Timed:
    """SYN-ACKs of a server to ports of a host, which it resets; `asked`: and of another, of which the SYNs are there, too; `of`:
    whose connection with the host works."""
    talk = Ends(50_000, 443, server=of).connects(0.5)
    for i in range(count + asked):
        server, at = f"198.51.100.{80 if i < count else 81}", every * i
        ends = Ends(20_000 + 37 * i, 80, server=server)
        talk += [ends.syn(at - RTT)] if i >= count else []
        talk.append(ends.segment(at, True, "SA", seq=5000 + i, ack=1001, options=[("MSS", 1460)]))
        talk.append(ends.segment(at + 0.0001, False, "R", seq=1001))
    return talk


def without_router(inside: bool = False, replies: bool = False, reaches: str = "") -> Timed:
    """A server that asks for a router by ARP, and leaves clients of other networks unanswered, beside neighbors that it serves;
    `inside`: it leaves one of these unanswered, too; `replies`: the router answers; `reaches`: a host to which it connects."""
    server, router = "10.0.4.50", "10.0.4.1"
    talk = Ends(46_000, 80, "10.0.4.10", server).connects(0.5)
    for i in range(3):
        talk += Ends(47_000 + i, 80, f"10.9.{i}.8", server).syns(2.0 + 5 * i)
        for j in range(3):
            talk += [asks(2.001 + 5 * i + j, router, server)]
            talk += [answers(2.002 + 5 * i + j, router, server)] if replies else []
    talk += Ends(46_500, 80, "10.0.4.11", server).syns(8.0) if inside else []
    return [*talk, *(Ends(48_000, 443, server, reaches).connects(4.0) if reaches else [])]


def two_dhcp_servers(networks: tuple[str, str] = ("10.20.1", "192.168.1"), relayed: bool = False) -> Timed:
    """Four clients, each with an address of the one DHCP server or of the other; `relayed`: by a relay that stands for both."""
    talk: Timed = []
    for i in range(4):
        server, address = ("10.20.0.5", "192.168.1.1")[i % 2], f"{networks[i % 2]}.{40 + i}"
        for at, packet in lease(10.0 * i, i + 1, f"02:00:00:00:00:{i:02x}"):
            if packet[UDP].sport == 67:
                packet[IP].src, packet[BOOTP].yiaddr = "10.20.0.1" if relayed else server, address
                options = packet[DHCP].options
                packet[DHCP].options = [("server_id", server) if each[0] == "server_id" else each for each in options]
            talk.append((at, packet))
    return talk


def deaf_nameserver() -> Timed:
    return all_of(
        elsewhere(),
        [asks_name(float(5 * i + j), i, name=f"{i}.example", port=4000 + i) for i in range(3) for j in range(3)],
    )


def one_type() -> Timed:
    """Four lookups of A and AAAA; AAAA is answered only after it was asked again."""
    talk: Timed = []
    for i in range(4):
        at, name, port = 10.0 * i, f"{i}.example", 4000 + i
        talk += [asks_name(at, 2 * i, "A", name, port), asks_name(at + 0.0002, 2 * i + 1, "AAAA", name, port)]
        talk += [tells_name(at + 0.01, 2 * i, "A", name, port), asks_name(at + 5, 2 * i + 1, "AAAA", name, port)]
        talk += [tells_name(at + 5.01, 2 * i + 1, "AAAA", name, port)]
    return talk


def search_list(suffixes: tuple[str, ...] = ("ns.cluster", "cluster"), lookups: int = 4, exists: bool = True) -> Timed:
    """Lookups of a name with each suffix of a search list, and then of the name itself."""
    talk: Timed = []
    for i in range(lookups):
        for n, suffix in enumerate([*suffixes, ""]):
            at, number, name = 2.0 * i + n / 20, 8 * i + n, f"api.example{'.' if suffix else ''}{suffix}"
            code = 3 if suffix or not exists else 0
            talk += [
                asks_name(at, number, "A", name, 4000 + number),
                tells_name(at + 0.02, number, "A", name, 4000 + number, code=code),
            ]
    return talk


def truncated_names() -> Timed:
    talk: Timed = []
    for i in range(2):
        talk += [
            asks_name(5.0 * i, i, "TXT", port=4000 + i),
            tells_name(5.0 * i + 0.01, i, "TXT", port=4000 + i, truncated=True),
        ]
        talk += Ends(46000 + i, 53, server=NAMESERVER).syns(5.0 * i + 0.02)
    return talk


def failing_names() -> Timed:
    return [
        packet
        for i in range(4)
        for packet in (
            asks_name(float(i), i, name=f"{i}.corp.example", port=4000 + i),
            tells_name(i + 0.01, i, name=f"{i}.corp.example", port=4000 + i, code=2),
        )
    ]


def refused_offers(
    between: int = 4, after: int = 0, refused: int = 4, offered: bool = True, client: str = Ends().client
) -> Timed:
    """SYNs of a client that offer ECN, or not, and get a RST; connections without it, between them or after them."""
    talk: Timed = []
    for i, ends in enumerate(many(refused, client=client)):
        syn = ends.syn(3.0 * i, flags=ECN if offered else "S")
        talk += [syn, ends.segment(3.0 * i + RTT, True, "RA", seq=0, ack=1001)]
    talk += all_of(*(ends.connects(3.0 * i + 1) for i, ends in enumerate(many(between, 42000))))
    return talk + all_of(*(ends.connects(60.0 + i) for i, ends in enumerate(many(after, 43000))))


EXAMPLES: dict[str, Make] = {
    "duplicate-address": CAPTURES["duplicate-address"],
    "second-dhcp": of_timed(two_dhcp_servers),
    "ping-filtered": of_timed(
        lambda: all_of(Ends(45000, 443).connects(0.2), [ping(1.0 + i, i, "10.0.0.1", Ends().server) for i in range(6)])
    ),
    "dhcp-no-lease": CAPTURES["dhcp-no-offer"],
    "multicast-stop": CAPTURES["multicast-stopped"],
    "dns-silent": of_timed(deaf_nameserver),
    "dns-one-type": of_timed(one_type),
    "search-list": of_timed(search_list),
    "dns-tcp-blocked": of_timed(truncated_names),
    "error-answers": of_timed(failing_names),
    "answer-elsewhere": of_timed(other_address),
    "udp-silent": of_timed(deaf_service),
    "dns-one-port": of_timed(one_port),
    "ftp-wrong-address": of_timed(passive_mode),
    "ftp-active-blocked": of_timed(active_mode),
    "ftp-data-refused": of_timed(refused_data),
    "ftp-passive-blocked": of_timed(silent_data),
    "hairpin-nat": of_timed(sent_back),
    "backscatter": of_timed(scattered),
    "no-gateway": of_timed(without_router),
    "asymmetric-path": of_timed(other_way_back),
    "broken-family": of_timed(dead_family),
    "syn-flood": of_timed(flood),
    "option-dropped": of_timed(fast_open_dropped),
    "option-refused": of_timed(refused_offers),
    "paws-refused": of_timed(clients_behind_nat),
    "stale-entry": of_timed(stuck_ports),
    "accept-queue": of_timed(full_queue),
    "bad-member": of_timed(one_bad_link),
    "port-reuse": CAPTURES["port-reuse"],
    "time-wait": of_timed(held_ports),
    "egress-filtered": of_timed(no_mail),
    "host-down": of_timed(far_host_down),
    "refused": of_timed(closed_port),
    "reset-ignored": of_timed(ignored_refusals),
    "filtered": of_timed(silent_port),
}
