# SPDX-License-Identifier: Apache-2.0
"""Rules about conversations: handshakes, repetition, gaps, full buffers, ICMP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.finding import (
    SHOWN,
    Finding,
    end_named,
    flows_named,
    frames_named,
    frames_of_kind,
    named,
    row_at,
    rows_of_kind,
    rows_with,
    total,
)
from wiretale.analyzer.units import plural, show_bytes, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

ERRORS_READ = 50  # ICMP errors whose words are told
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


@dataclass(frozen=True)
class Worst:
    """The directions that a count is greatest in, with the frames that show it; the others only in sum."""

    shown: list[tuple[dict[str, Any], str | None]]  # directions row, evidence
    others: int  # directions
    others_sum: int
    others_whole: int  # what others_sum is a part of

    def others_severity(self) -> str:
        """Whether they feel it."""
        return "warning" if self.others_sum >= REPEATED_WARNING * self.others_whole else "info"


def find_worst(trace: Trace, column: str, whole: str, kind: str, counted: str) -> Worst:
    """By `column`, a part of `whole`; `counted` is the column that says how many events of `kind` there were."""
    directions = trace.directions
    values = directions.column(column)
    numbers = sorted((i for i, value in enumerate(values) if value), key=lambda i: -values[i])
    rows = [row_at(directions, i) for i in numbers[:SHOWN]]
    frames = frames_of_kind(trace, (row["flow"] for row in rows), kind) if rows else {}
    evidence = [frames_named(frames.get((row["flow"], row["direction"]), []), row[counted]) for row in rows]
    rest = numbers[SHOWN:]
    wholes = directions.column(whole) if rest else []
    sums = sum(values[i] for i in rest), sum(wholes[i] or 0 for i in rest)
    return Worst(list(zip(rows, evidence, strict=True)), len(rest), *sums)


def retransmitted(trace: Trace) -> Iterator[Finding]:
    """Payload that passed the capture point more than once."""
    worst = find_worst(trace, "retransmitted_bytes", "payload_bytes", "seen_before", "seen_before_packets")
    for row, evidence in worst.shown:
        again, payload = row["retransmitted_bytes"], row["payload_bytes"]
        yield Finding(
            *("retransmitted", "warning" if again >= REPEATED_WARNING * payload else "info", "flow"),
            f"{named(row)} sent {show_bytes(again)} again that had passed here before ({show_share(again, payload)} of "
            f"its payload, {plural(row['seen_before_packets'], 'segment')}): the data or its acknowledgment was lost "
            "beyond this point, or the sender was too quick.",
            "Look for loss between here and the receiver; the events table lists each with the frame it repeats.",
            flow=row["flow"],
            cost=float(again),
            cost_unit="bytes",
            evidence=evidence,
            filter=f"{flow_filter(row_at(trace.flows, row['flow']))} && tcp.analysis.retransmission",
        )
    if worst.others:
        yield Finding(
            *("retransmitted", worst.others_severity(), "flow"),
            f"{plural(worst.others, 'more direction')} sent {show_bytes(worst.others_sum)} again that had passed here "
            f"before ({show_share(worst.others_sum, worst.others_whole)} of their payload).",
            "See retransmitted_bytes in the directions table.",
            cost=float(worst.others_sum),
            cost_unit="bytes",
            filter="tcp.analysis.retransmission",
        )


def holes_filled(trace: Trace) -> Iterator[Finding]:
    """Segments that came after later ones: lost before this point and sent again, or reordered on the way here.

    A gap that was acknowledged and never filled is none of these: see capture_rules.capture_missed.
    """
    worst = find_worst(trace, "holes_filled", "data_packets", "hole_filled", "holes_filled")
    for row, evidence in worst.shown:
        share = row["holes_filled"] / row["data_packets"] if row["data_packets"] else 0
        yield Finding(
            *("missing-upstream", "warning" if share >= REPEATED_WARNING else "info", "flow"),
            f"{named(row)}: {plural(row['holes_filled'], 'gap')} in the stream when it passed here, filled later: "
            "segments were lost before this point and sent again, or overtaken on the way to it.",
            "Look between the sender and here; a gap filled within a round trip is reordering rather than loss.",
            flow=row["flow"],
            cost=float(row["holes_filled"]),
            cost_unit="segments",
            evidence=evidence,
            filter=f"{flow_filter(row_at(trace.flows, row['flow']))} && tcp.analysis.out_of_order",
        )
    if worst.others:
        yield Finding(
            *("missing-upstream", worst.others_severity(), "flow"),
            f"{plural(worst.others, 'more direction')} had {plural(worst.others_sum, 'gap')} when they passed here, "
            "filled later.",
            "See holes_filled in the directions table.",
            cost=float(worst.others_sum),
            cost_unit="segments",
            filter="tcp.analysis.out_of_order",
        )


def zero_window(trace: Trace) -> Iterator[Finding]:
    """Receivers whose buffer was full."""
    worst = find_worst(trace, "zero_windows", "zero_windows", "zero_window", "zero_windows")
    for row, evidence in worst.shown:
        yield Finding(
            *("zero-window", "warning", "flow"),
            f"{end_named(row['source'], row['source_port'])} announced a full receive buffer in "
            f"{plural(row['zero_windows'], 'segment')}: its application reads too slowly, and the sender had to wait.",
            "Look at the receiving application and its socket buffer, not at the network.",
            flow=row["flow"],
            cost=float(row["zero_windows"]),
            cost_unit="segments",
            evidence=evidence,
            filter=f"{flow_filter(row_at(trace.flows, row['flow']))} && tcp.analysis.zero_window",
        )
    if worst.others:
        yield Finding(
            *("zero-window", worst.others_severity(), "flow"),
            f"{plural(worst.others, 'more receiver')} announced a full receive buffer in "
            f"{plural(worst.others_sum, 'segment')}.",
            "See zero_windows in the directions table.",
            cost=float(worst.others_sum),
            cost_unit="segments",
            filter="tcp.analysis.zero_window",
        )


def icmp_errors(trace: Trace) -> Iterator[Finding]:
    """Flows that an ICMP error complained of."""
    numbers = rows_with(trace.flows, "icmp_errors")
    if not numbers:
        return
    details = sorted({row["detail"] for row in rows_of_kind(trace.events, "icmp_error", ERRORS_READ) if row["detail"]})
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
