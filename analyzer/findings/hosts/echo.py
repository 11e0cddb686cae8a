# SPDX-License-Identifier: Apache-2.0
"""Rules about pings: ICMP echo requests between two hosts, their loss, and the round trips of those that were answered.

A program such as traceroute sends echo requests that shall not arrive: their TTL is too small. They are no pings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, packets_of
from wiretale.analyzer.findings.model import Match, Matches, finding, row_at
from wiretale.analyzer.findings.transfers import median_of
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import ExchangeRow

CHAPTER = "Pings"
KIND = "icmp_echo"
HOP_LIMIT = ("TTL exceeded", "hop limit exceeded")
PINGS_MIN = 3  # of a pair, without any answer
LOST_MUCH = 0.05  # of the pings of a pair: from here on a warning
OUTAGE_MIN = 3  # successive pings without an answer


class Outage(NamedTuple):
    """Successive pings without an answer."""

    rows: Sequence[ExchangeRow]
    until_ns: int | None  # when the next one that was answered was sent; None without one

    @property
    def ns(self) -> int | None:
        """Its length."""
        start_ns = self.rows[0]["asked_ns"]
        end_ns = self.rows[-1]["asked_ns"] if self.until_ns is None else self.until_ns
        return None if start_ns is None or end_ns is None else end_ns - start_ns


class Pings(NamedTuple):
    """The echo requests of one host to another, without those that were sent shortly before the end."""

    flow: int
    direction: int
    rows: list[ExchangeRow]

    def answered(self) -> list[ExchangeRow]:
        return [row for row in self.rows if row["outcome"] == "answered"]

    def lost(self) -> list[ExchangeRow]:
        return [row for row in self.rows if row["outcome"] == "unanswered"]

    def failed(self) -> list[ExchangeRow]:
        return [row for row in self.rows if row["outcome"] == "error"]

    def outages(self) -> list[Outage]:
        """Returns the times without an answer, the longest first."""
        outages: list[Outage] = []
        for silent, group in groupby(self.rows, key=lambda row: row["outcome"] != "answered"):
            rows = list(group)
            if outages and not silent and outages[-1].until_ns is None:
                outages[-1] = outages[-1]._replace(until_ns=rows[0]["asked_ns"])
            if silent and len(rows) >= OUTAGE_MIN:
                outages.append(Outage(rows, None))
        return sorted(outages, key=lambda outage: -len(outage.rows))

    @property
    def hosts(self) -> tuple[str, str]:
        """Who asked, and who was asked."""
        return str(self.rows[0]["client"]), str(self.rows[0]["server"])


def is_traceroute(transfers: Transfers, flow: int, direction: int, rows: Sequence[ExchangeRow]) -> bool:
    """Returns whether hosts on the path were asked, as the TTL shows."""
    if any(row["code"] in HOP_LIMIT for row in rows):
        return True
    ends = row_at(transfers.trace.directions, 2 * flow + direction)
    return ends["ttl_min"] != ends["ttl_max"]


def pings_of(transfers: Transfers) -> list[Pings]:
    """Returns the pings of each pair of hosts, most first."""
    by_pair: dict[tuple[int, int], list[ExchangeRow]] = defaultdict(list)
    for row in exchanges_of(transfers, KIND):
        if row["flow"] is not None and row["direction"] is not None and row["outcome"] != "cut_off":
            by_pair[row["flow"], row["direction"]].append(row)
    pings = [
        Pings(flow, direction, rows)
        for (flow, direction), rows in by_pair.items()
        if not is_traceroute(transfers, flow, direction, rows)
    ]
    return sorted(pings, key=lambda pair: -len(pair.rows))


def is_conclusive(transfers: Transfers, pings: Pings) -> bool:
    """Returns whether the capture would show the answers."""
    return bool(pings.answered() or pings.failed() or transfers.hidden.unanswered([pings.flow]))


@finding(
    code="echo-unanswered",
    title="Pings without an answer",
    severity="warning if 5% or more, three in a row or all were lost, else info",
    unit="packets",
    computed="ICMP echo requests (RFC 792, RFC 4443) of one host to another without a reply (exchanges of kind icmp_echo, "
    "outcome unanswered or error), sent 1 s or more before the end of the capture. If none was answered, there must "
    "be three, and the capture must not hide the answer, as in syn-unanswered. Requests with different TTLs are those of "
    "traceroute, and do not count. The cost is their number. The first 50,000 requests are examined.",
    unknown="Whether the request or its reply was lost; whether the host answers pings at all.",
    sentence="{server} answered {answered} of {count:ping} from {client}[: {share} lost][{errors}][{outages}].",
    advice="{what}",
)
def echo_unanswered(transfers: Transfers) -> Matches:
    for pings in pings_of(transfers):
        missing, errors, answered = pings.lost() + pings.failed(), pings.failed(), pings.answered()
        if not missing or not is_conclusive(transfers, pings) or (not answered and len(missing) < PINGS_MIN):
            continue
        outages, codes = pings.outages(), Counter(str(row["code"]) for row in errors)
        share, (client, server) = len(missing) / len(pings.rows), pings.hosts
        packets = packets_of(outages[0].rows if outages else missing)
        yield Match(
            "warning" if share >= LOST_MUCH or outages else "info",
            flows=[(pings.flow, pings.direction)],
            cost=float(len(missing)),
            failed=len(missing),
            packets=len(missing),
            frames=packets,
            cited=packets,
            filter=transfers.files.frame_filter(packets),
            server=server,
            client=client,
            answered=f"{len(answered):,}" if answered else "none",
            count=len(pings.rows),
            share=show_share(len(missing), len(pings.rows)),
            errors="".join(f"; {count:,} failed with {code}" for code, count in codes.most_common(SHOWN)),
            outages=outages_text(outages) if answered else "",
            what=advice_of(server, bool(answered), codes),
        )


def outages_text(outages: Sequence[Outage]) -> str:
    """`, 2 outages of up to 30 s`; empty without one."""
    longest = max((outage.ns or 0 for outage in outages), default=0)
    up_to = "up to " if len(outages) > 1 else ""
    return f", {plural(len(outages), 'outage')} of {up_to}{show_duration(longest)}" if longest else ""


def advice_of(server: str, answered: bool, codes: Counter[str]) -> str:
    """Returns what to do."""
    if codes:
        return "The source of the ICMP error is the router that gave up: check its route and its ARP table."
    if answered:
        return "Ping the routers on the way at the same time (mtr): the first of them that loses pings is at the faulty link."
    return f"Check whether {server} answers pings from elsewhere; many firewalls drop them. Try a port that it serves."


def spread_of(waits_ns: Sequence[int]) -> str:
    """` (median; 19 ms to 25 ms)` of ascending times; empty if they are shown as one."""
    least, most = show_duration(waits_ns[0]), show_duration(waits_ns[-1])
    return f" (median; {least} to {most})" if least != most else ""


@finding(
    code="echo",
    title="Pings",
    severity="info",
    computed="Count, loss and round trips of the ICMP echo requests of one host to another (exchanges of kind icmp_echo), if one "
    "was answered. The first 50,000 requests are examined.",
    unknown="Whether routers or hosts treat pings as other packets.",
    sentence="{server} answered {answered}{count:ping} from {client} in {middle}{spread}.",
    advice="Compare the least round trip with those of the transfers between these hosts: what is above it is queue or server.",
)
def echo(transfers: Transfers) -> Matches:
    for pings in pings_of(transfers):
        answered = [row for row in pings.answered() if row["waited_ns"] is not None]
        if not answered:
            continue
        waits, (client, server) = sorted(row["waited_ns"] or 0 for row in answered), pings.hosts
        packets = packets_of(answered[:1])
        yield Match(
            flows=[(pings.flow, pings.direction)],
            packets=len(pings.rows),
            frames=packets,
            cited=packets,
            filter="icmpv6.type == 128 || icmpv6.type == 129" if ":" in server else "icmp.type == 8 || icmp.type == 0",
            server=server,
            client=client,
            answered=""
            if len(pings.rows) == 1
            else "all "
            if len(answered) == len(pings.rows)
            else f"{len(answered):,} of ",
            count=len(pings.rows),
            middle=show_duration(median_of(waits)),
            spread=spread_of(waits),
        )
