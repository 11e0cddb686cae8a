# SPDX-License-Identifier: Apache-2.0
"""DHCP servers, or relays before them, that offer an address late, addresses that clients decline or find in use, and servers
that refuse what another one was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, named, packets_of, waits_of
from wiretale.analyzer.findings.hosts.dhcp import mac_of
from wiretale.analyzer.findings.hosts.neighbors import NEIGHBORS_MAX
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow, NeighborRow

FREE_ADVICE = (
    "Find the host that has the address (`arping`, `show mac address-table`), and take fixed addresses out of the range of "
    "{server}."
)
PROXY_ADVICE = (
    "Find {mac} (`show mac address-table`): it answers ARP for addresses that are not its own (proxy ARP, or a switch that "
    "tracks devices by probes)."
)
SEEN_NS = 10_000_000_000  # before a client declines an address: who has it then
RESTARTS_MIN, RESTART_NS = 2, 35_000_000_000  # Discovers that follow a NAK of another server within this time
FOREIGN_NAK = "FOREIGN NAK"
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


@cause(
    code="dhcp-declined",
    title="A client declines the addresses of DHCP",
    sentence="{client} declines {addresses} that {server} gave it, as already in use{answering}, {effect}.",
    advice="{advice}",
    shows="A client sends DHCPDECLINE (RFC 2131 section 4.4.4). ARP at that time shows who has the address. It is a "
    "note if the client keeps an address afterwards.",
    rivals={
        "dhcp-no-lease": "the server gives an address",
        "duplicate-address": "the client asks before it uses the address",
    },
    unknown="Without ARP of that host in the capture, who has the address.",
)
def dhcp_declined(case: Case) -> Matches:
    by_client: dict[str, list[ExchangeRow]] = {}
    confirmed: dict[str, int] = {}
    for number, row in enumerate(exchanges_of(case.transfers, "dhcp")):
        if row["type"] == "Decline":
            by_client.setdefault(mac_of(row), []).append(row)
            confirmed[mac_of(row)] = -1
        elif row["code"] == "ACK":
            confirmed[mac_of(row)] = number
    for client, rows in by_client.items():
        yield declined_match(case, client, rows, keeps=confirmed.get(client, -1) >= 0)


def declined_match(case: Case, client: str, rows: list[ExchangeRow], keeps: bool) -> Match:
    """Returns the match of a client that declined addresses; `keeps`: the last one it kept."""
    addresses = sorted({row["client"] or "?" for row in rows})
    claims = case.trace.neighbors.rows(0, NEIGHBORS_MAX)
    macs = sorted({row["mac"] for row in claims if row["mac"] != client and has_then(row, addresses, rows)})
    servers = sorted({row["server"] for row in rows if row["server"]})
    is_one = len(addresses) == 1
    costs: dict[str, Any] = (
        {"severity": "info"} if keeps else {"failed": 1, "attempts": 1, "waited_ns": lasting_ns(rows)}
    )
    return Match(
        certainty="proven",
        place="server",
        frames=packets_of(rows),
        packets=len(rows),
        filter="dhcp.option.dhcp == 4",
        proof=plural(len(rows), "Decline"),
        excluded={"dhcp-no-lease": "the server gives an address"},
        client=client,
        addresses=addresses[0] if is_one else f"each of {len(addresses):,} addresses",
        server=named(servers, 1) or "a DHCP server",
        answering=f" (ARP shows {'it' if is_one else 'them'} at {named(macs, 1)})" if macs else "",
        effect="and keeps another one" if keeps else "so it has none",
        advice=advice_of(servers, [] if is_one else macs),
        **costs,
    )


def advice_of(servers: Sequence[str], macs: Sequence[str]) -> str:
    """Returns what to do; `macs`: who answers for several addresses."""
    if len(macs) == 1:
        return PROXY_ADVICE.format(mac=macs[0])
    return FREE_ADVICE.format(server=named(servers, 1) or "the DHCP server")


def has_then(claim: NeighborRow, addresses: Sequence[str], rows: Sequence[ExchangeRow]) -> bool:
    """Returns whether a MAC address claims one of these addresses when a client declines them."""
    times = [row["asked_ns"] or 0 for row in rows]
    is_then = (claim["first_ns"] or 0) <= max(times) and (claim["last_ns"] or 0) >= min(times) - SEEN_NS
    return claim["address"] in addresses and is_then


def lasting_ns(rows: list[ExchangeRow]) -> int:
    """Returns the time from the first to the last."""
    times = [row["asked_ns"] or 0 for row in rows]
    return max(times) - min(times)


def restarts_of(rows: Sequence[ExchangeRow]) -> list[tuple[ExchangeRow, int]]:
    """Returns the Requests of a client that another server refused than the one that they name, and after which it
    soon began anew,
    each with the time in which it did."""
    begins = sorted(row["asked_ns"] or 0 for row in rows if row["type"] == "Discover")
    naks = [(row, row["answered_ns"] or 0) for row in rows if row["code"] == FOREIGN_NAK]
    later = [(row, min((ns - at for ns in begins if ns > at), default=RESTART_NS + 1)) for row, at in naks]
    return [(row, took_ns) for row, took_ns in later if took_ns <= RESTART_NS]


@cause(
    code="foreign-nak",
    title="A second DHCP server refuses what another one offered",
    sentence="{client} begins anew again and again: the DHCP server {server} answers its Requests to {addressee} with a NAK "
    "({count} times in {time}){confirmed}.",
    advice="Find the port of {server} (`show mac address-table`): take it off this network, or let it leave Requests alone that "
    "name another server (ISC: `not authoritative`; RFC 2131 section 4.3.2); DHCP snooping on the switches keeps it away. An "
    "update may make the client ignore such NAKs, as most do.",
    shows="A Request names a server (option 54), another server answers it with a NAK, and the client sends a Discover within "
    "35 s, at least twice. Most clients ignore such a NAK.",
    rivals={
        "dhcp-no-lease": "the server that the Request names does not refuse it",
        "second-dhcp": "the second server gives no address",
    },
    unknown="Why the second server answers: it may have no free address, or think that the client is in its network.",
)
def foreign_nak(case: Case) -> Matches:
    by_client: dict[str, list[ExchangeRow]] = {}
    for row in exchanges_of(case.transfers, "dhcp"):
        by_client.setdefault(mac_of(row), []).append(row)
    for rows in by_client.values():
        restarts = restarts_of(rows)
        if len(restarts) >= RESTARTS_MIN:
            yield nak_match(rows, [row for row, _ in restarts], restarts[-1][1])


def nak_match(rows: Sequence[ExchangeRow], refused: Sequence[ExchangeRow], last_ns: int) -> Match:
    """Returns the match of a client whose Requests to one server another one refuses; `last_ns`: from the last NAK on."""
    requests = [row for row in rows if row["type"] == "Request"]
    granted = granted_of(requests, refused)
    strangers = sorted({str(row["server"]) for row in refused})
    addressees = sorted({str(row["server"]) for row in granted or offered_to(rows)} - set(strangers))
    lasted = (refused[-1]["answered_ns"] or 0) + last_ns - (refused[0]["asked_ns"] or 0)
    return Match(
        certainty="proven",
        place="server",
        failed=len(refused),
        attempts=len({row["asked_frame"] for row in requests}),
        waited_ns=lasted,
        frames=packets_of(refused),
        packets=len(refused),
        filter="dhcp.option.dhcp == 3 || dhcp.option.dhcp == 6",
        proof=f"{plural(len(refused), 'NAK')} to Requests that name another server, a new Discover after each",
        excluded={"dhcp-no-lease": "the server that the Request names does not refuse it"},
        client=max((row["name"] or "?" for row in rows), key=len),
        server=named(strangers, 1),
        addressee=named(addressees, 1) or "another server",
        count=f"{len(refused):,}",
        time=show_duration(lasted),
        confirmed=f", although {named(addressees, 1)} confirms the address" if granted else "",
    )


def granted_of(requests: Sequence[ExchangeRow], refused: Sequence[ExchangeRow]) -> list[ExchangeRow]:
    """Returns the ACKs to the Requests that another server refused."""
    frames = {row["asked_frame"] for row in refused}
    return [row for row in requests if row["code"] == "ACK" and row["asked_frame"] in frames]


def offered_to(rows: Sequence[ExchangeRow]) -> list[ExchangeRow]:
    """Returns the Discovers that got an Offer in the capture."""
    return [row for row in rows if row["code"] == "OFFER" and row["server"]]


@cause(
    code="address-in-use",
    title="An IPv6 address is in use already",
    sentence="{client} cannot use the IPv6 address {address}: {holder} has it already, and says so in answer to {count} of "
    "duplicate address detection.",
    advice="Find {holder} (`show mac address-table`, `ip -6 neigh`) and give one of the two another address; on {client}, "
    "`ip -6 addr show dadfailed` shows it. Clones of one virtual machine have the same interface identifier: renew it.",
    shows="A host asks from the unspecified address for an address that it is about to take (RFC 4862 section 5.4), and within "
    "1 s another MAC address advertises that address to all nodes.",
    rivals={
        "duplicate-address": "the host asks before it uses the address",
        "dhcp-declined": "the host says nothing to a DHCP server",
    },
    unknown="Which of the two should have the address, and whether the host has another one.",
)
def address_in_use(case: Case) -> Matches:
    groups: dict[tuple[str, str, str], list[ExchangeRow]] = {}
    for row in case.exchanges("kind", "dad"):
        groups.setdefault((row["name"] or "?", row["server"] or "?", row["code"] or "?"), []).append(row)
    for (client, address, holder), rows in groups.items():
        yield Match(
            certainty="proven",
            place="server",
            failed=1,
            attempts=1,
            frames=packets_of(rows),
            packets=len(rows),
            filter=f"icmpv6.nd.ns.target_address == {address} || icmpv6.nd.na.target_address == {address}",
            proof=f"{plural(len(rows), 'advertisement')} of {holder} within 1 s of a solicitation from ::",
            excluded={"duplicate-address": "the host asks before it uses the address"},
            client=client,
            address=address,
            holder=holder,
            count=plural(len(rows), "solicitation"),
        )
