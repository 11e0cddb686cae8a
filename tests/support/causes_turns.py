# SPDX-License-Identifier: Apache-2.0
"""Ends that wait for each other where they could go on: each cause beside its nearest rivals; times in ms."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from socket import inet_aton

import causes_ends as ends
import causes_path as paths
from finding_captures import of_wire
from plain_wire import ACK, MSS, NO_SACK, PSH, SYN, Connection, Wire, sack, syn_options
from rival_case import NOT, Case

SERVER_PORT = 9100
PUSH = PSH | ACK


def probed(closings: int = 20, failed: int = 0, opens: bool = False, ignored: int = 0) -> Wire:
    """An upload to a receiver of four segments, which the sender probes each time: after some answers of 0 there is room, or the
    receiver says so itself, if it `opens`; then the last probes may be `ignored`, as Linux does with answers in a row."""
    link, at, now, small = Connection(Wire(), server_port=SERVER_PORT).open(rtt=1.0), 0, 5.0, 4 * MSS // 128 + 1
    link.ack(now, 0, small)
    for _ in range(closings):
        now += 0.1
        for number in range(4):
            link.send(now + 0.02 * number, 0, at + number * MSS, MSS, ACK)
        at += 4 * MSS
        link.ack(now + 1.2, at, 0)
        for number in range(failed + (not opens)):
            now += 205.0 * 2**number
            link.send(now, 0, at - 1).ack(now + 1.0, at, 0 if number < failed else small)
        for _ignored in range(ignored):
            now += 400.0
            link.send(now, 0, at - 1)
        if opens:
            now += 190.0
            link.ack(now, at, small)
        now += 1.1
    return link.send(now, 0, at, 100, PUSH).ack(now + 1.0, at + 100, small).wire


def echoed(both: bool = True, until: float = 30_000.0) -> Wire:
    """A client that sends to an echo server and does not read: its window falls to 0, and then the server's, if `both`."""
    link, sent, back, now = Connection(Wire(), server_port=7).open(rtt=4.0), 0, 0, 10.0
    for step in range(6):
        for number in range(4):
            link.send(now + 0.02 * number, 0, sent + number * MSS, MSS, ACK, back, 200 - 40 * min(step, 5))
        sent += 4 * MSS
        link.send(now + 4.0, 1, back, ack=sent, window=512)
        for number in range(4 if step < 4 else 0):
            link.send(now + 4.1 + 0.02 * number, 1, back + number * MSS, MSS, ACK, sent)
        back += 4 * MSS * (step < 4)
        link.send(now + 4.3, 0, sent, ack=back, window=max(160 - 40 * step, 0))
        now += 5.0
    if both:
        for number in range(4):
            link.send(now + 0.02 * number, 0, sent + number * MSS, MSS, ACK, back, 0)
        sent += 4 * MSS
    link.send(now + 4.0, 1, back, ack=sent, window=0 if both else 512)
    wait = 400.0
    while now + wait < until:
        now += wait
        wait *= 2
        link.send(now, 1, back - 1, ack=sent, window=0 if both else 512).send(now + 1, 0, sent, ack=back, window=0)
        if both:
            link.send(now + 2, 0, sent - 1, ack=back, window=0).send(now + 6, 1, back, ack=sent, window=0)
    return link.wire


def received(at: int, upto: int, has_sack: bool) -> bytes:
    """A SACK option of the segments of a burst from the eighth on."""
    return sack((at + 7 * MSS, at + upto * MSS)) if has_sack else b""


def repaired(
    step: float,
    rtt: float = 1.0,
    lost: Sequence[int] = (2, 3, 4, 5, 6),
    bursts: int = 4,
    has_sack: bool = True,
    timer: bool = False,
) -> Wire:
    """Bursts of ten segments of which some are lost behind the capture; each next one is sent again `step` later, when the ACK of
    the one before comes, or by a timer."""
    link, at, now = Connection(Wire(), server_port=3260), 0, 30.0 + 2 * rtt
    for side, flags in enumerate((SYN, SYN | ACK)):
        link.send(side * rtt, side, -1, flags=flags, ack=0, options=syn_options() if has_sack else NO_SACK)
    link.send(rtt, 0, 0)
    for _ in range(bursts):
        for burst in range(5):  # only the last one loses
            for number in range(10):
                link.send(now + 0.02 * number, 0, at + number * MSS, MSS, ACK)
            if burst < 4:
                at += 10 * MSS
                link.ack(now + rtt + 0.2, at)
                now += rtt + 1.0
        first = at + lost[0] * MSS
        for number in range(7, 10):
            link.ack(now + rtt + 0.02 * number, first, options=received(at, number + 1, has_sack))
        now += rtt + 0.3
        for place, number in enumerate(lost):
            now += step if timer else 0.0
            link.send(now, 0, at + number * MSS, MSS, ACK)
            next_hole = (*lost, 10)[place + 1]
            now += rtt if timer or next_hole == 10 else step
            link.ack(now, at + next_hole * MSS, options=received(at, 10, has_sack and next_hole < 10))
            now += 0.05
        at += 10 * MSS
        now += 5.0
    return link.wire


def booted(each: float = 25.0, blocks: int = 240, window: int = 1, lost_every: int = 0) -> Wire:
    """A boot file by TFTP: `window` blocks for each ACK; some blocks wait for a timer of 1 s."""
    wire, now = Wire(), 0.0

    def send(ms: float, back: bool, ports: tuple[int, int], data: bytes) -> None:
        header = struct.pack("!HHHH", *ports, 8 + len(data), 0)
        names = ("10.0.0.1", "10.0.0.2")
        wire.ip(ms, names[back], names[not back], 17, header + data)

    send(now, False, (2070, 69), b"\0\1boot.img\0octet\0blksize\x001428\0")
    send(now + each, True, (40_001, 2070), b"\0\6blksize\x001428\0")
    send(now + each + 0.1, False, (2070, 40_001), b"\0\4\0\0")
    now = 2 * each
    for number in range(1, blocks + 1):
        if lost_every and number % lost_every == 0:
            now += 1000.0
        send(now, True, (40_001, 2070), struct.pack("!HH", 3, number) + bytes(1428))
        if number % window == 0:
            send(now + 0.2, False, (2070, 40_001), struct.pack("!HH", 4, number))
            now += each
    return wire


def summed(message: bytes) -> bytes:
    """An ICMP message with its checksum."""
    total = sum(struct.unpack(f"!{len(message) // 2}H", message))
    total = (total & 0xFFFF) + (total >> 16)
    return message[:2] + struct.pack("!H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF) + message[4:]


def pinged(waits: Callable[[int], float], count: int = 40, busy: bool = False, lost: Sequence[int] = ()) -> Wire:
    """Pings each second, how long each waits, and which get no answer; `busy`: beside other traffic of 1 Mbit/s."""
    wire = Wire(by_time=True)
    for number in range(count):
        for kind, ms, names in ((8, 0.0, ("10.0.0.1", "10.0.0.2")), (0, waits(number), ("10.0.0.2", "10.0.0.1"))):
            if number in lost and not kind:
                continue
            message = summed(struct.pack("!BBHHH", kind, 0, 0, 77, number) + bytes(56))
            wire.ip(1000.0 * number + ms, *names, 1, message)
    for number in range(100 * count if busy else 0):
        wire.udp(10.0 * number + 3.0, bytes(1250), source="10.0.0.3")
    return wire


def at_beats(number: int, beat_ms: float = 307.2) -> float:
    """A station that takes its packets at each third beacon."""
    due = 1000.0 * number + 1
    return (due // beat_ms + 1) * beat_ms + 2 - 1000.0 * number


def at_later_beats(number: int) -> float:
    """A station that takes its packets at each second beacon, misses one of eight, and is awake now and then."""
    return 1.5 if number % 9 == 4 else at_beats(number, 204.8) + 204.8 * (number % 8 == 3)


def detoured(number: int) -> float:
    """A path that is much longer for some of the time."""
    return woken(0 if 12 <= number < 30 else 1)


def woken(number: int) -> float:
    return 1.1 + number % 7 / 50 if number % 2 else 640.0 + number % 9 * 30


def revisited(sizes: Sequence[int], count: int = 12, rtt: float = 100.0) -> Wire:
    """Answers in flights of these sizes after pauses, seen at the server, in a connection that is used again after six minutes,
    so that time bins are wide."""
    link, sent, received, now = Connection(Wire()).open(rtt=rtt, near=rtt - 0.2, window=4096), 0, 0, 2 * rtt
    for _ in range(count):
        link.send(now, 0, sent, 120, PUSH, received, window=4096)
        sent += 120
        for size in sizes:
            for number in range(size):
                link.send(now + 0.05 * number + 0.1, 1, received + number * MSS, MSS, ACK, sent)
                link.send(now + rtt + 0.05 * number, 0, sent, ack=received + (number + 1) * MSS, window=4096)
            received, now = received + size * MSS, now + rtt
        now += 1_500.0
    link.send(400_000.0, 0, sent, 120, PUSH, received, 4096)
    return link.send(400_000.2, 1, received, 90, PUSH, sent + 120).wire


def asked_beside(since: float, stall_at: float, wait: float) -> Wire:
    """Requests beside a transfer whose path stands still at 990 ms for 1.1 s; one of them waits from a time on."""
    wire = paths.stood_still()
    talk, has_waited = ends.Dialogue(wire, 20.0, since, 41_000, 5432), False
    for _ in range(30):
        is_late = not has_waited and talk.now + 30 >= stall_at
        talk.ask(30.0, wait if is_late else 1.0)
        has_waited |= is_late
    return talk.close()


def resolved(late: float = 700.0, asks: bool = True, far: bool = False) -> Wire:
    """ARP requests for three hosts, and datagrams to each when the answer has come, or all along; `far`: a connection whose round
    trip is as long."""
    wire = Wire()
    for number in range(3):
        host, now = f"10.0.0.{20 + number}", 5_000.0 * number
        for ms, kind, source, target in ((0.0, 1, "10.0.0.1", host), (late, 2, host, "10.0.0.1")):
            macs = [bytes([2, 0, 0, 0, 0, 1 if name == "10.0.0.1" else 99]) for name in (source, target)]
            body = (
                struct.pack("!HHBBH", 1, 0x800, 6, 4, kind) + macs[0] + inet_aton(source) + macs[1] + inet_aton(target)
            )
            wire.packets.append((now + ms, (macs[1] if kind == 2 else b"\xff" * 6) + macs[0] + b"\x08\x06" + body))
        if far:
            link = Connection(wire, 40_001 + number, ("10.0.0.1", host)).open(now + late + 0.1, late)
            link.send(now + 2 * late + 0.2, 0, 0, 100, PUSH, 0).send(now + 3 * late + 0.3, 1, 0, 300, PUSH, 100)
        for place in range(0 if far else 8):
            wire.udp(
                now + 1_000.0 * place - 500.0 if not asks else now + late + 0.1 + 100.0 * place, bytes(60), target=host
            )
    return wire


def unscaled(window: int = 12 * MSS, rtt: float = 8.3, flights: int = 150) -> Wire:
    """An upload to a receiver that does not scale its window, and never opens it as far as it may without."""
    link, at, now = Connection(Wire(), server_port=445), 0, 2 * rtt
    link.send(0, 0, -1, flags=SYN, options=ends.SCALED)
    link.send(rtt, 1, -1, flags=SYN | ACK, ack=0, options=ends.WITHOUT, window=window).send(rtt, 0, 0)
    for _ in range(flights):
        for number in range(window // MSS):
            link.send(now + 0.05 * number, 0, at + number * MSS, MSS, ACK)
        at += window // MSS * MSS
        link.ack(now + rtt, at, window)
        now += rtt + 0.1
    return link.wire


def swept(number: int) -> float:
    """A queue that others fill and drain."""
    return 1.1 + abs(number % 16 - 8) * 100.0


PROBES, BLOCKED, REPAIRS, BOOTS, HELD = "no-window-update", "both-blocked", "slow-repair", "tftp-lockstep", "held-pings"
LATE_ARP = "late-arp"
CASES = {
    "a window that only probes open": Case(probed, PROBES, ("10.0.0.2:9100 never says", "it was full 20 times")),
    "a window that opens by itself": NOT(lambda: probed(opens=True), PROBES),
    "a reader that is slow, of whose answers to probes half are left out": NOT(
        lambda: probed(failed=1, opens=True, ignored=1), PROBES
    ),
    "a reader that is slow, and then says so": NOT(lambda: probed(failed=2, opens=True), PROBES),
    "an echo client that does not read": Case(
        echoed, BLOCKED, ("10.0.0.1:40000 and 10.0.0.2:7 block each other", "10.0.0.1:40000 stopped reading first")
    ),
    "a client that does not read": Case(
        lambda: echoed(both=False), "zero-window", ("10.0.0.1:40000 reads too slowly",)
    ),
    "repairs behind a delayed ACK": Case(
        lambda: repaired(195.0),
        REPAIRS,
        ("in bursts of up to 5", "each 195 ms after the one before, probably when the delayed ACK"),
    ),
    "repairs by a timer": Case(
        lambda: repaired(5_000.0, timer=True, bursts=2),
        REPAIRS,
        ("each 5 s after the one before, when a timer expires",),
    ),
    "repairs at once": NOT(lambda: repaired(0.02), REPAIRS),
    "repairs without SACK, one in a round trip": NOT(lambda: repaired(80.0, 80.0, has_sack=False), REPAIRS),
    "single losses, each by a timer": NOT(lambda: repaired(210.0, lost=(9,), timer=True, bursts=12), REPAIRS),
    "a boot file over a long path": Case(booted, BOOTS, ("241 blocks of 1.42 kB one at a time, one each 24.9 ms",)),
    "a boot file at hand": NOT(lambda: booted(0.6, 6_000), BOOTS),
    "eight blocks at a time": NOT(lambda: booted(25.0, 1_600, 8), BOOTS),
    "blocks that are lost": NOT(lambda: booted(3.0, 400, lost_every=20), BOOTS),
    "pings that a radio holds": Case(
        lambda: pinged(woken), HELD, ("20 of 40 pings took up to 880 ms", "the others 1.1")
    ),
    "pings that wait for a beacon": Case(
        lambda: pinged(at_beats), HELD, ("pings come in a beat of 307 ms", "(power save)")
    ),
    "pings that miss a beacon": Case(
        lambda: pinged(at_later_beats), HELD, ("pings come in a beat of 205 ms and wait up to 279 ms",)
    ),
    "pings that wait for a timer": NOT(lambda: pinged(lambda number: at_beats(number, 333.0)), HELD),
    "pings that wait for any time": NOT(lambda: pinged(lambda number: 1 + 61.0 * number % 300), HELD),
    "pings through a queue of others": NOT(lambda: pinged(swept), HELD),
    "pings by a longer path for a while": NOT(lambda: pinged(detoured), HELD),
    "pings beside traffic": NOT(lambda: pinged(woken, busy=True), HELD),
    "answers that begin anew in a long capture": Case(
        lambda: revisited((10, 20, 40, 80)), "idle-restart", ("11 of 11 answers", "from 14.6 kB")
    ),
    "answers in flights of one size in a long capture": NOT(lambda: revisited((37, 37, 37, 37)), "idle-restart"),
    "answers whose flights never grow as far": NOT(lambda: revisited((10, 20, 25, 25)), "idle-restart"),
    "a request that waits while the path stands still": NOT(lambda: asked_beside(0.0, 985.0, 1_085.0), "slow-server"),
    "a path that stands still, and a request that waits for it": Case(
        lambda: asked_beside(0.0, 985.0, 1_085.0), "stall", ("stalled for 992 ms",)
    ),
    "a request that waits at another time": Case(
        lambda: asked_beside(2_300.0, 2_600.0, 3_000.0), "slow-server", ("10.0.0.2:5432",)
    ),
    "ARP replies that come late": Case(resolved, LATE_ARP, ("02:00:00:00:00:63", "waited 700 ms", "3 addresses")),
    "ARP replies that come at once": NOT(lambda: resolved(0.3), LATE_ARP),
    "late ARP replies of hosts that are far away": NOT(lambda: resolved(600.0, far=True), LATE_ARP),
    "late ARP replies for which nothing waits": NOT(lambda: resolved(asks=False), LATE_ARP),
    "a small window without scaling": Case(
        unscaled, "small-window", ("10.0.0.2:445, 17.5 kB", "no more can be in flight")
    ),
    "a person who reads beside a transfer of datagrams": NOT(lambda: beside_datagrams(), "client-pause"),
}


def beside_datagrams() -> Wire:
    """Pauses of a client beside datagrams, which the capture is about."""
    wire = ends.pausing(ends.VARIED * 2)
    for number in range(2_000):
        wire.udp(6.0 * number, bytes(20), source="10.0.0.3")
    return wire


EXAMPLES = {
    PROBES: of_wire(probed),
    BLOCKED: of_wire(echoed),
    REPAIRS: of_wire(lambda: repaired(195.0)),
    BOOTS: of_wire(booted),
    HELD: of_wire(lambda: pinged(woken)),
    LATE_ARP: of_wire(resolved),
}
