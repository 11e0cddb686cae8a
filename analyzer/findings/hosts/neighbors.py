# SPDX-License-Identifier: Apache-2.0
"""Rules about ARP and neighbor discovery: hosts that do not answer, and addresses that two machines have.

A switch sends a reply to the asker alone, so that at another port a request never has an answer. Two things show that there was
none: the asker repeats its request, and the address that it asks for sends nothing at all; or its replies to that asker were
captured before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.evidence import RESPONSE, SHOWN, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, named, packets_of, waits_of
from wiretale.analyzer.findings.judged import listed
from wiretale.analyzer.findings.model import Match, Matches, finding, seconds
from wiretale.analyzer.units import show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import ExchangeRow, NeighborRow

CHAPTER = "Hosts"
KINDS = ("arp", "nd")
REPEATS_MIN = 3  # requests without a reply: Linux and Windows ask three times
REPEATS_KNOWN = 2  # of a host whose replies to this asker are in the capture
SWEEP_HOSTS = 25  # without a reply to one host: it looks for hosts
FEW_HOSTS = 3  # without a reply: above, the asker may be a router that a scan passes
PROXY_ADDRESSES = 4  # that one MAC address answers for: proxy ARP, or a router's interface
NEIGHBORS_MAX = 65_536
#: MAC addresses that move between machines on purpose: VRRP and CARP (RFC 9568 section 7.3), HSRP, GLBP, Microsoft NLB
VIRTUAL = ("00:00:5e:00:01:", "00:00:5e:00:02:", "00:00:0c:07:ac:", "00:00:0c:9f:f", "00:05:73:a0:0", "00:07:b4:00:")
NLB = ("02:bf:", "03:bf:", "01:00:5e:")


def senders_of(transfers: Transfers) -> set[str]:
    """Returns the addresses that sent something: packets of flows, ARP or neighbor discovery."""
    sources, packets = transfers.trace.directions.column("source"), transfers.trace.directions.column("packets")
    senders = {source for source, count in zip(sources, packets, strict=True) if count}
    return senders.union(row["address"] for row in transfers.trace.neighbors.rows(0, NEIGHBORS_MAX))


def without_sweeps(rows: Sequence[ExchangeRow]) -> list[ExchangeRow]:
    """Returns the exchanges of hosts that got no reply from few addresses."""
    targets: dict[str | None, set[str | None]] = defaultdict(set)
    for row in rows:
        targets[row["client"]].add(row["server"])
    return [row for row in rows if len(targets[row["client"]]) < SWEEP_HOSTS]


def unanswered(transfers: Transfers) -> dict[str, list[ExchangeRow]]:
    """Returns the exchanges without a reply that the capture would show, by the address that was asked for."""
    rows = exchanges_of(transfers, *KINDS)
    silent = [row for row in rows if row["outcome"] == "unanswered" and row["attempts"] >= REPEATS_KNOWN]
    if not silent:
        return {}
    answered = {(row["client"], row["server"]) for row in rows if row["outcome"] == "answered"}
    senders = senders_of(transfers)
    by_target: dict[str, list[ExchangeRow]] = defaultdict(list)
    for row in without_sweeps(silent):
        seen = (row["client"], row["server"]) in answered
        absent = row["server"] not in senders and row["attempts"] >= REPEATS_MIN
        if seen or absent:
            by_target[str(row["server"])].append(row)
    return by_target


def is_shown(transfers: Transfers, rows: Sequence[ExchangeRow]) -> bool:
    """Returns whether replies to one of the askers are in the capture."""
    return any(row["client"] in transfers.hidden.answered_hosts for row in rows)


@finding(
    code="arp-unanswered",
    title="ARP requests without a reply",
    severity="warning if replies to the host that asks are in the capture, and few addresses did not reply to it; else info",
    unit="seconds",
    computed="ARP requests (RFC 826) and neighbor solicitations (RFC 4861) without a reply (exchanges of kind arp and nd, "
    "outcome unanswered). The host asked at least three times, and nothing of the address that it asked for is in the "
    "capture, or a reply to it came at another time. Probes and announcements (RFC 5227) expect no reply and do not count, "
    "nor do hosts that got no reply from 25 addresses or more. The cost is the time in which a host waited. The first 50,000 "
    "exchanges are examined.",
    unknown="Whether the host is off, in another VLAN, or has another address; replies at another port of the switch.",
    sentence="{target} answered none of {count:{kind}} from {askers}[ in {waited}]{before}.",
    advice="Check that {target} is up and in this subnet: its VLAN, its netmask, and `ip neigh show {target}` of {asker}.",
)
def arp_unanswered(transfers: Transfers) -> Matches:
    by_target = unanswered(transfers)
    senders = senders_of(transfers) if by_target else set()
    longest = sorted(by_target.items(), key=lambda entry: -sum(row["attempts"] for row in entry[1]))
    for target, rows in longest[:SHOWN]:
        waited = union_ns(waits_of(rows))
        few = len(by_target) <= FEW_HOSTS
        packets = packets_of(rows)
        yield Match(
            "warning" if few and is_shown(transfers, rows) else "info",
            cost=None if waited is None else seconds(waited),
            waited_ns=waited,
            failed=len(rows),
            packets=sum(row["attempts"] for row in rows),
            frames=packets,
            cited=packets,
            filter=f"arp.dst.proto_ipv4 == {target}"
            if rows[0]["kind"] == "arp"
            else f"icmpv6.nd.ns.target_address == {target}",
            target=target,
            kind="ARP request" if rows[0]["kind"] == "arp" else "neighbor solicitation",
            before=", but it answered at other times" if target in senders else "",
            count=sum(row["attempts"] for row in rows),
            askers=named([str(row["client"]) for row in rows]),
            asker=str(rows[0]["client"]),
            waited=show_duration(waited) if waited else "",
        )


def is_virtual(mac: str) -> bool:
    """Returns whether a MAC address is one that several machines have in turn, or together."""
    return mac.startswith((*VIRTUAL, *NLB))


def in_conflict(transfers: Transfers) -> Iterator[list[NeighborRow]]:
    """Yields for each address that two MAC addresses or more answered for at once its rows of neighbors."""
    rows = transfers.trace.neighbors.rows(0, NEIGHBORS_MAX) if transfers.trace.neighbors.total("conflicts") else []
    addresses: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row["answers"]:
            addresses[row["mac"]].add(row["address"])
    by_address: dict[tuple[str, int | None], list[NeighborRow]] = defaultdict(list)
    for row in rows:
        if row["conflicts"] and not is_virtual(row["mac"]) and len(addresses[row["mac"]]) < PROXY_ADDRESSES:
            by_address[row["address"], row["vlan"]].append(row)
    yield from (members for members in by_address.values() if len({row["mac"] for row in members}) > 1)


@finding(
    code="duplicate-address",
    title="Two machines have one address",
    computed="Two MAC addresses answered one ARP request, or one neighbor solicitation, within 1 s (neighbors.conflicts). MAC "
    "addresses of VRRP, CARP, HSRP, GLBP and NLB do not count, nor does one that answers for four addresses or more (proxy ARP). "
    "One that answers after another is no conflict: a standby machine or adapter took over.",
    unknown="Whether both MAC addresses are of one machine with two adapters in this network, which answers at both.",
    sentence="{machines} machines claim {address}: {macs} answer {kind} for it, and {count:request} got more than one reply.",
    advice="Find both at the switch (show mac address-table) and give one of them another address; `arping -D -I eth0 {address}` "
    "tests it (RFC 5227).",
)
def duplicate_address(transfers: Transfers) -> Matches:
    for rows in in_conflict(transfers):
        address, six = rows[0]["address"], ":" in rows[0]["address"]
        field = "icmpv6.nd.na.target_address" if six else "arp.src.proto_ipv4"
        macs = list(dict.fromkeys(row["mac"] for row in rows))
        packets = [
            Cited(row["conflict_frame"], row["conflict_ns"], None, row["capture"], RESPONSE)
            for row in sorted(rows, key=lambda row: row["conflict_frame"] or 0)
        ]
        yield Match(
            packets=sum(row["conflicts"] for row in rows),
            frames=packets,
            cited=packets,
            filter=f"{field} == {address}",
            address=address,
            machines="Two" if len(macs) == 2 else f"{len(macs):,}",
            macs=listed(macs, "and"),
            kind="neighbor solicitations" if six else "ARP",
            count=max(row["conflicts"] for row in rows),
        )
