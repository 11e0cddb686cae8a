# SPDX-License-Identifier: Apache-2.0
"""Connections that carry nothing any more, packets that vanish or circle: an example of each cause, and its rivals."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from scapy.all import ICMP, IP, TCP, UDP, Packet, Raw, fragment

import transfer_wires as wires
from causes_ends import Dialogue
from crafted import ether, write_timed
from finding_captures import of_wire
from neighbor_wire import asks
from numbered_payloads import rtp
from plain_wire import ACK, FIN, MSS, PSH, RST, SYN, Connection, Wire, sack, syn_options

Make = Callable[[Path], Path]
Timed = list[tuple[float, Packet]]
LADDER = (0, 200, 600, 1_400, 3_000, 6_200, 12_600, 25_400, 51_000)  # ms of a retransmission timer that doubles
END_MS = 200_000.0


def of_timed(make: Callable[[], Iterable[tuple[float, Packet]]]) -> Make:
    return lambda path: write_timed(path, sorted(make(), key=lambda entry: entry[0]))


def alive(wire: Wire, until_ms: float = END_MS) -> Wire:
    """Another conversation, to the end of the capture."""
    for ms in (until_ms - 1, until_ms):
        wire.udp(ms, b"end of the capture")
    return wire


def dialogue(wire: Wire, ms: float, port: int = 40_001, turns: int = 2, gap_ms: float = 2_000.0) -> Connection:
    """A connection with requests of 180 bytes and answers of 900, 20 ms away."""
    link = Connection(wire, port, server_port=5432).open(ms)
    for turn in range(turns):
        at = ms + 30 + turn * gap_ms
        link.send(at, 0, 180 * turn, 180, PSH | ACK, ack=900 * turn)
        link.send(at + 22, 1, 900 * turn, 900, PSH | ACK, ack=180 * (turn + 1))
        link.send(at + 22.1, 0, 180 * (turn + 1), ack=900 * (turn + 1))
    return link


def repeated(link: Connection, ms: float, at: int = 360, ack: int = 1800, size: int = 180, side: int = 0) -> Wire:
    """One segment, sent again and again in vain."""
    for after in LADDER:
        link.send(ms + after, side, at, size, PSH | ACK, ack=ack)
    return link.wire


def forgotten(idle_ms: float = 612_000.0, fresh: bool = True, keep_alives: bool = False) -> Wire:
    """After a pause nothing is answered any more, and a new connection is, if `fresh`."""
    wire = Wire()
    link, resumed = dialogue(wire, 0), 2_052 + idle_ms
    if keep_alives:
        for i in range(9):
            link.send(resumed + 75_000 * i, 0, 359, ack=1800)
    else:
        repeated(link, resumed)
    if fresh:
        dialogue(wire, resumed + 20_000, 40_002)
    else:
        for after in (0, 1_000, 3_000):
            Connection(wire, 40_003, server_port=5432).send(
                resumed + 20_000 + after, 0, -1, flags=SYN, options=syn_options()
            )
    return alive(wire, resumed + 700_000)


def survived() -> Wire:
    """One connection is silent after a pause of 60 s, another one goes on after 300 s: no timer forgot the first."""
    wire = Wire()
    repeated(dialogue(wire, 0), 62_052)
    link = dialogue(wire, 100, 40_002)
    link.send(302_200, 0, 360, 180, PSH | ACK, ack=1800).send(302_220, 1, 1800, 900, PSH | ACK, ack=540)
    return alive(wire, 400_000)


def gone() -> Wire:
    """A server that falls silent in mid-connection, and answers no new connection."""
    return forgotten(100.0, fresh=False)


def ladder_alone() -> Wire:
    """One end alone, which repeats a segment."""
    return repeated(Connection(Wire(), server_port=1043), 100, 0, 0)


def upload_alone() -> Wire:
    """One end alone, which sends new data."""
    link = Connection(Wire(), server_port=1043)
    for number, after in enumerate(LADDER):
        link.send(after, 0, 180 * number, 180, PSH | ACK)
    return link.wire


def hung_mount(port: int = 2049, again_ms: float = 60_000.0, clients: int = 3) -> Wire:
    """Clients whose calls are answered, and one whose last call is not: it sends more 60 s later, and again."""
    wire = Wire()
    for number in range(clients):
        talk = Dialogue(wire, 1.0, 100.0 * number, 42_000 + number, port)
        for i in range(150):
            talk.ask(900.0 + 17 * (7 * i % 31), 2.0)
    talk = Dialogue(wire, 1.0, 50.0, 41_000, port)
    for i in range(5):
        talk.ask(200.0 + 13 * i, 2.0)
    for turn in range(3):
        now = talk.now + 300.0 + again_ms * turn
        talk.link.send(now, 0, talk.sent, 120, PSH | ACK, talk.received)
        talk.sent += 120
        talk.link.send(now + 1.0, 1, talk.received, ack=talk.sent)
    return wire


def hung(count: int = 6, answered: int = 0, wait_ms: float = 11_000.0, first: int = 0) -> Wire:
    """Requests that are acknowledged and never answered, after `first` of the others."""
    wire = Wire()
    for i in range(count + answered):
        start = 1_000.0 * i
        link = Connection(wire, 40_001 + i).open(start, 2.0).send(start + 2.1, 0, 0, 120, PSH | ACK)
        link.send(start + 4.2, 1, 0, ack=120)
        if not first <= i < first + count:
            link.send(start + 30, 1, 0, 400, PSH | ACK, ack=120).send(start + 30.1, 0, 120, ack=400)
            continue
        link.send(start + wait_ms, 0, 120, flags=FIN | ACK).send(start + wait_ms + 2, 1, 0, ack=121)
    return alive(wire, 60_000)


def slow() -> Wire:
    """Requests that are answered after 4 s."""
    wire = Wire()
    for i in range(6):
        start = 1_000.0 * i
        link = Connection(wire, 40_001 + i).open(start, 2.0).send(start + 2.1, 0, 0, 120, PSH | ACK)
        link.send(start + 4.2, 1, 0, ack=120).send(start + 4_000, 1, 0, 400, PSH | ACK, ack=120)
        link.send(start + 4_000.1, 0, 120, ack=400)
    return alive(wire, 60_000)


def hole(size: int = 1460, filled: bool = False) -> Wire:
    """A receiver that misses a full segment and says so for a minute; captured at the receiver."""
    link = Connection(Wire(), server_port=43).open().send(21, 0, 0, 8, PSH | ACK).send(42, 1, 0, ack=8)
    link.send(90, 1, 0, 1000, PSH | ACK, ack=8).send(90.1, 0, 8, ack=1000)
    link.send(91, 1, 1000 + size, 270, PSH | ACK, ack=8)
    link.send(91.1, 0, 8, ack=1000, options=sack((1000 + size, 1270 + size)))
    if filled:
        link.send(400, 1, 1000, size, PSH | ACK, ack=8).send(400.1, 0, 8, ack=1270 + size)
    link.send(60_000, 0, 8, flags=FIN | ACK, ack=1270 + size if filled else 1000)
    return link.wire


def opened(with_data: bool = False) -> Wire:
    """A connection that opens, and stays empty while the capture goes on."""
    wire = Wire()
    link = Connection(wire, server_port=5001).open()
    if with_data:
        link.data(30, 0, 100).ack(50, 100)
    return alive(wire, 9_000)


def datagrams(
    count: int, lost: Callable[[int, int], bool], size: int = 1_900, small: int = 6, source: str = "203.0.113.5"
) -> Timed:
    """Fragmented datagrams of which fragments are lost by datagram and index, and small ones."""
    timed: Timed = []
    for number in range(count):
        packet = IP(src=source, dst="192.0.2.60", id=4000 + number) / UDP(sport=5060, dport=5060) / Raw(bytes(size))
        parts = fragment(packet, 1480)
        timed += [
            (number * 2 + index * 0.001, ether(part)) for index, part in enumerate(parts) if not lost(number, index)
        ]
    for number in range(small):
        ends = IP(src=source, dst="192.0.2.60", id=9000 + number)
        timed.append((number * 2 + 1.0, ether(ends / UDP(sport=5060, dport=5060) / Raw(bytes(300)))))
    return timed


def circling(passes: int = 30, step: int = 2) -> Timed:
    """A SYN and its two repeats, which pass again and again."""
    timed: Timed = []
    for attempt, at in enumerate((0.0, 1.0, 3.0)):
        for i in range(passes):
            network = IP(src="192.0.2.10", dst="10.9.0.5", id=500 + attempt, ttl=62 - step * i)
            timed.append((at + i * 0.0004, ether(network / TCP(sport=49_000, dport=443, flags="S", seq=1))))
    return timed


def storm(hosts: Sequence[str] = ("10.0.4.10", "10.0.4.11"), copies: int = 400, every: float = 0.0005) -> Timed:
    """A broadcast ARP request of each host, which bridges forward in a circle."""
    return [
        asks(i * every + number * 0.0001, "10.0.4.50", host, 20, f"02:00:00:00:01:{number:02x}")
        for i in range(copies)
        for number, host in enumerate(hosts)
    ]


def sweep(hosts: int = 1000, copies: int = 2) -> Timed:
    """A host that looks for others, at a port that stores each request twice."""
    return [
        asks(number * 0.001 + i * 0.0001, f"10.0.{number // 250}.{number % 250 + 1}", "10.0.4.10")
        for number in range(hosts)
        for i in range(copies)
    ]


def expired(ttl: int = 64, routers: Sequence[str] = ("10.1.0.1", "10.1.0.2")) -> Timed:
    """SYNs to which routers answer that the TTL ran out."""
    timed: Timed = []
    for attempt in range(4):
        syn = IP(src="192.0.2.10", dst="10.9.0.5", id=attempt + 1, ttl=ttl + attempt) / TCP(
            sport=49_000, dport=443, flags="S"
        )
        error = IP(src=routers[attempt % len(routers)], dst="192.0.2.10") / ICMP(type=11) / Raw(bytes(syn)[:28])
        timed += [(attempt * 1.0, ether(syn)), (attempt + 0.03, ether(error))]
    return timed


def reset_late() -> Wire:
    """An idle connection that is reset at the first request after the pause."""
    link = dialogue(Wire(), 0)
    link.send(414_000, 0, 360, 180, PSH | ACK, ack=1800).send(414_002, 1, 1800, flags=RST)
    return link.wire


def call(answered: bool = False, packets: int = 600, port: int = 5060, status: str = "") -> Timed:
    """A call whose media goes to a private address, and SIP messages in both directions; `status` of the final response."""
    ends, back = IP(src="198.51.100.7", dst="192.168.1.20"), IP(src="192.168.1.20", dst="198.51.100.7")
    timed: Timed = [
        (0.0, ether(ends / UDP(sport=port, dport=port) / Raw(b"INVITE sip:a@b SIP/2.0\r\n\r\n"))),
        (0.1, ether(back / UDP(sport=port, dport=port) / Raw(b"SIP/2.0 200 OK\r\n\r\n"))),
    ]
    for later, line, network in ((0, "INVITE", ends), (0.1, status, back)) if status else ():
        signal = signal_of("INVITE", 1)
        text = signal if line == "INVITE" else signal.replace("INVITE sip:a@b SIP/2.0", f"SIP/2.0 {line}", 1)
        timed.append((later, ether(network / UDP(sport=port, dport=port) / Raw(text.encode()))))
    for number in range(packets):
        for network, ssrc, ports in ((ends, 7, (16_384, 20_000)), (back, 9, (20_002, 16_386)))[: 1 + answered]:
            head = struct.pack("!BBHII", 0x80, 0, number, 160 * number, ssrc)
            datagram = network / UDP(sport=ports[0], dport=ports[1]) / Raw(head + bytes(160))
            timed.append((0.2 + number * 0.02, ether(datagram)))
    return timed


def signal_of(method: str, number: int) -> str:
    """A SIP request."""
    ends = "From: <sip:c@b>;tag=1\r\nTo: <sip:a@b>\r\n"
    return f"{method} sip:a@b SIP/2.0\r\nCall-ID: 7@b\r\nCSeq: {number} {method}\r\n{ends}\r\n"


def falls_silent(
    until: int = 400,
    packets: int = 1200,
    change: str = "",
    split: bool = False,
    hangs_up: bool = False,
    with_sip: bool = True,
    noise: bool = False,
    moves: bool = False,
) -> Wire:
    """A call whose second end sends no more packets after so many; as it stops, a request may change the call, or comfort noise
    tells that nobody speaks. Both directions are one flow, or two (`split`); the first end may hang up.
    `moves`: the media goes on from another host."""
    wire, ends = Wire(by_time=True), ("10.0.0.5", "10.0.0.20")

    def datagram(ms: float, side: int, ports: tuple[int, int], payload: bytes) -> None:
        wire.ip(ms, ends[side], ends[1 - side], 17, struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload)

    turns = [(0.0, "INVITE"), *([(200.0 + 20 * until, change)] if change else [])]
    turns += [(300.0 + 20 * packets, "BYE")] if hangs_up else []
    for number, (at, method) in enumerate(turns if with_sip else (), 1):
        datagram(at, 0, (5060, 5060), signal_of(method, number).encode())
    returned = (20_002, 16_386) if split else (20_000, 16_384)
    for number in range(packets):
        datagram(200.7 + 20 * number, 0, (16_384, 20_000), rtp(number, ssrc=7, kind=8))
        if number < until + noise:
            is_noise = number == until
            payload = rtp(number, ssrc=9, kind=13 if is_noise else 8)
            datagram(200.9 + 20 * number, 1, returned, payload[:13] if is_noise else payload)
        elif moves:
            header = struct.pack("!HHHH", *returned, 8 + 172, 0)
            wire.ip(200.9 + 20 * number, "10.0.0.21", ends[0], 17, header + rtp(number, ssrc=11, kind=8))
    return wire


def unheard_marks(marked: int = 0x48, repeats: int = 5) -> Wire:
    """A client marks its packets from its second request on, and no marked one arrives: neither that nor its ACKs."""
    link = Connection(Wire(by_time=True)).open()
    link.send(21, 0, 0, 300, PSH | ACK).send(43, 1, 0, 500, PSH | ACK, 300).send(43.1, 0, 300, ack=500)
    link.send(60, 0, 300, 112, PSH | ACK, 500, ecn=marked)
    for turn in range(repeats):
        later = 300.0 * (2**turn - 1)
        link.send(61 + later, 1, 500, 200, PSH | ACK, 300).send(61.1 + later, 0, 412, ack=700, ecn=marked)
        link.send(300 + 300.0 * 2**turn, 0, 300, 112, PSH | ACK, 700, ecn=marked)
    return link.wire


def unheard(heard: bool = False, repeats: int = 5, answered: bool = False) -> Wire:
    """A server closes, and nothing of the client arrives any more: the server repeats its FIN, which the client acknowledges each
    time, the client its own one, unless the server is as silent; or the server hears the acknowledgments."""
    link = Connection(Wire(by_time=True)).open()
    link.send(21, 0, 0, 300, PSH | ACK).send(43, 1, 0, 500, PSH | ACK, 300).send(43.1, 0, 300, ack=500)
    link.send(60, 1, 500, 24, PSH | FIN | ACK, 300).send(60.1, 0, 300, 24, PSH | FIN | ACK, 525)
    for turn in range(repeats):
        later = 300.0 * 2**turn
        if not heard:
            link.send(60 + later, 1, 500, 24, PSH | FIN | ACK, 300).send(60.2 + later, 0, 325, ack=525)
        link.send(75 + later, 0, 300, 24, PSH | FIN | ACK, 525)
    return link.send(90 + 300.0 * 2**repeats, 1, 525, ack=325).wire if answered else link.wire


def merged_lost(rounds: int = 12, passing: int = 0) -> Wire:
    """A sender whose packets of four segments vanish; only the one that its timer repeats gets through. `passing`: of how many of
    these packets one arrives; 0: none."""
    link, at, now = Connection(Wire()).open(0, 1.0), 0, 2.0
    for turn in range(rounds):
        link.send(now, 0, at, 4 * MSS)
        if passing and turn % passing == 0:
            at += 4 * MSS
            link.ack(now + 1, at)
            now += 1.1
            continue
        now += 210
        link.send(now, 0, at, MSS)
        at += MSS
        link.ack(now + 1, at)
        now += 1.1
    return link.wire


EXAMPLES: dict[str, Make] = {
    "offload-dropped": of_wire(merged_lost),
    "routing-loop": of_timed(circling),
    "bridge-loop": of_timed(storm),
    "fragments-dropped": of_timed(lambda: datagrams(7, lambda number, index: index > 0)),
    "fragment-loss": of_timed(
        lambda: datagrams(60, lambda number, index: number % 12 == 3 and index == number % 24 // 12)
    ),
    "one-way-media": of_timed(call),
    "media-stops": of_wire(falls_silent),
    "one-direction-cut": of_wire(unheard),
    "mtu-black-hole": of_wire(lambda: wires.stuck(False)),
    "hung-server": of_wire(hung),
    "nat-forgot": of_wire(forgotten),
    "peer-gone": of_wire(gone),
}
