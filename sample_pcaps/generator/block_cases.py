# SPDX-License-Identifier: Apache-2.0
"""Samples of sequenced blocks over UDP and TCP. A block begins with the header of common/block.h."""

from __future__ import annotations

import struct
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.packet import Raw

from sample_files import in_time_order, save, truth_of
from simulation import BESIDE_RECEIVER, Fate
from tcp_connection import Connection, Script
from tcp_sender import SenderRules
from write_captures import MICROSECOND, MILLISECOND, START_NS, ethernet, record
from write_truth import BLOCK_COLUMNS, Sighting, Truth, Verdict

HEADER = 32
FIRST, LAST = 1, 2  # flags
RUN = 0x20260115


def block_header(stream: int, sequence: int, count: int, length: int, sent_ns: int) -> bytes:
    """Returns the 32-byte header of a block."""
    flags = FIRST * (sequence == 0) | LAST * (sequence == count - 1)
    return struct.pack("!IIHHIQQ", 0x57544231, RUN, stream, flags, length, sequence, sent_ns)


# UDP: one block per datagram. A block has 32 bytes, so it consists of its header alone.

LOST = (40, 41, 120)
LATE = 80  # arrives 50 µs after its successor
COPIED_BY_NETWORK = 150
SENT_TWICE = 160
COPIES_NS = {COPIED_BY_NETWORK: 2200 * MICROSECOND, SENT_TWICE: 300 * MICROSECOND}  # delay of the copy
EVERY_NS = MILLISECOND
DELAY_NS = 5 * MILLISECOND


def udp_block(stream: int, sequence: int, count: int, ip_id: int, delay_ns: int) -> Sighting:
    """Returns the datagram with that block, captured `delay_ns` after it was sent."""
    sent = START_NS + sequence * EVERY_NS + stream * 500 * MICROSECOND
    udp = UDP(sport=47_300 + stream, dport=5_300) / Raw(block_header(stream, sequence, count, HEADER, sent))
    ip = IP(src="192.0.2.50", dst="198.51.100.50", id=ip_id, ttl=61)
    return Sighting(record(sent + delay_ns, ethernet(0x50, 0x51) / ip / udp), stream, 0)


def odd_stream(count: int) -> list[Sighting]:
    """Stream 0: lost, late and duplicate blocks, copied by the network or retransmitted."""
    seen = []
    ip_id = 0x3000
    for sequence in range(count):
        ip_id += 1
        s = udp_block(0, sequence, count, ip_id, DELAY_NS)
        if sequence in LOST:
            continue
        if sequence == LATE:
            s = udp_block(0, sequence, count, ip_id, DELAY_NS + EVERY_NS + 50 * MICROSECOND)
            s.verdict = Verdict("block_out_of_order")
        if gap := lost_before(sequence):
            s.verdict = Verdict("block_lost", blocks=gap)
        seen.append(s)
        if sequence in COPIES_NS:
            ip_id += sequence == SENT_TWICE
            seen.append(udp_block(0, sequence, count, ip_id, DELAY_NS + COPIES_NS[sequence]))
            seen[-1].verdict = Verdict("block_duplicate")
    return seen


def lost_before(sequence: int) -> int:
    """Returns the number of lost blocks immediately before this one."""
    lost = 0
    while sequence - 1 - lost in LOST:
        lost += 1
    return lost


def make_udp_blocks(path: Path) -> None:
    """Two streams of blocks; the first has every anomaly, the second none."""
    odd, clean = 200, 120
    seen = odd_stream(odd) + [udp_block(1, k, clean, 0x7000 + k, DELAY_NS) for k in range(clean)]
    truth = Truth(
        "Blocks of 32 bytes over UDP, one per ms: in flow 0 three of 200 are lost, one arrives 50 µs after its "
        "successor, the network copies one and the sender retransmits one; flow 1 has no anomaly. The verdict of a "
        "lost block stands at the next one.",
        in_time_order(seen),
    )
    for stream, count in ((0, odd - len(LOST)), (1, clean)):
        truth.sums[stream, 0] = dict.fromkeys(BLOCK_COLUMNS, 0) | {"blocks": count}
    save(path, truth)


# TCP: one block per write, longer than a segment. The snap length keeps only its header; zeros replace the
# pattern of common/block.h.

BLOCK = 10_000
BLOCKS = 40
WRITE_EVERY_NS = 5 * MILLISECOND
FIRST_WRITE_NS = 25 * MILLISECOND
HEADERS_AND_BLOCK_HEADER = 66 + HEADER


def block_stream(start: int, end: int) -> bytes:
    """Returns these bytes of the stream of blocks."""
    data = b""
    for number in range(start // BLOCK, (end + BLOCK - 1) // BLOCK):
        sent = START_NS + FIRST_WRITE_NS + number * WRITE_EVERY_NS
        data += block_header(0, number, BLOCKS, BLOCK, sent).ljust(BLOCK, b"\0")
    skipped = start // BLOCK * BLOCK
    return data[start - skipped : end - skipped]


def head_of_line(times: list[tuple[int, int, int]]) -> list[dict[str, object]]:
    """Returns the blocks that had to wait for earlier bytes after they were complete, with the delay."""
    rows: list[dict[str, object]] = []
    for number in range(BLOCKS):
        start, end = number * BLOCK, (number + 1) * BLOCK
        complete = max(time for first, last, time in times if first < end and last > start)
        ready = max(time for first, _, time in times if first < end)
        if ready > complete:
            rows.append({"flow": 0, "direction": 0, "sequence": number, "head_of_line_ns": ready - complete})
    return rows


def make_tcp_blocks(path: Path) -> None:
    """A segment in the middle of a block is lost; the later blocks wait."""
    rules = SenderRules(window_most=80)
    fates = {(7 * 17 + 3, 0): Fate(lost="upstream")}
    close_ns = FIRST_WRITE_NS + BLOCKS * WRITE_EVERY_NS
    script = Script(distance=BESIDE_RECEIVER, rules=rules, fates=fates, close_ns=close_ns)
    connection = Connection(script)
    connection.sender_end.stream = block_stream
    for number in range(BLOCKS):
        connection.clock.at(FIRST_WRITE_NS + number * WRITE_EVERY_NS, connection.sender.write, BLOCK)
    truth = truth_of(
        "40 blocks of 10,000 bytes over TCP, one every 5 ms, captured beside the receiver: a segment of block 17 is lost "
        "upstream, and the blocks behind it wait for its repair (head_of_line_ns).",
        [connection],
    )
    truth.sums[0, 0] |= dict.fromkeys(BLOCK_COLUMNS, 0) | {"blocks": BLOCKS}
    truth.tables["blocks"] = head_of_line(connection.point.times)
    save(path, truth, pcapng=True, snaplen=HEADERS_AND_BLOCK_HEADER, tick_ns=1)
