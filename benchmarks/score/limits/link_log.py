# SPDX-License-Identifier: Apache-2.0
"""The parts of time that the path decides, by the log of each packet's fate: loss, transfer, queue and path.

Times are those of the sender: a packet that leaves the bottleneck counts when its ACK can come back. The second link is the
bottleneck of every run but those with a shaper in the sender's host, whose queue no log contains.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import duckdb

TO_RECEIVER, TO_SENDER = 0, 1
QUEUED = 16  # outside of recovery, the link is busy if a packet waits for a sixteenth of the least round trip (docs/tables.md)
PACKETS = """
select direction, fate = 'delivered' as delivered, in_ns, due_ns, out_ns, queue_packets, ip_bytes, payload_bytes, tcp_sequence,
       tcp_ack
from read_csv(?, all_varchar = false, sample_size = -1) where protocol = 6 and in_ns is not null order by in_ns
"""


class Packet(NamedTuple):
    """A TCP packet on a link, times in ns; one that was lost has no time due."""

    direction: int
    delivered: bool
    in_ns: int
    due_ns: int | None
    out_ns: int | None
    queue_packets: int
    ip_bytes: int
    payload: int
    sequence: int
    acknowledgment: int


class Passage(NamedTuple):
    """A data packet through the bottleneck: its ACK's arrival at the sender, and its times in the link and in its queue, ns."""

    acked_ns: float
    service_ns: float
    wait_ns: float


def read_packets(path: Path) -> list[Packet]:
    return [Packet(*row) for row in duckdb.execute(PACKETS, [str(path)]).fetchall()]


def least_transit(packets: list[Packet], direction: int, ns_per_byte: float = 0) -> float:
    """Returns the least time that a packet took, without that of its bytes."""
    return min(
        packet.due_ns - packet.in_ns - ns_per_byte * packet.ip_bytes
        for packet in packets
        if packet.direction == direction and packet.due_ns is not None
    )


def service_per_byte(data: list[Packet]) -> float:
    """Returns the bottleneck's ns per byte: the median of packets that left right after another, 0 without such a packet."""
    dues = (
        (packet.due_ns - last.due_ns) / packet.ip_bytes
        for last, packet in pairwise(packet for packet in data if packet.due_ns is not None)
        if packet.queue_packets and packet.due_ns is not None and last.due_ns is not None
    )
    return statistics.median([*dues] or [0])


def recoveries(data: list[Packet], acks: list[Packet], lost: list[Packet]) -> list[tuple[int, int]]:
    """Returns the spans of loss: from the first duplicate ACK after a lost packet, or from the last ACK before the first
    retransmission if that is earlier (RTO), until an ACK covers its bytes.

    `data` are those that the sender sent, `acks` those that reached it."""
    arrivals = [ack.out_ns or 0 for ack in acks]
    highest, again = 0, []
    for packet in data:
        if packet.sequence < highest:
            again.append(packet.in_ns)
        highest = max(highest, packet.sequence + packet.payload)
    spans = []
    for packet in lost:
        first = bisect_right(arrivals, packet.in_ns)
        covers = next((ack for ack in acks[first:] if ack.acknowledgment > packet.sequence), None)
        end = (covers.out_ns if covers else arrivals[-1]) or 0
        doubled = (
            ack.out_ns or 0
            for last, ack in pairwise(acks[first:])
            if ack.acknowledgment == last.acknowledgment == packet.sequence
        )
        repair = bisect_right(again, packet.in_ns)
        before = bisect_left(arrivals, again[repair]) - 1 if repair < len(again) else len(arrivals) - 1
        begin = min(next(doubled, end), arrivals[max(before, 0)])
        spans.append((begin, end))
    return spans


@dataclass
class Bottleneck:
    """Answers where an instant of the sender went, if neither its application nor a window or buffer took it."""

    passages: list[Passage]  # by acked_ns
    losses: list[tuple[int, int]]  # spans of loss, by begin
    recovered_ns: list[int]  # the latest end of the spans so far
    rtt_ns: float  # the least

    def at(self, time_ns: float) -> dict[str, float]:
        """Returns the shares of loss, transfer, queue and path at this time."""
        index = bisect_left(self.passages, time_ns, key=lambda passage: passage.acked_ns)
        passage = self.passages[min(index, len(self.passages) - 1)]
        busy = index < len(self.passages) and passage.acked_ns - passage.service_ns <= time_ns
        recovers = self.recovers(time_ns)
        if busy and passage.wait_ns >= max(passage.service_ns, 0 if recovers else self.rtt_ns / QUEUED):
            return {"transfer": 1.0}
        if recovers:
            return {"loss": 1.0}
        queue = passage.wait_ns / (self.rtt_ns + passage.wait_ns)
        return {"queue": queue, "path": 1 - queue}

    def recovers(self, time_ns: float) -> bool:
        begun = bisect_right(self.losses, time_ns, key=lambda span: span[0])
        return begun > 0 and time_ns < self.recovered_ns[begun - 1]


def relative(first: list[Packet], second: list[Packet]) -> Iterator[list[Packet]]:
    """Yields the packets of both links with numbers from the initial ones, so that none wraps."""
    sent, heard = (
        next((packet.sequence for packet in first if packet.direction == way), 0) for way in (TO_RECEIVER, TO_SENDER)
    )
    initial = {TO_RECEIVER: (sent, heard), TO_SENDER: (heard, sent)}
    for packets in (first, second):
        yield [
            packet._replace(
                sequence=(packet.sequence - initial[packet.direction][0]) % 2**32,
                acknowledgment=(packet.acknowledgment - initial[packet.direction][1]) % 2**32,
            )
            for packet in packets
        ]


def read_bottleneck(folder: Path) -> Bottleneck | None:
    """Returns the bottleneck of the only transfer in the logs of both links, None if no data passed."""
    return bottleneck(*(read_packets(folder / f"link{number}.csv") for number in (1, 2)))


def passages(data: list[Packet], per_byte: float, bare: float, back: float) -> Iterator[Passage]:
    """Yields the passages, from the ns per byte of the bottleneck, its least transit and that of an ACK to the sender."""
    for packet in data:
        if packet.due_ns is not None and packet.delivered:
            service = per_byte * packet.ip_bytes
            yield Passage(packet.due_ns + back, service, packet.due_ns - packet.in_ns - bare - service)


def data_of(packets: list[Packet]) -> list[Packet]:
    return [packet for packet in packets if packet.direction == TO_RECEIVER and packet.payload]


def bottleneck(first: list[Packet], second: list[Packet]) -> Bottleneck | None:
    first, second = relative(first, second)
    sent, data = data_of(first), data_of(second)
    acks = [packet for packet in first if packet.direction == TO_SENDER and packet.delivered]
    acks.sort(key=lambda ack: ack.out_ns or 0)
    if not acks or not any(packet.delivered for packet in data):
        return None
    per_byte = service_per_byte(data)
    back = least_transit(first, TO_SENDER) + least_transit(second, TO_SENDER)
    bare = least_transit(data, TO_RECEIVER, per_byte)
    rtt = least_transit(sent, TO_RECEIVER) + bare + per_byte * max(packet.ip_bytes for packet in data) + back
    lost = sorted(recoveries(sent, acks, [packet for packet in (*sent, *data) if not packet.delivered]))
    until = list(accumulate((end for _, end in lost), max))
    return Bottleneck(sorted(passages(data, per_byte, bare, back)), lost, until, rtt)
