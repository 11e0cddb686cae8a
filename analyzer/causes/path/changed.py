# SPDX-License-Identifier: Apache-2.0
"""Packets that the path changed: damaged ones, SACK blocks of another numbering, and a smaller MSS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.path.lossy import EFFECTS, Lossy, ends_of, lossy_transfers, route_of
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import Side
from wiretale.analyzer.findings.transfers import Transfer, rows_of_kind
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import DirectionRow, EventRow, FlowRow

ERRORS_MAX, FOUND_NS = 200, 1_000_000_000  # ICMP errors; from one to the losses that it explains
NEARLY_ALL = 0.9  # of losses
HEADERS = {False: 40, True: 60}  # bytes of IPv4 or IPv6, and TCP
IGNORED_MIN = 3  # packets with a wrong checksum that nobody accepted
REPEATED_MIN = 3  # retransmissions; of a flight of which nothing arrives, only the first segment is repeated
SHIFTED_MIN = 3  # ACKs
ETHERNET_MSS, TUNNEL_MSS = 1460, 1220  # bytes; tunnels need none below
WAITED_FOR_PATH = ("network", "slow_start", "loss")


def transfers_of(case: Case) -> Iterator[Transfer]:
    """Yields the largest TCP transfers, and those that stalled longest."""
    yield from case.transfers.limited()


def ignored_rows(case: Case) -> Iterator[int]:
    """Yields the directions in which enough packets have a wrong checksum, and none of them was accepted."""
    yield from (number for number, count in case.transfers.counts["checksums_ignored"] if count >= IGNORED_MIN)


@cause(
    code="wrong-checksums",
    title="A sender whose checksums are wrong",
    sentence="{source} sent {count:packet} to {destination} with a wrong {layer} checksum, and the receiver ignored every one"
    "{success}: {what}an offload bug of the sender{price}.",
    advice="Turn the offload off at {source}: `ethtool -K DEVICE tx off`{tunnel}.",
    shows="At least three packets of a TCP direction have a wrong checksum, their own or that of a VXLAN or other UDP tunnel "
    "around them. It is not the bare sum of the pseudo-header. The receiver acknowledged none of them "
    "(directions.checksums_ignored), and they were retransmitted.",
    rivals={
        "damaged-packets": "the checksum is wrong in all packets of a kind, not in a few",
        "offload": "the receiver ignored them: an adapter would have filled in the checksum after the capture",
    },
    explains=("damaged-packets", *EFFECTS),
)
def wrong_checksums(case: Case) -> Matches:
    groups: dict[tuple[str, str, bool, bool], list[Direction]] = {}
    for number in ignored_rows(case):
        flow, row = case.flow(number // 2), case.direction(number // 2, number % 2)
        ignored, right = row["checksums_ignored"] or 0, right_sums(row)
        if (row["retransmissions"] or 0) >= min(ignored - 1, REPEATED_MIN) and right <= 3 * ignored:
            key = row["source"], row["destination"], is_in_tunnel(flow), is_of_syns((flow, row))
            groups.setdefault(key, []).append((flow, row))
    for group in groups.values():
        yield ignored_match(group)


def right_sums(row: DirectionRow) -> int:
    """Returns the packets of a direction with a right checksum."""
    return row["checksums_verified"] - (row["checksum_errors"] or 0)


def is_in_tunnel(flow: FlowRow) -> bool:
    """Returns whether packets of a flow are in a tunnel over UDP."""
    return any(name in (flow["path"] or "") for name in ("vxlan", "geneve", "gtp"))


Direction = tuple["FlowRow", "DirectionRow"]


def is_of_syns(direction: Direction) -> bool:
    """Returns whether SYNs or FINs are among the packets that nobody accepts."""
    return bool(direction[1]["syn_fin_retransmissions"])


def is_refused(direction: Direction) -> bool:
    """Returns whether a direction never came through: no handshake, or data that nobody took."""
    return direction[0]["handshake_rtt_ns"] is None or not is_of_syns(direction)


def lost_time(direction: Direction) -> Span:
    """Returns the time that the sender waited for its timers, from the beginning of the flow."""
    flow, row = direction
    waited = (flow["time_connecting_ns"] if is_of_syns(direction) else row["rto_idle_ns"]) or 0
    return Span(flow["first_ns"] or 0, (flow["first_ns"] or 0) + waited)


def are_open(group: Sequence[Direction]) -> bool:
    """Returns whether all connections came about."""
    return all(flow["handshake_rtt_ns"] is not None for flow, _ in group)


def ignored_match(group: Sequence[Direction]) -> Match:
    """Returns the match of directions between two hosts whose packets nobody accepts."""
    flow, row = group[0]
    in_tunnel, ignored = is_in_tunnel(flow), sum(each["checksums_ignored"] or 0 for _, each in group)
    has_right, waited = all(right_sums(each) for _, each in group), union_ns(map(lost_time, group))
    answered = "the first without it" if is_of_syns(group[0]) else "those with a right one"
    return Match(
        certainty="proven" if has_right else "likely",
        place="client" if row["direction"] == 0 else "server",
        flows=[(each["flow"], each["direction"]) for _, each in group],
        failed=sum(map(is_refused, group)),
        waited_ns=waited or None,
        proof=f"{ignored:,} packets with a wrong checksum got no answer; {answered} did",
        excluded={"damaged-packets": "it is wrong in each of them, not in a few"},
        undecided={} if has_right else {"offload": "a capture at the receiver"},
        source=row["source"],
        destination=row["destination"],
        count=ignored,
        layer="outer UDP" if in_tunnel else "TCP",
        success=f", but answered {answered}" if are_open(group) else "",
        what="" if has_right else "probably ",
        price=f", which cost {show_duration(waited)}" if waited else "",
        tunnel=" (the tunnel's device, and the adapter below it)" if in_tunnel else "",
    )


@cause(
    code="damaged-packets",
    title="Packets that arrive damaged",
    sentence="{count:packet} {route} arrived damaged (wrong checksum, {share} of {total}) and {count:~was|were} discarded: a "
    "faulty cable, module or memory before the capture point, not congestion{price}.",
    advice="Compare the error counters of each port and module from {source} to the capture point (`ethtool -S`), and "
    "`nstat -az TcpInCsumErrors` at {destination}; replace the part after which they rise.",
    shows="TCP or UDP checksums are wrong in some packets of a direction and right in more, and the sender repeats the data "
    "of the wrong ones (finding damaged-packets).",
    rivals={
        "random-loss": "the packets are in the capture, with a wrong checksum",
        "offload": "a checksum that is left to the adapter is the sum of the pseudo-header, or in all packets of the host",
    },
    unknown="Damage after the capture point, which shows as loss here. Packets that the snap length cut.",
    explains=EFFECTS,
)
def damaged_packets(case: Case) -> Matches:
    by_side: dict[Side, Transfer] = {transfer.side: transfer for transfer in transfers_of(case)}
    for each in case.findings("damaged-packets"):
        transfer = by_side.get(each.finding.flows[0]) if each.finding.flows else None
        if transfer is None:
            continue
        row = transfer.row
        count, waited = row["checksum_errors"] or 0, transfer.held_up_ns
        source, destination = ends_of(transfer)
        yield Match(
            certainty="proven",
            place="before",
            findings=[each],
            flows=[transfer.side],
            waited_ns=waited or None,
            proof=f"{plural(count, 'checksum')} of {row['packets']:,} wrong, the others right; the same data came again intact",
            excluded={"random-loss": "the damaged packets are in the capture"},
            count=count,
            share=show_share(count, row["packets"]),
            total=row["packets"],
            route=f"from {source} to {destination}",
            source=source,
            destination=row["destination"],
            price=f"; repairing them took {show_duration(waited)}" if waited else "",
        )


@cause(
    code="options-rewritten",
    title="Sequence numbers rewritten, SACK blocks not",
    sentence="A firewall between {source} and {destination} shifts TCP sequence numbers but not the SACK blocks: all {count} lie "
    "outside the data that was sent, so losses end in {timeouts:timeout}{price}.",
    advice="Turn sequence randomization off on that firewall (Cisco ASA: `set connection random-sequence-number disable`), or "
    "SACK at one end (`net.ipv4.tcp_sack=0`).",
    shows="At least three ACKs have SACK blocks outside of the data that was sent, all shifted by one constant. Their "
    "distances from the acknowledged byte differ by less than a receive window (directions.sacks_outside, sack_shift_spread).",
    rivals={
        "random-loss": "SACK would have repaired the losses without a timeout",
        "tail-loss": "later data arrived, and SACK blocks that do not fit report it",
    },
    unknown="On the other side of the firewall its numbers are consistent, and nothing shows.",
    explains=EFFECTS,
)
def options_rewritten(case: Case) -> Matches:
    for transfer in transfers_of(case):
        back = transfer.back
        outside, spread = back["sacks_outside"] or 0, back["sack_shift_spread"]
        window = max(back["window_max"] or 0, 65_535)
        if outside < SHIFTED_MIN or spread is None or spread > window or 2 * outside < (back["sack_acks"] or 0):
            continue
        waited, timeouts = transfer.held_up_ns, (transfer.row["timeouts"] or 0)
        source, destination = ends_of(transfer)
        yield Match(
            certainty="proven",
            place="device",
            flows=[transfer.side],
            waited_ns=waited or None,
            proof=f"{outside:,} SACK blocks off by one constant, within {show_bytes(spread)}; both SYNs permit SACK",
            excluded={"random-loss": "the blocks that would have repaired the losses do not fit the stream"},
            source=source,
            destination=destination,
            count=outside,
            timeouts=timeouts,
            price=f" that took {show_duration(waited)}" if waited else "",
        )


@cause(
    code="mss-clamp",
    title="MSS clamped far below the path",
    sentence="{who} the MSS of {route} to {mss} bytes: {factor} times the packets that Ethernet needs, and only {payload} of "
    "{wire} on the wire is payload.",
    advice="Clamp to the route instead: `nft add rule … tcp flags syn tcp option maxseg size set rt mtu` (Cisco `ip tcp "
    "adjust-mss`), or remove the clamp.",
    shows="Segments of a transfer are full at an MSS of less than 1,220 bytes, which no usual tunnel needs.",
    rivals={
        "offload": "sizes are those of the MSS option",
        "app-limited": "the segments are full",
    },
    unknown="Whether a router or the host itself set the MSS, unless the host announces a larger one elsewhere.",
    explains=("mss-clamped", "small-packets"),
)
def mss_clamp(case: Case) -> Matches:
    by_side: dict[Side, Transfer] = {transfer.side: transfer for transfer in transfers_of(case)}
    for each in case.findings("mss-clamped"):
        transfer = by_side.get(each.finding.flows[0]) if each.finding.flows else None
        mss = (transfer.back["mss"] or transfer.row["segment_max"]) if transfer else None
        if transfer is not None and mss and mss < TUNNEL_MSS:
            yield clamp_match(case, transfer, each, mss)


def clamp_match(case: Case, transfer: Transfer, each: Numbered, mss: int) -> Match:
    """Returns the match of a transfer in segments of a small MSS. Headers took their share of the time that the path limited."""
    row, wasted, larger = transfer.row, each.finding.bytes or 0, largest_mss(case, transfer)
    waited = round(wasted / max(row["wire_bytes"], 1) * sum(transfer.times.get(name, 0) for name in WAITED_FOR_PATH))
    seconds, host = max(transfer.duration_ns, 1) / 1e9, row["destination"]
    elsewhere = f"; {host} announces {larger:,} elsewhere" if larger else ""
    return Match(
        certainty="proven" if larger else "likely",
        place="device" if larger else "path",
        findings=[each],
        flows=[transfer.side],
        waited_ns=waited or None,
        bytes=wasted,
        proof=f"full segments of {mss:,} bytes, the MSS in the handshake{elsewhere}",
        undecided={} if larger else {"offload": f"the SYN as it left {host}: a capture there"},
        who="A router clamps" if larger else "A router, or the host itself, probably limits",
        route=route_of(transfer),
        mss=f"{mss:,}",
        factor=f"{ETHERNET_MSS / mss:.1f}",
        payload=show_rate(8 * transfer.payload_bytes / seconds),
        wire=show_rate(8 * row["wire_bytes"] / seconds),
    )


def largest_mss(case: Case, transfer: Transfer) -> int | None:
    """Returns a larger MSS that the receiver announces to others; None if it announces none."""
    rows = case.trace.directions
    here, host = transfer.back["mss"] or 0, transfer.row["destination"]
    values = [
        mss
        for source, mss in zip(rows.column("source"), rows.column("mss"), strict=True)
        if source == host and mss is not None
    ]
    return max((mss for mss in values if mss > here), default=None)


def found_by(case: Case, lossy: Lossy) -> EventRow | None:
    """Returns the ICMP error by which a router reported, at the time of nearly all losses, that packets of a transfer are too
    big: no link or queue lost them. None without one."""
    flow = lossy.transfer.row["flow"]
    if not lossy.transfer.flow["icmp_errors"] or not lossy.transfer.row["unique_bytes"]:
        return None
    errors = [
        row for row in rows_of_kind(case.transfers, "icmp_error", ERRORS_MAX) if row["flow"] == flow and row["mtu"]
    ]
    near = sum(any(abs(loss.time_ns - (row["time_ns"] or 0)) <= FOUND_NS for row in errors) for loss in lossy.losses)
    return errors[0] if errors and near >= NEARLY_ALL * len(lossy.losses) else None


@cause(
    code="path-mtu-found",
    title="The sender learned a smaller path MTU",
    sentence="The router {router} told {source} that at most {mtu} bytes pass, and {source} sent {lost:segment} again in smaller "
    "packets: path MTU discovery works as it should.",
    advice="Nothing to repair. If it disturbs, clamp the MSS to {mss} bytes at that router.",
    shows="ICMP errors 'fragmentation needed' or 'packet too big' are about a transfer, and nearly all of its losses are "
    "within 1 s of these. The transfer went on.",
    rivals={
        "mtu-black-hole": "the sender heeds the error, and the transfer goes on",
        "random-loss": "a router reported what it dropped, and why",
    },
    explains=(*EFFECTS, "icmp-errors", "path-mtu"),
)
def path_mtu_found(case: Case) -> Matches:
    for lossy in lossy_transfers(case) if case.findings("path-mtu") else ():
        error = found_by(case, lossy)
        if error is None:
            continue
        row, mtu = lossy.transfer.row, error["mtu"] or 0
        source, _ = ends_of(lossy.transfer)
        yield Match(
            certainty="proven",
            place="after" if lossy.place == "downstream" else "before",
            flows=[lossy.transfer.side],
            severity="info",
            filter="icmp.type == 3 && icmp.code == 4 || icmpv6.type == 2",
            proof=f"ICMP of {error['router']} at the time of the losses",
            excluded={
                "mtu-black-hole": f"{show_bytes(row['unique_bytes'] or 0)} arrived",
                "random-loss": "a router reported them",
            },
            router=error["router"] or "on the way",
            source=source,
            mtu=f"{mtu:,}",
            mss=f"{max(mtu - HEADERS[':' in row['source']], 0):,}",
            lost=lossy.lost,
        )
