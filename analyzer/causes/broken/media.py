# SPDX-License-Identifier: Apache-2.0
"""Calls whose media passes in one direction only, from the begin or from some moment on."""

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
ENDED_NS, ENDED_RATIO = 10_000_000_000, 20  # one direction alone, and to its longest pause before
HOLD_NS = 3_000_000_000  # from a further INVITE, which puts the call on hold or moves it


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


@cause(
    code="media-stops",
    title="One end of a call falls silent",
    sentence="No more RTP came from {source} after the first {passed} of the call, while {other} went on for {alone}: "
    "{source} {probably}stopped sending, and nobody hears it.",
    advice="Capture at {source}: if it goes on sending, look for what drops its packets from then on (a NAT entry, a media proxy "
    "that changes ports); else look at its log at that time.",
    shows="RTP of both ends passes in one flow, 250 packets or more of each; then that of one end stays away for 10 s or more, "
    "20 times its longest pause before, while the other's goes on. No INVITE came within 3 s, which would put the call on hold.",
    rivals={
        "one-way-media": "both directions passed before",
        "outage": "the other direction goes on",
        "one-direction": "the other direction came the same way before",
    },
    unknown="Whether that end stopped, or its packets are dropped before the capture point.",
)
def media_stops(case: Case) -> Matches:
    numbers = case.transfers.flows_where("application", "rtp")[:STREAMS_MAX]
    for stream in case.transfers.without_legs(map(case.flow, numbers)):
        sides = [case.direction(stream["flow"], side) for side in (0, 1)]
        ended, other = sorted(sides, key=lambda row: row["last_ns"] or 0)
        if stream["one_way"] or not has_stopped(ended, other) or is_put_on_hold(case, ended):
            continue
        pause = show_duration(ended["idle_ns_max"] or 0)
        alone_ns = (other["last_ns"] or 0) - (ended["last_ns"] or 0)
        yield Match(
            certainty="likely",
            place="before",
            flows=[stream["flow"]],
            failed=1,
            waited_ns=alone_ns,
            frames=[Cited(stream["first_frame"], stream["first_ns"], stream["flow"], stream["first_capture"])],
            packets=ended["packets"],
            filter=flow_filter(stream),
            proof=f"{plural(ended['packets'], 'packet')} without a pause above {pause}, then none",
            excluded={"one-way-media": "both directions passed before", "outage": "the other direction goes on"},
            undecided={"one-direction": f"Capture at {ended['source']}: does it go on sending, on another way?"},
            source=ended["source"],
            other=f"that of {other['source']}",
            passed=show_duration(duration_of(ended)),
            alone=show_duration(alone_ns),
        )


def has_stopped(ended: DirectionRow, other: DirectionRow) -> bool:
    """Returns whether the packets of one direction stay away while those of the other go on."""
    first, last, ends = ended["first_ns"], ended["last_ns"], other["last_ns"]
    if first is None or last is None or ends is None or min(ended["packets"], other["packets"]) < PACKETS_MIN:
        return False
    pause = max(ended["idle_ns_max"] or 0, other["idle_ns_max"] or 0)
    return is_unicast(ended["destination"]) and ends - last >= max(ENDED_NS, ENDED_RATIO * pause)


def is_put_on_hold(case: Case, ended: DirectionRow) -> bool:
    """Returns whether an INVITE came when a direction ended."""
    last, ends = ended["last_ns"] or 0, {ended["source"], ended["destination"]}
    return any(
        row["type"] == "INVITE"
        and {row["client"], row["server"]} & ends
        and abs((row["asked_ns"] or 0) - last) <= HOLD_NS
        for row in case.exchanges("kind", "sip")
    )
