# SPDX-License-Identifier: Apache-2.0
"""Rules about conversations: handshakes, repetition, gaps, full buffers, ICMP."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import TYPE_CHECKING

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.finding import (
    SHOWN,
    Finding,
    event_frames,
    flows_named,
    named,
    row_at,
    rows_with,
    total,
)
from wiretale.analyzer.units import plural, show_bytes, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

REPEATED_WARNING = 0.01  # of the payload or the segments; below, a transfer hardly feels it


def by_state(trace: Trace, state: str) -> list[int]:
    """Flows in a state."""
    return [i for i, value in enumerate(trace.flows.column("state")) if value == state]


def handshake_failed(trace: Trace) -> Iterator[Finding]:
    """Connections that never came about."""
    lonely, refused = by_state(trace, "syn_sent"), by_state(trace, "refused")
    if lonely:
        yield Finding(
            *("syn-unanswered", "warning", "flow"),
            f"{plural(len(lonely), 'connection attempt')} got no answer here: a filter drops it, the host is down, or the "
            "answer took another path.",
            "Try the port from nearer by; look for a firewall that drops instead of refusing.",
            flow=lonely[0] if len(lonely) == 1 else None,
            cost=float(len(lonely)),
            cost_unit="connections",
            evidence=flows_named(trace, lonely),
            filter="tcp.flags.syn == 1 && tcp.flags.ack == 0",
        )
    if refused:
        yield Finding(
            *("connection-refused", "warning", "flow"),
            f"{plural(len(refused), 'connection attempt was', 'connection attempts were')} refused by a reset.",
            "Nothing listens on that port, or a firewall refuses: check the server.",
            flow=refused[0] if len(refused) == 1 else None,
            evidence=flows_named(trace, refused),
            filter="tcp.flags.reset == 1",
        )


def resets(trace: Trace) -> Iterator[Finding]:
    """Conversations ended by RST after they had begun."""
    numbers = by_state(trace, "reset")
    if numbers:
        yield Finding(
            *("reset", "info", "flow"),
            f"{plural(len(numbers), 'connection was', 'connections were')} ended by a reset.",
            "Normal for some applications; else ask the end that sent it.",
            flow=numbers[0] if len(numbers) == 1 else None,
            evidence=flows_named(trace, numbers),
            filter="tcp.flags.reset == 1",
        )


def retransmitted(trace: Trace) -> Iterator[Finding]:
    """Payload that passed the capture point more than once."""
    directions = trace.directions
    again, payload = directions.column("retransmitted_bytes"), directions.column("payload_bytes")
    numbers = [i for i, value in enumerate(again) if value]
    numbers.sort(key=lambda i: -again[i])
    for number in numbers[:SHOWN]:
        row = row_at(directions, number)
        share = again[number] / payload[number]
        yield Finding(
            *("retransmitted", "warning" if share >= REPEATED_WARNING else "info", "flow"),
            f"{named(row)} sent {show_bytes(again[number])} again that had passed here before "
            f"({show_share(again[number], payload[number])} of its payload, "
            f"{plural(row['seen_before_packets'], 'segment')}): the data or its acknowledgment was lost beyond this "
            "point, or the sender was too quick.",
            "Look for loss between here and the receiver; the events table lists each with the frame it repeats.",
            flow=row["flow"],
            cost=float(again[number]),
            cost_unit="bytes",
            evidence=event_frames(trace, row, "seen_before"),
            filter=f"{flow_filter(row_at(trace.flows, row['flow']))} && tcp.analysis.retransmission",
        )


def holes_filled(trace: Trace) -> Iterator[Finding]:
    """Segments that came after later ones: lost before this point and sent again, or reordered on the way here.

    A gap that was acknowledged and never filled is none of these: see capture_rules.capture_missed.
    """
    directions = trace.directions
    filled = directions.column("holes_filled")
    numbers = sorted((i for i, value in enumerate(filled) if value), key=lambda i: -filled[i])
    for number in numbers[:SHOWN]:
        row = row_at(directions, number)
        share = row["holes_filled"] / row["data_packets"] if row["data_packets"] else 0
        yield Finding(
            *("missing-upstream", "warning" if share >= REPEATED_WARNING else "info", "flow"),
            f"{named(row)}: {plural(row['holes_filled'], 'gap')} in the stream when it passed here, filled later: "
            "segments were lost before this point and sent again, or overtaken on the way to it.",
            "Look between the sender and here; a gap filled within a round trip is reordering rather than loss.",
            flow=row["flow"],
            cost=float(row["holes_filled"]),
            cost_unit="segments",
            evidence=event_frames(trace, row, "hole_filled"),
            filter=f"{flow_filter(row_at(trace.flows, row['flow']))} && tcp.analysis.out_of_order",
        )


def zero_window(trace: Trace) -> Iterator[Finding]:
    """Receivers whose buffer was full."""
    directions = trace.directions
    closed = directions.column("zero_windows")
    numbers = sorted((i for i, value in enumerate(closed) if value), key=lambda i: -closed[i])
    for number in numbers[:SHOWN]:
        row = row_at(directions, number)
        receiver = f"{row['source']}" + (f":{row['source_port']}" if row["source_port"] is not None else "")
        yield Finding(
            *("zero-window", "warning", "flow"),
            f"{receiver} announced a full receive buffer in {plural(closed[number], 'segment')}: its application reads too "
            "slowly, and the sender had to wait.",
            "Look at the receiving application and its socket buffer, not at the network.",
            flow=row["flow"],
            cost=float(closed[number]),
            cost_unit="segments",
            evidence=event_frames(trace, row, "zero_window"),
            filter=f"{flow_filter(row_at(trace.flows, row['flow']))} && tcp.analysis.zero_window",
        )


def icmp_errors(trace: Trace) -> Iterator[Finding]:
    """Flows that an ICMP error complained of."""
    numbers = rows_with(trace.flows, "icmp_errors")
    if not numbers:
        return
    kinds = trace.events.column("kind")
    chosen = [kind == "icmp_error" for kind in kinds]
    details = sorted(set(compress(trace.events.column("detail"), chosen)))
    yield Finding(
        *("icmp-errors", "warning", "flow"),
        f"Routers or hosts complained of {plural(len(numbers), 'flow')} by ICMP: {'; '.join(details[:SHOWN])}.",
        "Read what they say: unreachable ports and hosts, TTLs that end, or a path MTU that is too small.",
        flow=numbers[0] if len(numbers) == 1 else None,
        cost=float(total(trace.flows, "icmp_errors")),
        cost_unit="packets",
        evidence=flows_named(trace, numbers),
        filter="icmp.type in {3, 4, 5, 11, 12} || icmpv6.type in {1, 2, 3, 4}",
    )
