# SPDX-License-Identifier: Apache-2.0
"""Writes a sample and its truth from simulated connections."""

from __future__ import annotations

from pathlib import Path

from tcp_connection import REQUEST, Connection
from write_captures import (
    LINK_ETHERNET,
    LITTLE,
    MICROSECOND,
    SECOND,
    cut,
    interface_block,
    option,
    packet_block,
    section_block,
    statistics_block,
    write_pcap,
)
from write_truth import TCP_COLUMNS, Sighting, Truth

WHOLE = 262_144  # snap length that truncates nothing
HEADERS = 128  # bytes that include all headers of TCP over IP


def in_time_order(seen: list[Sighting]) -> list[Sighting]:
    return sorted(seen, key=lambda s: s.record[0])


def truth_of(about: str, connections: list[Connection]) -> Truth:
    """Runs connections and returns packets and truth; flow numbers follow the order given."""
    truth = Truth(about, [])
    for flow, connection in enumerate(connections):
        connection.clock.run()
        for s in connection.point.seen:
            s.flow = flow
        truth.seen += connection.point.seen
        data = connection.point.data_direction
        for direction in (0, 1):
            truth.sums[flow, direction] = dict.fromkeys(TCP_COLUMNS, 0)
        truth.sums[flow, data]["unique_bytes"] = connection.point.stored.total()
        truth.sums[flow, 1 - data]["unique_bytes"] = REQUEST if data else 0
    truth.seen = in_time_order(truth.seen)
    return truth


def save(
    path: Path,
    truth: Truth,
    *,
    pcapng: bool = False,
    snaplen: int = HEADERS,
    order: str = LITTLE,
    tick_ns: int = MICROSECOND,
    dropped: int | None = None,
    tail: bytes = b"",
) -> None:
    """Writes the capture and its truth. pcapng has one interface; its statistics have the number of `dropped` packets."""
    records = [cut(s.record, snaplen) for s in truth.seen]
    truth.write(path)
    if not pcapng:
        write_pcap(path.with_suffix(".pcap"), records, snaplen=snaplen, tail=tail, order=order, tick_ns=tick_ns)
        return
    options = [option(2, b"eth0", order), option(9, bytes([9 if tick_ns == 1 else 6]), order)]
    blocks = [section_block(order=order), interface_block(LINK_ETHERNET, snaplen, *options, order=order)]
    for time_ns, data, length in records:
        blocks.append(packet_block(0, time_ns // tick_ns, data, length=length, order=order))
    if dropped is not None:
        end = (truth.seen[-1].record[0] + SECOND) // tick_ns
        blocks.append(statistics_block(0, end, len(truth.seen) + dropped, 0, dropped, order=order))
    path.with_suffix(".pcapng").write_bytes(b"".join(blocks))
