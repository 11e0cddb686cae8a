# SPDX-License-Identifier: Apache-2.0
"""Rules about connections: handshakes, resets, keep-alives, ICMP errors, path MTU and packet sizes."""

from __future__ import annotations

import re
from array import array

from wiretale.analyzer.display_filter import flow_filter, frame_filter
from wiretale.analyzer.findings.attempts import FAILED, NULL, Retried, Scan
from wiretale.analyzer.findings.model import (
    SHOWN,
    Match,
    Matches,
    Row,
    endpoint_str,
    finding,
    flow_list,
    flow_str,
    flows_match,
    frame_list,
    frame_range,
    opposite,
    percent,
    row_at,
    seconds,
    stall_list,
    stalls_of,
)
from wiretale.analyzer.findings.transfers import ROWS_MAX, Transfers, rows_of_kind
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_share

CHAPTER = "Connections"
ICMP_ERRORS_MAX = 50  # whose text is read
IDLE_MIN_NS = 30_000_000_000  # after which a middlebox may have dropped its entry
ANSWER_MAX_NS = 5_000_000_000  # from a packet to the reset that answers it
UNANSWERED_MIN = 3  # keep-alives
LARGE_MIN, ATTEMPTS_MIN = 1200, 3  # bytes of a segment that a smaller path MTU would stop; its retransmissions
CLAMPED_MAX = 1400  # bytes; Ethernet does not explain such an MSS
BULK_MIN = 1_000_000  # bytes
FULL_SEGMENT = 1460 / 1538  # payload of the wire bytes of a full Ethernet frame
SMALL_PAYLOAD, SMALL_PACKETS = 200, 1000  # bytes per packet; packets
RESETS = "tcp.flags.reset == 1"


def flows_in(transfers: Transfers, state: str) -> list[int]:
    """Returns the flows in a state that belong to no scan."""
    flows = transfers.trace.flows.rows_where("state", state)
    return [flow for flow in flows if not transfers.attempts.is_scan(flow)] if transfers.attempts.scans else flows


def traffic_share(transfers: Transfers, flows: list[int]) -> float:
    """Returns the share of all wire bytes of these flows."""
    return sum(array("d", transfers.trace.flows.packed("wire_bytes", "d", flows=flows))) / transfers.wire_bytes


def outcome(refused: int, unanswered: int, whole: int) -> str:
    """`3 answered, 4 refused by RST, 993 unanswered`."""
    counts = ((whole - refused - unanswered, "answered"), (refused, "refused by RST"), (unanswered, "unanswered"))
    return ", ".join(f"{count:,} {word}" for count, word in counts if count)


def scan_match(transfers: Transfers, scan: Scan) -> Match:
    """Returns the match of one scan."""
    version, open_ends = "ipv6" if ":" in scan.source else "ip", [endpoint_str(*end) for end in scan.open_ends]
    first, last = scan.flows[0], scan.flows[-1]
    more = ", …" if len(open_ends) > SHOWN else ""
    answered = f"; answered: {', '.join(open_ends[:SHOWN])}{more}" if open_ends else ""
    return Match(
        source=scan.source,
        extent=scan.extent,
        count=len(scan.flows),
        outcome=outcome(scan.refused, scan.unanswered, len(scan.flows)),
        cost=float(len(scan.flows)),
        evidence=f"flows {first} to {last}{answered}",
        filter=f"{version}.src == {scan.source} && tcp.flags.syn == 1 && tcp.flags.ack == 0",
        impact=traffic_share(transfers, list(scan.flows)),
    )


@finding(
    code="scan",
    title="Port scan or host scan",
    unit="connections",
    computed="Connection attempts of one host without payload. 15 or more ports of a host, or 25 or more hosts at one "
    "port, must have refused or not answered, and the attempts must be half or more of the TCP flows that the host "
    "began. No other finding counts these attempts or their retransmitted SYNs.",
    unknown="Whether the scan was permitted. A host whose way to many servers is blocked looks the same.",
    sentence="{source} scanned {extent} in {count:connection attempt}: {outcome}.",
    advice="Find the program that scans (a vulnerability scanner, a monitor, malware); each end that answered is open.",
)
def scan(transfers: Transfers) -> Matches:
    scans = transfers.attempts.scans
    yield from (scan_match(transfers, one) for one in scans[:SHOWN])
    if rest := scans[SHOWN:]:
        count = sum(len(one.flows) for one in rest)
        yield Match(
            source=plural(len(rest), "more host"),
            extent="ports or hosts",
            count=count,
            outcome=outcome(sum(one.refused for one in rest), sum(one.unanswered for one in rest), count),
            cost=float(count),
            evidence=", ".join(one.source for one in rest[:SHOWN]) + (", …" if len(rest) > SHOWN else ""),
        )


@finding(
    code="syn-unanswered",
    title="Connection attempts without an answer",
    unit="connections",
    computed="Flows in the state syn_sent: they hold nothing but SYNs. Those of a scan are in that finding.",
    unknown="Whether an answer took another path, or the capture ended too early.",
    sentence="{count:connection attempt} got no answer at the capture point: a firewall dropped {count:~it|them}, the "
    "host is down, or the answer took another path.",
    advice="Try the port from a nearer host, and check firewalls that drop instead of rejecting.",
)
def syn_unanswered(transfers: Transfers) -> Matches:
    flows = flows_in(transfers, "syn_sent")
    return flows_match(transfers, flows, cost=float(len(flows)), filter="tcp.flags.syn == 1 && tcp.flags.ack == 0")


@finding(
    code="connection-refused",
    title="Connection attempts refused",
    computed="A RST answered the SYN. Attempts of a scan are in that finding.",
    unknown="Whether the host or a firewall sent the RST: compare TTLs.",
    sentence="{count:connection attempt was|connection attempts were} refused by a RST.",
    advice="Check that the server listens on that port, and that no firewall rejects it.",
)
def connection_refused(transfers: Transfers) -> Matches:
    return flows_match(transfers, flows_in(transfers, "refused"), filter=RESETS)


@finding(
    code="half-open",
    title="Half-open connection attempts",
    unit="connections",
    computed="Flows in the state syn_received whose SYN-ACK was retransmitted, except those of a scan.",
    unknown="Whether SYN-ACKs or ACKs were lost, or the SYN's address is forged.",
    sentence="{count:connection attempt} stayed half-open: {again:retransmitted SYN-ACK} got no ACK either. The client "
    "does not answer (a SYN scan, a forged address), or the answers were lost.",
    advice="Capture at the client. If there are many, check the server's SYN queue (nstat TcpExtSyncookiesSent, "
    "net.ipv4.tcp_max_syn_backlog).",
)
def half_open(transfers: Transfers) -> Matches:
    flows = flows_in(transfers, "syn_received")
    syns = array("I", transfers.trace.directions.packed("syns", "I", flows=flows))[1::2] if flows else ()
    again = {flow: count - 1 for flow, count in zip(flows, syns, strict=True) if 1 < count < NULL}
    return flows_match(
        transfers,
        list(again),
        again=sum(again.values()),
        cost=float(len(again)),
        filter="tcp.flags.syn == 1 && tcp.flags.ack == 1",
        impact=traffic_share(transfers, list(again)),
    )


def handshake_frames(transfers: Transfers, frames: list[int], handshakes: list[Retried]) -> str:
    """`frames 90 and 91; flow 3 …` of retransmitted SYNs."""
    flows = flow_list(transfers.trace, [one.flow for one in handshakes])
    return f"{frame_list(frames[:SHOWN], len(frames))}; {flows}"


@finding(
    code="syn-lost",
    title="Handshakes with retransmitted SYNs",
    unit="seconds",
    computed="Connections that came about, with SYNs or SYN-ACKs that were retransmitted before. The cost is the time "
    "from the first SYN or SYN-ACK to the last retransmission of it.",
    unknown="Whether the SYN or its answer was lost, unless the capture point is at the server. A listener with a "
    "full backlog drops SYNs and looks the same, as does an RTT longer than the initial RTO.",
    sentence="{count:connection was|connections were} established only after {again:retransmitted SYN or "
    "SYN-ACK|retransmitted SYNs or SYN-ACKs}: the first, or its answer, was lost{waited}.",
    advice="Check the listener's backlog (ss -lnt, nstat TcpExtListenDrops), firewall rate limits and packet loss.",
)
def syn_lost(transfers: Transfers) -> Matches:
    slow = [one for one in transfers.attempts.retried if one.lost]
    frames, waited = [frame for one in slow for frame in one.lost], sum(one.waited_ns for one in slow)
    return flows_match(
        transfers,
        [one.flow for one in slow],
        again=len(frames),
        waited=f", which cost {show_duration(waited)} in RTOs" if waited else "",
        cost=seconds(waited),
        evidence=handshake_frames(transfers, frames, slow),
        filter=frame_filter(frames[:SHOWN]),
        impact=traffic_share(transfers, [one.flow for one in slow]) * 0.2,
    )


@finding(
    code="initial-rto-short",
    title="SYNs retransmitted within one RTT",
    severity="info",
    unit="segments",
    computed="SYNs or SYN-ACKs of connections that came about were retransmitted sooner after the first than the least "
    "RTT of the same direction.",
    unknown="Whether one was lost as well.",
    sentence="{count:connection} retransmitted {early:SYN or SYN-ACK|SYNs or SYN-ACKs} sooner than the least RTT: the "
    "initial RTO is shorter than the RTT, and {early:~it shows|they show} no loss.",
    advice="Check the initial RTO of the end that retransmits (1 s by RFC 6298) and the delay of the path, such as a "
    "radio that wakes up.",
)
def initial_rto_short(transfers: Transfers) -> Matches:
    early = [one for one in transfers.attempts.retried if one.early]
    frames = [frame for one in early for frame in one.early]
    return flows_match(
        transfers,
        [one.flow for one in early],
        early=len(frames),
        cost=float(len(frames)),
        evidence=handshake_frames(transfers, frames, early),
        filter=frame_filter(frames[:SHOWN]),
    )


@finding(
    code="accept-deferred",
    title="SYN-ACKs after the handshake",
    severity="info",
    unit="connections",
    computed="A SYN-ACK is retransmitted an RTT and 200 ms or more after the ACK that completed the handshake passed "
    "the capture point. No time is counted, because the client waits for nothing.",
    unknown="Which of the causes. If the capture point is not at the server, the ACK may have been lost after it.",
    sentence="{count:connection has a SYN-ACK that was|connections have SYN-ACKs that were} retransmitted up to {time} "
    "after the handshake: the server defers accept until data comes (TCP_DEFER_ACCEPT), or its accept queue was full.",
    advice="Check the accept queue if the server is busy (ss -lnt, nstat TcpExtListenOverflows); otherwise it works "
    "as intended.",
)
def accept_deferred(transfers: Transfers) -> Matches:
    deferred = [one for one in transfers.attempts.retried if one.deferred]
    frames = [frame for one in deferred for frame in one.deferred]
    return flows_match(
        transfers,
        [one.flow for one in deferred],
        time=show_duration(max((one.deferred_ns for one in deferred), default=0)),
        cost=float(len(deferred)),
        evidence=handshake_frames(transfers, frames, deferred),
        filter=frame_filter(frames[:SHOWN]),
    )


@finding(
    code="reset",
    title="Connections reset",
    severity="info",
    computed="Flows that ended by RST after data or a handshake.",
    unknown="The reason. Many applications close with RST on purpose.",
    sentence="{count:connection was|connections were} ended by RST.",
    advice="Ask the end that sent it; some applications close this way.",
)
def reset(transfers: Transfers) -> Matches:
    return flows_match(transfers, flows_in(transfers, "reset"), filter=RESETS)


def idle_before_reset(transfers: Transfers, flow: int) -> int:
    """Returns the ns for which both ends were idle before one resumed and got a RST; 0 otherwise."""
    rows = transfers.trace.directions.rows(2 * flow, 2 * flow + 2)
    resetting = [row for row in rows if row["resets"]]
    resuming = [row for row in rows if not row["resets"] and row["packets"]]
    if len(resetting) != 1 or len(resuming) != 1 or resetting[0]["last_ns"] is None:
        return 0
    waited = resetting[0]["last_ns"] - resuming[0]["last_ns"]
    idle = min(row["idle_ns_max"] or 0 for row in rows)
    return idle if idle >= IDLE_MIN_NS and 0 <= waited <= ANSWER_MAX_NS else 0


@finding(
    code="idle-reset",
    title="Connections reset after an idle period",
    unit="connections",
    computed="Flows in the state reset. Both directions must have been idle for 30 s or more until one end resumed, "
    "and the RST must follow within 5 s. An end that sends a RST out of its own idle period does not count.",
    unknown="Who sent the RST: a middlebox forges both ends. Compare the TTL of the RST (directions.ttl_min) with the "
    "others.",
    sentence="{count:connection was|connections were} reset after an idle period of up to {longest}: a NAT or "
    "firewall on the path dropped its entry, or an end closed.",
    advice="Send keep-alives more often than that (SO_KEEPALIVE, TCP_KEEPIDLE), or raise the middlebox's idle timeout.",
)
def idle_reset(transfers: Transfers) -> Matches:
    idle = {flow: idle_before_reset(transfers, flow) for flow in flows_in(transfers, "reset")[:ROWS_MAX]}
    flows = [flow for flow, ns in idle.items() if ns]
    longest = show_duration(max(idle.values(), default=0))
    return flows_match(transfers, flows, longest=longest, cost=float(len(flows)), filter=RESETS)


def last_flight_bytes(transfers: Transfers, row: Row) -> int:
    """Returns the outstanding bytes of a direction in its last time bin."""
    trace = transfers.trace
    counts = trace.series.rows_by_flow(len(trace.flows))
    start = sum(counts[: row["flow"]])
    bins = trace.series.rows(start, start + counts[row["flow"]])
    flights = [one["flight_bytes"] or 0 for one in bins if one["direction"] == row["direction"]]
    return flights[-1] if flights else 0


def stuck_bytes(transfers: Transfers, row: Row) -> int:
    """Returns the bytes that were never acknowledged if no large segment was; 0 otherwise."""
    large = row["segment_max"] or 0
    if large < LARGE_MIN or (row["retransmissions"] or 0) < ATTEMPTS_MIN or row["timeouts"] < 2:
        return 0
    if not opposite(transfers.trace, row)["packets"]:
        return 0
    left = last_flight_bytes(transfers, row)
    return left if left >= large and (row["unique_bytes"] or 0) - left < large else 0


@finding(
    code="path-mtu-black-hole",
    title="Path MTU black hole",
    unit="seconds",
    computed="Segments of 1,200 bytes or more must be retransmitted three times or more, in two RTOs or more, none of "
    "that size may be acknowledged, and the other end must answer small packets. Outstanding bytes are those of the "
    "last time bin.",
    unknown="The hop with the small MTU. A receiver that drops large packets for another reason looks the same.",
    sentence="{name} retransmitted segments of {size:byte} {times:time}, and none was acknowledged, while small "
    "packets pass: the path MTU is probably smaller. {icmp}",
    advice="Allow ICMP 'fragmentation needed' (IPv6: packet too big), clamp the MSS at the tunnel or router, or lower "
    "the MTU; net.ipv4.tcp_mtu_probing=1 helps the sender.",
)
def path_mtu_black_hole(transfers: Transfers) -> Matches:
    trace = transfers.trace
    for row in transfers.rows("timeouts"):
        left, flow = stuck_bytes(transfers, row), row_at(trace.flows, row["flow"])
        if not left or flow["state"] in FAILED:
            continue
        stalls = stall_list(stalls_of(row), row["timeouts"])
        yield Match(
            flow=row["flow"],
            name=flow_str(row),
            size=row["segment_max"],
            times=row["retransmissions"],
            icmp="An ICMP error confirms it." if flow["icmp_errors"] else "No ICMP error informed the sender.",
            cost=seconds(row["limit_timeout_ns"] or 0),
            evidence=f"{stalls}; {show_bytes(left)} outstanding at the end",
            filter=f"{flow_filter(flow)} && tcp.len >= {row['segment_max']}",
            impact=transfers.traffic_share(row),
        )


@finding(
    code="icmp-errors",
    title="ICMP errors about flows",
    unit="packets",
    computed="ICMP and ICMPv6 errors that quote the header of a flow in the capture, with their types.",
    unknown="Errors that took another path or were filtered.",
    sentence="Routers or hosts sent ICMP errors about {count:flow}{details}.",
    advice="Check their types: unreachable ports and hosts, exceeded TTLs, or a path MTU that is too small.",
)
def icmp_errors(transfers: Transfers) -> Matches:
    counts = transfers.flow_counts["icmp_errors"]
    events = rows_of_kind(transfers, "icmp_error", ICMP_ERRORS_MAX) if counts else []
    details = sorted({event["detail"] for event in events if event["detail"]})
    return flows_match(
        transfers,
        [number for number, _ in counts],
        details=f": {'; '.join(details[:SHOWN])}" if details else "",
        cost=float(sum(count for _, count in counts)),
        filter="icmp.type in {3, 4, 5, 11, 12} || icmpv6.type in {1, 2, 3, 4}",
    )


@finding(
    code="path-mtu",
    title="Path MTU discovery",
    severity="info",
    unit="packets",
    computed="ICMP errors 'fragmentation needed' (RFC 1191) or 'packet too big' (RFC 8201) that quote a flow.",
    unknown="Errors that took another path.",
    sentence="A router reported a smaller path MTU to {count:sender} ({detail}): each loses one or two packets until "
    "it adapts.",
    advice="Lower the interface MTU or clamp the MSS to avoid the first losses; path MTU discovery works.",
)
def path_mtu(transfers: Transfers) -> Matches:
    events = rows_of_kind(transfers, "icmp_error", ROWS_MAX) if transfers.flow_counts["icmp_errors"] else []
    reports = [event for event in events if re.search("fragmentation needed|packet too big", event["detail"] or "")]
    return flows_match(
        transfers,
        sorted({event["flow"] for event in reports}),
        detail=reports[0]["detail"] if reports else "",
        cost=float(len(reports)),
        evidence=frame_list([event["frame"] for event in reports[:SHOWN]], len(reports)),
        filter="icmp.type == 3 && icmp.code == 4 || icmpv6.type == 2",
    )


@finding(
    code="ecn-ignored",
    title="Congestion marks not echoed",
    unit="packets",
    computed="A TCP direction has packets marked Congestion Experienced, and the other end sent no ECE.",
    unknown="Whether ECN was negotiated if the SYNs were not captured. AccECN echoes differently.",
    sentence="{name} has {count:packet} with a congestion mark, and the receiver echoed none (RFC 3168): the sender "
    "does not slow down.",
    advice="Compare captures at both ends for a stack or middlebox that clears ECE, or one that marks packets that "
    "are not ECN-capable.",
)
def ecn_ignored(transfers: Transfers) -> Matches:
    trace = transfers.trace
    for row in transfers.rows("ecn_ce"):
        flow, back = row_at(trace.flows, row["flow"]), opposite(trace, row)
        if flow["protocol"] == "tcp" and back["ecn_echo"] == 0 and back["packets"]:
            yield Match(
                flow=row["flow"],
                name=flow_str(row),
                count=row["ecn_ce"],
                cost=float(row["ecn_ce"]),
                evidence=frame_range(flow),
                filter=f"{flow_filter(flow)} && ip.dsfield.ecn == 3",
                impact=transfers.traffic_share(row) * row["ecn_ce"] / max(row["packets"], 1),
            )


@finding(
    code="keep-alive-unanswered",
    title="Keep-alives without an answer",
    unit="seconds",
    computed="Three keep-alives or more must follow the other end's last packet.",
    unknown="Whether the other end is down or the path dropped the connection.",
    sentence="{name} sent {count:keep-alive} and received nothing in the last {silent}: the other end is down, or a "
    "middlebox dropped the connection.",
    advice="Check the other end and the idle timeouts of middleboxes; a shorter keep-alive interval keeps their entry.",
)
def keep_alive_unanswered(transfers: Transfers) -> Matches:
    trace = transfers.trace
    for row in transfers.rows("keep_alives"):
        back_ns = opposite(trace, row)["last_ns"]
        if row["keep_alives"] < UNANSWERED_MIN or not back_ns:
            continue
        silent = row["last_ns"] - back_ns
        if silent <= 0 or not row["idle_ns_max"] or silent < (UNANSWERED_MIN - 1) * min(row["idle_ns_max"], 10**9):
            continue
        flow = row_at(trace.flows, row["flow"])
        frames = transfers.event_frames([row["flow"]], ["keep_alive"]).get((row["flow"], row["direction"]), [])
        yield Match(
            flow=row["flow"],
            name=flow_str(row),
            count=row["keep_alives"],
            silent=show_duration(silent),
            cost=seconds(silent),
            evidence=frame_list(frames, row["keep_alives"]) or frame_range(flow),
            filter=frame_filter(frames) if frames else flow_filter(flow),
            impact=transfers.traffic_share(row) * 0.1,
        )


@finding(
    code="mss-clamped",
    title="Small maximum segment size",
    severity="info",
    unit="percent",
    computed="The MSS option in the receiver's SYN must be 1,400 bytes or less, in a transfer of 1 MB or more. The "
    "cost is the additional share of header bytes, compared with an MSS of 1,460.",
    unknown="Whether the receiver or a router set the MSS. Compare captures on both sides of the router.",
    sentence="{name} sends segments of at most {mss:byte}, because the receiver or a router set that MSS (Ethernet "
    "allows 1,460): headers take {share} more of the link.",
    advice="Check for a tunnel or an MSS clamp; if a tunnel needs it, leave it.",
)
def mss_clamped(transfers: Transfers) -> Matches:
    for one in transfers.tcp():
        mss = one.back["mss"]
        if mss and mss <= CLAMPED_MAX and (one.row["unique_bytes"] or 0) >= BULK_MIN:
            lost = 1 - mss / (mss + 78) / FULL_SEGMENT
            yield one.match(
                mss=mss,
                share=show_share(lost, 1),
                cost=percent(lost, digits=2),
                filter=f"{flow_filter(one.flow)} && tcp.options.mss_val",
                weight=lost,
            )


@finding(
    code="small-packets",
    title="Mostly headers",
    severity="info",
    unit="bytes",
    computed="1,000 packets or more with 200 bytes of payload or less on average: payload of the wire bytes, compared "
    "with full packets.",
    unknown="Whether the application can send more at a time. Voice cannot.",
    sentence="{name} sends {mean:byte} of payload per packet: {share} of its wire bytes are payload, and {full} in "
    "full packets. The link could carry {factor} times as much.",
    advice="Put more into each packet (larger blocks, buffered writes) if delay allows.",
)
def small_packets(transfers: Transfers) -> Matches:
    for one in transfers.largest:
        packets, payload, wire = one.row["data_packets"] or 0, one.row["payload_bytes"] or 0, one.row["wire_bytes"]
        if packets >= SMALL_PACKETS and payload / packets <= SMALL_PAYLOAD and one.row["goodput_bps"] is not None:
            yield one.match(
                mean=round(payload / packets),
                share=show_share(payload, wire),
                full=show_share(FULL_SEGMENT, 1),
                factor=f"{FULL_SEGMENT * wire / payload:,.1f}",
                cost=float(wire - payload),
                evidence=f"{packets:,} packets, {one.frames}",
                weight=(1 - payload / wire) * 0.5,
            )
