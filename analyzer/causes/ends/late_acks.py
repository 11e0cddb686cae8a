# SPDX-License-Identifier: Apache-2.0
"""Receivers that acknowledge each flight of data by one ACK, a constant time after it came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.ends.acks import delayed, most_str
from wiretale.analyzer.causes.ends.talk import parts_str
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import show_bytes, show_duration, show_rate

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.transfers import Transfer

LATE_MIN_NS, TRIPS_MIN = 30_000_000, 4  # of an ACK; and round trips of the path
CONSTANT, SLACK_NS = 1.1, 2_000_000  # the 99th percentile of the delays over the median
ACKS_MIN, COVERED = 8, 0.8  # ACKs of the receiver, and what each covers of a flight, at least
SYN_BYTES, SYN_SHARE = 60, 0.8  # on the wire: at the rate of a slow link a SYN alone would take this part of its time
SEGMENTS_MANY = (
    4  # in one flight: a slow link would spread them, and the receiver would acknowledge the first ones sooner
)
LIMITED_SHARE = 0.25  # of the time of the transfer


def delay_of(transfer: Transfer) -> float | None:
    """Returns the constant time after which a receiver acknowledges whole flights, ns; None if it does not."""
    row, back, path_ns = transfer.row, transfer.back, transfer.path_rtt_ns
    acks = back["packets"] - (back["syns"] or 0) - (back["fins"] or 0)
    if not path_ns or acks < ACKS_MIN or back["unique_bytes"] or transfer.lost or not row["flight_max"]:
        return None
    usual, high = delays_of(transfer, acks)
    is_late = usual >= max(LATE_MIN_NS, TRIPS_MIN * path_ns) and high <= CONSTANT * usual + SLACK_NS
    is_one_each = (
        COVERED * acks * usual <= transfer.duration_ns
    )  # Little: each ACK covers what is in flight, on average
    return usual - path_ns if is_late and is_one_each else None


def delays_of(transfer: Transfer, acks: int) -> tuple[float, float]:
    """Returns the usual and a long time from data to its ACK, ns; zeros if unknown. ACKs of single segments may be delayed, and
    give no RTT: there, the sender waits for nothing else."""
    trips, unit = transfer.round_trips, transfer.row["wire_mss"] or transfer.row["segment_max"] or 0
    if (transfer.row["flight_max"] or 0) <= unit:
        return transfer.duration_ns / acks, transfer.row["idle_ns_max"] or 0
    return (trips.median, trips.high) if trips else (0, 0)


def is_slow_link(transfer: Transfer, delay_ns: float) -> bool:
    """Returns whether a slow link may take as long for a flight: then a SYN would take its part of that time, too."""
    flight, unit = transfer.row["flight_max"] or 1, transfer.row["wire_mss"] or transfer.row["segment_max"] or 1
    of_syn = SYN_SHARE * delay_ns * SYN_BYTES / flight
    return flight < SEGMENTS_MANY * unit and (transfer.path_rtt_ns or 0) >= of_syn


@cause(
    code="late-acks",
    title="The receiver delays each ACK",
    sentence="{receiver} acknowledges late: its ACKs come {delay} after the data, each for all that is in flight, {most}, though "
    "the round trip is {rtt}. That limits the transfer to {rate}; {waited} were spent waiting for these ACKs.",
    advice="Let {receiver} acknowledge every second full segment at once (RFC 9293 section 3.8.6.3), or turn delayed ACKs off; "
    "a receive window, or a send buffer of {sender}, of many segments lets data flow meanwhile.",
    shows="At least eight ACKs come 30 ms or more after the data, and four round trips of the path or more. The time is constant "
    "(99th percentile within 10% and 2 ms of the median), each ACK covers a whole flight, nothing is lost, and it "
    "costs 25% of the time or more.",
    rivals={
        "bufferbloat": "one ACK covers the whole flight, and the time is constant: out of a queue, segments and their ACKs "
        "come one after another",
        "long-path": "the handshake took much less",
        "nagle-delack": "no short segment is held",
        "small-window": "the time from data to ACK is long, not the path",
        "no-window-scaling": "the ACK is late, whatever the window",
    },
    unknown="Whether the receiver's TCP holds the ACK back, or its program or driver is called only so often.",
    explains=(
        *("receive-window-limited", "window-full", "send-buffer-limited", "window-scaling-off", "path-limited"),
        *("slow-start", "bufferbloat", "jitter", "shared-queue", "sender-idle"),
    ),
)
def late_acks(case: Case) -> Matches:
    by_nagle = {row["flow"] for _, row, _ in delayed(case)}  # nagle-delack, delack-tail
    for transfer in case.transfers.limited():
        delay_ns = delay_of(transfer) if transfer.row["flow"] not in by_nagle else None
        if delay_ns is None or is_slow_link(transfer, delay_ns):
            continue
        back = transfer.back
        waited_ns = min(delay_ns * back["packets"], transfer.waited_ns)
        if waited_ns < LIMITED_SHARE * transfer.waited_ns:
            continue
        yield Match(
            certainty="proven",
            place="client" if transfer.row["direction"] != case.flow(transfer.row["flow"])["client"] else "server",
            flows=[transfer.side],
            waited_ns=waited_ns,
            saving_ns=waited_ns,
            proof=f"ACKs {show_duration(delay_ns)} after the data, at a round trip of {show_duration(transfer.path_rtt_ns)}",
            excluded={
                "bufferbloat": "each ACK covers a whole flight, always after the same time",
                "long-path": f"the handshake took {show_duration(transfer.path_rtt_ns)}",
                "small-window": f"{show_bytes(transfer.row['flight_max'] or 0)} for each round trip would not hold it",
            },
            receiver=endpoint_str(transfer.row["destination"], transfer.row["destination_port"]),
            sender=transfer.row["source"],
            delay=show_duration(delay_ns),
            most=most_str(transfer.row),
            rtt=show_duration(transfer.path_rtt_ns),
            rate=show_rate(transfer.row["goodput_bps"] or 0),
            waited=parts_str(waited_ns, transfer.waited_ns),
        )
