# SPDX-License-Identifier: Apache-2.0
"""Makes the captures in sample_pcaps/findings/, which show the findings that no other sample and no scenario shows.

python .ci/finding_examples.py writes the files, and reads them for docs/findings.md. Captures of LARGE have more than 10,000
packets: they are made when they are needed.
"""

from __future__ import annotations

import gzip
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from scapy.all import IP, UDP, Ether, IPv6, Packet, Raw, raw

import several_legs
import transfer_wires as wires
from capture_files import block as pcapng_block
from capture_files import enhanced, interface, option, section, write_pcap
from crafted import dns_answer, dns_query, ether, tls_handshake, write_timed
from dhcp_wire import message
from neighbor_wire import ABSENT, GATEWAY, OTHER_MAC, SERVER, announces, answers, asks, ping, pong
from one_queue import through_one_queue
from plain_wire import ACK, MSS, PSH, START_NS, Wire, block
from radio_wire import RETRY, TO_DS, on_radio
from tracer_wire import write_interrupted, write_stepped

FOLDER = Path(__file__).parents[2] / "sample_pcaps" / "findings"
EXPERIMENTAL = bytes.fromhex("88b50001")  # EtherType for local experiments (IEEE 802)
ESP = 50
ROWS_OF_A_FLOW = 10_000  # that the tables of events and exchanges hold
OPEN_DATAGRAMS = 65_536
ALERT = b"\x15\x03\x03\x00\x02\x02\x46"  # fatal, protocol_version
WHOLE, HEADERS = 262_144, 96  # snap lengths: of whole frames, and of headers with that of a block
Make = Callable[[Path], Path]


def of_wire(make: Callable[[], Wire], snaplen: int = WHOLE) -> Make:
    def write(path: Path) -> Path:
        packets = sorted(make().packets, key=lambda packet: packet[0])
        return write_pcap(path, ((START_NS + round(ms * 1e6), frame) for ms, frame in packets), snaplen)

    return write


def of_timed(make: Callable[[], Iterable[tuple[float, Packet]]]) -> Make:
    return lambda path: write_timed(path, sorted(make(), key=lambda packet: packet[0]))


def frames_of(wire: Wire) -> list[bytes]:
    return [frame for _, frame in sorted(wire.packets, key=lambda packet: packet[0])]


def every_ms(frames: Iterable[bytes]) -> Iterable[tuple[int, bytes]]:
    return ((START_NS + i * 10**6, frame) for i, frame in enumerate(frames))


# --- the capture


def two_points(path: Path) -> Path:
    """The same datagrams at two interfaces, 5 ms apart."""
    wire = wires.numbered(200, lambda i: True)
    seen = [(ms + 5 * number, number, frame) for ms, frame in wire.packets for number in (0, 1)]
    packets = [
        enhanced(START_NS // 1000 + round(ms * 1000), frame, number=number) for ms, number, frame in sorted(seen)
    ]
    ports = (interface(option(2, name)) for name in (b"left", b"right"))
    path.write_bytes(section() + b"".join([*ports, *packets]))
    return path


def without_times(path: Path) -> Path:
    frames = frames_of(wires.numbered(20, lambda i: True))
    packets = [pcapng_block(3, struct.pack("<I", len(frame)) + frame) for frame in frames]
    path.write_bytes(section() + interface() + b"".join(packets))
    return path


def late_times(path: Path) -> Path:
    """Microseconds that the file gives as seconds."""
    frames = frames_of(wires.numbered(20, lambda i: True))
    packets = [enhanced(START_NS // 1000 + i * 2000, frame) for i, frame in enumerate(frames)]
    path.write_bytes(section() + interface(option(2, b"eth0") + option(9, b"\x00")) + b"".join(packets))
    return path


def duplicate_acks() -> Wire:
    flow = wires.connection()
    for i in range(10):
        flow.data(30 + i, i * MSS)
    for i in range(ROWS_OF_A_FLOW + 200):
        flow.ack(100 + i * 0.1, 0)
    return flow.wire


def small_turns() -> Wire:
    flow, at = wires.connection(rtt=1.0), 10.0
    for i in range(ROWS_OF_A_FLOW + 200):
        flow.send(at, 0, i * 10, 10, PSH | ACK, ack=i * 10).send(at + 1, 1, i * 10, 10, PSH | ACK, ack=i * 10 + 10)
        at += 2
    return flow.wire


def hung_server() -> Wire:
    """Three requests, which the server's kernel acknowledges."""
    wire = Wire()
    for i in range(3):
        wires.connection(wire, port=40001 + i, ms=2000.0 * i).send(2030.0 * (i + 1), 0, 0, 300, PSH | ACK).ack(
            2040.0 * (i + 1) + wires.RTT, 300
        )
    return wire.udp(17_990.0, b"end", port=4001).udp(18_000.0, b"end", port=4001)


def open_datagrams() -> Wire:
    """First fragments of more datagrams than wiretale keeps open, each of another source."""
    wire = Wire()
    for i in range(OPEN_DATAGRAMS + 464):
        address = bytes([10, 1 + i // 65536, i // 256 % 256, i % 256])
        header = struct.pack("!BBHHHBBH", 0x45, 0, 28, 7, 0x2000, 64, 17, 0)
        wire.packets.append((i / 1000, bytes(12) + b"\x08\0" + header + address + bytes([10, 0, 0, 2]) + bytes(8)))
    return wire


# --- decoding


def cut_records(path: Path) -> Path:
    """A tool cut the frames to 100 bytes and wrote that as their length on the wire."""
    packets = sorted(wires.steady(wires.connection(), 40).packets, key=lambda packet: packet[0])
    return write_pcap(path, ((START_NS + round(ms * 1e6), frame[:100]) for ms, frame in packets), snaplen=100)


def bad_version(path: Path) -> Path:
    frame = Ether(raw(ether(IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP())))
    frame[IPv6].version = 9
    good = ether(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=4000, dport=5000) / Raw(bytes(50)))
    return write_pcap(path, every_ms([raw(good)] * 20 + [raw(frame)] * 3))


def behind_a_shim(path: Path) -> Path:
    """The answers of a transfer are behind a header that wiretale does not decode."""
    frames = frames_of(wires.steady(wires.connection(), 100))
    answers = (frame[26:30] == bytes([10, 0, 0, 2]) for frame in frames)
    shimmed = (
        frame[:12] + EXPERIMENTAL + frame[12:] if answer else frame
        for frame, answer in zip(frames, answers, strict=True)
    )
    return write_pcap(path, every_ms(shimmed))


def encrypted() -> Wire:
    wire = wires.numbered(20, lambda i: True)
    for i in range(10):
        wire.ip(i, "10.0.0.1", "10.0.0.2", ESP, struct.pack("!II", 1, i) + bytes(80))
    return wire


# --- transfers


def slow_responses() -> Wire:
    """Six requests, each answered after 800 ms."""
    flow, now = wires.connection(), 100.0
    for turn in range(6):
        request, response = turn * 200, turn * 1400
        flow.send(now, 0, request, 200, ACK | PSH, ack=response).send(now + wires.RTT, 1, response, ack=request + 200)
        flow.send(now + 800 + wires.RTT, 1, response, 1400, ACK | PSH, ack=request + 200)
        flow.send(now + 800 + wires.RTT, 0, request + 200, ack=response + 1400)
        now += 800 + wires.RTT + 100
    return flow.wire


def filling_queue() -> Wire:
    return wires.steady(wires.connection(), 800, 2.0, lambda ms: min(wires.RTT + ms / 4, 120.0))


def corrupt_block() -> Wire:
    wire = Wire()
    for i in range(10):
        data = bytearray(block(i, 200, sent_ms=i))
        data[100] ^= i == 5
        wire.udp(i, bytes(data))
    return wire


# --- applications


def names(*late: float, code: int = 0) -> list[tuple[float, Packet]]:
    """Questions for two names, answered after these times in seconds; another is answered at once."""
    timed = [dns_query(0), dns_answer(0.02)]
    for number, seconds in enumerate(late, 2):
        name = f"{'ab'[number % 2]}{number}.example"
        timed += [dns_query(number, number, name, 4000 + number)]
        if seconds:
            timed += [dns_answer(number + seconds, number, name, 4000 + number, code)]
    return [*timed, dns_query(20, 9), dns_answer(20.02, 9)]


# --- the local network


def absent_host() -> Iterator[tuple[float, Packet]]:
    """A client that has its gateway, and asks for a host that is not there."""
    yield from (asks(0, GATEWAY), answers(0.001, GATEWAY))
    yield from (asks(1 + n, ABSENT) for n in range(12))
    yield asks(60, SERVER)


def two_machines() -> Iterator[tuple[float, Packet]]:
    """Both answer each request; the later announcement wins."""
    for n in range(4):
        yield from (asks(30 * n, SERVER), answers(30 * n + 0.0005, SERVER))
        yield from (answers(30 * n + 0.001, SERVER, mac=OTHER_MAC), announces(30 * n + 0.2, SERVER, OTHER_MAC))


def pings(lost: Iterable[int]) -> Iterator[tuple[float, Packet]]:
    for n in range(40):
        yield ping(n, n)
        if n not in lost:
            yield pong(n + 0.02, n)


def asked_for_a_lease() -> Iterator[tuple[float, Packet]]:
    """The ladder of RFC 2131 section 4.1."""
    yield from (message(at, "discover", 1 + n) for n, at in enumerate((0, 4, 12, 28)))
    yield asks(60, SERVER)


def forgotten_group() -> Wire:
    """One report, then a stream that a switch stops 260 s later, while other packets go on."""
    group = bytes([239, 1, 2, 3])
    wire = Wire().ip(200, "192.0.2.10", "239.1.2.3", 2, b"\x16\0\0\0" + group)
    for n in range(260):
        wire.udp(500 + 1000 * n, bytes(100), source="192.0.2.99", target="239.1.2.3")
    for n in range(40):
        wire.udp(10_000 * n, bytes(100))
    return wire


def far_station() -> Iterator[tuple[float, Packet]]:
    """Frames of which the station repeats each third."""
    for number in range(90):
        datagram = IP(src="10.0.0.1", dst="10.0.0.2", id=number) / UDP(sport=4000, dport=5000) / Raw(bytes(60))
        yield number / 50, on_radio(datagram, number, TO_DS)
        if number % 3 == 0:
            yield number / 50 + 0.0004, on_radio(datagram, number, TO_DS | RETRY)


CAPTURES: dict[str, Make] = {
    "carrier-lost": lambda path: write_interrupted(path, wires.steady(wires.connection(), 200)),
    "clock-set": lambda path: write_stepped(path, wires.steady(wires.connection(), 200), 1500.0),
    "wlan-retries": of_timed(far_station),
    "multicast-stopped": of_wire(forgotten_group),
    "dhcp-no-offer": of_timed(asked_for_a_lease),
    "dhcp-refused": of_timed(lambda: [message(0, "request"), message(0.01, "nak")]),
    "arp-unanswered": of_timed(absent_host),
    "duplicate-address": of_timed(two_machines),
    "echo": of_timed(lambda: pings(())),
    "echo-unanswered": of_timed(lambda: pings((3, 10, 11, 12, 13))),
    "several-points": two_points,
    "time-unknown": without_times,
    "time-out-of-range": late_times,
    "lengths-cut": cut_records,
    "malformed": bad_version,
    "undecoded": behind_a_shim,
    "not-understood": of_wire(encrypted),
    "several-places": of_wire(
        lambda: several_legs.at_two_places(
            wires.steady(wires.connection(), 40), several_legs.tagged(10), several_legs.tagged(20)
        )
    ),
    "port-reuse": of_wire(wires.ports_again),
    "scan": of_wire(lambda: wires.port_scan(30)),
    "idle-reset": of_wire(lambda: wires.ended(600)),
    "path-mtu-black-hole": of_wire(lambda: wires.stuck(False)),
    "path-mtu": of_wire(lambda: wires.refused_by_icmp(4)),
    "ecn-ignored": of_wire(lambda: wires.marked(False)),
    "mss-clamped": of_wire(lambda: wires.steady(wires.connection(mss=1200), 1000, size=1200)),
    "small-packets": of_wire(lambda: wires.datagrams_of(32)),
    "delayed-ack": of_wire(lambda: wires.small_writes(41.0)),
    "retransmission-cost": of_wire(lambda: wires.lossy(60)),
    "path-limited": of_wire(lambda: wires.steady(wires.connection(), 900)),
    "window-scaling-off": of_wire(lambda: wires.unscaled(65535, 25, 30, 100.0)),
    "slow-start": of_wire(wires.growing_flights),
    "send-buffer-limited": of_wire(lambda: wires.flights(wires.connection(), 30, 28)),
    "sender-idle": of_wire(lambda: wires.bursts_of_work(80.0)),
    "slow-server": of_wire(slow_responses),
    "bufferbloat": of_wire(filling_queue),
    "udp-above-path": of_wire(lambda: wires.through_a_queue(2000), HEADERS),
    "jitter": of_wire(lambda: wires.numbered(200, lambda i: True, lambda i: 60.0, late=50.0), HEADERS),
    "microburst": of_wire(lambda: wires.bursts_of(400)),
    "unfair-share": of_wire(lambda: wires.side_by_side(3000, 750)),
    "sender-queue": of_wire(lambda: wires.behind_a_transfer(30.0, 70.0), HEADERS),
    "wire-full": of_wire(lambda: wires.paced(wires.LINE_MS)),
    "blocks-corrupt": of_wire(corrupt_block),
    "loss-pattern": of_wire(lambda: wires.numbered(1500, lambda i: i % 150 != 75), HEADERS),
    "request-unanswered": of_wire(hung_server),
    "dns-slow": of_timed(lambda: names(0.4, 1.2)),
    "dns-unanswered": of_timed(lambda: names(0.03, 0)),
    "dns-failed": of_timed(lambda: names(0.05, 0.3, code=2)),
    "tls-alert": of_timed(lambda: tls_handshake(0, ALERT)),
    "tls-handshake-slow": of_timed(lambda: tls_handshake(1.2)),
}
LARGE: dict[str, Make] = {
    "events-dropped": of_wire(duplicate_acks),
    "exchanges-dropped": of_wire(small_turns),
    "datagrams-evicted": of_wire(open_datagrams),
    "shared-queue": of_wire(lambda: through_one_queue(2, 20e6, 60, 12.0)[0]),
}


def blocks(count: int) -> Iterator[bytes]:
    """Blocks of 32 bytes, which have nothing but their header."""
    for i in range(count):
        yield Wire().udp(0, block(i, 32)).packets[0][1]


#: captures of 4,001,000 rows, which are made by hand: write_huge(Path("huge.pcap"), "blocks-dropped")
HUGE = {"blocks-dropped": blocks}


def write_huge(path: Path, code: str, count: int = 4_001_000) -> Path:
    """Frames 1 µs apart."""
    return write_pcap(path, ((START_NS + i * 1000, frame) for i, frame in enumerate(HUGE[code](count))))


def packed(code: str) -> bytes:
    """Returns the compressed file of a capture."""
    with tempfile.TemporaryDirectory() as folder:
        return gzip.compress(CAPTURES[code](Path(folder) / "capture").read_bytes(), 9, mtime=0)


def write_all() -> None:
    """Writes the files of CAPTURES."""
    FOLDER.mkdir(exist_ok=True)
    for code in CAPTURES:
        (FOLDER / f"{code}.pcap.gz").write_bytes(packed(code))
