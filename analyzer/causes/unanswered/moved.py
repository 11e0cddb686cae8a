# SPDX-License-Identifier: Apache-2.0
"""A virtual address that another router takes over, while hosts still send to the MAC address of the one before."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.host_down import shows
from wiretale.analyzer.causes.unanswered.silent_hosts import about, about_host, attempt_fields, silent_hosts
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.hosts.neighbors import NEIGHBORS_MAX, is_virtual, unanswered

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.unanswered.silent_hosts import SilentHost
    from wiretale.analyzer.rows import AnnouncerRow

ROWS_MAX = 10_000
TAKEN_OVER_NS = 10_000_000_000  # from the last advertisement of one master to the first of the next
ANNOUNCED_NS = 10_000_000_000  # after it, in which a master tells its MAC address (gratuitous ARP)
SYNS_MIN = 2
EFFECTS = ("syn-unanswered", "echo-unanswered", "icmp-errors", "one-way")


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
    sentence="{address} moved to {after} (VRRP group {group}), and no gratuitous ARP told the hosts: {count:connection} to it "
    "({syns:SYN}{time}) got no answer since; {who} probably still {sends} to the MAC address of the previous master.",
    advice="Let the new master announce the address again (keepalived `garp_master_refresh`, `vrrp_garp_lower_prio_repeat`), or "
    "give all masters the virtual MAC address (`use_vmac`); until then `ip neigh flush to {address}` on {client} helps.",
    shows="The master of a VRRP group changes, connections to its virtual address stay without an answer from then on that were "
    "answered before, and no ARP packet of the address is in the capture in the 10 s after the change.",
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
        who="the client" if is_alone else "the clients",
        sends="sends" if is_alone else "send",
        syns=host.syns,
        time=host.time,
        **fields,
    )
