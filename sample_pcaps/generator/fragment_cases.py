# SPDX-License-Identifier: Apache-2.0
"""Samples of UDP datagrams in IP fragments: whole, with losses, overlaps and copies."""

from __future__ import annotations

from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, PadN
from scapy.packet import Packet, Raw

from sample_files import WHOLE, save
from write_captures import MICROSECOND, MILLISECOND, SECOND, START_NS, ethernet, pattern, record
from write_truth import DATAGRAM_COLUMNS, Sighting, Truth, Verdict

FRAGMENT = 1480  # bytes of payload for an MTU of 1,500; must be a multiple of 8
FRAGMENT_V6 = 1448  # with the fragment header


def udp_bytes(source: str, target: str, ports: tuple[int, int], payload: bytes) -> bytes:
    """Returns UDP header and payload, with the checksum for these addresses."""
    ip = IPv6 if ":" in source else IP
    packet = ip(src=source, dst=target) / UDP(sport=ports[0], dport=ports[1]) / Raw(payload)
    return bytes(packet)[40 if ip is IPv6 else 20 :]


def fragment_v4(source: str, target: str, ip_id: int, datagram: bytes, start: int, end: int) -> Packet:
    """Returns the frame with these bytes of an IPv4 datagram."""
    more = "MF" if end < len(datagram) else 0
    ip = IP(src=source, dst=target, proto=17, id=ip_id, flags=more, frag=start // 8, ttl=64)
    return ethernet(1, 2) / ip / Raw(datagram[start:end])


def fragments_v4(source: str, target: str, ip_id: int, datagram: bytes) -> list[Packet]:
    """Returns the frames of one IPv4 datagram, in order."""
    return [
        fragment_v4(source, target, ip_id, datagram, start, start + FRAGMENT)
        for start in range(0, len(datagram), FRAGMENT)
    ]


def fragments_v6(source: str, target: str, identification: int, datagram: bytes, hop_by_hop: bool) -> list[Packet]:
    """Returns the frames of one IPv6 datagram, in order."""
    frames: list[Packet] = []
    for start in range(0, len(datagram), FRAGMENT_V6):
        part = datagram[start : start + FRAGMENT_V6]
        more = int(start + FRAGMENT_V6 < len(datagram))
        frame = ethernet(1, 2) / IPv6(src=source, dst=target, hlim=64)
        if hop_by_hop:
            frame = frame / IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))])
        header = IPv6ExtHdrFragment(nh=17, offset=start // 8, m=more, id=identification)
        frames.append(frame / header / Raw(part))
    return frames


def add_datagram(truth: Truth, time_ns: int, flow: int, frames: list[Packet], missing: str = "", **odd: int) -> None:
    """Stores the fragments 13 µs apart, with the true row of the table `datagrams`."""
    first = len(truth.seen) + 1
    verdict = Verdict("datagram_incomplete", missing=missing) if missing else None
    for k, frame in enumerate(frames):
        stored = record(START_NS + time_ns + k * 13 * MICROSECOND, frame)
        truth.seen.append(Sighting(stored, flow, 0, None if k else verdict))
    sums = truth.sums.setdefault((flow, 0), dict.fromkeys(DATAGRAM_COLUMNS, 0))
    sums["fragments"] += len(frames)
    sums["fragmented_datagrams"] += 1
    row: dict[str, object] = {"first_frame": first, "flow": flow, "direction": 0, "fragments": len(frames)}
    row |= {"state": "incomplete" if missing else "complete", "missing": missing or None}
    row |= {"out_of_order": 0, "duplicates": 0, "overlaps": 0, **odd}
    truth.tables.setdefault("datagrams", []).append(row)


def make_udp_fragments(path: Path) -> None:
    """16 IPv4 datagrams and one over IPv6; the fifth lacks a fragment, the last fragment of the ninth comes first."""
    truth = Truth(
        "17 UDP datagrams of 8,192 bytes in six fragments each, the last over IPv6: the fifth misses its third "
        "fragment, the ninth comes last fragment first.",
        [],
    )
    for number in range(16):
        datagram = udp_bytes("10.20.0.1", "10.20.0.2", (47_001, 5_001), pattern(8192, number))
        frames = fragments_v4("10.20.0.1", "10.20.0.2", 0x5100 + number, datagram)
        missing, late = "", 0
        if number == 4:
            del frames[2]
            missing = "2960-4439"
        if number == 8:
            frames.insert(0, frames.pop())
            late = 5
        add_datagram(truth, number * 5 * MILLISECOND, 0, frames, missing, out_of_order=late)
    datagram = udp_bytes("2001:db8:20::1", "2001:db8:20::2", (47_006, 5_001), pattern(8192))
    frames = fragments_v6("2001:db8:20::1", "2001:db8:20::2", 0x0BADCAFE, datagram, hop_by_hop=False)
    add_datagram(truth, 90 * MILLISECOND, 1, frames)
    save(path, truth, snaplen=WHOLE)


def add_odd_v4(truth: Truth) -> None:
    """IPv4: a lost fragment, an overlap, a copy, and a reused IP ID."""
    addresses = ("10.30.0.1", "10.30.0.2")
    datagrams = [udp_bytes(*addresses, (47_101, 5_001), pattern(4000, number)) for number in range(7)]
    parts = [fragments_v4(*addresses, 0x6200 + number, datagram) for number, datagram in enumerate(datagrams)]
    overlap = fragment_v4(*addresses, 0x6202, datagrams[2], 1400, 1600)
    again = fragments_v4(*addresses, 0x6206, udp_bytes(*addresses, (47_101, 5_001), pattern(4000, 99)))
    for number, (frames, missing, odd) in enumerate(
        [
            (parts[0], "", {}),
            ([parts[1][0], parts[1][2]], "1480-2959", {}),
            ([parts[2][0], overlap, *parts[2][1:]], "", {"overlaps": 2}),
            ([*parts[3][:2], parts[3][1], parts[3][2]], "", {"duplicates": 1}),
            (parts[4][::-1], "", {"out_of_order": 2}),
            ([parts[5][0]], "1480-", {}),
            (parts[6][:2], "2960-", {}),
        ]
    ):
        add_datagram(truth, number * 4 * MILLISECOND, 0, frames, missing, **odd)
    add_datagram(truth, 40 * SECOND, 0, again)


def make_ip_fragments(path: Path) -> None:
    truth = Truth(
        "UDP datagrams of 4,000 bytes in three fragments, over IPv4 and IPv6: whole, with a fragment lost, with an "
        "overlap, a copy, in reverse, with only the first, and one IP id used again 40 s later.",
        [],
    )
    add_odd_v4(truth)
    addresses = ("2001:db8:30::1", "2001:db8:30::2")
    datagram = udp_bytes(*addresses, (47_106, 5_001), pattern(4000))
    begin = 41 * SECOND
    add_datagram(truth, begin, 1, fragments_v6(*addresses, 0x0C0FFEE0, datagram, hop_by_hop=False))
    lost = fragments_v6(*addresses, 0x0C0FFEE1, datagram, hop_by_hop=False)
    add_datagram(truth, begin + 4 * MILLISECOND, 1, [lost[0], lost[2]], "1448-2895")
    add_datagram(truth, begin + 8 * MILLISECOND, 1, fragments_v6(*addresses, 0x0C0FFEE2, datagram, hop_by_hop=True))
    save(path, truth)
