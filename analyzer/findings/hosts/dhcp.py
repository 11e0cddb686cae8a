# SPDX-License-Identifier: Apache-2.0
"""Rules about DHCP: clients without an offer, and those that a server refused.

A switch may send an Offer to the client alone; the Request that follows shows that it came, so that the core counts it. Messages
of a relay are exchanges of their own, as are those of its clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, named, packets_of, waits_of
from wiretale.analyzer.findings.model import Match, Matches, finding, seconds
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import ExchangeRow

CHAPTER = "DHCP"
REPEATS_MIN = 2  # Discovers without an Offer: a client asks again after 4 s


def mac_of(row: ExchangeRow) -> str:
    """Returns the MAC address of a client, which may have a host name behind it in some of its messages."""
    return (row["name"] or "?").split("\\032")[0].split(" ")[0]


def clients_of(rows: Sequence[ExchangeRow]) -> str:
    """`02:00:00:00:00:0a laptop and 3 more`."""
    return named([row["name"] or "?" for row in rows], 1)


def dhcp_match(rows: Sequence[ExchangeRow], severity: str, packet_filter: str, **words: Any) -> Match:
    """Returns a match about these exchanges."""
    waited, packets = union_ns(waits_of(rows)), packets_of(rows)
    return Match(
        severity,
        cost=None if waited is None else seconds(waited),
        waited_ns=waited,
        failed=len(rows),
        packets=sum(row["attempts"] for row in rows),
        frames=packets,
        cited=packets,
        filter=packet_filter,
        clients=clients_of(rows),
        count=sum(row["attempts"] for row in rows),
        waited=show_duration(waited) if waited else "",
        **words,
    )


@finding(
    code="dhcp-no-offer",
    title="No DHCP server answered",
    unit="seconds",
    severity="warning, info if other clients got an offer",
    computed="Discovers of a client that asked twice or more without an Offer (RFC 2131; exchanges of kind dhcp, type Discover, "
    "outcome unanswered). A Request of the client with the same id shows that there was one. The cost is the time in which a "
    "client waited. The first 50,000 exchanges are examined.",
    unknown="Whether the server is down, has no free address, or the relay is missing.",
    sentence="No DHCP server answered {count:Discover} from {clients}[ in {waited}][{offered}].",
    advice="Check that the server runs and has free addresses, that the router of this subnet relays (ip helper-address), and "
    "that the switch port forwards at once (portfast).",
)
def dhcp_no_offer(transfers: Transfers) -> Matches:
    rows = [row for row in exchanges_of(transfers, "dhcp") if row["type"] == "Discover"]
    silent = [row for row in rows if row["outcome"] == "unanswered" and row["attempts"] >= REPEATS_MIN]
    offered = {mac_of(row) for row in rows if row["outcome"] == "answered"}
    served = offered - {mac_of(row) for row in silent}
    if silent:
        yield dhcp_match(
            silent,
            "info" if served else "warning",
            "dhcp.option.dhcp == 1",
            offered=f", but {plural(len(served), 'other client')} got an offer" if served else "",
        )


@finding(
    code="dhcp-refused",
    title="A DHCP server refused an address",
    severity="warning, info if the client got an address later",
    computed="Requests that a server answered with a NAK (RFC 2131; exchanges of kind dhcp, outcome refused). A client that "
    "comes from another network asks for its old address and gets a NAK as a rule; then it gets a new one. The first 50,000 "
    "exchanges are examined.",
    unknown="Why the server refused.",
    sentence="{server} refused {refused:DHCP Request} from {clients}[{later}].",
    advice="Compare the address that the client asks for with the ranges and leases of {server}; look for a second server.",
)
def dhcp_refused(transfers: Transfers) -> Matches:
    rows = [row for row in exchanges_of(transfers, "dhcp") if row["type"] == "Request"]
    refused = [row for row in rows if row["outcome"] == "refused"]
    if not refused:
        return
    last = {mac_of(row): row["outcome"] for row in rows}  # the rows are in the order of times
    lasting = [row for row in refused if last[mac_of(row)] == "refused"]
    yield dhcp_match(
        lasting or refused,
        "warning" if lasting else "info",
        "dhcp.option.dhcp == 6",
        server=named([str(row["server"]) for row in lasting or refused]),
        refused=len(lasting or refused),
        later="" if lasting else ", which got an address later",
    )
