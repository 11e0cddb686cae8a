# SPDX-License-Identifier: Apache-2.0
"""Calls whose media passes in one direction only, from the begin or from some moment on."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.model import duration_of
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import DirectionRow, ExchangeRow, FlowRow

STREAMS_MAX, SIGNALS_MAX = 500, 2000
PACKETS_MIN = 250  # 5 s of a call; a ring tone before the answer is one-way, too
SIP_PORTS = (5060, 5061)
ENDED_NS, ENDED_RATIO = 5_000_000_000, 20  # one direction alone, and to its longest pause before
WITHOUT_SIP_NS = 10_000_000_000  # without SIP in the capture, which would show a hold
CHANGE_NS = 3_000_000_000  # from a request that puts the call on hold, moves or ends it
TAKEN = "2"  # the first digit of a status of SIP
CHANGES = ("INVITE", "UPDATE", "REFER", "BYE")


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
    "one of the two hosts pass in both directions; if these have INVITEs, a call of theirs was taken (2xx), since tones and "
    "announcements before come from one end alone. Proven if the other end's RTP comes to the same port from another address.",
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

    invites = [row for row in case.exchanges("kind", "sip") if row["type"] == "INVITE"] if hosts else []

    def is_alone(row: DirectionRow) -> bool:
        ends = {row["source"], row["destination"]}
        is_call = is_unicast(row["destination"]) and bool(hosts & ends) and not is_before_answer(invites, ends)
        return is_call and (row["destination"], row["source"]) not in senders and row["packets"] >= PACKETS_MIN

    return [(stream, row) for stream, row in sent if stream["one_way"] and is_alone(row)]


def is_before_answer(invites: list[ExchangeRow], ends: set[str]) -> bool:
    """Returns whether nobody took the calls of these hosts: tones and announcements before come from one end alone."""
    codes = [row["code"] or "" for row in invites if ends & {row["client"], row["server"]}]
    return bool(codes) and not any(code.startswith(TAKEN) for code in codes)


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
    sentence="No more RTP came from {source} after the first {passed} of the call, while that of {other} went on for {alone}"
    "{end}. It {probably}stopped sending{hold}, or its packets are dropped before the capture point.",
    advice="Capture at {source}: if it goes on sending, look for what drops its packets from then on (a NAT entry, a media proxy "
    "that changes ports); else look at its log at that time.",
    shows="RTP of both ends passes, in one flow or in two, 250 packets or more of each, without comfort noise; then that of "
    "one end stays away for 5 s or more (10 s without SIP in the capture), 20 times its longest pause before, while the other's "
    "goes on. No other stream of that end goes on, none of another host comes to the same port, and no INVITE, UPDATE, REFER "
    "or BYE came within 3 s, which would put the call on hold, move or end it.",
    rivals={
        "one-way-media": "both directions passed before",
        "outage": "the other direction goes on",
        "one-direction": "the other direction came the same way before",
    },
    unknown="Whether that end stopped, or its packets are dropped before the capture point. Without SIP in the capture, also "
    "whether the call was put on hold.",
)
def media_stops(case: Case) -> Matches:
    requests = case.exchanges("kind", "sip")
    for ended, other in ended_first(case):
        ends = {ended["source"], ended["destination"]}
        signals = [row for row in requests if {row["client"], row["server"]} & ends]
        is_end = has_stopped(ended, other, bool(signals)) and not is_changed(ended, signals)
        if is_end and not is_taken_over(case, ended):
            yield stopped_match(case, ended, other, signals)


class Directions(NamedTuple):
    """The directions of RTP from one host to another: those of flows with both, and of flows with one."""

    of_two: list[DirectionRow]
    of_one: list[DirectionRow]


def ended_first(case: Case) -> Iterator[tuple[DirectionRow, DirectionRow]]:
    """Yields the direction of each call whose RTP ends first, on all streams of its sender to that host, and that of the other
    end: of the same flow, or of another between the same hosts."""
    by_hosts: dict[tuple[str, str], Directions] = defaultdict(lambda: Directions([], []))
    numbers = case.transfers.flows_where("application", "rtp")[:STREAMS_MAX]
    for stream in case.transfers.without_legs(map(case.flow, numbers)):
        rows = (
            [sender_of(case, stream)]
            if stream["one_way"]
            else [case.direction(stream["flow"], side) for side in (0, 1)]
        )
        for row in rows:
            of_two, of_one = by_hosts[row["source"], row["destination"]]
            (of_one if stream["one_way"] else of_two).append(row)
    for (source, target), sent in list(by_hosts.items()):
        back = by_hosts.get((target, source), Directions([], []))
        last = max((*sent.of_two, *sent.of_one), key=last_of)
        returning = [row for row in back.of_two if row["flow"] == last["flow"]] or back.of_one
        running = [row for row in returning if (row["first_ns"] or 0) < last_of(last) < last_of(row)]
        if running:
            yield last, max(running, key=last_of)


def last_of(row: DirectionRow) -> int:
    """Returns when the last packet of a direction came, ns."""
    return row["last_ns"] or 0


def has_stopped(ended: DirectionRow, other: DirectionRow, has_sip: bool) -> bool:
    """Returns whether the packets of one direction stay away while those of the other go on."""
    is_short = min(ended["packets"], other["packets"]) < PACKETS_MIN
    if ended["last_ns"] is None or is_short or ended["comfort_noise"]:
        return False
    pause = max(ended["idle_ns_max"] or 0, other["idle_ns_max"] or 0)
    alone_least = max(ENDED_NS if has_sip else WITHOUT_SIP_NS, ENDED_RATIO * pause)
    return is_unicast(ended["destination"]) and last_of(other) - last_of(ended) >= alone_least


def is_changed(ended: DirectionRow, signals: list[ExchangeRow]) -> bool:
    """Returns whether a request that changes or ends the call came when a direction ended."""
    return any(row["type"] in CHANGES and abs((row["asked_ns"] or 0) - last_of(ended)) <= CHANGE_NS for row in signals)


def is_taken_over(case: Case, ended: DirectionRow) -> bool:
    """Returns whether RTP of another host goes on to the same port: the call moved to another media server."""
    flows = case.transfers.flows_where("application", "rtp")[:STREAMS_MAX]
    rows = [case.direction(flow, side) for flow in flows for side in (0, 1)]
    target = ended["destination"], ended["destination_port"]
    return any(
        (row["destination"], row["destination_port"]) == target
        and row["source"] != ended["source"]
        and last_of(row) > last_of(ended)
        for row in rows
        if row["packets"]
    )


def stopped_match(case: Case, ended: DirectionRow, other: DirectionRow, signals: list[ExchangeRow]) -> Match:
    """Returns the match of an end whose RTP stops."""
    stream, pause = case.flow(ended["flow"]), show_duration(ended["idle_ns_max"] or 0)
    alone_ns = last_of(other) - last_of(ended)
    hung_up = any(row["type"] == "BYE" and abs((row["asked_ns"] or 0) - last_of(other)) <= CHANGE_NS for row in signals)
    return Match(
        certainty="likely" if signals else "possible",
        place="before",
        flows=list(dict.fromkeys((ended["flow"], other["flow"]))),
        failed=1,
        waited_ns=alone_ns,
        frames=[Cited(stream["first_frame"], stream["first_ns"], stream["flow"], stream["first_capture"])],
        packets=ended["packets"],
        filter=flow_filter(stream),
        proof=f"{plural(ended['packets'], 'packet')} without a pause above {pause}, then none",
        excluded={"one-way-media": "both directions passed before", "outage": "the other direction goes on"},
        undecided={"one-direction": f"Capture at {ended['source']}: does it go on sending, on another way?"},
        source=ended["source"],
        other=other["source"],
        passed=show_duration(duration_of(ended)),
        alone=show_duration(alone_ns),
        end=", until the call was hung up" if hung_up else "",
        hold="" if signals else ", or put the call on hold (no SIP is in the capture)",
    )
