# SPDX-License-Identifier: Apache-2.0
"""Rules about the time of TCP transfers by limiting factor (RFC 6349): application, receiver, loss, slow start, path."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.model import SECOND, Match, Matches, endpoint_str, finding, seconds
from wiretale.analyzer.findings.shared.places import longest_wait, opening, slow_start_of, stalls_of
from wiretale.analyzer.findings.transfers import (
    NULL_BYTE,
    RETRANSMISSIONS,
    TIMES,
    Transfer,
    Transfers,
    median_of,
    only_fin_repeated,
)
from wiretale.analyzer.units import agreeing, plural, show_bytes, show_duration, show_rate, show_share

CHAPTER = "Throughput limits"
DURATION_MIN_NS = 200_000_000  # shares of a shorter transfer mean nothing
SHARE_WARNING, SHARE_INFO = 0.25, 0.10  # of transfer time
IDLE_INFO, SLOW_START_INFO, PATH_INFO = 0.5, 0.3, 0.7
BULK_MIN = 1_000_000  # bytes of a transfer whose rate matters
DELAYED_ACK_MIN_NS = 120_000_000  # three delayed ACKs of Linux
UNSCALED_MAX = 65_535  # bytes of a window without scaling (RFC 7323)
UNSCALED_SHARE = 0.75  # of them: a window that never reaches more is smaller for another reason
STALL_ENDS = ("timeout_retransmission", "suspected_timeout")
STALL_WARNING_NS = 1_000_000_000
LOSSES_MIN = 6
QUEUE_SHARE, QUEUE_MIN_NS = 0.3, 1_000_000  # RTT growth up to both is not a queue
CARRIED = 0.4  # of a flight, at the rate and the least round trip: with less, the rest stands in a queue
FLIGHT_MIN = 4.0  # segments: a smaller window cannot trigger fast retransmit
PATH_WEIGHT = 0.1  # ranks after findings that explain it: an uneven share, a full link
ETHERNET_MSS = 1460
RETRANSMITTED_MIN = 10_000  # bytes
LOSS_TIMES = ("network", "loss", "timeout")  # that losses take
RECOVERED_MIN = 50_000  # bytes of a transfer that losses delay

limit_finding = partial(finding, unit="seconds")

ACCOUNTING = (
    "Each gap between two data segments is attributed to what its sender waited for in its own view (directions.time_*, the "
    "same account as flows.time_*), if the direction has at least 8 packets. TSecr shows that view at any capture point: it is "
    "the newest ACK that the sender had processed (RFC 7323). Without timestamps, it is the newest that passed the sender's RTT "
    "before. docs/tables.md has the rules (Where the time went). Shares are of the life of the flow without the time in which "
    "nobody waited; the pauses of the sender of a flow without turns count. "
)
SENDER_VIEW = (
    "Without timestamps, a queue between the sender and the capture point looks like the network. The time is unknown if such "
    "a queue may hide a full window, or spread single writes, for more than a tenth of the time. It is unknown if the sender "
    "may have paced the segments that filled the window for so long, or if the RTT to the sender is unknown. It is unknown, "
    "too, if a shaper in the sender's host and too little data may have been the limit in turns: fewer than 10 segments in "
    "flight, with PSH. "
)


def examined(transfers: Transfers, limit: str | None = None, share: float = 0.0) -> Iterator[Transfer]:
    """Returns TCP transfers whose time is accounted over at least 200 ms, of which one part took at least this share."""
    accounted = (
        transfer for transfer in transfers.limited() if transfer.times and transfer.waited_ns >= DURATION_MIN_NS
    )
    return (transfer for transfer in accounted if limit is None or transfer.share(limit) >= share)


def events_of(transfers: Transfers, transfer: Transfer, *kinds: str, back: bool = False) -> list[Cited]:
    """Returns the packets of the first events of a transfer, or of the other direction; none if it has none."""
    flow, direction = transfer.side
    return transfers.event_frames([flow], kinds).get((flow, direction ^ back), [])


def limited(transfer: Transfer, *limits: str, severity: str | None = None, weight: float = 1.0, **words: Any) -> Match:
    """Returns a match about the time of some limits."""
    transfer_ns, ns = transfer.waited_ns, sum(transfer.times[name] for name in limits)
    parts = sorted(transfer.times.items(), key=lambda item: -item[1])
    shares = ", ".join(
        f"{TIMES[name]} {show_share(part, transfer_ns)}" for name, part in parts if part >= transfer_ns / 100
    )
    return transfer.match(
        severity,
        time=show_duration(ns),
        share=show_share(ns, transfer_ns),
        cost=words.pop("cost", seconds(ns)) or None,
        figures=f"transfer time ({show_duration(transfer_ns)}): {shares}; series: flight_bytes, window_bytes, rtt_ns, "
        "retransmitted_bytes",
        weight=min(ns / (transfer_ns or 1), 1.0) * weight,
        **words,
    )


def severity_of(share: float) -> str:
    return "warning" if share >= SHARE_WARNING else "info"


def limited_by_share(transfer: Transfer, limit: str, **words: Any) -> Match:
    """Returns a match about the time of one limit, whose share of transfer time decides the severity."""
    return limited(transfer, limit, **{"severity": severity_of(transfer.share(limit)), **words})


def stall_fields(transfers: Transfers, transfer: Transfer, count: int) -> dict[str, Any]:
    """Returns packets and filter of `count` RTOs: those around the longest stalls, of which the longest is the span, else the
    retransmissions, also if the files of the stalls' frames are unknown."""
    frames, cited, around = (
        stalls_of(transfers, transfer.row),
        longest_wait(transfers, transfer.row, "timeout"),
        2 * count,
    )
    if not frames:
        frames = cited = transfers.event_frames([transfer.row["flow"]], STALL_ENDS).get(transfer.side, [])
        around = count
    return {"cited": cited, "frames": frames, "packets": around, "filter": transfers.files.frame_filter(frames)}


FIND_LOSS = "Find the loss first."
THREE_DUPLICATES = "Keep four segments in flight, because fast retransmit needs three duplicate ACKs."
ENABLE_SACK = "Enable SACK at both ends (net.ipv4.tcp_sack), which tail loss probes and RACK (RFC 8985) need."
CHECK_SACK = "Check that both ends permit SACK, which this needs: the capture has no SYN of theirs."
RACK = "RACK (RFC 8985; net.ipv4.tcp_recovery=1) also repairs a lost retransmission without an RTO."
PROBES = (
    "The last data before a pause was lost, so too few duplicate ACKs came for fast retransmit: with tail loss probes (RFC "
    "8985; net.ipv4.tcp_early_retrans=3) the sender repairs it in about two round trips."
)
PROBING = "The sender has tail loss probes (RFC 8985) already: a probe was lost too, or came too late."
ALL_SPURIOUS = (
    "Their data had arrived: find the delay of the data or its ACKs, which was longer than the RTO, or the loss of the ACKs. "
    "F-RTO (RFC 5682) and timestamps at both ends let the sender undo its reaction."
)
LOSS_OF_OTHERS = " Find also the loss of the other segments."


def has_sack(transfer: Transfer) -> bool | None:
    """Returns whether both ends permitted SACK; None if the SYN of an end that may have is not in the capture."""
    ends = (transfer.row["sack_permitted"], transfer.back["sack_permitted"])
    return False if False in ends else None if None in ends else True


def loss_advice(transfer: Transfer, expired: int, tails: int) -> str:
    """Returns advice about losses that ended in an RTO: of `expired` RTOs, `tails` repaired the last data sent (RFC 8985)."""
    if (
        transfer.row["retransmissions"] == transfer.row["syn_fin_retransmissions"]
        and not transfer.row["suspected_timeouts"]
    ):
        return FIND_LOSS  # nothing helps a SYN or FIN but its timer
    of_tail, sack = tails and 2 * tails >= expired, has_sack(transfer)
    if sack is False:
        remedies = [ENABLE_SACK] if of_tail else [ENABLE_SACK, THREE_DUPLICATES]
    elif of_tail:
        remedies = [PROBING if transfer.row["probe_retransmissions"] else PROBES]
    else:
        remedies = [THREE_DUPLICATES, RACK]
    return " ".join([FIND_LOSS, *remedies, *([CHECK_SACK] if sack is None else [])])


def lost_acks_advice(lost: int, sender: str, all_spurious: bool) -> str:
    """Returns advice about ACKs that did not reach the sender, and about the losses of other segments if there are any."""
    acks = f"at least {plural(lost, 'ACK')} of it {agreeing(lost, 'was', 'were')} lost after the capture point"
    data = "Their data" if all_spurious else "Data"
    where = f"find the loss between the capture point and {sender}, or why {sender} discards them."
    return f"{data} had arrived, and {acks}: {where}{'' if all_spurious else LOSS_OF_OTHERS}"


def timeout_advice(transfers: Transfers, transfer: Transfer) -> str:
    """Returns advice about the loss, or about the delay that made RTOs spurious. Go-back-N retransmits several segments."""
    kind, side, tail = transfers.words["timeout_retransmission"], transfer.row["direction"], transfers.words["tail"]
    events = transfers.events([transfer.row["flow"]], "direction", "kind", "spurious", "cause")
    again = [
        (spurious == 1, cause) for direction, event, spurious, cause in events if (direction, event) == (side, kind)
    ]
    needless, suspected = sum(spurious for spurious, _ in again), transfer.row["suspected_timeouts"] or 0
    if not needless:
        tails, plain = (sum(cause == of for _, cause in again) for of in (tail, NULL_BYTE))
        return loss_advice(transfer, tails + plain + suspected, tails + suspected)
    lost = transfer.back["acks_lost_downstream"] or 0
    if lost:
        return lost_acks_advice(lost, transfer.row["source"], needless == len(again) and not suspected)
    if needless == len(again) and not suspected:
        return ALL_SPURIOUS
    return (
        f"{needless:,} of {plural(len(again), 'segment')} that RTOs retransmitted had arrived, so find the delay of the data "
        "or its ACKs; F-RTO (RFC 5682) and timestamps let the sender undo its reaction. Find also the loss of the others."
    )


@limit_finding(
    code="timeout-stalls",
    title="Stalled in retransmission timeouts",
    severity="warning if stalled for 1 s or 25% of transfer time, else info; info if all RTOs are suspected, or of FINs alone",
    computed="Sums the idle time before each RTO (directions.rto_idle_ns, RFC 6298). It begins with the latest of: last "
    "transmission of the segment, last ACK that advanced, reopening of a zero window. For a suspected RTO, it begins with the "
    "previous data. The evidence is the frames before and after the longest stalls (waits); the filter selects them.",
    unknown="How long the sender would have waited without the loss.",
    sentence="{name} stalled {time} ({share} of transfer time) in {timeouts}{suspected}: no ACK triggered fast retransmit.",
    headline=("{name} stalled {time}{life} in {timeouts}[{suspected}][: no ACK triggered fast retransmit].",),
    summary="stalled in retransmission timeouts",
    advice="{advice}",
)
def timeout_stalls(transfers: Transfers) -> Matches:
    for transfer in transfers.limited():
        suspected = transfer.row["suspected_timeouts"] or 0
        ns, count = transfer.row["rto_idle_ns"], (transfer.row["timeouts"] or 0) + suspected
        if not ns or not count or not transfer.duration_ns:
            continue
        share = min(ns / transfer.waited_ns, 1.0)
        probable = f" ({suspected:,} suspected)" if 0 < suspected < count else ""
        is_note = suspected == count or only_fin_repeated(transfer.row)
        yield transfer.match(
            "info" if is_note else "warning" if ns >= STALL_WARNING_NS else severity_of(share),
            time=show_duration(ns),
            share=show_share(ns, max(transfer.waited_ns, ns)),
            advice=timeout_advice(transfers, transfer),
            timeouts=plural(count, "suspected RTO" if suspected == count else "RTO"),
            suspected=probable,
            cost=seconds(ns),
            saving_ns=None if is_note else ns,
            weight=share,
            **stall_fields(transfers, transfer, count),
        )


def usual_window(transfers: Transfers, transfer: Transfer) -> float | None:
    """Returns the median of the receive window over time bins; None if unknown."""
    usual = median_of(transfers.bins(transfer).window_bytes)
    return None if math.isnan(usual) else usual


def not_scaled(transfer: Transfer) -> bool:
    """Returns whether both SYNs were captured and window scaling is off."""
    seen = transfer.row["sack_permitted"] is not None and transfer.back["sack_permitted"] is not None
    return seen and (transfer.row["window_scale"] is None or transfer.back["window_scale"] is None)


def window_reason(transfers: Transfers, transfer: Transfer) -> tuple[str, str]:
    """Returns why the receive window limited a transfer, and the advice."""
    receiver = endpoint_str(transfer.row["destination"], transfer.row["destination_port"])
    closed = transfer.back["zero_window_ns"] or 0
    if closed and closed >= transfer.times["window"] / 2:
        return (
            f"it was zero for {show_duration(closed)}, because the application does not read fast enough",
            f"Profile the application on {receiver}: the network could carry more than it reads.",
        )
    if not_scaled(transfer) and (transfer.back["window_max"] or 0) >= UNSCALED_SHARE * UNSCALED_MAX:
        return (
            "window scaling is off (RFC 7323), so it cannot exceed 64 KiB of payload",
            "Enable window scaling at both ends (net.ipv4.tcp_window_scaling), and check for a firewall that strips it.",
        )
    usual = usual_window(transfers, transfer)
    return (
        f"its median was {show_bytes(usual)} of payload" if usual else "it was full",
        f"Raise the receive buffer of {receiver} to the desired rate times the RTT: net.ipv4.tcp_rmem, or SO_RCVBUF if the "
        "application sets it, which turns autotuning off.",
    )


@limit_finding(
    code="receive-window-limited",
    title="Receive window limited",
    severity="warning from 25% of transfer time, else info",
    computed=ACCOUNTING
    + "Reported from 10% of transfer time, with the cause: zero window, no scaling, or a small window.",
    unknown=SENDER_VIEW + "The window scale is known only if both SYNs were captured.",
    sentence="{name} waited {time} ({share} of transfer time) for the receive window: {reason}.{rtt}",
    headline=("{name} waited {time}{life} for the receive window[: {reason}].[{rtt}]",),
    summary="waited for the receive window",
    advice="{advice}",
)
def receive_window_limited(transfers: Transfers) -> Matches:
    for transfer in examined(transfers, "window", SHARE_INFO):
        reason, advice = window_reason(transfers, transfer)
        rtt = f" The RTT is {show_duration(transfer.path_rtt_ns)}." if transfer.path_rtt_ns else ""
        cited = longest_wait(transfers, transfer.row, "window") or events_of(transfers, transfer, "window_full")
        yield limited_by_share(transfer, "window", reason=reason, rtt=rtt, advice=advice, cited=cited)


@limit_finding(
    code="delayed-ack",
    title="Small writes, Nagle and delayed ACKs",
    severity="warning from 25% of transfer time, else info; info for a control connection",
    computed="Sums waits of 30 ms or more for the ACK of a short segment, directly followed by the next data "
    "(directions.time_delayed_ack_ns), because Nagle's algorithm holds data back until then. Reported from 120 ms "
    "and 10% of transfer time.",
    unknown="Whether the receiver was slow for another reason at those times.",
    sentence="{name} waited {time} ({share} of transfer time) for delayed ACKs of short segments: small writes, "
    "Nagle's algorithm (RFC 896) and the delayed-ACK timer (RFC 1122) wait for one another.",
    headline=("{name} waited {time}{life} for delayed ACKs of short segments.",),
    summary="waited for delayed ACKs of short segments",
    advice="Write whole messages at once (buffer, writev, TCP_CORK), or set TCP_NODELAY.",
)
def delayed_ack(transfers: Transfers) -> Matches:
    for transfer in examined(transfers, "delayed_ack", SHARE_INFO):
        if transfer.times["delayed_ack"] >= DELAYED_ACK_MIN_NS:
            info = {"severity": "info"} if transfer.is_control_connection else {}
            cited = longest_wait(transfers, transfer.row, "delayed_ack")
            yield limited_by_share(transfer, "delayed_ack", cited=cited, **info)


@limit_finding(
    code="recovery-limited",
    title="Limited by loss recovery",
    severity="warning if the path was idle for 25% of transfer time, else info",
    computed=ACCOUNTING
    + "Recovery while the bottleneck was busy (directions.recovery_ns) counts, but costs nothing; RTOs (timeout_ns) do not. "
    "Reported from 10% of transfer time.",
    unknown="The rate without the losses.",
    sentence="{name} spent {time} ({share} of transfer time) in loss recovery, each time with a reduced congestion "
    "window.",
    headline=("{name} spent {time}{life} in loss recovery[, each time with a reduced congestion window].",),
    summary="were slowed by loss recovery",
    advice="Remove the cause first (see the findings about losses, reordering and spurious retransmissions of this "
    "transfer); buffer tuning will not help.",
)
def recovery_limited(transfers: Transfers) -> Matches:
    for transfer in examined(transfers, "loss", SHARE_INFO):
        if transfer.unique_bytes >= RECOVERED_MIN and transfer.number not in transfers.lost_together(None):
            cited, held_up_ns = (
                events_of(transfers, transfer, *RETRANSMISSIONS),
                transfer.held_up_ns - transfer.times["timeout"],
            )
            severity = severity_of(held_up_ns / transfer.waited_ns)
            yield limited(transfer, "loss", severity=severity, cited=cited, cost=seconds(held_up_ns))


@finding(
    code="retransmission-cost",
    title="Retransmitted bytes",
    severity="info",
    unit="bytes",
    layer="of payload",
    computed="directions.retransmitted_bytes compared with unique_bytes, from 10 kB and 1%. The time that "
    "retransmissions cost is in timeout-stalls and recovery-limited.",
    unknown="Bytes lost before the capture point: they are carried twice too, but pass it once.",
    sentence="{name}: {again} of retransmitted payload passed the capture point, {share} of the unique payload.",
    summary="carried retransmitted bytes",
    advice="Find the cause in the findings about losses and spurious retransmissions of this transfer.",
)
def retransmission_cost(transfers: Transfers) -> Matches:
    for transfer in transfers.tcp():
        again, unique = transfer.row["retransmitted_bytes"], transfer.row["unique_bytes"]
        if again and unique and again >= max(unique / 100, RETRANSMITTED_MIN):
            yield transfer.match(
                again=show_bytes(again),
                share=show_share(again, unique),
                cost=float(again),
                filter=f"{flow_filter(transfer.flow)} && tcp.analysis.retransmission",
                cited=events_of(transfers, transfer, *RETRANSMISSIONS),
                weight=again / (again + unique),
            )


def queue_grows(transfer: Transfer) -> bool:
    """Returns whether RTTs under load clearly exceed the least."""
    rtt = transfer.round_trips
    if rtt is None or not rtt.least:
        return False
    return exceeds(rtt.median, rtt.least, transfer.path_rtt_ns or rtt.least)


def exceeds(usual_ns: float, least_ns: float, path_ns: float) -> bool:
    """Returns whether RTTs of a path clearly exceed the least."""
    return usual_ns - least_ns > QUEUE_SHARE * path_ns + QUEUE_MIN_NS


class LimitingLoss(NamedTuple):
    """Losses that keep the congestion window small."""

    share: float  # of the segments
    rounds: float  # round trips from one loss to the next, the mean
    flight: float  # segments in flight, the mean


def limiting_loss(transfer: Transfer) -> LimitingLoss | None:
    """Returns the losses if they explain the rate: no queue grows, and the window has no time to grow again after a loss.

    A loss halves the window at most, and each round trip adds a segment, so a window of n segments takes n/2 round trips (Reno;
    CUBIC up to n). None if more retransmissions have no known place than are lost at one: the share may be twice as large then.
    """
    lost = transfer.count("lost_upstream", "lost_downstream")
    path, rtt, rate = transfer.path_rtt_ns, transfer.round_trips, transfer.row["goodput_bps"]
    if not max(LOSSES_MIN, transfer.unplaced) <= lost < transfer.data_segments or not rate:
        return None
    if not path or rtt is None or not rtt.median or queue_grows(transfer):
        return None
    if exceeds(rtt.median, rtt.hosts_least, path):
        return None
    usual = path + rtt.median - rtt.least
    flight = rate / 8 * usual / SECOND / (transfer.back["mss"] or ETHERNET_MSS)
    rounds = transfer.waited_ns / usual / lost
    return LimitingLoss(lost / transfer.data_segments, rounds, flight) if rounds <= max(flight, FLIGHT_MIN) else None


def loss_pace(rounds: float, rtt_ns: float) -> str:
    """Returns `one in 7.3 round trips of 20 ms`, or `3.1 in a round trip of 20 ms`."""
    number = rounds if rounds >= 1 else 1 / rounds
    count, rtt = f"{number:.2g}" if number < 10 else f"{number:,.0f}", show_duration(rtt_ns)
    return f"one in {count} round trips of {rtt}" if rounds >= 1 else f"{count} in a round trip of {rtt}"


def bulk(transfers: Transfers) -> Iterator[tuple[Transfer, LimitingLoss | None]]:
    """Returns transfers of 1 MB and 1 s or more, with the loss that limits them most of the time."""
    for transfer in examined(transfers):
        if (
            transfer.unique_bytes >= BULK_MIN
            and transfer.duration_ns >= STALL_WARNING_NS
            and transfer.row["goodput_bps"]
        ):
            yield transfer, limiting_loss(transfer) if transfer.share(*LOSS_TIMES) >= 0.5 else None


@limit_finding(
    code="loss-limited-window",
    title="Congestion window limited by loss",
    computed="Data must be in flight, or in recovery, for half of transfer time or more (directions.time_network_ns, "
    "time_loss_ns). RTTs must not exceed the minimum of all flows between the hosts. At least six segments must be lost, and "
    "at least one in as many round trips as segments are in flight (goodput times RTT). A congestion window that a loss has "
    "reduced does not grow back in that time (RFC 5681, 9438).",
    unknown="The rate without the losses. BBR hardly reduces its window after a loss. The cause of each loss.",
    sentence="{name} reached {rate}: with {loss} of its segments lost, {pace}, the "
    "congestion window does not grow beyond about {flight}. RTTs did not grow, so loss, not a full queue, limits the rate.",
    headline=("{name} was limited to {rate} by the loss of {loss} of its segments.",),
    summary="had a congestion window that loss kept small",
    advice="Fix the loss. CUBIC or BBR tolerate more than Reno.",
)
def loss_limited_window(transfers: Transfers) -> Matches:
    for transfer, loss in bulk(transfers):
        if loss and transfer.number not in transfers.lost_together(None):
            yield limited(
                transfer,
                *LOSS_TIMES,
                rate=show_rate(transfer.row["goodput_bps"]),
                loss=transfer.loss_share(loss.share),
                pace=loss_pace(loss.rounds, transfer.path_rtt_ns or 0),
                flight=plural(max(round(loss.flight), 1), "segment"),
                cited=events_of(transfers, transfer, *RETRANSMISSIONS),
            )


def path_reason(transfer: Transfer) -> str:
    rtt = transfer.round_trips
    if rtt is None or not queue_grows(transfer):
        return "the path's rate or the congestion window was the limit, neither end"
    usual, least = show_duration(rtt.median), show_duration(rtt.least)
    return f"the path's rate was the limit, because a queue grows after the capture point (median RTT {usual}, least {least})"


@limit_finding(
    code="path-limited",
    title="Limited by the path's rate",
    severity="info",
    computed="Data must be in flight for 70% of transfer time or more, in a transfer of 1 MB and 1 s or more, and "
    "loss must not explain the rate. A healthy bulk transfer has this finding. The series throughput_bps and "
    "flight_bytes show it.",
    unknown=SENDER_VIEW
    + "A sender that limits its congestion window (pacing, BBR), or a send buffer that holds as much as the path, looks the "
    "same.",
    sentence="{name} had data in flight for {share} of transfer time, at a goodput of {rate}[: {reason}].",
    summary="were limited by the path's rate or the congestion window",
    advice="Compare with the capacity of the link: --link RATE, or wiretale theory --link RATE.",
)
def path_limited(transfers: Transfers) -> Matches:
    for transfer, loss in bulk(transfers):
        if not loss and transfer.share("network") >= PATH_INFO:
            rate = show_rate(transfer.row["goodput_bps"])
            cited = longest_wait(transfers, transfer.row, "network")
            yield limited(transfer, "network", weight=PATH_WEIGHT, rate=rate, reason=path_reason(transfer), cited=cited)


@limit_finding(
    code="window-scaling-off",
    title="Window scaling off",
    severity="info",
    computed="Both SYNs were captured, one of them without a window scale option (RFC 7323), and the transfer had "
    "half of 64 KiB in flight or more.",
    unknown="Which end or middlebox removed the option.",
    sentence="{name} has no window scaling, so at most 64 KiB of payload can be in flight[: a goodput of at most "
    "{most} with an RTT of {rtt}].",
    summary="ran without window scaling",
    advice="Enable window scaling at both ends; some firewalls strip it.",
)
def window_scaling_off(transfers: Transfers) -> Matches:
    for transfer in examined(transfers):
        rtt, rate = transfer.path_rtt_ns, transfer.row["goodput_bps"]
        if not rtt or not rate or not not_scaled(transfer) or transfer.unique_bytes < BULK_MIN:
            continue
        if rate / 8 * rtt / SECOND >= UNSCALED_MAX / 2 and transfer.share("window") < SHARE_INFO:
            most = show_rate(UNSCALED_MAX * 8 / rtt * SECOND)
            yield limited(transfer, "window", most=most, rtt=show_duration(rtt), cited=opening(transfers, transfer))


@limit_finding(
    code="slow-start",
    title="Limited by slow start",
    severity="info",
    computed=ACCOUNTING
    + "Reported from 30% of transfer time. The cost is that time less one RTT, in which a connection "
    "with a large congestion window would have sent the same data.",
    unknown=SENDER_VIEW + "Whether the path carries that window at once.",
    sentence="{name} was in slow start for {time} ({share} of transfer time): with {size} of unique payload and an RTT of "
    "{rtt} it ends before the path is full.",
    headline=("{name} was in slow start for {time}{life}.",),
    summary="were limited by slow start",
    advice="Reuse connections, and do not let them idle (net.ipv4.tcp_slow_start_after_idle=0); a larger initial "
    "window (RFC 6928) helps a little.",
)
def slow_start(transfers: Transfers) -> Matches:
    for transfer in examined(transfers, "slow_start", SLOW_START_INFO):
        if transfer.path_rtt_ns:
            size, rtt = show_bytes(transfer.row["unique_bytes"]), show_duration(transfer.path_rtt_ns)
            saved = max(transfer.times["slow_start"] - transfer.path_rtt_ns, 0)
            cited = slow_start_of(transfers, transfer)
            yield limited(transfer, "slow_start", size=size, rtt=rtt, cost=seconds(saved), cited=cited)


def carries(transfer: Transfer, flight: float) -> bool:
    """Returns whether the rate is one of so much in flight at the least round trip: with less, the rest stands in a queue."""
    active_ns = max(transfer.waited_ns - transfer.times["pause"], 1)
    return transfer.unique_bytes * (transfer.path_rtt_ns or 0) / active_ns >= CARRIED * flight


@limit_finding(
    code="send-buffer-limited",
    title="Send buffer limited",
    severity="warning from 25% of transfer time, else info",
    computed="In the sender's view, flight must not grow beyond one level for at least 8 round trips. Meanwhile the receive "
    "window has room, no segment is lost and no queue makes round trips longer. Data must come in bursts with a long gap in "
    "each round trip (directions.time_send_buffer_ns). A congestion window would grow (RFC 5681, 9438); BBR and a path that "
    "is full leave no gaps. Reported from 10% of transfer time, for 1 MB or more, if the rate is at least 40% of this flight "
    "in each round trip. Otherwise, some of it stands in a queue.",
    unknown="Whether the application has a window of its own (HTTP/2, SSH, SMB) and waits for its peer, which looks the "
    "same. A send buffer that holds as much as the path, or more, looks like the path.",
    sentence="{name} waited {time} ({share} of transfer time) for room in its send buffer. Flight did not exceed {most} of "
    "payload at an RTT of {rtt}, although neither the receive window nor loss nor a queue held it back.",
    headline=("{name} waited {time}{life} for room in its send buffer.",),
    summary="waited for room in the send buffer",
    advice="Raise the send buffer of {sender} (SO_SNDBUF, net.ipv4.tcp_wmem) to the desired rate times the RTT, or leave "
    "its size to the system.",
)
def send_buffer_limited(transfers: Transfers) -> Matches:
    for transfer in examined(transfers, "send_buffer", SHARE_INFO):
        most = transfer.row["send_buffer_bytes"]
        if transfer.unique_bytes >= BULK_MIN and transfer.path_rtt_ns and most and carries(transfer, most):
            yield limited_by_share(
                transfer,
                "send_buffer",
                most=show_bytes(most),
                rtt=show_duration(transfer.path_rtt_ns),
                sender=endpoint_str(transfer.row["source"], transfer.row["source_port"]),
                cited=longest_wait(transfers, transfer.row, "send_buffer"),
            )


@limit_finding(
    code="sender-idle",
    title="Limited by the sending application",
    severity="info",
    computed=ACCOUNTING
    + "Reported from 50% of transfer time, for 1 MB or more, unless the flow has turns: then the time "
    "of client and server is in its account.",
    unknown="The reason: disk, CPU, pacing, or an answer that the application awaited.",
    sentence="{name} had nothing to send for {time} ({share} of transfer time): the application limited the rate, not "
    "the network.",
    headline=("{name} had nothing to send for {time}{life}[: the application limited the rate, not the network].",),
    summary="waited for data from the sending application",
    advice="Profile the sending application, its disk, CPU and pacing; the network is not the limit.",
)
def sender_idle(transfers: Transfers) -> Matches:
    for transfer in examined(transfers, "pause", IDLE_INFO):
        if transfer.unique_bytes >= BULK_MIN and transfer.flow["exchange"] != "turns":
            yield limited(transfer, "pause", cited=longest_wait(transfers, transfer.row, "idle"))
