# SPDX-License-Identifier: Apache-2.0
"""Queues: that of a link which is the limit, one that stands, and one that many answers overflow at once."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, Place, cause
from wiretale.analyzer.causes.ends.windows import full_window
from wiretale.analyzer.causes.path.loss_moments import RATE_QUANTILE, growth_at_losses, quantile
from wiretale.analyzer.causes.path.losses import bucket_of
from wiretale.analyzer.causes.path.lossy import (
    BINS_MIN,
    EFFECTS,
    PLACES,
    Lossy,
    ends_of,
    lossy_transfers,
    priced,
    sackless_str,
    waited_of,
)
from wiretale.analyzer.findings.loss_pattern import LOSSES_MIN, pattern_of
from wiretale.analyzer.findings.shared.sharing import ethernet_speed
from wiretale.analyzer.findings.transfers import RoundTrips, Transfer, median_of
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered

QUEUE_MIN_NS, QUEUE_BAD_NS = 20_000_000, 100_000_000
RTO_RTTS = 10.0  # a timer is longer than so many round trips
TOGETHER_NS, TOGETHER_MIN, TOGETHER_SHARE = 5_000_000, 4, 0.5
PINGS_MIN = 5
SIDES: dict[str, Place] = {"upstream": "before", "downstream": "after"}
SHOWN_NS = 1_000_000  # of a queue
RATE_LEVEL = 0.75  # the median of a transfer's time bins, of their 90th percentile
WASTED_SHARE, NEARLY_ALL = 0.1, 0.9  # needless repeats, of all segments; of all repeats
BUSY_SHARE = 0.25  # of a transfer's time, in which a link carries it or queues it
FAIR_QUEUE = "Give that link a fair queue with AQM (fq_codel, cake), or send below its rate."
FULL = "Order more bandwidth, or nothing: the path carries what it can (`ethtool IF` shows the speed of a link)."
QUEUE_EFFECTS = (
    *EFFECTS,
    "bufferbloat",
    "shared-queue",
    "jitter",
    "slow-start",
    "path-limited",
    "udp-above-path",
    "echo",
)
WAITED_FOR = ("icmp_echo", "connect", "dns")  # kinds of exchanges


def transfers_with(case: Case, code: str) -> list[Transfer]:
    """Returns the largest transfers that a finding of this code is about, and that no cause explains yet."""
    sides = {side for each in case.findings(code) for side in each.finding.flows}
    return [transfer for transfer in case.transfers.largest if transfer.side in sides]


def pings_between(case: Case, hosts: frozenset[str]) -> list[int]:
    """Returns the round trips of pings between two hosts, ns."""
    rows = case.exchanges("kind", "icmp_echo")
    pairs = ((frozenset(filter(None, (row["client"], row["server"]))), row["waited_ns"]) for row in rows)
    return [waited for pair, waited in pairs if pair == hosts and waited is not None]


@cause(
    code="bufferbloat",
    title="Standing queue (bufferbloat)",
    sentence="{who} from {source} to {destination} {fill} a queue of {queued} at {rate} {where}: round trips go from {least} to "
    "{usual}{at_most}{pings}. Everything behind it waits.",
    advice="Put a fair queue with AQM before that link, just below its rate: `tc qdisc replace dev IF root cake bandwidth "
    "{below}`.",
    shows="A transfer has data to send, and its median round trip exceeds the minimum of all flows of its hosts by 20 ms and "
    "by the round trip itself (finding bufferbloat). Losses at its top are effects. Its bytes are the 99th percentile of the "
    "delay times the rate on the wire of all transfers.",
    rivals={
        "stall": "round trips are long for most of the transfer, not once",
        "random-loss": "round trips grow before the losses",
        "policer": "round trips grow",
        "long-path": "a shorter round trip of these hosts is in the capture",
    },
    unknown="A queue before the capture point. A receiver that delays every ACK.",
    explains=QUEUE_EFFECTS,
)
def bufferbloat(case: Case) -> Matches:
    groups: dict[tuple[str, str], list[Transfer]] = defaultdict(list)
    for transfer in transfers_with(case, "bufferbloat"):
        groups[transfer.row["source"], transfer.row["destination"]].append(transfer)
    for members in groups.values():
        trips = [trip for each in members if (trip := each.round_trips) is not None]
        if max(trip.median - trip.least for trip in trips) >= QUEUE_MIN_NS:
            yield standing_match(case, members, trips)


def late_names(case: Case, hosts: frozenset[str]) -> list[Numbered]:
    """Returns the findings about late answers of DNS to questions of these hosts that no slow server explains: they waited behind
    the queue."""
    asked = {row["flow"] for row in case.exchanges("kind", "dns") if row["client"] in hosts}
    return [each for each in case.findings("dns-slow") if {flow for flow, _ in each.finding.flows} <= asked]


def pings_str(pings: Sequence[int]) -> str:
    """`, pings from 20 ms to 1.03 s`; empty if there are few."""
    if len(pings) < PINGS_MIN:
        return ""
    return f", pings from {show_duration(min(pings))} to {show_duration(median_of(pings))}"


def standing_match(case: Case, members: Sequence[Transfer], trips: Sequence[RoundTrips]) -> Match:
    """Returns the match of transfers between two hosts that fill a queue."""
    (source, destination), several = ends_of(members[0], ports=len(members) == 1), len(members) > 1
    hosts = frozenset((members[0].row["source"], members[0].row["destination"]))
    rate, waited = passed_rate(case, members), waits_behind(case, hosts)
    least, usual = min(trip.hosts_least for trip in trips), max(trip.median for trip in trips)
    high = show_duration(max(trip.high for trip in trips))
    is_bad = max(trip.median - trip.least for trip in trips) >= QUEUE_BAD_NS
    samples = sum(each.row["rtt_samples"] or 0 for each in members)
    return Match(
        certainty="proven",
        place="after",
        findings=late_names(case, hosts),
        flows=[each.side for each in members],
        waited_ns=waited or None,
        severity=None if is_bad else "info",
        proof=f"{samples:,} round trips: {show_duration(usual)} (median), {show_duration(least)} without the queue",
        excluded={"random-loss": "round trips grow before the losses", "policer": "a policer does not delay"},
        who=plural(len(members), "transfer") if several else "The transfer",
        fill="fill" if several else "fills",
        where=PLACES["downstream"],
        source=source,
        destination=destination,
        least=show_duration(least),
        usual=show_duration(usual),
        at_most=f" (up to {high})" if high != show_duration(usual) else "",
        pings=pings_str(pings_between(case, hosts)),
        queued=show_bytes(rate / 8e9 * max(trip.high - trip.least for trip in trips)),
        rate=show_rate(rate),
        below=f"{0.95 * rate / 1000:.0f}kbit",
    )


def passed_rate(case: Case, members: Sequence[Transfer]) -> float:
    """Returns the bit/s that arrived of some transfers, with their headers, from the first data to the last."""
    spans = [case.transfers.bins(each).data_span() for each in members]
    arrived = sum(
        (each.unique_bytes or each.payload_bytes) * each.row["wire_bytes"] / max(each.payload_bytes, 1)
        for each in members
    )
    return 8e9 * arrived / max(max(span[1] for span in spans) - min(span[0] for span in spans), 1.0)


def waits_behind(case: Case, hosts: frozenset[str]) -> int:
    """Returns the time in which pings, handshakes or names of two hosts waited longer than the least of their kind, ns: waits at
    the same time count once."""
    rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in (row for kind in WAITED_FOR for row in case.exchanges("kind", kind)):
        since, waited = row["asked_ns"], row["waited_ns"]
        if (
            frozenset(filter(None, (row["client"], row["server"]))) == hosts
            and since is not None
            and waited is not None
        ):
            rows[row["kind"]].append((since, waited))
    spans = []
    for waits in rows.values():
        least = min(waited for _, waited in waits)
        spans += [(since, since + waited - least) for since, waited in waits]
    total, end = 0, 0
    for start, until in sorted(spans):
        total += max(until - max(start, end), 0)
        end = max(end, until)
    return total


def shared_starts(times: Sequence[int], every: Sequence[int]) -> float:
    """Returns the share of times within 5 ms of which four or more of all, in order, lie."""
    together = sum(
        bisect_right(every, at + TOGETHER_NS) - bisect_left(every, at - TOGETHER_NS) >= TOGETHER_MIN for at in times
    )
    return together / len(times) if times else 0.0


def starts_together(times: Iterable[int]) -> float:
    """Returns the share of times at which four or more begin within 5 ms."""
    ordered = sorted(times)
    return shared_starts(ordered, ordered)


@cause(
    code="incast",
    title="Many answers at once overflow a queue (incast)",
    sentence="{count} answers to {receiver} start together and overflow one short queue {where}: {share} of the segments were "
    "lost. The connections waited up to {waited} for timers, though a round trip takes {rtt}.",
    advice="Stagger the requests or limit how many run at once; on a LAN also lower the timer (`ip route change … "
    "rto_min 5ms`).",
    shows="At least four transfers to one host lose segments and wait for timers of 10 round trips or more. At least half of "
    "their answers begin within 5 ms of three others.",
    rivals={
        "bufferbloat": "between the bursts the queue is empty: the round trip is the least again",
        "random-loss": "the losses fall into the moments at which answers start together",
        "tail-loss": "several flows lose in the same burst",
    },
    unknown="At one of the senders the other answers are not seen.",
    explains=(*EFFECTS, "shared-queue", "slow-server"),
)
def incast(case: Case) -> Matches:
    groups = losing_together(case)
    times = answer_times(case) if groups else {}
    for (place, receiver), members in groups.items():
        waiting = [each for each in members if each.row["rto_idle_ns"]]
        flows, rtt = {each.row["flow"] for each in waiting}, rtt_before_timers(waiting)
        share = starts_together(at for flow in flows for at in times.get(flow, ()))
        if len(flows) >= TOGETHER_MIN and share >= TOGETHER_SHARE and rtt:
            yield burst_match(in_one_burst(members, times), place, receiver, share, rtt)


def answer_times(case: Case) -> dict[int, list[int]]:
    """Returns the times at which answers began, by flow."""
    times: dict[int, list[int]] = defaultdict(list)
    for row in case.exchanges("kind", "turn", "http"):
        if row["answered_ns"] is not None and row["flow"] is not None:
            times[row["flow"]].append(row["answered_ns"])
    return times


def in_one_burst(members: Sequence[Transfer], times: Mapping[int, Sequence[int]]) -> list[Transfer]:
    """Returns the transfers that waited for timers, and those whose answers began with others and were repaired without one."""
    every = sorted(at for each in members for at in times.get(each.row["flow"], ()))
    return [
        each
        for each in members
        if each.row["rto_idle_ns"] or shared_starts(times.get(each.row["flow"], ()), every) >= TOGETHER_SHARE
    ]


def losing_together(case: Case) -> dict[tuple[str, str], list[Transfer]]:
    """Returns the transfers that lost segments by the side of the losses and the receiver, if several waited for timers."""
    to_host: dict[tuple[str, str], list[Transfer]] = defaultdict(list)
    for lossy in lossy_transfers(case):
        if lossy.transfer.flow["protocol"] == "tcp":
            to_host[lossy.place, lossy.transfer.row["destination"]].append(lossy.transfer)
    return {
        key: members
        for key, members in to_host.items()
        if sum(bool(each.row["rto_idle_ns"]) for each in members) >= TOGETHER_MIN
    }


def total_of(members: Sequence[Transfer], column: str) -> int:
    """Returns the sum of a column of directions."""
    return sum(integer_in(each.row, column) or 0 for each in members)


def rtt_before_timers(members: Sequence[Transfer]) -> int:
    """Returns the least round trip of some transfers, ns; 0 if their timers are not much longer. At the receiver no timer is
    counted, but each of them waited for one."""
    rtt = min((each.path_rtt_ns for each in members if each.path_rtt_ns), default=0)
    expired, idle = total_of(members, "timeouts") or len(members), total_of(members, "rto_idle_ns")
    return rtt if idle / expired >= RTO_RTTS * rtt else 0


def burst_match(members: Sequence[Transfer], place: str, receiver: str, share: float, rtt: int) -> Match:
    """Returns the match of answers to a host that start together; `share` of all."""
    waited = priced(each.row["rto_idle_ns"] or 0 for each in members)
    flows = len({each.row["flow"] for each in members})
    timers = total_of(members, "timeouts") or flows
    return Match(
        certainty="proven",
        place="before" if place == "upstream" else "after",
        flows=[each.side for each in members],
        waited_ns=waited,
        proof=f"{plural(timers, 'timer')} expired in {plural(flows, 'connection')}; "
        f"{show_share(share, 1)} of the answers began within 5 ms of others",
        excluded={"bufferbloat": f"the round trip falls back to {show_duration(rtt)} between the bursts"},
        count=f"{flows:,}",
        receiver=receiver,
        where=PLACES[place],
        share=show_share(sum(each.lost for each in members), sum(each.sent_or_lost for each in members)),
        waited=show_duration(waited),
        rtt=show_duration(rtt),
    )


def overflows(case: Case, lossy: Lossy) -> bool:
    """Returns whether round trips have grown when losses come, or more is offered than passes."""
    transfer = lossy.transfer
    if not lossy.losses or lossy.lost < LOSSES_MIN:
        return False
    if pattern_of(case.transfers, transfer, lossy.losses).word == "tail drop":
        return True
    growth = growth_at_losses(case.transfers, transfer, lossy.place) if transfer.flow["protocol"] == "tcp" else None
    return growth is not None and not math.isnan(growth)


def is_policed(case: Case, lossy: Lossy) -> bool:
    """Returns whether a policer explains losses after the capture point, at which round trips stay: a queue before it may have
    grown in slow start."""
    return lossy.place == "downstream" and bucket_of(case, lossy) is not None


def is_busy(transfer: Transfer) -> bool:
    """Returns whether a link carried a transfer for much of its time, or had it in a queue; that of others than TCP is not
    known."""
    busy_ns = sum(transfer.flow[name] or 0 for name in ("time_transfer_ns", "time_queue_ns"))
    return transfer.flow["protocol"] != "tcp" or busy_ns >= BUSY_SHARE * transfer.waited_ns


def is_wasted(transfer: Transfer) -> bool:
    """Returns whether needless repeats are a good part of the traffic on a full path, so that they are the cause."""
    row = transfer.row
    needless, repeats = row["spurious_retransmissions"] or 0, row["retransmissions"] or 0
    return needless >= max(WASTED_SHARE * transfer.data_packets, NEARLY_ALL * repeats, 1)


@cause(
    code="bottleneck",
    title="A link is the limit, or its queue overflows",
    sentence="{what}.{sackless}",
    advice="{advice}",
    shows="The path limits a transfer (findings path-limited, wire-full, udp-above-path) at one rate (the median of its time "
    "bins is 75% of the 90th percentile), or its losses come when round trips have grown. Then packets sent at losses have "
    "round trips that rank 0.7 among all (0.5 by chance) and exceed the minimum by 10%, or the pattern is tail drop. A TCP "
    "transfer must have a link busy, or stand in a queue, for a quarter of its time.",
    rivals={
        "policer": "round trips grow before the losses: packets are queued",
        "random-loss": "the losses come when the queue is full",
        "bufferbloat": "the queue delays by less than 20 ms",
        "small-window": "the window has room",
        "zero-window": "the window has room, or a capture at the receiver shows that it acknowledges at once",
    },
    unknown="Whether a link or a shaper has that rate; other traffic on it.",
    explains=(
        *EFFECTS,
        "path-limited",
        "wire-full",
        "udp-above-path",
        "blocks-lost",
        "congestion-marks",
        "shared-queue",
        "bufferbloat",
    ),
)
def bottleneck(case: Case) -> Matches:
    dropping = {
        lossy.transfer.number: lossy
        for lossy in lossy_transfers(case)
        if is_busy(lossy.transfer) and overflows(case, lossy) and not is_policed(case, lossy)
    }
    limited = {
        transfer.number: transfer
        for code in ("path-limited", "wire-full", "udp-above-path")
        for transfer in transfers_with(case, code)
        if not is_wasted(transfer) and (code != "path-limited" or is_at_one_rate(case, transfer))
    }
    for number, transfer in {**limited, **{key: lossy.transfer for key, lossy in dropping.items()}}.items():
        yield limit_match(case, transfer, dropping.get(number))


def is_at_one_rate(case: Case, transfer: Transfer) -> bool:
    """Returns whether a transfer has about the same rate in most time bins, as that of a link; one that grows has not."""
    sizes = list(case.transfers.bins(transfer).payload_bytes)[1:-1]
    return len(sizes) < BINS_MIN or quantile(sizes, 0.5) >= RATE_LEVEL * quantile(sizes, RATE_QUANTILE)


def limit_match(case: Case, transfer: Transfer, lossy: Lossy | None) -> Match:
    """Returns the match of a transfer that the path limits, or whose losses are those of a queue that overflows."""
    if lossy is None:
        return rate_match(case, transfer)
    return Match(
        certainty="proven",
        place=SIDES[lossy.place],
        flows=[transfer.side],
        waited_ns=waited_of([lossy]) or None,
        proof="round trips have grown when segments are lost",
        excluded={"policer": "packets are queued"},
        what=overflow_str(case, lossy),
        sackless=sackless_str(case, lossy),
        advice=FAIR_QUEUE,
    )


def rate_match(case: Case, transfer: Transfer) -> Match:
    """Returns the match of a transfer that has the rate of the path, as far as its window shows."""
    speed, rate = ethernet_speed(case.transfers, [transfer]), show_rate(passed_rate(case, [transfer]))
    source, destination = ends_of(transfer)
    window = None if speed else full_window(case, transfer)
    limit = f"A full {show_rate(speed)} Ethernet of the path" if speed else "A link or shaper of the path"
    reader = f", or a program that reads no faster behind a full window of {show_bytes(window)}," if window else ""
    return Match(
        certainty="likely" if window else "proven",
        place="path",
        flows=[transfer.side],
        severity="info",
        proof=f"{rate} on the wire all the time",
        undecided={"zero-window": f"`ss -tm` at {transfer.row['destination']}: Recv-Q, or a capture there"}
        if window
        else {},
        what=f"{limit}{reader} is the limit of {source} → {destination}: {rate} on the wire",
        sackless="",
        advice=FULL,
    )


def overflow_str(case: Case, lossy: Lossy) -> str:
    """Returns what a queue that overflows does."""
    transfer, (source, destination) = lossy.transfer, ends_of(lossy.transfer)
    growth = growth_at_losses(case.transfers, transfer, lossy.place) if transfer.flow["protocol"] == "tcp" else None
    grown = f", when round trips had grown by {show_duration(growth)}" if growth and growth > SHOWN_NS else ""
    unit = "segments" if transfer.flow["protocol"] == "tcp" else "packets"
    rate = f" ({show_rate(passed_rate(case, [transfer]))} pass)" if transfer.flow["protocol"] != "tcp" else ""
    return (
        f"A queue {PLACES[lossy.place]} overflows{rate}: {show_share(lossy.lost, transfer.sent_or_lost)} of the {unit} from "
        f"{source} to {destination} ({lossy.lost:,} of {transfer.sent_or_lost:,}) were lost{grown}"
    )
