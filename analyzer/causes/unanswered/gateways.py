# SPDX-License-Identifier: Apache-2.0
"""Gateways: one that answers no ARP request of a host, or whose address another router takes over, while hosts still send to the
MAC address of the one before."""

from __future__ import annotations

from collections import defaultdict
from ipaddress import ip_address
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.host_down import lan_of, shows
from wiretale.analyzer.causes.unanswered.silent_hosts import about, about_host, attempt_fields, silent_hosts
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import packets_of, waits_of
from wiretale.analyzer.findings.hosts.neighbors import FEW_HOSTS, NEIGHBORS_MAX, in_conflict, is_virtual, unanswered
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.causes.unanswered.silent_hosts import SilentHost
    from wiretale.analyzer.rows import AnnouncerRow, ExchangeRow, NeighborRow

ROWS_MAX = 10_000
TAKEN_OVER_NS = 10_000_000_000  # from the last advertisement of one master to the first of the next
ANNOUNCED_NS = 10_000_000_000  # after it, in which a master tells its MAC address (gratuitous ARP)
SYNS_MIN = 2
CARDS_APART = 8  # of the MAC addresses of one machine
EFFECTS = ("syn-unanswered", "echo-unanswered", "icmp-errors", "network-duplicates", "one-way")


class Move(NamedTuple):
    """A change of the master of a virtual router."""

    before: AnnouncerRow
    after: AnnouncerRow

    @property
    def at_ns(self) -> int:
        """When the next master spoke first."""
        return self.after["first_ns"] or 0


def moves_of(case: Case) -> dict[str, Move]:
    """Returns the last change of the master of each virtual address."""
    table = case.trace.announcers
    groups: dict[tuple[str, int | None, int], list[AnnouncerRow]] = defaultdict(list)
    for row in table.rows(0, ROWS_MAX) if len(table) else ():
        if row["kind"] == "vrrp" and row["address"] and row["first_ns"] is not None and row["last_ns"] is not None:
            groups[row["address"], row["number"], row["capture"]].append(row)
    moves: dict[str, Move] = {}
    for (address, *_), rows in groups.items():
        masters = sorted(rows, key=lambda row: row["first_ns"] or 0)
        for before, after in pairwise(masters):
            gap_ns = (after["first_ns"] or 0) - (before["last_ns"] or 0)
            if before["source"] != after["source"] and 0 <= gap_ns <= TAKEN_OVER_NS:
                moves[address] = Move(before, after)
    return moves


def is_announced(case: Case, address: str, move: Move) -> bool:
    """Returns whether the next master told the hosts its MAC address, or needs not: all masters have the virtual one."""
    claims = [row for row in case.trace.neighbors.rows(0, NEIGHBORS_MAX) if row["address"] == address]
    soon_ns = move.at_ns + ANNOUNCED_NS
    return any(
        is_virtual(row["mac"]) or ((row["first_ns"] or 0) <= soon_ns and (row["last_ns"] or 0) >= move.at_ns)
        for row in claims
    )


@cause(
    code="moved-address",
    title="An address moved, and hosts do not know",
    sentence="{address} moved to {after} (VRRP group {group}) without a gratuitous ARP: {count:connection} to it "
    "({syns:SYN}{time}) got no answer since. {who} probably still {sends} to the old master's MAC address.",
    advice="Let the new master announce the address again (keepalived `garp_master_refresh`, `vrrp_garp_lower_prio_repeat`), or "
    "give all masters the virtual MAC address (`use_vmac`); until then `ip neigh flush to {address}` on {client} helps.",
    shows="The master of a VRRP group changes. From then on, connections to its virtual address get no answer, though earlier "
    "ones did. In the 10 s after the change, the capture has no ARP packet of that address.",
    rivals={
        "host-down": "a master announces the address all the time",
        "filtered": "connections to it opened before the change",
        "two-masters": "one master followed the other",
    },
    unknown="The MAC address to which the hosts send: compare it with that of the new master.",
    explains=(*EFFECTS, "arp-unanswered"),
)
def moved_address(case: Case) -> Matches:
    moves = moves_of(case)
    for host in silent_hosts(case) if moves else ():
        move = moves.get(host.address)
        if move is None or host.syns < SYNS_MIN or not host.open_ports or is_announced(case, host.address, move):
            continue
        at_ns = move.at_ns - case.transfers.base_ns
        if min((span.start_ns for span in host.spans), default=0) >= at_ns:
            case.claimed.update(host.flows)
            yield moved_match(case, host, move)


def moved_match(case: Case, host: SilentHost, move: Move) -> Match:
    """Returns the match of a host whose address moved."""
    is_alone = len({host.facts.sources[flow] for flow in host.flows}) == 1
    polls = unanswered(case.transfers).get(host.address, [])
    effects = (
        about(case, host.flows, *EFFECTS),
        about_host(case, host.address, *EFFECTS),
        [each for each in case.findings("arp-unanswered") if polls and shows(each, polls)],
    )
    fields = attempt_fields(case, host, *EFFECTS) | {"findings": [each for group in effects for each in group]}
    fields["frames"] = [
        Cited(move.before["last_frame"], move.before["last_ns"], None, move.before["capture"]),
        Cited(move.after["first_frame"], move.after["first_ns"], None, move.after["capture"]),
        *fields.get("frames", ()),
    ]
    return Match(
        certainty="likely",
        place="device",
        proof=f"advertisements of {move.before['source']}, then of {move.after['source']}, and no ARP packet of {host.address}",
        excluded={"host-down": f"{move.after['source']} announces it"},
        undecided={"filtered": f"`ip neigh show {host.address}` on {host.client}: the MAC address of which master?"},
        address=host.address,
        after=str(move.after["source"]),
        group=str(move.after["number"]),
        count=host.failed,
        client=host.client,
        who="The client" if is_alone else "The clients",
        sends="sends" if is_alone else "send",
        syns=host.syns,
        time=host.time,
        **fields,
    )


def kept_from_answering(case: Case, target: str, rows: list[ExchangeRow]) -> list[SilentHost]:
    """Returns the host that alone asks for an address of its network, if all attempts that it leaves without an answer are of
    clients of other networks, and it sends nothing to any: it needs a router for these."""
    askers = {str(row["client"]) for row in rows}
    return [
        host
        for host in silent_hosts(case)
        if askers == {host.address}
        and lan_of(target) == lan_of(host.address)
        and all(lan_of(host.facts.sources[flow]) != lan_of(target) for flow in host.flows)
        and not is_routed(case, host.address)
    ]


def is_routed(case: Case, host: str) -> bool:
    """Returns whether a host sent packets to hosts of other networks: a router takes these."""
    sides = case.trace.directions
    ends = zip(*(sides.column(name) for name in ("source", "destination", "packets")), strict=True)
    targets = {target for source, target, packets in ends if source == host and packets}
    return any(lan_of(target) != lan_of(host) for target in targets if is_one_host(target))


def is_one_host(address: str) -> bool:
    """Returns whether an address is neither of a group nor of all hosts of a network."""
    return not ip_address(address).is_multicast and not address.endswith(".255")


@cause(
    code="arp-flux",
    title="Two adapters of one machine answer ARP",
    sentence="Two adapters, {macs}, answer ARP for {address}; they are {probably}of one machine, so that packets to it take now "
    "the one, now the other.",
    advice="Give the adapters networks of their own or a bond, or let each answer for its own address only (Linux: "
    "`net.ipv4.conf.all.arp_ignore=1`, `arp_announce=2`).",
    shows="Two MAC addresses of one maker that differ by eight at most answer one ARP request, and nothing to this address "
    "fails.",
    rivals={"duplicate-address": "the MAC addresses are neighbors, as those of one machine, and nothing fails"},
    unknown="Whether they are of one machine: the switch shows their ports.",
)
def arp_flux(case: Case) -> Matches:
    findings = case.findings("duplicate-address")
    for rows in in_conflict(case.transfers) if findings else ():
        address, macs = rows[0]["address"], sorted({row["mac"] for row in rows})
        first, last = (int(mac.replace(":", ""), 16) for mac in (macs[0], macs[-1]))
        if len(macs) == 2 and last - first <= CARDS_APART and not about_host(case, address, *EFFECTS):
            yield Match(
                certainty="likely",
                place="server",
                findings=[each for each in findings if cites(each, rows)],
                severity="warning",
                proof=f"MAC addresses that differ by {last - first}",
                undecided={"duplicate-address": "the switch: whether both MAC addresses are at ports of one machine"},
                address=address,
                macs=" and ".join(macs),
            )


def cites(finding: Numbered, rows: Sequence[NeighborRow]) -> bool:
    """Returns whether a finding cites a reply of this conflict."""
    frames = {(row["capture"], row["conflict_frame"]) for row in rows}
    return any((packet.capture, packet.frame) in frames for packet in finding.finding.frames)


@cause(
    code="no-gateway",
    title="The gateway of a host does not answer",
    sentence="{router}, probably the default gateway of {host}, answers no ARP request ({count}{time}), so that {host} cannot "
    "answer {connections} of clients of other networks.",
    advice="Compare the gateway in the settings of {host} with the router's address (`ip route`, `ipconfig`), then the router's "
    "cable and VLAN.",
    shows="A host's ARP requests for an address of its own network get no reply. The host sends nothing to other networks (24 "
    "bits), and leaves SYNs from there unanswered, but none from its neighbors.",
    rivals={
        "host-down": "the host that is silent asks for the router",
        "bad-member": "the networks of the clients separate what fails",
        "filtered": "the host asks for the router in order to answer",
    },
    unknown="Whether the address is the gateway: the host's settings show it.",
    explains=("arp-unanswered", *EFFECTS),
)
def no_gateway(case: Case) -> Matches:
    findings = case.findings("arp-unanswered")
    by_target = unanswered(case.transfers) if findings else {}
    for target, rows in by_target.items() if len(by_target) <= FEW_HOSTS else ():
        is_arp = all(row["kind"] == "arp" for row in rows)
        for host in kept_from_answering(case, target, rows) if is_arp else ():
            case.claimed.update(host.flows)
            waited, count = union_ns(waits_of(rows)), sum(row["attempts"] for row in rows)
            yield Match(
                certainty="likely",
                place="server",
                findings=[
                    *(each for each in findings if shows(each, rows)),
                    *about(case, host.flows, *EFFECTS),
                ],
                flows=host.flows,
                failed=host.failed,
                attempts=host.failed,
                waited_ns=host.waited_ns,
                frames=packets_of(rows),
                packets=count,
                filter=f"arp.dst.proto_ipv4 == {target} || ({host.filter})",
                proof=f"{plural(count, 'ARP request')} of {host.address} without a reply, and {plural(host.syns, 'SYN')} that it "
                "leaves unanswered",
                excluded={"host-down": f"{host.address} sends ARP requests"},
                undecided={"filtered": f"the routes of {host.address}: is {target} its gateway?"},
                router=target,
                host=host.address,
                count=plural(count, "request"),
                time=f" in {show_duration(waited)}" if waited else "",
                connections=plural(host.failed, "connection"),
            )
