# SPDX-License-Identifier: Apache-2.0
"""Rules about how connections begin, rest and end, and what their paths let through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.display_filter import flow_filter, frame_filter
from wiretale.analyzer.findings.flow_rules import by_state
from wiretale.analyzer.findings.model import (
    SHOWN,
    Finding,
    flows_named,
    frame_span,
    frames_named,
    frames_of_kinds,
    named,
    row_at,
    rows_of_kind,
    stalls_named,
    stalls_of,
)
from wiretale.analyzer.findings.odd_counts import odd_counts, odd_flows
from wiretale.analyzer.findings.transfers import survey_of
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

READ_MOST = 200  # rows of flows with some trouble
IDLE_LEAST_NS = 30_000_000_000  # of a pause that a middlebox may take for the end
ANSWER_MOST_NS = 5_000_000_000  # from a packet to the reset that answers it
UNANSWERED_LEAST = 3  # keep-alives
LARGE_LEAST = 1200  # bytes of a segment that a smaller path MTU would stop
STUCK_LEAST = 3  # sendings of it
CLAMPED_MOST = 1400  # bytes of an MSS that Ethernet does not explain
BULK_LEAST = 1_000_000
SMALL_PAYLOAD, SMALL_PACKETS = 200, 1000  # bytes a packet; packets
SECOND = 1e9
Row = dict[str, Any]


def direction_rows(trace: Trace, column: str) -> list[Row]:
    """The rows of directions in which a column is neither null nor 0; the first of them."""
    chosen = odd_counts(trace)[column][:READ_MOST]
    return [row_at(trace.directions, number) for number, _ in chosen]


def syn_lost(trace: Trace) -> Iterator[Finding]:
    """Handshakes that needed a SYN or SYN-ACK more than once, and came about."""
    slow = [
        row
        for row in direction_rows(trace, "timeouts")
        if (row["syns"] or 0) > 1 and row_at(trace.flows, row["flow"])["state"] not in ("syn_sent", "refused")
    ]
    if not slow:
        return
    flows = list(dict.fromkeys(row["flow"] for row in slow))
    again, waited = sum(row["syns"] - 1 for row in slow), sum(row["limit_timeout_ns"] or 0 for row in slow)
    yield Finding(
        *("syn-lost", "warning", "flow"),
        f"{plural(len(flows), 'connection')} came about only after "
        f"{plural(again, 'more SYN or SYN-ACK', 'more SYNs or SYN-ACKs')}: the first, or its answer, was "
        f"lost{'; ' + show_duration(waited) + ' went by in timeouts' if waited else ''}.",
        "A full backlog of the listener (ss -lnt, nstat TcpExtListenDrops), a firewall's rate limit, or plain loss.",
        flow=flows[0] if len(flows) == 1 else None,
        cost=round(waited / SECOND, 6),
        cost_unit="seconds",
        evidence=flows_named(trace, flows),
        filter="tcp.flags.syn == 1 && tcp.analysis.retransmission",
        impact=sum(survey_of(trace).weight(row) for row in slow) * 0.2,
    )


def outstanding_at_end(trace: Trace, row: Row) -> int:
    """Bytes of a direction that were never acknowledged, as its last time bin has it."""
    bins = [one for one in series_rows(trace, row["flow"]) if one["direction"] == row["direction"]]
    return (bins[-1]["flight_bytes"] or 0) if bins else 0


def series_rows(trace: Trace, flow: int) -> list[Row]:
    """The time bins of a flow."""
    counts = trace.series.rows_by_flow(len(trace.flows))
    start = sum(counts[:flow])
    return trace.series.rows(start, start + counts[flow])


def stuck_bytes(trace: Trace, row: Row) -> int:
    """What never got through of a direction whose large segments were sent again and again; 0 where some did."""
    large = row["segment_max"] or 0
    back = row_at(trace.directions, 2 * row["flow"] + 1 - row["direction"])
    if large < LARGE_LEAST or (row["retransmissions"] or 0) < STUCK_LEAST or row["timeouts"] < 2 or not back["packets"]:
        return 0
    left = outstanding_at_end(trace, row)
    return left if left >= large and (row["unique_bytes"] or 0) - left < large else 0


def path_mtu_black_hole(trace: Trace) -> Iterator[Finding]:
    """Large segments that never arrive, while small ones do."""
    for row in direction_rows(trace, "timeouts"):
        left, flow = stuck_bytes(trace, row), row_at(trace.flows, row["flow"])
        if not left or flow["state"] in ("syn_sent", "refused"):
            continue
        told = "An ICMP error says so too." if flow["icmp_errors"] else "No ICMP error told the sender."
        yield Finding(
            *("path-mtu-black-hole", "warning", "flow"),
            f"{named(row)}: segments of {plural(row['segment_max'], 'byte')} were sent again "
            f"{plural(row['retransmissions'], 'time')} and never acknowledged, while small packets pass: the path MTU "
            f"seems to be smaller, and nothing gets through. {told}",
            "Let ICMP 'fragmentation needed' (IPv6: packet too big) pass, clamp the MSS at the tunnel or router, or "
            "lower the MTU; net.ipv4.tcp_mtu_probing=1 helps the sender.",
            flow=row["flow"],
            cost=round((row["limit_timeout_ns"] or 0) / SECOND, 6),
            cost_unit="seconds",
            evidence=f"{stalls_named(stalls_of(row), row['timeouts'])}; {show_bytes(left)} outstanding at the end",
            filter=f"{flow_filter(flow)} && tcp.len >= {row['segment_max']}",
            impact=survey_of(trace).weight(row),
        )


def fragmentation_needed(trace: Trace) -> Iterator[Finding]:
    """Routers that tell of a smaller path MTU: path-MTU discovery at work."""
    if not odd_flows(trace)["icmp_errors"]:
        return
    told = [
        event
        for event in rows_of_kind(trace.events, "icmp_error", READ_MOST)
        if event["detail"] and ("fragmentation needed" in event["detail"] or "packet too big" in event["detail"])
    ]
    if not told:
        return
    flows = sorted({event["flow"] for event in told})
    yield Finding(
        *("path-mtu", "info", "flow"),
        f"A router told {plural(len(flows), 'sender')} of a smaller path MTU ({told[0]['detail']}): each loses a "
        "packet or two until it knows.",
        "Works as it should. A smaller interface MTU or an MSS clamp saves the first losses.",
        flow=flows[0] if len(flows) == 1 else None,
        cost=float(len(told)),
        cost_unit="packets",
        evidence=frames_named([event["frame"] for event in told[:SHOWN]], len(told)),
        filter="icmp.type == 3 && icmp.code == 4 || icmpv6.type == 2",
    )


def mss_clamped(trace: Trace) -> Iterator[Finding]:
    """Large transfers with a maximum segment size that a tunnel or a clamp explains."""
    for one in survey_of(trace).tcp():
        mss = one.back["mss"]
        if not mss or mss > CLAMPED_MOST or (one.row["unique_bytes"] or 0) < BULK_LEAST:
            continue
        lost = 1 - mss / (mss + 78) / (1460 / 1538)
        yield Finding(
            *("mss-small", "info", "flow"),
            f"{one.name}: the receiver, or a router on the way, asked for segments of at most {plural(mss, 'byte')} (Ethernet "
            f"allows 1,460): headers take {show_share(lost, 1)} more of the link.",
            "A tunnel's MTU or an MSS clamp; right where a tunnel needs it.",
            flow=one.row["flow"],
            cost=round(100 * lost, 2),
            cost_unit="percent",
            evidence=one.frames,
            filter=f"{flow_filter(one.flow)} && tcp.options.mss_val",
            impact=one.weight * lost,
        )


def silence_before_reset(trace: Trace, flow: int) -> int:
    """How long both ends were silent before one spoke again and got a reset for it, ns; 0 where it was not so."""
    rows = trace.directions.rows(2 * flow, 2 * flow + 2)
    resetting = [row for row in rows if row["resets"]]
    speaking = [row for row in rows if not row["resets"] and row["packets"]]
    if len(resetting) != 1 or len(speaking) != 1 or resetting[0]["last_ns"] is None:
        return 0
    waited = resetting[0]["last_ns"] - speaking[0]["last_ns"]
    silence = min(row["idle_ns_max"] or 0 for row in rows)
    return silence if silence >= IDLE_LEAST_NS and 0 <= waited <= ANSWER_MOST_NS else 0


def idle_reset(trace: Trace) -> Iterator[Finding]:
    """Connections that were reset when one end spoke again after a long silence."""
    silences = [(silence_before_reset(trace, number), number) for number in by_state(trace, "reset")[:READ_MOST]]
    found = [pair for pair in silences if pair[0]]
    if not found:
        return
    longest = max(silence for silence, _ in found)
    flows = [number for _, number in found]
    yield Finding(
        *("idle-reset", "warning", "flow"),
        f"{plural(len(found), 'connection was', 'connections were')} reset after a silence of up to "
        f"{show_duration(longest)}: a NAT or firewall on the way forgets idle connections, or an end gave up.",
        "Send keep-alives more often than that (SO_KEEPALIVE, TCP_KEEPIDLE), or raise the middlebox's idle timeout.",
        flow=flows[0] if len(flows) == 1 else None,
        cost=float(len(found)),
        cost_unit="connections",
        evidence=flows_named(trace, flows),
        filter="tcp.flags.reset == 1",
    )


def keep_alives_unanswered(trace: Trace) -> Iterator[Finding]:
    """Keep-alives into the void."""
    for row in direction_rows(trace, "keep_alives"):
        back = row_at(trace.directions, 2 * row["flow"] + 1 - row["direction"])
        if row["keep_alives"] < UNANSWERED_LEAST or not back["last_ns"]:
            continue
        silent = row["last_ns"] - back["last_ns"]
        if silent <= 0 or not row["idle_ns_max"] or silent < (UNANSWERED_LEAST - 1) * min(row["idle_ns_max"], 10**9):
            continue
        flow = row_at(trace.flows, row["flow"])
        frames = frames_of_kinds(trace, [row["flow"]], ["keep_alive"]).get((row["flow"], row["direction"]), [])
        yield Finding(
            *("keep-alive-unanswered", "warning", "flow"),
            f"{named(row)} sent {plural(row['keep_alives'], 'keep-alive')} and heard nothing for the last "
            f"{show_duration(silent)}: the other end is gone, or the path forgot the connection.",
            "Look at the other end and at middleboxes with idle timeouts; a shorter keep-alive interval keeps their "
            "entry.",
            flow=row["flow"],
            cost=round(silent / SECOND, 6),
            cost_unit="seconds",
            evidence=frames_named(frames, row["keep_alives"]) or frame_span(flow),
            filter=frame_filter(frames) if frames else flow_filter(flow),
            impact=survey_of(trace).weight(row) * 0.1,
        )


def ecn_ignored(trace: Trace) -> Iterator[Finding]:
    """Congestion marks that the receiver never echoed."""
    for row in direction_rows(trace, "ecn_ce"):
        flow = row_at(trace.flows, row["flow"])
        back = row_at(trace.directions, 2 * row["flow"] + 1 - row["direction"])
        if flow["protocol"] != "tcp" or back["ecn_echo"] != 0 or not back["packets"]:
            continue
        yield Finding(
            *("ecn-ignored", "warning", "flow"),
            f"{named(row)}: {plural(row['ecn_ce'], 'packet was', 'packets were')} marked as having met congestion, "
            "and the receiver never echoed it (RFC 3168): the sender does not slow down.",
            "A stack or a middlebox that clears ECE, or one that marks what is not ECN-capable: compare both ends' "
            "captures.",
            flow=row["flow"],
            cost=float(row["ecn_ce"]),
            cost_unit="packets",
            evidence=frame_span(flow),
            filter=f"{flow_filter(flow)} && ip.dsfield.ecn == 3",
            impact=survey_of(trace).weight(row) * row["ecn_ce"] / max(row["packets"], 1),
        )


def small_blocks(trace: Trace) -> Iterator[Finding]:
    """Transfers whose packets are mostly header."""
    for one in survey_of(trace).transfers:
        packets, payload = one.row["data_packets"] or 0, one.row["payload_bytes"] or 0
        if packets < SMALL_PACKETS or payload / packets > SMALL_PAYLOAD or one.row["goodput_bps"] is None:
            continue
        mean, wire = payload / packets, one.row["wire_bytes"]
        full = mean and 1460 / 1538
        yield Finding(
            *("small-packets", "info", "flow"),
            f"{one.name} sends {plural(round(mean), 'byte')} of payload a packet: {show_share(payload, wire)} of the bytes on "
            f"the wire are payload, where full packets would have {show_share(full, 1)}. The same link could carry "
            f"{full * wire / payload:,.1f} times as much.",
            "Put more into each packet (larger blocks, buffered writes) where delay allows.",
            flow=one.row["flow"],
            cost=float(wire - payload),
            cost_unit="bytes",
            evidence=f"{plural(packets, 'packet')}, {one.frames}",
            filter=flow_filter(one.flow),
            impact=one.weight * (1 - payload / wire) * 0.5,
        )
