# SPDX-License-Identifier: Apache-2.0
"""Rules about connections: resets, keep-alives, ICMP errors, path MTU and packet sizes."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.attempts import FAILED, NULL
from wiretale.analyzer.findings.evidence import SHOWN, Cited
from wiretale.analyzer.findings.hosts.traced import traced_paths
from wiretale.analyzer.findings.model import (
    Match,
    Matches,
    Words,
    finding,
    flow_str,
    flows_match,
    opposite,
    row_at,
    seconds,
)
from wiretale.analyzer.findings.shared.places import longest_wait, opening, stalls_of
from wiretale.analyzer.findings.shared.servers import FROM, TO, by_server, ends_of, first_resets, server_ends
from wiretale.analyzer.findings.transfers import NO_BINS, ROWS_MAX, Counts, Transfers, rows_of_kind
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.rows import DirectionRow, EventRow

CHAPTER = "Connections"
ICMP_ERRORS_MAX = 50  # whose text is read
IDLE_MIN_NS = 30_000_000_000  # after which a middlebox may have dropped its entry
ANSWER_MAX_NS = 5_000_000_000  # from a packet to the reset that answers it
UNANSWERED_MIN = 3  # keep-alives
LARGE_MIN, ATTEMPTS_MIN = 1200, 3  # bytes of a segment that a smaller path MTU would stop; its retransmissions
LATE_MIN_NS = 200_000_000  # after which no packet of the other end was on its way before, the least RTO of Linux
ALIVE_TIMEOUTS_MAX = 2  # RTOs of the other end: it does not receive the small packets either
CLAMPED_MAX = 1400  # bytes; Ethernet does not explain such an MSS
BULK_MIN = 1_000_000  # bytes
FULL_SEGMENT = 1460 / 1538  # payload of the wire bytes of a full Ethernet frame
SMALL_PAYLOAD, SMALL_PACKETS = 200, 1000  # bytes per packet; packets
RESETS = "tcp.flags.reset == 1"
MTU_ADVICE = (
    "Allow ICMP 'fragmentation needed' (IPv6: packet too big), clamp the MSS at the tunnel or router, or lower the MTU; "
    "net.ipv4.tcp_mtu_probing=1 helps the sender."
)
MTU_REPORTS = {"fragmentation_needed", "packet_too_big"}  # events.cause


def answered_before_reset(transfers: Transfers, row: DirectionRow) -> bool:
    """Returns whether the end that sent the RST sent other packets in the 30 s before, as far as the time bins show."""
    bins = transfers.bins_of_flow(row["flow"]).get(row["direction"], NO_BINS)
    since = (row["last_ns"] or 0) - IDLE_MIN_NS
    packets = math.fsum(count for at, count in zip(bins.start_ns, bins.packets, strict=True) if at > since)
    return packets > (row["resets"] or 0)


def reset_and_resumed(rows: list[DirectionRow]) -> tuple[DirectionRow, DirectionRow] | None:
    """Returns the end that sent the RST and the other; None if both did, or if that end had closed: it resets whatever comes."""
    resetting = [row for row in rows if row["resets"] and not row["fins"]]
    resuming = [row for row in rows if not row["resets"] and row["packets"]]
    return (resetting[0], resuming[0]) if len(resetting) == len(resuming) == 1 else None


def idle_before_reset(transfers: Transfers, flow: int) -> int:
    """Returns the ns for which both ends were idle before one resumed and got a RST; 0 otherwise."""
    rows = transfers.trace.directions.rows(2 * flow, 2 * flow + 2)
    ends = reset_and_resumed(rows)
    if ends is None:
        return 0
    idle = min(row["idle_ns_max"] or 0 for row in rows)
    waited = (ends[0]["last_ns"] or 0) - (ends[1]["last_ns"] or 0)
    if idle < IDLE_MIN_NS or not 0 <= waited <= ANSWER_MAX_NS or answered_before_reset(transfers, ends[0]):
        return 0
    return idle


def idle_resets(transfers: Transfers) -> dict[int, int]:
    """Returns the ns for which the first connections with a RST were idle before it, of those that were."""
    flows = transfers.attempts.flows_in("reset")[:ROWS_MAX]
    return {flow: ns for flow in flows if (ns := idle_before_reset(transfers, flow))}


SENDERS = {(True, False): "the client", (False, True): "the server", (True, True): "both ends"}
RESET_ADVICE = {
    "the server": "Look in the log of {host} for the reason. Some servers close this way, and a middlebox can forge a RST: "
    "compare its TTL with the others.",
    "the client": "Ask the client's application for the reason: some close this way, and others give up after their own "
    "timeout.",
}


def resetting_ends(transfers: Transfers, flows: list[int], servers: list[int]) -> list[str]:
    """Returns the end that sent RSTs for each flow; `servers` is the end that is the server."""
    packed = transfers.trace.directions._packed("resets", "I", flows=flows) if flows else b""
    sent = [0 < count < NULL for count in array("I", packed)]
    pairs = zip(sent[::2], sent[1::2], strict=True)
    return [SENDERS.get(pair if server else pair[::-1], "an end") for pair, server in zip(pairs, servers, strict=True)]


@finding(
    code="reset",
    title="Connections reset",
    severity="info",
    unit="connections",
    computed="Flows that ended by RST after data or a handshake, except those of idle-reset. Those of one server (host and "
    "port) by the same end are one finding; the five groups with the most have their own, and the rest is one. The server "
    "of connections whose SYN was not captured is the end that more of them share, else that with a port below 1024.",
    unknown="The reason. Many applications close with RST on purpose.",
    sentence="{count:connection} {ends} {count:~was|were} ended by RST of {sender}[{before}].",
    advice="{advice}",
)
def reset(transfers: Transfers) -> Matches:
    idle = idle_resets(transfers)
    flows = [flow for flow in transfers.attempts.flows_in("reset") if flow not in idle]
    ends = ends_of(transfers, flows)
    servers = server_ends(transfers, ends, flows)
    groups = by_server(ends, flows, servers, resetting_ends(transfers, flows, servers))
    for group in groups:
        payload = array("d", transfers.trace.flows._packed("payload_bytes", "d", flows=group.flows))
        empty, sender = sum(size == 0 for size in payload), group.side or "either end"
        some = f"; {plural(empty, 'connection')} had carried no payload" if empty else ""
        advice = RESET_ADVICE.get(sender, "Ask the end that sent it; some applications close this way.")
        yield group.match(
            transfers,
            first_resets(transfers, group.flows),
            group.filter(RESETS, {"the server": FROM, "the client": TO}.get(sender)),
            sender=sender,
            before=", before any payload" if empty == len(group.flows) else some,
            advice=advice.format(host=group.host),
        )


@finding(
    code="idle-reset",
    title="Connections reset after an idle period",
    unit="connections",
    computed="Flows in the state reset. Both directions must have been idle for 30 s or more until one end resumed. The RST "
    "must follow within 5 s, without another packet of its sender after the idle period. An end that sends a RST out of its "
    "own idle period does not count. Neither does one that had closed the connection with FIN before.",
    unknown="Who sent the RST: a middlebox forges both ends. Compare the TTL of the RST (directions.ttl_min) with the "
    "others.",
    sentence="{count:connection} {ends} {count:~was|were} reset after an idle period of up to {longest}[: a NAT or "
    "firewall on the path dropped its entry, or an end closed].",
    advice="Send keep-alives more often than that (SO_KEEPALIVE, TCP_KEEPIDLE), or raise the middlebox's idle timeout.",
)
def idle_reset(transfers: Transfers) -> Matches:
    idle = idle_resets(transfers)
    flows = list(idle)
    ends = ends_of(transfers, flows)
    for group in by_server(ends, flows, server_ends(transfers, ends, flows)):
        longest = show_duration(max(idle[flow] for flow in group.flows))
        yield group.match(transfers, first_resets(transfers, group.flows), group.filter(RESETS, None), longest=longest)


def full_size(row: DirectionRow) -> int:
    """Returns the payload of the largest segment on the wire, also if the capture has super-segments."""
    largest = row["segment_max"] or 0
    return min(largest, row["wire_mss"] or largest)


def answered_later(transfers: Transfers, row: DirectionRow) -> bool:
    """Returns whether the other end went on, without repeating itself, after the first data that it never acknowledged, or
    has data behind it."""
    back, since = opposite(transfers.trace, row), row["unacked_first_ns"]
    if row["sacked_bytes"]:
        return True
    if since is None or back["last_ns"] is None or back["resets"] or (back["timeouts"] or 0) >= ALIVE_TIMEOUTS_MAX:
        return False
    return back["last_ns"] - since > max(row["rtt_ns_max"] or 0, LATE_MIN_NS)


def repeats_large(row: DirectionRow) -> bool:
    """Returns whether timers repeated data, and a large segment or more was outstanding at the end."""
    large, left = full_size(row), row["unacked_bytes"] or 0
    repeated = (row["retransmissions"] or 0) >= ATTEMPTS_MIN and (row["timeouts"] or 0) >= 2
    return repeated and left >= large >= LARGE_MIN


def stuck_bytes(transfers: Transfers, row: DirectionRow) -> int:
    """Returns the bytes that were never acknowledged if no large segment was; 0 otherwise."""
    if not repeats_large(row) or not opposite(transfers.trace, row)["packets"]:
        return 0
    large, left, acked = full_size(row), row["unacked_bytes"] or 0, row["acked_segment_max"]
    if (row["unique_bytes"] or 0) - left < large:
        return left if (acked or 0) < large else 0
    repeated = min(large, (row["retransmitted_bytes"] or 0) // (row["retransmissions"] or 1))
    if acked is None or acked >= repeated or repeated < LARGE_MIN:
        return 0
    return left if answered_later(transfers, row) else 0


@finding(
    code="path-mtu-black-hole",
    title="Path MTU black hole",
    unit="seconds",
    computed="Segments of 1,200 bytes or more must be retransmitted at least three times, in at least two RTOs. None of that "
    "size may be acknowledged (directions.acked_segment_max), and the other end must answer small packets. If it acknowledged "
    "more than one such segment in all, it must have SACKed smaller ones behind them, or have sent 200 ms or more after the "
    "first of them (directions.unacked_first_ns), without a RST or two RTOs of its own.",
    unknown="The hop with the small MTU. A receiver that drops large packets for another reason looks the same.",
    sentence="{name} retransmitted segments of {size:byte} of payload {times:time}[, and none was acknowledged, while small "
    "packets pass][: the path MTU is probably smaller][. {icmp}].",
    advice=MTU_ADVICE,
)
def path_mtu_black_hole(transfers: Transfers) -> Matches:
    trace = transfers.trace
    for row in transfers.rows("timeouts"):
        left, flow = stuck_bytes(transfers, row), row_at(trace.flows, row["flow"])
        if not left or flow["state"] in FAILED:
            continue
        timeouts = row["timeouts"] or 0
        yield Match(
            flows=[(row["flow"], row["direction"])],
            name=flow_str(row),
            size=full_size(row),
            times=row["retransmissions"],
            icmp="An ICMP error confirms it" if flow["icmp_errors"] else "No ICMP error informed the sender",
            cost=seconds(row["rto_idle_ns"] or 0),
            bytes=left,
            figures=f"{plural(timeouts, 'RTO')}; {show_bytes(left)} of payload outstanding at the end",
            filter=f"{flow_filter(flow)} && tcp.len >= {full_size(row)}",
            cited=longest_wait(transfers, row, "timeout"),
            frames=stalls_of(transfers, row),
            packets=2 * timeouts,
            impact=transfers.traffic_share(row),
        )


MISSING_MIN_NS = 1_000_000_000  # a sender repeats lost data sooner (RFC 6298)
PROBABLE_MTU = (
    "The missing segments are full, {size} of payload each, and none of that size arrived, while smaller ones did: the path MTU "
    "before the capture point is probably smaller"
)


def is_missing_full_segments(row: DirectionRow) -> bool:
    """Returns whether the bytes that never arrived are full segments, and no full segment of the direction arrived."""
    size, missing = row["wire_mss"] or 0, row["missing_bytes"] or 0
    return size >= LARGE_MIN and missing % size == 0 and (row["segment_max"] or 0) < size


def gap_in(transfers: Transfers, row: DirectionRow) -> list[Cited]:
    """Returns the packet behind the last gap of a direction."""
    names, kind = ("direction", "kind", "frame", "time_ns", "capture"), transfers.words["gap"]
    events = transfers.events([row["flow"]], *names)
    gaps = [event[2:] for event in events if event[:2] == (row["direction"], kind)]
    return [transfers.cited(frame, after, row["flow"], capture) for frame, after, capture in gaps[-1:]]


@finding(
    code="never-arrived",
    title="Data that never arrived",
    unit="seconds",
    computed="At the end of a flow, the receiver has reported data above a hole by SACK. Neither it nor the capture has the "
    "bytes of the hole (directions.missing_bytes), which was open for 1 s or more (directions.missing_ns).",
    unknown="Whether the sender repeated the data, because no retransmission passed the capture point.",
    sentence="{name}: {size} of payload never arrived[: the receiver reports the hole by SACK, and nothing filled it for "
    "{time}][. {reason}].",
    headline=("{name}: {size} of payload never arrived[: nothing filled the hole for {time}].",),
    advice="{advice}",
)
def never_arrived(transfers: Transfers) -> Matches:
    for row in transfers.rows("missing_bytes"):
        waited, size = row["missing_ns"] or 0, row["missing_bytes"] or 0
        if waited < MISSING_MIN_NS:
            continue
        full = is_missing_full_segments(row)
        remedy = "Capture at the sender, which shows whether it sends the data again, and check the path to this capture point."
        yield Match(
            flows=[(row["flow"], row["direction"])],
            name=flow_str(row),
            size=show_bytes(size),
            time=show_duration(waited),
            reason=PROBABLE_MTU.format(size=show_bytes(row["wire_mss"] or 0))
            if full
            else "It was lost before the capture point",
            advice=MTU_ADVICE if full else remedy,
            cost=seconds(waited),
            bytes=size,
            filter=flow_filter(row_at(transfers.trace.flows, row["flow"])),
            cited=gap_in(transfers, row),
            impact=transfers.traffic_share(row),
        )


def cause_text(event: EventRow) -> str:
    """`TTL exceeded`, `fragmentation needed, MTU 1400` of an ICMP error."""
    words = (event["cause"] or "").replace("_", " ").replace("ttl", "TTL")
    return f"{words}, MTU {event['mtu']}" if event["mtu"] else words


def cited_in(events: list[EventRow]) -> Words:
    """Returns the packets of the first events as a field of a match; nothing without any."""
    cited = [Cited(event["frame"], event["time_ns"], event["flow"], event["capture"]) for event in events[:SHOWN]]
    return {"cited": cited} if cited else {}


@finding(
    code="icmp-errors",
    title="ICMP errors about flows",
    unit="packets",
    computed="ICMP and ICMPv6 errors that quote the header of a flow in the capture, with their types. Probes of traceroute and "
    "mtr, whose TTL must run out, do not count.",
    unknown="Errors that took another path or were filtered.",
    sentence="Routers or hosts sent ICMP errors about {count:flow}{details}.",
    headline=("{sentence}", "Routers or hosts sent ICMP errors about {count:flow}[{causes}]."),
    advice="Check their types: unreachable ports and hosts, exceeded TTLs, or a path MTU that is too small.",
)
def icmp_errors(transfers: Transfers) -> Matches:
    counts, events = errors_beside_probes(transfers)
    details = {event["detail"]: cause_text(event) for event in events if event["detail"]}
    ordered = sorted(details)[:SHOWN]
    return flows_match(
        transfers,
        [number for number, _ in counts],
        **cited_in(events),
        details=f": {'; '.join(ordered)}" if ordered else "",
        causes=f": {'; '.join(dict.fromkeys(details[detail] for detail in ordered))}" if ordered else "",
        cost=float(sum(count for _, count in counts)),
        packets=sum(count for _, count in counts),
        filter="icmp.type in {3, 4, 5, 11, 12} || icmpv6.type in {1, 2, 3, 4}",
    )


def errors_beside_probes(transfers: Transfers) -> tuple[Counts, list[EventRow]]:
    """Returns the number of ICMP errors of each flow, and the first of them, without those that traceroute wants."""
    probes = {flow for path in traced_paths(transfers) for flow in path.flows}
    counts = [each for each in transfers.flow_counts["icmp_errors"] if each[0] not in probes]
    events = rows_of_kind(transfers, "icmp_error", ICMP_ERRORS_MAX) if counts else []
    return counts, [event for event in events if event["flow"] not in probes]


@finding(
    code="path-mtu",
    title="Path MTU discovery",
    severity="info",
    unit="packets",
    computed="ICMP errors 'fragmentation needed' (RFC 1191) or 'packet too big' (RFC 8201) that quote a flow.",
    unknown="Errors that took another path.",
    sentence="A router reported a smaller path MTU to {count:sender}[ ({detail})][: each loses one or two packets until "
    "it adapts].",
    advice="Lower the interface MTU or clamp the MSS to avoid the first losses; path MTU discovery works.",
)
def path_mtu(transfers: Transfers) -> Matches:
    events = rows_of_kind(transfers, "icmp_error", ROWS_MAX) if transfers.flow_counts["icmp_errors"] else []
    reports = [event for event in events if event["cause"] in MTU_REPORTS]
    return flows_match(
        transfers,
        sorted({flow for event in reports if (flow := event["flow"]) is not None}),
        detail=reports[0]["detail"] if reports else "",
        cost=float(len(reports)),
        packets=len(reports),
        **cited_in(reports),
        filter="icmp.type == 3 && icmp.code == 4 || icmpv6.type == 2",
    )


@finding(
    code="ecn-ignored",
    title="Congestion marks not echoed",
    unit="packets",
    computed="A TCP direction has packets marked Congestion Experienced, and the other end sent no ECE.",
    unknown="Whether ECN was negotiated if the SYNs were not captured. AccECN echoes differently.",
    sentence="{name} has {count:packet} with a congestion mark[, and the receiver echoed none][ (RFC 3168)][: the sender "
    "does not slow down].",
    advice="Compare captures at both ends for a stack or middlebox that clears ECE, or one that marks packets that "
    "are not ECN-capable.",
)
def ecn_ignored(transfers: Transfers) -> Matches:
    trace, rows = transfers.trace, transfers.rows("ecn_ce")
    first = transfers.event_frames([row["flow"] for row in rows], ["congestion_mark"])
    for row in rows:
        flow, back = row_at(trace.flows, row["flow"]), opposite(trace, row)
        by_router = row["ecn_ce"] < row["packets"]  # as in congestion-marks
        if flow["protocol"] == "tcp" and by_router and back["ecn_echo"] == 0 and back["packets"]:
            cited = first.get((row["flow"], row["direction"]), [])
            yield Match(
                flows=[(row["flow"], row["direction"])],
                name=flow_str(row),
                count=row["ecn_ce"],
                cost=float(row["ecn_ce"]),
                cited=cited,
                packets=row["ecn_ce"],
                filter=f"{flow_filter(flow)} && ip.dsfield.ecn == 3",
                impact=transfers.traffic_share(row) * row["ecn_ce"] / max(row["packets"], 1),
            )


@finding(
    code="keep-alive-unanswered",
    title="Keep-alives without an answer",
    unit="connections",
    computed="Three keep-alives or more must follow the other end's last packet, and the capture must not hide the answers "
    "as in syn-unanswered.",
    unknown="Whether the other end is down or the path dropped the connection.",
    sentence="{name} sent {count:keep-alive} and received nothing in the last {silent}[: the other end is down, or a "
    "middlebox dropped the connection].",
    advice="Check the other end and the idle timeouts of middleboxes; a shorter keep-alive interval keeps their entry alive.",
)
def keep_alive_unanswered(transfers: Transfers) -> Matches:
    trace = transfers.trace
    for row in transfers.rows("keep_alives"):
        last_ns, back_ns, count = row["last_ns"], opposite(trace, row)["last_ns"], row["keep_alives"] or 0
        if count < UNANSWERED_MIN or not back_ns or last_ns is None:
            continue
        silent = last_ns - back_ns
        if silent <= 0 or not row["idle_ns_max"] or silent < (UNANSWERED_MIN - 1) * min(row["idle_ns_max"], 10**9):
            continue
        if not transfers.hidden.conclusive([row["flow"]]):
            continue
        flow = row_at(trace.flows, row["flow"])
        cited = transfers.event_frames([row["flow"]], ["keep_alive"]).get((row["flow"], row["direction"]), [])
        yield Match(
            flows=[(row["flow"], row["direction"])],
            name=flow_str(row),
            count=count,
            silent=show_duration(silent),
            cost=1.0,
            packets=count,
            filter=transfers.files.frame_filter(cited) or flow_filter(flow),
            impact=transfers.traffic_share(row) * 0.1,
            cited=cited,
        )


@finding(
    code="mss-clamped",
    title="Small maximum segment size",
    severity="info",
    unit="bytes",
    computed="The MSS option in the receiver's SYN must be 1,400 bytes or less, in a transfer of 1 MB or more. The "
    "cost is the additional header bytes, compared with an MSS of 1,460.",
    unknown="Whether the receiver or a router set the MSS. Compare captures on both sides of the router.",
    sentence="{name} sends segments of at most {mss:byte} of payload[, because the receiver or a router set that MSS]"
    "[ (Ethernet allows 1,460)][: headers take {share} more of the link].",
    advice="Check for a tunnel or an MSS clamp; if a tunnel needs it, leave it as it is.",
)
def mss_clamped(transfers: Transfers) -> Matches:
    for transfer in transfers.tcp():
        mss = transfer.back["mss"]
        if mss and mss <= CLAMPED_MAX and (transfer.row["unique_bytes"] or 0) >= BULK_MIN:
            lost = 1 - mss / (mss + 78) / FULL_SEGMENT
            yield transfer.match(
                mss=mss,
                share=show_share(lost, 1),
                cost=float(round(lost * transfer.row["wire_bytes"])),
                filter=f"{flow_filter(transfer.flow)} && tcp.options.mss_val",
                cited=opening(transfers, transfer),
                weight=lost,
            )


@finding(
    code="small-packets",
    without_packets="a mean size over all packets",
    title="Mostly headers",
    severity="info",
    unit="bytes",
    computed="1,000 packets or more with 200 bytes of payload or less on average: payload of the wire bytes, compared "
    "with full packets. The cost is the wire bytes that full packets would save.",
    unknown="Whether the application can send more at a time. Voice cannot.",
    sentence="{name} sends {mean:byte} of payload per packet[: {share} of its wire bytes are payload, and {full} in "
    "full packets][. The link could carry {factor} times as much].",
    advice="Put more into each packet (larger blocks, buffered writes) if delay allows.",
)
def small_packets(transfers: Transfers) -> Matches:
    for transfer in transfers.largest:
        packets, payload, wire = (
            transfer.row["data_packets"] or 0,
            transfer.row["payload_bytes"] or 0,
            transfer.row["wire_bytes"],
        )
        if packets >= SMALL_PACKETS and payload / packets <= SMALL_PAYLOAD and transfer.row["goodput_bps"] is not None:
            yield transfer.match(
                mean=round(payload / packets),
                share=show_share(payload, wire),
                full=show_share(FULL_SEGMENT, 1),
                factor=f"{FULL_SEGMENT * wire / payload:,.1f}",
                cost=float(round(wire - payload / FULL_SEGMENT)),
                figures=f"{packets:,} packets",
                weight=(1 - payload / wire) * 0.5,
            )
