# SPDX-License-Identifier: Apache-2.0
"""Numbered packets of wiretale, iperf2, iperf3 and RTP, as their senders lay them out."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15
TILED = 4  # flag: how common/block.h makes the pattern
LENGTH = 10_000  # of each block of a TCP stream


def mix(z: int) -> int:
    """SplitMix64's output function, as common/block.h states it."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def word(seed: int, number: int, tiled: bool) -> int:
    """A word of the pattern."""
    if tiled:
        return mix((number % 64 + 1) * STEP & MASK) ^ mix(seed + number // 64 * STEP & MASK)
    return mix(seed + number * STEP & MASK)


def block(sequence: int, length: int = 200, run: int = 7, stream: int = 1, sent_ns: int = 0, flags: int = 0) -> bytes:
    """A block of wiretale-traffic."""
    seed = mix((mix((run << 16) + stream) + sequence) & MASK)
    words = [word(seed, i, bool(flags & TILED)) for i in range(4, (length + 7) // 8)]
    header = struct.pack(">IIHHIQQ", 0x57544231, run, stream, flags, length, sequence, sent_ns)
    return (header + struct.pack(f">{len(words)}Q", *words))[:length]


def iperf3(number: int, ms: float, wide: bool = False) -> bytes:
    """iperf3's UDP header: seconds, microseconds, counter."""
    microseconds = round(ms * 1000)
    return struct.pack(">IIQ" if wide else ">III", 1000 + microseconds // 10**6, microseconds % 10**6, number) + bytes(
        80
    )


def iperf2(number: int, ms: float) -> bytes:
    """iperf2's UDP header: counter (negative at the end), seconds, microseconds."""
    microseconds = round(ms * 1000)
    return struct.pack(">iII", number, 1_700_000_000 + microseconds // 10**6, microseconds % 10**6) + bytes(80)


def rtp(
    number: int, ssrc: int = 0xCAFE, kind: int = 0, marker: int = 0, ticks: int | None = None, content: int = 0
) -> bytes:
    """An RTP header; 160 samples a packet."""
    ticks = 160 * number if ticks is None else ticks
    header = struct.pack(">BBHII", 0x80, marker << 7 | kind, number % 65536, ticks % 2**32, ssrc % 2**32)
    return header + bytes([content % 256]) * 160


def ipfix(length: int, sequence: int = 0) -> bytes:
    """An IPFIX message of a length (RFC 7011 section 3.1), exported at a second of its own."""
    return struct.pack(">HHIII", 10, length, 1_587_079_370 + sequence, 438_000 + sequence, 1) + bytes(length - 16)


def bacnet(length: int, invoke: int = 0) -> bytes:
    """A BACnet/IP message of a length (ASHRAE 135 annex J)."""
    return struct.pack(">BBHBBBBII", 0x81, 10, length, 1, 8, 0, 3, 0x016C3000, invoke) + bytes(length - 16)


def udptl(number: int) -> bytes:
    """A datagram of T.38 (ITU-T T.38 section 9.1): its number, then a packet of 12 bytes."""
    return struct.pack(">HB", number % 65536, 12) + bytes(range(12)) + bytes(2)


def stream(count: int, sent_ns: int = 0) -> bytes:
    """Blocks one after another, as TCP carries them."""
    return b"".join(block(n, LENGTH, sent_ns=sent_ns + n) for n in range(count))


def jitter_of(transits: Iterable[float]) -> float:
    """RFC 3550 section 6.4.1, of times on the way in one unit."""
    jitter = 0.0
    for before, after in pairwise(transits):
        jitter += (abs(after - before) - jitter) / 16
    return jitter


@cache
def blocks_stream(count: int) -> bytes:
    """The same, made once."""
    return stream(count)


def numbered(words: list[str]) -> bytes:
    """The payload that a scenario describes: `iperf3 7 us 12500 wide`, `block 4 run 7 sent_ns 5`, `rtp 9 ssrc 51966`."""
    kind, count, *more = words
    fields = dict(zip(more[::2], more[1::2], strict=False))
    if kind == "block":
        return block(int(count), **{name: int(value) for name, value in fields.items()})
    senders: dict[str, Callable[..., bytes]] = {"rtp": rtp, "ipfix": ipfix, "bacnet": bacnet, "udptl": udptl}
    if kind in senders:
        return senders[kind](int(count), **{name: int(value, 0) for name, value in fields.items()})
    if kind == "iperf2":
        return iperf2(int(count), int(fields["us"]) / 1000)
    return iperf3(int(count), int(fields["us"]) / 1000, wide=more[-1] == "wide")
