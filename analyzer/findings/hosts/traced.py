# SPDX-License-Identifier: Apache-2.0
"""Paths that traceroute or mtr traced: probes whose TTL must run out, what routers answered to them, and the destination."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of
from wiretale.analyzer.findings.transfers import rows_of_kind

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import EventRow

EXPIRED = ("ttl_exceeded", "hop_limit_exceeded")
ARRIVED = "port_unreachable"  # answer of the destination to probes of UDP
PROBE_TTL = 32  # probes have lower ones
ERRORS_MAX = 5_000
ROUTERS_MIN = 2


class Traced(NamedTuple):
    """One traced path."""

    source: str
    destination: str
    flows: list[int]
    routers: Counter[str]  # answers of each
    answered: int  # probes that the destination answered
    silent: int  # probes that nobody answered; those of UDP are not counted

    @property
    def most(self) -> int:
        """The answers of the router that answered most."""
        return max(self.routers.values())


def is_probe(transfers: Transfers, event: EventRow) -> bool:
    """Returns whether a packet of the flow was sent with so low a TTL that it must run out."""
    side = 2 * (event["flow"] or 0) + (event["direction"] or 0)
    least = transfers.trace.directions.rows(side, side + 1)[0]["ttl_min"]
    return least is not None and least < PROBE_TTL


def traced_paths(transfers: Transfers) -> list[Traced]:
    """Returns the paths of which two routers or more reported that probes expired; none if there are too many reports to read."""
    if not transfers.flow_counts["icmp_errors"]:
        return []
    events = [row for row in rows_of_kind(transfers, "icmp_error", ERRORS_MAX) if row["flow"] is not None]
    by_path: dict[tuple[str, str], list[EventRow]] = defaultdict(list)
    for event in events if len(events) < ERRORS_MAX else ():
        side = 2 * (event["flow"] or 0) + (event["direction"] or 0)
        ends = transfers.trace.directions.rows(side, side + 1)[0]
        if event["cause"] in (*EXPIRED, ARRIVED) and event["router"] and is_probe(transfers, event):
            by_path[ends["source"], ends["destination"]].append(event)
    paths = (path_of(transfers, *ends, rows) for ends, rows in by_path.items())
    return sorted((path for path in paths if len(path.routers) >= ROUTERS_MIN), key=lambda path: -path.most)


def path_of(transfers: Transfers, source: str, destination: str, events: list[EventRow]) -> Traced:
    """Returns the path between two hosts, from the reports about its probes."""
    flows = {event["flow"] for event in events if event["flow"] is not None}
    echoes = [row for row in exchanges_of(transfers, "icmp_echo") if row["flow"] in flows]
    outcomes = Counter(row["outcome"] for row in echoes)
    arrived = sum(event["cause"] == ARRIVED and event["router"] == destination for event in events)
    return Traced(
        source,
        destination,
        sorted(flows),
        Counter(str(event["router"]) for event in events if event["cause"] in EXPIRED),
        outcomes["answered"] + arrived,
        outcomes["unanswered"],
    )
