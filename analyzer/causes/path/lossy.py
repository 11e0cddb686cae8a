# SPDX-License-Identifier: Apache-2.0
"""Transfers with losses that no cause has explained yet, and their words."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Certainty
from wiretale.analyzer.causes.path.loss_moments import (
    MOST_TRAFFIC,
    RATE_QUANTILE,
    even_bytes,
    growth_at_losses,
    quantile,
)
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.loss_pattern import LOSSES_MIN, pattern_of, runs_of
from wiretale.analyzer.findings.model import Words, endpoint_str, row_at
from wiretale.analyzer.findings.transfers import Loss, Transfer
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

#: findings that losses of a flow have as their effects
EFFECTS = (
    *("lost-upstream", "lost-downstream", "retransmission-unlocated", "suspected-timeout", "recovery-limited"),
    *(
        "timeout-stalls",
        "retransmission-cost",
        "loss-limited-window",
        "loss-pattern",
        "spurious",
        "ambiguous-gap",
        "syn-lost",
    ),
    *("sack-gaps", "microburst"),
)
SACK_RTT_NS = 10_000_000  # of a path on which missing SACK is felt
SACK_SHARE = 0.1  # of the time, in repairs
PEAK, PEAK_LOSSES, PEAK_BYTES = 0.5, 0.9, 0.6  # of the fullest time bin; of all losses; of all bytes
PEAK_LOSSES_MIN, PEAKS_MIN = 15, 5  # bins with losses
POOL_MIN, SHARES_ALIKE = 3, 4.0  # pairs of hosts that lose alike, and how far from their median
SPARED_MIN = 5.0  # losses that a transfer would have at their share: one without any is spared
COUNTS = {"upstream": ("lost_upstream", "blocks_lost"), "downstream": ("lost_downstream",)}
PLACES = {"upstream": "before the capture point", "downstream": "after the capture point"}
LOSS_CODES = ("lost-upstream", "lost-downstream", "blocks-lost", "shared-queue")
RANDOM = ", one at a time and without a pattern"
IN_PEAKS = ", nearly all in its largest bursts (key frames, if it is video), which probably overflow a short queue"
AT_PORTS = "drop counters of the devices at these times"
SUSPECTS = ("an overflowing queue or a faulty link", "a faulty link or a very short queue")
SHORT_QUEUE = (
    "a queue too short to delay, or a policer, that overflows whenever the sender has grown (a slower port, for one)"
)
AT_STEPS = (
    "Look for output drops at ports where a fast link meets a slower one, give them more buffer, or let the sender pace"
)
PEAKS_ADVICE = f"{AT_STEPS}: a lower top bit rate, smaller key frames."
PORTS_ADVICE = (
    f"{AT_STEPS}: `tc qdisc replace dev IF root fq`. Compare the rate with the contract: a policer does the same."
)
#: packets from a full link: time bins, how even they are, and the most in 1 ms: a multiple of the rate, and packets beyond
BINS_MIN, FULL_LEVEL, FASTER, BURST_PACKETS, MTU = 10, 0.95, 1.25, 5, 1514
OPEN_QUEUE = "drop counters of the queues on the way, or a capture at the sender"


class Lossy(NamedTuple):
    """A transfer, the side of the capture point on which it lost most, and its losses there."""

    transfer: Transfer
    place: str
    losses: list[Loss]
    lost: int  # segments on the wire, or numbered packets

    @property
    def words(self) -> Words:
        """Words that sentences about losses share."""
        sent = self.transfer.sent_or_lost
        return {
            "route": route_of(self.transfer),
            "where": PLACES[self.place],
            "lost": self.lost,
            "sent": sent,
            "share": show_share(self.lost, sent),
        }


def ends_of(transfer: Transfer, ports: bool = True) -> tuple[str, str]:
    """Returns sender and receiver. A client's port is left out if it is known who is the client."""
    client, row = transfer.flow["client"], transfer.row
    from_service, to_service = ports and client != row["direction"], ports and client in (None, row["direction"])
    return (
        endpoint_str(row["source"], row["source_port"] if from_service else None),
        endpoint_str(row["destination"], row["destination_port"] if to_service else None),
    )


def route_of(transfer: Transfer, ports: bool = True) -> str:
    """Returns `10.0.0.1 → 10.0.0.2:80`."""
    return " → ".join(ends_of(transfer, ports))


def lacks_sack(transfer: Transfer) -> bool:
    """Returns whether one of the ends did not permit SACK."""
    return False in (transfer.row["sack_permitted"], transfer.back["sack_permitted"])


def sackless_str(case: Case, lossy: Lossy) -> str:
    """Returns a sentence about missing SACK, if repairs took much of the time because of it: with a long round trip, and losses
    in bursts, of which a sender without SACK repairs one in each round trip (RFC 6582)."""
    transfer, rtt = lossy.transfer, lossy.transfer.path_rtt_ns
    if not lacks_sack(transfer) or not rtt or rtt < SACK_RTT_NS or cost_of(lossy) < SACK_SHARE * transfer.waited_ns:
        return ""
    if lossy.lost < LOSSES_MIN or pattern_of(case.transfers, transfer, lossy.losses).word == "random":
        return ""
    syn, answer = (transfer.row, transfer.back) if transfer.row["direction"] == 0 else (transfer.back, transfer.row)
    who = (
        f"The SYN-ACK of {answer['source']} has no SACK, which {syn['source']} offers"
        if syn["sack_permitted"]
        else f"{syn['source']} does not offer SACK"
    )
    return f" {who}, so each lost segment of a burst takes a round trip of {show_duration(rtt)} to repair."


def is_voice(transfer: Transfer) -> bool:
    """Returns whether a transfer is a stream of RTP."""
    return bool(transfer.flow["application"] == "rtp")


def packets_of_losses(group: Iterable[Lossy]) -> list[Cited]:
    """Returns the packets that showed the losses, all of them, so that the span of a cause ends at the last one."""
    return [packet for lossy in group for loss in lossy.losses if (packet := loss.packet)]


def lossy_transfers(case: Case) -> list[Lossy]:
    """Returns the transfers whose losses a finding has that no cause explains yet."""
    flows = {flow for each in case.findings(*LOSS_CODES) for flow, _ in each.finding.flows}
    every = {transfer.number: transfer for transfer in (*case.transfers.largest, *case.transfers.stalled)}
    lossy = (lossy_of(case, transfer) for transfer in every.values() if transfer.row["flow"] in flows)
    return [each for each in lossy if each is not None]


def lossy_of(case: Case, transfer: Transfer) -> Lossy | None:
    """Returns a transfer with its losses on the side of the capture point that has most; None without any."""
    upstream, downstream = (transfer.count(*COUNTS[place]) for place in ("upstream", "downstream"))
    if not upstream and not downstream:
        return None
    place = "upstream" if upstream >= downstream else "downstream"
    losses = [loss for loss in case.transfers.losses(transfer) if loss.place == place]
    return Lossy(transfer, place, losses, max(upstream, downstream)) if losses else None


def are_in_peaks(case: Case, lossy: Lossy) -> bool:
    """Returns whether nearly all losses come in time bins in which a transfer sends much more than in others, though these have
    much of its bytes: losses at random would hit both."""
    bins, total = case.transfers.bins(lossy.transfer), sum(case.transfers.bins(lossy.transfer).wire_bytes)
    most = max(bins.wire_bytes, default=0.0)
    full = [place for place, size in enumerate(bins.wire_bytes) if size >= PEAK * most]
    share = sum(bins.wire_bytes[place] for place in full) / max(total, 1.0)
    places = [bisect_right(bins.start_ns, loss.time_ns) - 1 for loss in lossy.losses]
    hit = set(places) & set(full)
    is_most = sum(place in hit for place in places) >= PEAK_LOSSES * max(len(places), PEAK_LOSSES_MIN)
    return is_most and share <= PEAK_BYTES and len(hit) >= PEAKS_MIN


def priced(times: Iterable[int]) -> int:
    """Returns the time that somebody waited, of several transfers that may have waited together: that of the one that waited
    longest."""
    return max(times, default=0)


def cost_of(lossy: Lossy) -> int:
    """Returns the time that losses cost a transfer: recovery, timers, and round trips with a smaller window."""
    transfer = lossy.transfer
    return min(transfer.held_up_ns + (transfer.flow["reduced_path_ns"] or 0), transfer.waited_ns)


def waited_of(group: Sequence[Lossy]) -> int:
    """Returns the time that losses cost the transfer that they cost most."""
    return priced(map(cost_of, group))


def by_place(every: Iterable[Lossy]) -> list[list[Lossy]]:
    """Returns transfers in groups that lose at one place on the way to one host, or from one host."""
    to_host: dict[tuple[str, str], list[Lossy]] = {}
    for lossy in every:
        to_host.setdefault((lossy.place, lossy.transfer.row["destination"]), []).append(lossy)
    groups: dict[tuple[str, str, str], list[Lossy]] = {}
    for (place, receiver), members in to_host.items():
        senders = {lossy.transfer.row["source"] for lossy in members}
        key = (place, "from", senders.pop()) if len(senders) == 1 else (place, "to", receiver)
        groups.setdefault(key, []).extend(members)
    return list(groups.values())


def share_of(group: Sequence[Lossy]) -> float:
    """Returns the share of the segments or packets that were lost."""
    return sum(lossy.lost for lossy in group) / max(sum(lossy.transfer.sent_or_lost for lossy in group), 1)


def are_most(alike: Sequence[Lossy], every: Sequence[Transfer]) -> bool:
    """Returns whether most pairs of hosts lose that would at such a share: if others send as much the same way and lose nothing,
    each loses at a place of its own."""
    if not every:
        return True
    share, counts, senders = share_of(alike), COUNTS[alike[0].place], {lossy.transfer.row["source"] for lossy in alike}
    able = [
        each for each in every if each.sent_or_lost * share >= SPARED_MIN and each.row["destination"] not in senders
    ]
    spared = {pair_of(each) for each in able if not each.count(*counts)}
    return len(spared) < len({pair_of(lossy.transfer) for lossy in alike})


def pair_of(transfer: Transfer) -> tuple[str, str]:
    """Returns the hosts that send and receive."""
    return transfer.row["source"], transfer.row["destination"]


def pooled(groups: Sequence[list[Lossy]], every: Sequence[Transfer] = ()) -> list[list[Lossy]]:
    """Returns groups of by_place(), those as one that lose about as much on one side of the capture point, if there are several,
    and most of all transfers do: hosts that lose alike probably do so at a place that they share."""
    pools: list[list[Lossy]] = []
    for place in dict.fromkeys(group[0].place for group in groups):
        here = [group for group in groups if group[0].place == place]
        usual = median(map(share_of, here))
        alike = [group for group in here if usual / SHARES_ALIKE <= share_of(group) <= usual * SHARES_ALIKE]
        if len(alike) >= POOL_MIN and are_most([lossy for group in alike for lossy in group], every):
            pools.append([lossy for group in alike for lossy in group])
            here = [group for group in here if group not in alike]
        pools += here
    return pools


def beside_str(group: Sequence[Lossy], place: str) -> str:
    """Returns ` and 3 more after it`: what the transfers lost on the other side of the capture point; "" if nothing."""
    beyond = "downstream" if place == "upstream" else "upstream"
    count = sum(lossy.transfer.count(*COUNTS[beyond]) for lossy in group)
    return f" and {count:,} more {'after' if place == 'upstream' else 'before'} it" if count else ""


def is_pool(group: Sequence[Lossy]) -> bool:
    """Returns whether no host is an end of all these transfers."""
    return all(len({lossy.transfer.row[end] for lossy in group}) > 1 for end in ("source", "destination"))


def ends_of_all(group: Sequence[Lossy]) -> tuple[str, str]:
    """Returns senders and receivers: `10.0.0.1` or `3 hosts`."""
    if len(group) == 1:
        return ends_of(group[0].transfer)
    hosts = [{lossy.transfer.row[end] for lossy in group} for end in ("source", "destination")]
    sources, receivers = (next(iter(each)) if len(each) == 1 else plural(len(each), "host") for each in hosts)
    return sources, receivers


class Manner(NamedTuple):
    """How losses came, and how certain it is that nothing separates them from what passed."""

    text: str
    certainty: Certainty
    open: dict[str, str]
    suspect: str = SUSPECTS[0]  # what they are probably to; empty if the text tells it
    advice: str = ""  # if it is not to look at the ports on the way


def manner_of(case: Case, lossy: Lossy) -> Manner:
    """Returns how the losses of a transfer came."""
    transfer, is_tcp = lossy.transfer, lossy.transfer.flow["protocol"] == "tcp"
    if lossy.lost < LOSSES_MIN:
        return Manner("", "likely", {"bottleneck": "a longer capture: so few losses show no pattern"})
    if not is_tcp and are_in_peaks(case, lossy):
        return Manner(IN_PEAKS, "likely", {"bottleneck": OPEN_QUEUE}, "", PEAKS_ADVICE)
    growth = growth_at_losses(case.transfers, transfer, lossy.place) if is_tcp else math.nan
    if growth is None:
        return steady_manner(case, lossy, f", while the round trip stayed at {show_duration(transfer.path_rtt_ns)}")
    rate = full_rate(case, lossy) if is_tcp else None
    suspect = f"a queue that overflows: nothing comes faster than {show_rate(rate)}" if rate else SUSPECTS[0]
    return Manner(spread_of(case, lossy), "likely", {"bottleneck": OPEN_QUEUE}, suspect)


def steady_manner(case: Case, lossy: Lossy, steady: str) -> Manner:
    """Returns how losses came in which round trips did not grow."""
    transfer = lossy.transfer
    if even := even_bytes(case.transfers, transfer, lossy.place):
        text = f", about once in each {show_bytes(even)}{steady}"
        return Manner(text, "likely", {"bottleneck": AT_PORTS}, SHORT_QUEUE, PORTS_ADVICE)
    if pattern_of(case.transfers, transfer, lossy.losses).word == "random":
        return Manner(f"{RANDOM}{steady}", "proven", {}, "")
    return Manner(f"{spread_of(case, lossy)}{steady}", "likely", {"bottleneck": AT_PORTS}, SUSPECTS[1])


def spread_of(case: Case, lossy: Lossy) -> str:
    """Returns whether losses came alone or in bursts."""
    transfer, runs = lossy.transfer, runs_of(lossy.losses)
    if pattern_of(case.transfers, transfer, lossy.losses).word == "random":
        return RANDOM
    longest = max((sum(loss.segments for loss in run) for run in runs), default=1)
    longest = transfer.row["block_loss_run_max"] or longest
    bursts = transfer.row["block_loss_runs"] or len(runs)
    return f" in {plural(bursts, 'burst')} of up to {longest:,}" if longest > 1 else ", one at a time"


def full_rate(case: Case, lossy: Lossy) -> float | None:
    """Returns the rate on the wire, bit/s, of a transfer that loses before the capture point, if its packets come at one rate and
    never faster, as from a link that is busy all the time; None otherwise."""
    transfer, bins = lossy.transfer, case.transfers.bins(lossy.transfer)
    sizes = list(bins.payload_bytes)[1:-1]
    if lossy.place != "upstream" or transfer.traffic_share < MOST_TRAFFIC or len(sizes) < BINS_MIN:
        return None
    high, usual = quantile(sizes, RATE_QUANTILE), quantile(sizes, 0.5)
    rate = high * transfer.row["wire_bytes"] / max(transfer.payload_bytes, 1) / bins.width_ns
    burst = row_at(case.trace.interfaces, transfer.flow["first_capture"])["burst_1ms_bytes"] or math.inf
    is_even = usual >= FULL_LEVEL * high > 0
    return 8e9 * rate if is_even and burst <= FASTER * rate * 1e6 + BURST_PACKETS * MTU else None
