# SPDX-License-Identifier: Apache-2.0
"""DHCP servers, or relays before them, that offer an address late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, named, packets_of, waits_of
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow

LATE_NS = 3_000_000_000  # a server may ping an address for a second or two before it offers it


def late_offers(case: Case) -> list[ExchangeRow]:
    """Returns the Discovers that got their Offer late, the slowest of each client: a relay passes them on, which counts
    once."""
    slowest: dict[str | None, ExchangeRow] = {}
    for row in exchanges_of(case.transfers, "dhcp"):
        waited_ns = row["waited_ns"] or 0
        if row["type"] != "Discover" or row["code"] != "OFFER" or row["answered_frame"] is None or waited_ns < LATE_NS:
            continue
        if waited_ns > (slowest[row["name"]]["waited_ns"] or 0 if row["name"] in slowest else 0):
            slowest[row["name"]] = row
    return list(slowest.values())


@cause(
    code="late-lease",
    title="DHCP offers an address late",
    sentence="{clients} waited {time} for an address: {why}.",
    advice="Compare with the log of {server}: when did the Discovers arrive there? If late or not at all, look at the relay "
    "(`ip helper-address`) and at the switch port (portfast); if at once, at its pings before an Offer, its failover peer and "
    "its load.",
    shows="An Offer in the capture came 3 s or more after the first Discover of its client.",
    rivals={
        "dhcp-no-lease": "the client gets its Offer",
        "outage": "with one Discover, nothing of the client was lost before",
    },
    unknown="After several Discovers at the client, which of them the server answered: a switch port without portfast drops what "
    "comes in its first 30 s.",
)
def late_lease(case: Case) -> Matches:
    rows = late_offers(case)
    if not rows:
        return
    slowest, is_sure = max(rows, key=lambda row: row["waited_ns"] or 0), all(row["attempts"] == 1 for row in rows)
    server = named(sorted({str(row["server"]) for row in rows}), 1)
    time = show_duration(slowest["waited_ns"] or 0)
    yield Match(
        certainty="proven" if is_sure else "likely",
        place="server",
        waited_ns=union_ns(waits_of(rows)),
        members=len(rows),
        frames=packets_of(rows),
        packets=sum(row["attempts"] for row in rows),
        filter="dhcp.option.dhcp == 1 || dhcp.option.dhcp == 2",
        proof=f"the Offer came {time} after the first of {plural(slowest['attempts'], 'Discover')}",
        excluded={"dhcp-no-lease": "the client gets its Offer"}
        | ({"outage": "the only Discover got the Offer"} if is_sure else {}),
        undecided={} if is_sure else {"outage": f"a capture at {server}: whether the first Discovers arrive there"},
        clients=named([row["name"] or "?" for row in rows], 1),
        time=time if len(rows) == 1 else f"up to {time}",
        server=server,
        why=why_str(server, slowest, is_sure),
    )


def why_str(server: str, slowest: ExchangeRow, is_sure: bool) -> str:
    """Returns who was late: of several Discovers, the first may have been lost at a port that did not forward yet."""
    if is_sure:
        return f"the DHCP server {server}, or a relay before it, answered late"
    sent = plural(slowest["attempts"], "Discover")
    return (
        f"the Offer of {server} came after {sent}; the DHCP server or a relay probably answers late, or the switch port forwards "
        "late (portfast)"
    )
