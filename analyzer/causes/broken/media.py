# SPDX-License-Identifier: Apache-2.0
"""Calls whose media passes in one direction only."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.model import duration_of
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import DirectionRow, FlowRow

STREAMS_MAX, SIGNALS_MAX = 500, 2000
PACKETS_MIN = 250  # 5 s of a call; a ring tone before the answer is one-way, too
SIP_PORTS = (5060, 5061)


def sender_of(case: Case, flow: FlowRow) -> DirectionRow:
    """Returns the direction of a stream that has packets."""
    first, second = case.direction(flow["flow"], 0), case.direction(flow["flow"], 1)
    return first if first["packets"] else second


def signalling_hosts(case: Case) -> set[str]:
    """Returns the hosts whose SIP messages pass in both directions."""
    flows, hosts = case.trace.flows, set[str]()
    ports = zip(flows.column("source_port"), flows.column("destination_port"), strict=True)
    numbers = [flow for flow, pair in enumerate(ports) if pair[0] in SIP_PORTS or pair[1] in SIP_PORTS]
    for row in map(case.flow, numbers[:SIGNALS_MAX]):
        if not row["one_way"]:
            hosts.update((row["source"], row["destination"]))
    return hosts


def is_unicast(address: str) -> bool:
    """Returns whether an address is that of one host."""
    return not ipaddress.ip_address(address).is_multicast


@cause(
    code="one-way-media",
    title="One-way call",
    sentence="The call is {probably}one-way: {rtp:RTP packet} left{source} for {target}{private} in {time}, and {instead}.",
    advice="Compare the address in the SDP of each end with the one that its packets come from: use ICE or STUN, symmetric RTP "
    "at the session border controller, no SIP ALG; open the RTP ports in both directions.",
    shows="An RTP stream of at least 250 packets goes to a host that returns no RTP on any port. Meanwhile SIP messages of "
    "one of the two hosts pass in both directions. Proven if the other end's RTP comes to the same port from another address.",
    rivals={"one-direction": "SIP passes in both directions"},
    unknown="Whether the other end sends (hold, a muted announcement): its SDP, or a capture there, shows it.",
    explains=("one-way",),
)
def one_way_media(case: Case) -> Matches:
    alone = streams_alone(case)
    arriving = {(row["destination"], row["destination_port"]): (stream, row) for stream, row in alone}
    pairs = [(sides, arriving.get((sides[1]["source"], sides[1]["source_port"]))) for sides in alone]
    halves = {other[0]["flow"] for _, other in pairs if other is not None}
    for (stream, row), other in pairs:
        if other is not None:
            yield elsewhere_match(stream, row, *other)
        elif stream["flow"] not in halves:
            yield one_way_match(stream, row)


def streams_alone(case: Case) -> list[tuple[FlowRow, DirectionRow]]:
    """Returns the long streams of calls to one host from which no RTP comes, each with its direction."""
    numbers = case.transfers.flows_where("application", "rtp")[:STREAMS_MAX]
    streams = case.transfers.without_legs(map(case.flow, numbers))
    sent = [(stream, sender_of(case, stream)) for stream in streams]
    senders = {(row["source"], row["destination"]) for _, row in sent}
    senders |= {(row["destination"], row["source"]) for row in streams if not row["one_way"]}
    hosts = signalling_hosts(case) if any(row["one_way"] for row in streams) else set()

    def is_alone(row: DirectionRow) -> bool:
        is_call = is_unicast(row["destination"]) and bool(hosts & {row["source"], row["destination"]})
        return is_call and (row["destination"], row["source"]) not in senders and row["packets"] >= PACKETS_MIN

    return [(stream, row) for stream, row in sent if stream["one_way"] and is_alone(row)]


def elsewhere_match(stream: FlowRow, row: DirectionRow, other: FlowRow, arrived: DirectionRow) -> Match:
    """Returns the match of a stream to an address from which nothing comes, while the other end's comes from another one."""
    match = one_way_match(stream, row)
    source = arrived["source"]
    match.certainty, match.place, match.undecided = "proven", "client", {}
    match.flows.append((other["flow"], None))
    match.excluded = {"one-direction": f"the RTP of the other end arrives, from {source}"}
    match.proof = (
        f"{plural(arrived['packets'], 'packet')} came from {source} to the port that sends to {row['destination']}"
    )
    match.words["probably"] = match.words["source"] = ""
    match.words["instead"] = (
        f"those of the other end come from {source}: its SDP names an address that is not reached (NAT), so it hears nothing"
    )
    return match


def one_way_match(stream: FlowRow, row: DirectionRow) -> Match:
    """Returns the match of a stream that nothing answers."""
    is_private = ipaddress.ip_address(row["destination"]).is_private
    return Match(
        certainty="likely",
        place="path",
        flows=[stream["flow"]],
        failed=1,
        waited_ns=duration_of(row),
        frames=[Cited(stream["first_frame"], stream["first_ns"], stream["flow"], stream["first_capture"])],
        packets=row["packets"],
        filter=flow_filter(stream),
        proof=f"{plural(row['packets'], 'packet')} to one host, none of media from it",
        undecided={"one-direction": f"Capture at {row['destination']}: does it send RTP, and where to?"},
        rtp=row["packets"],
        source=f" {row['source']}",
        target=row["destination"],
        private=", a private address," if is_private and not ipaddress.ip_address(row["source"]).is_private else "",
        time=show_duration(duration_of(row)),
        instead="none came back here, although SIP passes in both directions",
    )
