# SPDX-License-Identifier: Apache-2.0
"""Rules about conversations as a whole: handshakes, resets, ICMP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.model import SHOWN, Finding, flows_named, rows_of_kind
from wiretale.analyzer.findings.odd_counts import odd_flows
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

ERRORS_READ = 50  # ICMP errors whose words are told


def by_state(trace: Trace, state: str) -> list[int]:
    """Flows in a state."""
    return trace.flows.rows_where("state", state)


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


def icmp_errors(trace: Trace) -> Iterator[Finding]:
    """Flows that an ICMP error complained of."""
    counts = odd_flows(trace)["icmp_errors"]
    numbers = [number for number, _ in counts]
    if not numbers:
        return
    said = sorted({row["detail"] for row in rows_of_kind(trace.events, "icmp_error", ERRORS_READ) if row["detail"]})
    yield Finding(
        *("icmp-errors", "warning", "flow"),
        f"Routers or hosts complained of {plural(len(numbers), 'flow')} by ICMP{': ' if said else ''}{'; '.join(said[:SHOWN])}.",
        "Read what they say: unreachable ports and hosts, TTLs that end, or a path MTU that is too small.",
        flow=numbers[0] if len(numbers) == 1 else None,
        cost=float(sum(count for _, count in counts)),
        cost_unit="packets",
        evidence=flows_named(trace, numbers),
        filter="icmp.type in {3, 4, 5, 11, 12} || icmpv6.type in {1, 2, 3, 4}",
    )
