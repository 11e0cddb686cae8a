# SPDX-License-Identifier: Apache-2.0
"""Packets above a size that vanish: path MTU black holes, as sender, middle and receiver see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import server_str
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.connection import answered_later, full_size
from wiretale.analyzer.findings.evidence import SHOWN, Cited
from wiretale.analyzer.findings.model import duration_of, endpoint_str, flow_str
from wiretale.analyzer.findings.transfers import rows_of_kind
from wiretale.analyzer.units import plural, show_bytes, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.rows import DirectionRow

EFFECTS = (
    *("retransmission-unlocated", "timeout-stalls", "retransmission-cost", "lost-downstream", "suspected-timeout"),
    *("window-full", "request-unanswered", "reset", "keep-alive-unanswered", "loss-pattern", "recovery-limited"),
    *("icmp-errors", "path-mtu", "never-arrived", "lost-upstream", "loss-limited-window"),
)
TIMESTAMPS, HEADERS = 12, {4: 40, 6: 60}  # bytes of IP and TCP, and of its option
PING_HEADERS = {4: 28, 6: 48}  # bytes of IP and ICMP
USUAL_MTU = 1500
EMPTY_MIN_NS = 3_000_000_000  # for which a connection that was opened stayed empty
EMPTY_FLOWS_MAX = 200
ICMP_MAX, GAPS_MAX = 200, 200
CHECKSUMS_MIN = 3  # packets with a wrong checksum: the receiver has them, and ignores them
ALONE_MIN, ALONE_SHARE = 5, 1.2  # RTOs; of their segments, what else may have passed
LARGE_MIN, GAP_MIN_NS = 1200, 1_000_000_000  # bytes of a segment; of the life of a flow with a hole


def packet_bytes(case: Case, row: DirectionRow, payload: int) -> int:
    """Returns the size of the IP packet of a segment."""
    return payload + HEADERS[case.flow(row["flow"])["ip_version"]] + (TIMESTAMPS if row["timestamps"] else 0)


def ping_str(case: Case, flow: int, packet: int = USUAL_MTU) -> str:
    """Returns the payload of a ping whose IP packet has that size."""
    return str(packet - PING_HEADERS[case.flow(flow)["ip_version"]])


def told_by(case: Case, flow: int) -> tuple[str, int] | None:
    """Returns router and MTU of an ICMP error about a flow that said that packets are too big."""
    if not case.flow(flow)["icmp_errors"]:
        return None
    events = rows_of_kind(case.transfers, "icmp_error", ICMP_MAX)
    return next(
        ((event["router"] or "a router", event["mtu"]) for event in events if event["flow"] == flow and event["mtu"]),
        None,
    )


@cause(
    code="mtu-black-hole",
    title="Packets above a certain size vanish (path MTU)",
    sentence="{what}",
    advice="Let ICMP 'fragmentation needed' and IPv6 'packet too big' pass, or clamp the MSS at the tunnel or router; "
    "`net.ipv4.tcp_mtu_probing=1` helps the sender (RFC 4821). `ping -M do -s {ping} {host}` finds the size that passes.",
    shows="At the sender: segments of one size are sent at least three times in two timeouts, none of that size was ever "
    "acknowledged, and smaller packets pass, also after it. At the receiver: SACK shows a hole of full segments that nothing "
    "fills. If a connection opens and stays empty for 3 s, as all others to its server do, that is only a possibility.",
    rivals={
        "random-loss": "the size separates what is lost from what passes",
        "hung-server": "the hole shows that the sender sent data",
        "fragments-dropped": "TCP forbids fragments (DF)",
        "peer-gone": "small packets of the other end go on",
    },
    unknown="The hop with the small MTU. At the receiver, whether the sender repeats the data.",
    explains=EFFECTS,
)
def mtu_black_hole(case: Case) -> Matches:
    for finding in case.findings("path-mtu-black-hole"):
        if (direction_of(case, finding)["checksums_ignored"] or 0) < CHECKSUMS_MIN:
            yield at_sender(case, finding)
    for finding in case.findings("never-arrived"):
        match = at_receiver(case, finding)
        if match:
            yield match
    explained = case.flows_of()
    for number, _ in case.transfers.counts["gaps"][:GAPS_MAX]:
        flow, direction = divmod(number, 2)
        if flow not in explained and is_sent_unseen(case, flow, direction):
            yield by_sequence(case, flow, direction)
    yield from opened_and_empty(case)


def is_sent_unseen(case: Case, flow: int, direction: int) -> bool:
    """Returns whether an end acknowledges with a sequence number above data that never came, and nothing large ever did."""
    row, flow_row = case.direction(flow, direction), case.flow(flow)
    return (
        (row["gap_bytes"] or 0) >= LARGE_MIN
        and (row["segment_max"] or 0) < LARGE_MIN
        and not row["retransmissions"]
        and not flow_row["one_way"]
        and (duration_of(flow_row) or 0) >= GAP_MIN_NS
    )


def by_sequence(case: Case, flow: int, direction: int) -> Match:
    """Returns the match of an end whose sequence numbers show data that never arrived."""
    row, waited_ns = case.direction(flow, direction), duration_of(case.flow(flow))
    return Match(
        certainty="likely",
        place="before",
        flows=[(flow, direction)],
        failed=1,
        waited_ns=waited_ns,
        bytes=row["gap_bytes"],
        filter=flow_filter(case.flow(flow)),
        proof="its later ACKs have a sequence number above the data that is missing",
        excluded={"hung-server": "its sequence number shows that it sent data"},
        undecided={"random-loss": "Capture at the sender: does it repeat full segments, and does ICMP come back?"},
        what=f"The data of {endpoint_str(row['source'], row['source_port'])} probably vanishes before the capture point: its "
        f"sequence numbers show {show_bytes(row['gap_bytes'])} that never arrived in {show_duration(waited_ns)}, while its small "
        f"packets do. The path MTU toward {row['destination']} is probably smaller than its packets.",
        ping=ping_str(case, flow),
        host=row["destination"],
    )


def direction_of(case: Case, finding: Numbered) -> DirectionRow:
    """Returns the direction that a finding is about."""
    flow, direction = finding.finding.flows[0]
    return case.direction(flow, direction or 0)


def do_small_pass(case: Case, row: DirectionRow) -> bool:
    """Returns whether the other end acknowledged or sent anything after large segments were first sent."""
    back = case.direction(row["flow"], 1 - row["direction"])
    silent_ns = (row["last_ns"] or 0) - (back["last_ns"] or 0)
    return answered_later(case.transfers, row) or silent_ns < (row["rto_idle_ns"] or 0)


def at_sender(case: Case, finding: Numbered) -> Match:
    """Returns the match of a sender that repeats large segments without success."""
    row = direction_of(case, finding)
    size, icmp_error = packet_bytes(case, row, full_size(row)), told_by(case, row["flow"])
    passed = row["acked_segment_max"] or 0
    smaller = (
        f"smaller ones of up to {packet_bytes(case, row, passed):,} bytes"
        if passed
        else "the small ones of the handshake"
    )
    times, waited = plural((row["retransmissions"] or 0) + 1, "time"), show_duration(row["rto_idle_ns"])
    icmp = (
        f"ICMP of {icmp_error[0]} says that the MTU is {icmp_error[1]:,}, and the sender ignores it"
        if icmp_error
        else "no ICMP error came"
    )
    excluded, undecided = {"hung-server": "the data was not acknowledged"}, {}
    if icmp_error or do_small_pass(case, row):
        excluded["peer-gone"] = icmp if icmp_error else "small packets pass"
    else:
        undecided["peer-gone"] = f"Ping {row['destination']} with small and with large packets."
    return Match(
        certainty="likely" if undecided else "proven",
        place="after",
        findings=[finding],
        flows=[(row["flow"], row["direction"])],
        failed=1,
        waited_ns=row["rto_idle_ns"] or None,
        bytes=row["unacked_bytes"],
        filter=finding.finding.filter,
        proof=f"no segment of that size was ever acknowledged; {icmp}",
        excluded=excluded,
        undecided=undecided,
        what=f"Packets of {size:,} bytes {'probably ' if undecided else ''}vanish after the capture point: {flow_str(row)} sent "
        f"them {times} in {waited} without an ACK, while {smaller} passed. {icmp[0].upper()}{icmp[1:]}. The path "
        f"MTU is {'probably ' if undecided else ''}smaller, and the transfer hangs.",
        ping=ping_str(case, row["flow"], icmp_error[1] if icmp_error else size),
        host=row["destination"],
    )


def at_receiver(case: Case, finding: Numbered) -> Match | None:
    """Returns the match of full segments that a receiver misses; None if those that it misses are others."""
    row = direction_of(case, finding)
    size, missing = row["wire_mss"] or 0, row["missing_bytes"] or 0
    if size < LARGE_MIN or missing % size or (row["segment_max"] or 0) >= size:
        return None
    segments, largest = missing // size, row["segment_max"] or 0
    return Match(
        certainty="likely",
        place="before",
        findings=[finding],
        flows=[(row["flow"], row["direction"])],
        failed=1,
        waited_ns=row["missing_ns"],
        bytes=missing,
        proof=f"the largest segment that arrived has {largest:,} bytes of payload",
        excluded={"hung-server": "the gap shows that data was sent"},
        undecided={"random-loss": "Capture at the sender: does it repeat the full segments, and does ICMP come back?"},
        what=f"Full-size packets of {endpoint_str(row['source'], row['source_port'])} probably never reach the capture point: "
        f"the receiver reports a gap of {plural(segments, 'segment')} of {size:,} bytes by SACK, which nothing filled for "
        f"{show_duration(row['missing_ns'])}, while smaller segments arrive. The path MTU toward it is probably smaller.",
        ping=ping_str(case, row["flow"], packet_bytes(case, row, size)),
        host=row["destination"],
    )


def sent_alone(case: Case, row: DirectionRow) -> int:
    """Returns how many single segments got through that a timer sent, if nothing else did of a sender whose packets are larger in
    the capture; 0 otherwise."""
    size, timeouts = row["wire_mss"] or 0, row["timeouts"] or 0
    passed = (row["unique_bytes"] or 0) - (row["unacked_bytes"] or 0)
    is_merged = size >= LARGE_MIN and (row["segment_max"] or 0) >= 2 * size
    return timeouts if is_merged and passed <= ALONE_SHARE * timeouts * size else 0


@cause(
    code="offload-dropped",
    title="Only single segments pass (offload)",
    sentence="Only single segments pass: {name} hands over packets of up to {size:byte} of payload (TSO, GSO), none "
    "acknowledged, while {count} of {mss:byte} that a timer repeated got through. A forwarder or driver after the capture point "
    "probably drops what is larger than one segment: {waited} went into timers.",
    advice="Turn TSO and GSO off on {host} (`ethtool -K IF tso off gso off`), or GRO and LRO on the machine that forwards, and "
    "look at the drop counters of its driver.",
    shows="A direction whose packets carry several segments (offload) advances by one segment for each RTO, five times or more, "
    "and by nothing else (20% more at most).",
    rivals={
        "random-loss": "the size separates what passes from what is lost",
        "tail-loss": "no packet of several segments ever arrived",
        "mtu-black-hole": "full segments pass",
    },
    unknown="Which machine drops them. At the receiver, only that each segment comes an RTO after the one before.",
    explains=EFFECTS,
)
def offload_dropped(case: Case) -> Matches:
    explained = case.flows_of()
    for number, timeouts in case.transfers.counts["timeouts"]:
        flow, direction = divmod(number, 2)
        if timeouts < ALONE_MIN or flow in explained:
            continue
        row = case.direction(flow, direction)
        alone, waited_ns = sent_alone(case, row), row["rto_idle_ns"] or 0
        if alone:
            yield Match(
                certainty="likely",
                place="after",
                flows=[(flow, direction)],
                failed=1,
                waited_ns=waited_ns,
                bytes=row["unacked_bytes"],
                filter=flow_filter(case.flow(flow)),
                proof=f"{plural(alone, 'RTO')}, each of which moved one segment",
                excluded={"random-loss": "only single segments pass", "mtu-black-hole": "full segments pass"},
                undecided={"tail-loss": f"the same transfer with TSO and GSO off on {row['source']}"},
                name=flow_str(row),
                size=row["segment_max"],
                count=plural(alone, "segment"),
                mss=row["wire_mss"],
                waited=show_duration(waited_ns),
                host=row["source"],
            )


def is_empty(connection: Connection, end_ns: int) -> bool:
    """Returns whether a connection was opened, carried nothing and was left open for long."""
    flow = connection.flow
    return (
        flow["state"] == "established"
        and not flow["payload_bytes"]
        and flow["handshake_rtt_ns"] is not None
        and end_ns - connection.last_ns >= EMPTY_MIN_NS
        and not any(row["keep_alives"] for row in connection.directions)
    )


def opened_and_empty(case: Case) -> Matches:
    """Yields connections that were opened and stayed empty, if all of the capture are so and it was made at their receiver."""
    states = case.transfers.flows_where("state", "established")
    if not 0 < len(states) <= EMPTY_FLOWS_MAX or case.transfers.payload_bytes:
        return
    connections = case.connections
    empty = [each for flow in states if is_empty(each := connections[flow], connections.end_ns)]
    if len(empty) < len(states):
        return
    waited_ns = max(connections.end_ns - each.last_ns for each in empty)
    client = empty[0].end(0)[0]
    yield Match(
        certainty="possible",
        place="before",
        flows=[each.number for each in empty],
        waited_ns=waited_ns,
        frames=[
            Cited(each.flow["last_frame"], each.flow["last_ns"], each.number, each.flow["first_capture"])
            for each in empty[:SHOWN]
        ],
        filter=" or ".join(flow_filter(each.flow) for each in empty[:SHOWN]),
        proof="the handshake is complete, and no packet with payload is in the capture",
        undecided={"hung-server": f"Capture at {client}: does it send its first data, and how large are the packets?"},
        severity="warning",
        what=f"{plural(len(empty), 'connection')} to {server_str(empty)} opened, and then not one byte came for "
        f"{show_duration(waited_ns)}: {client} may have sent nothing, or its full-size packets may be lost on the way "
        "(path MTU). Small packets, such as the handshake, arrive.",
        ping=ping_str(case, empty[0].number),
        host=empty[0].server[0],
    )
