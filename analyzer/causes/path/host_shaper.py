# SPDX-License-Identifier: Apache-2.0
"""A sender that is held by a rate limit of its own host, before the capture point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.ends.windows import full_window
from wiretale.analyzer.causes.path.lossy import ends_of
from wiretale.analyzer.findings.transfers import variation
from wiretale.analyzer.units import show_duration, show_rate

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.transfers import Transfer

BINS_MIN, ENDS, EVEN = 10, 2, 0.05  # time bins, without so many at each end; their variation
BIN_RTTS, TRIP_LEAST_NS = 2.0, 1_000_000
STEADY_GROWTH, STEADY_NS = 0.1, 1_000_000  # of round trips: more is a queue behind the capture point


def leaves_host(transfer: Transfer) -> bool:
    """Returns whether packets were captured in the host that sends them, before its adapter segmented them."""
    mss = transfer.row["wire_mss"] or transfer.back["mss"]
    return bool(mss) and (transfer.row["segment_max"] or 0) > (mss or 0)


def is_even(case: Case, transfer: Transfer) -> bool:
    """Returns whether the same passes in each time bin, one of which is longer than two round trips."""
    bins = case.transfers.bins(transfer)
    inner = bins.payload_bytes[ENDS:-ENDS]
    is_wide = bins.width_ns >= BIN_RTTS * (transfer.path_rtt_ns or 0)
    return is_wide and len(inner) >= BINS_MIN and min(inner) > 0 and variation(inner) <= EVEN


def without_queue(transfer: Transfer) -> bool:
    """Returns whether round trips show that no queue stands behind the capture point."""
    trips = transfer.round_trips
    return (
        trips is not None
        and trips.least >= TRIP_LEAST_NS
        and trips.high - trips.least <= max(STEADY_GROWTH * trips.least, STEADY_NS)
    )


def is_held(case: Case, transfer: Transfer) -> bool:
    """Returns whether nothing that the capture point sees holds a transfer to its rate."""
    is_free = leaves_host(transfer) and without_queue(transfer) and not full_window(case, transfer)
    return is_free and is_even(case, transfer)


@cause(
    code="host-shaper",
    title="The sender's own host holds the rate",
    sentence="{source} itself {probably}holds its transfer to {target} at {rate} (a shaper or rate limit). Its packets leave "
    "evenly, though nothing was lost, the window has room, and round trips stay at {rtt}.",
    advice="Look at {source}: `tc -s qdisc show` (tbf, htb, fq maxrate: overlimits, backlog), the rate limit of its container, "
    "machine or cloud instance, and `ss -ti` (pacing_rate).",
    shows="Packets longer than a segment show that the capture is in the sending host. The path seems the limit (finding "
    "path-limited). But nothing is lost, no window is full, and round trips do not grow (99 of 100 by at most 10%, or 1 ms). "
    "At least ten time bins have the same bytes (to 5%), from the second on.",
    rivals={
        "bottleneck": "a link after the capture point would make round trips grow",
        "send-buffer": "the flight has no gap in each round trip",
        "app-limited": "data is in flight all the time",
        "policer": "nothing is lost",
    },
    unknown="Whether it is a queue of the host, or a rate that the program asks for (SO_MAX_PACING_RATE). Elsewhere it "
    "looks like a slow link.",
    explains=("path-limited", "slow-start", "window-full", "microburst"),
)
def host_shaper(case: Case) -> Matches:
    sides = {side for each in case.findings("path-limited") for side in each.finding.flows}
    for transfer in case.transfers.tcp():
        if transfer.side not in sides or transfer.lost or not is_held(case, transfer):
            continue
        trips = transfer.round_trips
        yield Match(
            certainty="likely",
            place="client" if transfer.row["direction"] == transfer.flow["client"] else "server",
            flows=[transfer.side],
            waited_ns=transfer.times.get("network", 0),
            proof="the same bytes in each time bin, to 5%, without a loss",
            excluded={
                "bottleneck": f"99 of 100 round trips take {show_duration(trips.high if trips else 0)} at most",
                "policer": "nothing was lost",
            },
            undecided={"app-limited": f"`tc -s qdisc` and `ss -ti` at {transfer.row['source']}"},
            source=transfer.row["source"],
            target=ends_of(transfer)[1],
            rate=show_rate(transfer.row["goodput_bps"] or 0),
            rtt=show_duration(trips.median if trips else 0),
        )
