# SPDX-License-Identifier: Apache-2.0
"""Rules about what a TCP transfer waited for over its life: application, receiver, loss, slow start, path."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from wiretale.analyzer.display_filter import flow_filter, frame_filter
from wiretale.analyzer.findings.model import Finding, end_named, stalls_named, stalls_of
from wiretale.analyzer.findings.spread import median_of
from wiretale.analyzer.findings.transfers import LIMITS, Transfer, survey_of
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

LIFE_LEAST_NS = 200_000_000  # below, no share of it is worth a word
SHARE_WARNING, SHARE_INFO = 0.25, 0.10
IDLE_INFO = 0.5
SLOW_START_INFO = 0.3
BULK_LEAST = 1_000_000  # bytes of a transfer whose rate matters
HELD_LEAST_NS = 120_000_000  # three delayed acknowledgments of Linux
UNSCALED_MOST = 65_535  # RFC 9293 without RFC 7323
STALL_WARNING_NS = 1_000_000_000
ROUND_TRIPS_LEAST = 10
LOSSES_LEAST = 6
QUEUE_SHARE, QUEUE_LEAST_NS = 0.3, 1_000_000  # growth of a round trip that is no queue
MATHIS_FACTOR = 3.0
PATH_INFO = 0.7
PATH_WORTH = 0.1  # after what says why: an uneven share, a full wire
ETHERNET_MSS = 1460
RESENT_LEAST = 10_000  # bytes
RECOVERED_LEAST = 50_000  # bytes of a transfer that losses hold up
SECOND = 1e9


def examined(trace: Trace) -> Iterator[Transfer]:
    """TCP transfers whose limits are known and that lasted."""
    for one in survey_of(trace).limited():
        if one.limits and sum(one.limits.values()) >= LIFE_LEAST_NS:
            yield one


def parts_named(one: Transfer) -> str:
    """The shares of a transfer's time: `the path 60%, slow start 40%`."""
    whole = one.parted_ns
    parts = sorted(one.limits.items(), key=lambda item: -item[1])
    return ", ".join(f"{LIMITS[name]} {show_share(ns, whole)}" for name, ns in parts if ns >= whole / 100)


def evidence_of(one: Transfer) -> str:
    """Where to look."""
    return (
        f"{one.frames}; its time ({show_duration(one.parted_ns)}): {parts_named(one)}; "
        "series: flight_bytes, window_bytes, rtt_ns, retransmitted_bytes"
    )


def limited(
    one: Transfer, code: str, severity: str, sentence: str, advice: str, ns: int, worth: float = 1.0
) -> Finding:
    """A finding about time that a transfer lost; `worth` is less than 1 where others say more of the same."""
    whole = one.parted_ns or 1
    return Finding(
        *(code, severity, "flow", sentence, advice),
        flow=one.row["flow"],
        cost=round(ns / SECOND, 6),
        cost_unit="seconds",
        evidence=evidence_of(one),
        filter=flow_filter(one.flow),
        impact=one.weight * min(ns / whole, 1.0) * worth,
    )


def severity_by(share: float) -> str:
    """By how much of a life it took."""
    return "warning" if share >= SHARE_WARNING else "info"


def usual_window(trace: Trace, one: Transfer) -> float | None:
    """What the receiver offered most of the time; that of the SYN means little."""
    usual = median_of(survey_of(trace).bins(one).window_bytes)
    return None if math.isnan(usual) else usual


def window_words(trace: Trace, one: Transfer) -> str:
    """Why the receiver's window held it back."""
    closed = one.back["zero_window_ns"]
    if closed and closed >= one.limits["limit_window_ns"] / 2:
        return f"it was closed for {show_duration(closed)}: the receiving application reads too slowly"
    if not_scaled(one):
        return "window scaling is off (RFC 7323), so that it cannot grow beyond 64 KiB"
    usual = usual_window(trace, one)
    return f"usually {show_bytes(usual)} were allowed on their way" if usual else "it was full"


def not_scaled(one: Transfer) -> bool:
    """Whether both handshakes were seen, and window scaling is not in force."""
    seen = one.row["sack_permitted"] is not None and one.back["sack_permitted"] is not None
    return seen and (one.row["window_scale"] is None or one.back["window_scale"] is None)


def receive_window(trace: Trace) -> Iterator[Finding]:
    """Time with a full or closed window."""
    for one in examined(trace):
        share, ns = one.share("limit_window_ns"), one.limits["limit_window_ns"]
        if share < SHARE_INFO:
            continue
        rtt = one.path_rtt_ns
        reach = f" A round trip takes {show_duration(rtt)}." if rtt else ""
        yield limited(
            *(one, "receive-window-limited", severity_by(share)),
            f"{one.name} waited for the receiver's window {show_share(ns, one.parted_ns)} of its time "
            f"({show_duration(ns)}): {window_words(trace, one)}.{reach}",
            window_advice(one),
            ns,
        )


def window_advice(one: Transfer) -> str:
    """What to change."""
    receiver = end_named(one.row["destination"], one.row["destination_port"])
    if (one.back["zero_window_ns"] or 0) >= one.limits["limit_window_ns"] / 2:
        return f"Look at the application on {receiver}: the network could carry more than it reads."
    if not_scaled(one):
        return (
            "Turn window scaling on at both ends (net.ipv4.tcp_window_scaling), and look for a firewall that strips it."
        )
    return f"Raise the receive buffer of {receiver} (SO_RCVBUF, net.ipv4.tcp_rmem) to the rate wanted times the round trip."


def window_by_rate(trace: Trace) -> Iterator[Finding]:
    """A rate that is just one window a round trip, though the capture lies too near the receiver to see it full."""
    for one in examined(trace):
        rtt, rate = one.path_rtt_ns, one.row["goodput_bps"]
        if not rtt or not rate or one.lost or one.share("limit_window_ns") >= SHARE_INFO:
            continue
        carried = rate / 8 * rtt / SECOND
        near_receiver = (one.row["rtt_ns_min"] or 0) < rtt / 2
        steady = one.share("limit_network_ns", "limit_slow_start_ns") >= 0.5 and one.life_ns >= ROUND_TRIPS_LEAST * rtt
        window = usual_window(trace, one) if near_receiver and steady else None
        if window and 0.8 <= carried / window <= 1.2:
            yield limited(
                *(one, "window-per-round-trip", "warning"),
                f"{one.name} carried {show_rate(rate)}: just the receiver's window of {show_bytes(window)} in each "
                f"round trip of {show_duration(rtt)}. The window seems to be the limit; this capture lies too near "
                "the receiver to see it full.",
                "Raise the receiver's buffer, and capture at the sender to be sure.",
                one.limits["limit_network_ns"],
            )


def scaling_missing(trace: Trace) -> Iterator[Finding]:
    """Windows that cannot grow, where they matter."""
    for one in examined(trace):
        rtt, rate = one.path_rtt_ns, one.row["goodput_bps"]
        if not rtt or not rate or not not_scaled(one) or one.row["unique_bytes"] < BULK_LEAST:
            continue
        if rate / 8 * rtt / SECOND >= UNSCALED_MOST / 2 and one.share("limit_window_ns") < SHARE_INFO:
            yield limited(
                *(one, "window-scaling-off", "info"),
                f"{one.name}: window scaling is off, so that no more than 64 KiB can be on their way: at most "
                f"{show_rate(UNSCALED_MOST * 8 / rtt * SECOND)} with a round trip of {show_duration(rtt)}.",
                "Turn window scaling on at both ends; some firewalls strip it.",
                one.limits["limit_window_ns"],
            )


def delayed_acks(trace: Trace) -> Iterator[Finding]:
    """Nagle's algorithm and the delayed-ACK timer waiting for each other."""
    for one in examined(trace):
        share, ns = one.share("limit_delayed_ack_ns"), one.limits["limit_delayed_ack_ns"]
        if share < SHARE_INFO or ns < HELD_LEAST_NS:
            continue
        yield limited(
            *(one, "delayed-ack", "info" if one.minor else severity_by(share)),
            f"{one.name} waited {show_duration(ns)} ({show_share(ns, one.parted_ns)} of its time) for "
            "acknowledgments of short segments that the receiver held back: small writes, Nagle's algorithm (RFC 896) "
            "and the delayed-ACK timer (RFC 1122) wait for each other.",
            "Write whole messages at once (buffer, writev, TCP_CORK), or set TCP_NODELAY.",
            ns,
        )


def recovery(trace: Trace) -> Iterator[Finding]:
    """Time spent in mending losses."""
    for one in examined(trace):
        ns = one.limits["limit_recovery_ns"]
        share = one.share("limit_recovery_ns")
        if share < SHARE_INFO or one.row["unique_bytes"] < RECOVERED_LEAST:
            continue
        yield limited(
            *(one, "recovery-limited", severity_by(share)),
            f"{one.name} spent {show_share(ns, one.parted_ns)} of its time ({show_duration(ns)}) mending "
            "losses, with its congestion window cut down each time.",
            "Find the loss (see lost-downstream, lost-upstream, loss-pattern): until then no buffer and no tuning "
            "helps.",
            ns,
        )


def timeout_words(one: Transfer, count: int) -> str:
    """How many, and whether they are only suspected."""
    suspected = one.row["suspected_timeouts"] or 0
    doubt = ", it seems" if suspected == count else f" ({suspected:,} of them suspected)"
    return plural(count, "retransmission timeout") + (doubt if suspected else "")


def timeouts(trace: Trace) -> Iterator[Finding]:
    """Silence that only the retransmission timer ended."""
    for one in survey_of(trace).limited():
        ns, count = one.row["limit_timeout_ns"], (one.row["timeouts"] or 0) + (one.row["suspected_timeouts"] or 0)
        if not ns or not count or not one.life_ns:
            continue
        share = min(ns / one.parted_ns, 1.0)
        grave = ns >= STALL_WARNING_NS or share >= SHARE_WARNING
        stalls = stalls_of(one.row)
        yield Finding(
            *("timeout-stalls", "warning" if grave else "info", "flow"),
            f"{one.name} stood still for {show_duration(ns)} ({show_share(ns, max(one.parted_ns, ns))} of its time) in "
            f"{timeout_words(one, count)}: nothing came back that would have "
            "let it mend the loss sooner.",
            "Short flights and lost tails end so: look for the loss, keep more data under way, and see that SACK is "
            "on.",
            flow=one.row["flow"],
            cost=round(ns / SECOND, 6),
            cost_unit="seconds",
            evidence=stalls_named(stalls, count) if stalls else one.frames,
            filter=frame_filter(chain(*stalls)) if stalls else flow_filter(one.flow),
            impact=one.weight * share,
        )


def retransmission_cost(trace: Trace) -> Iterator[Finding]:
    """Bytes that went more than once."""
    for one in survey_of(trace).tcp():
        again, unique = one.row["retransmitted_bytes"], one.row["unique_bytes"]
        if not again or not unique or again < max(unique / 100, RESENT_LEAST):
            continue
        yield Finding(
            *("retransmission-cost", "info", "flow"),
            f"{one.name} carried {show_bytes(again)} more than once: {show_share(again, unique)} of its goodput went "
            "into retransmissions that passed here.",
            "See where they were lost: lost-downstream, spurious.",
            flow=one.row["flow"],
            cost=float(again),
            cost_unit="bytes",
            evidence=one.frames,
            filter=f"{flow_filter(one.flow)} && tcp.analysis.retransmission",
            impact=one.weight * again / (again + unique),
        )


def sender_idle(trace: Trace) -> Iterator[Finding]:
    """A sender with nothing to send."""
    for one in examined(trace):
        ns = one.limits["limit_idle_ns"]
        if one.share("limit_idle_ns") < IDLE_INFO or one.row["unique_bytes"] < BULK_LEAST:
            continue
        yield limited(
            *(one, "sender-idle", "info"),
            f"{one.name}: for {show_share(ns, one.parted_ns)} of its time ({show_duration(ns)}) the sender "
            "had nothing to send: its application, not the network, set the rate.",
            "Nothing to mend in the network: look at the sending application, its disk, its processor, or its pacing.",
            ns,
        )


def mathis_bps(mss: int, rtt_ns: int, loss: float) -> float:
    """What Reno reaches with random loss (Mathis et al. 1997)."""
    return 8 * 1.22 * mss / (rtt_ns / SECOND * math.sqrt(loss))


def held_by_loss(one: Transfer) -> float | None:
    """The share of segments lost, where that explains the rate: no queue grew, and the formula fits."""
    lost, sent = (one.row["lost_upstream"] or 0) + (one.row["lost_downstream"] or 0), one.row["data_packets"] or 0
    rtt, usual, least = one.path_rtt_ns, one.row["rtt_ns_median"], one.row["rtt_ns_min"]
    if lost < LOSSES_LEAST or not rtt or not usual or not one.row["goodput_bps"] or queue_grows(one):
        return None
    fits = one.row["goodput_bps"] / mathis_bps(one.back["mss"] or ETHERNET_MSS, rtt + usual - least, lost / sent)
    return lost / sent if 1 / MATHIS_FACTOR <= fits <= MATHIS_FACTOR else None


def path_or_window(trace: Trace) -> Iterator[Finding]:
    """Bulk transfers whose data was always on its way: a congestion window kept small by loss, or the path's rate."""
    for one in examined(trace):
        ns, life = one.limits["limit_network_ns"], one.life_ns
        if one.row["unique_bytes"] < BULK_LEAST or life < STALL_WARNING_NS or not one.row["goodput_bps"]:
            continue
        loss, rate = held_by_loss(one), show_rate(one.row["goodput_bps"])
        if loss and one.share("limit_network_ns", "limit_recovery_ns", "limit_timeout_ns") >= 0.5:
            rtt = one.path_rtt_ns or 0
            allowed = mathis_bps(one.back["mss"] or ETHERNET_MSS, rtt, loss)
            yield limited(
                *(one, "loss-limited-window", "warning"),
                f"{one.name} came to {rate}: with {show_share(loss, 1)} of its segments lost and a round trip of "
                f"{show_duration(rtt)}, TCP's congestion window allows about {show_rate(allowed)}. Round trips did "
                "not grow: the loss, not a full queue, sets the rate.",
                "Mend the loss: a tenth of it would allow three times the rate. CUBIC or BBR stand it better than "
                "Reno.",
                ns + one.limits["limit_recovery_ns"] + one.limits["limit_timeout_ns"],
            )
        elif one.share("limit_network_ns") >= PATH_INFO:
            yield limited(
                *(one, "path-limited", "info"),
                f"{one.name} had data on its way for {show_share(ns, one.parted_ns)} of its time, at "
                f"{rate}: {path_words(one)}",
                "Compare with what the link can carry: --link RATE, or wiretale theory --link RATE.",
                ns,
                PATH_WORTH,
            )


def queue_grows(one: Transfer) -> bool:
    """Whether round trips under load are clearly longer than the least."""
    least, usual = one.row["rtt_ns_min"], one.row["rtt_ns_median"]
    return bool(least and usual - least > QUEUE_SHARE * (one.path_rtt_ns or least) + QUEUE_LEAST_NS)


def path_words(one: Transfer) -> str:
    """What the network's part of the time was."""
    least, usual = one.row["rtt_ns_min"], one.row["rtt_ns_median"]
    if queue_grows(one):
        return (
            "the path's rate was the limit, for a queue builds up beyond this point (round trips of "
            f"{show_duration(usual)}, at least {show_duration(least)})."
        )
    return "the path's rate, or the congestion window, was the limit; neither end was."


def slow_start(trace: Trace) -> Iterator[Finding]:
    """Transfers that end before they are up to speed."""
    for one in examined(trace):
        ns = one.limits["limit_slow_start_ns"]
        if one.share("limit_slow_start_ns") < SLOW_START_INFO or not one.path_rtt_ns:
            continue
        yield limited(
            *(one, "slow-start", "info"),
            f"{one.name}: {show_share(ns, one.parted_ns)} of its time ({show_duration(ns)}) was slow "
            f"start: with {show_bytes(one.row['unique_bytes'])} and a round trip of {show_duration(one.path_rtt_ns)} "
            "it is over before the path is full.",
            "Keep connections open and use them again; a larger initial window (RFC 6928) helps a little.",
            ns,
        )
