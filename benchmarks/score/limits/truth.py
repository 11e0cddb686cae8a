# SPDX-License-Identifier: Apache-2.0
"""Shares of transfer time by limit: those of the sender's kernel, and those of the time account in a row of `directions`.

Exact are the kernel's chronometers: idle (transfer time that is not busy), limited by the receive window, limited by the send
buffer. The samples divide the rest of the busy time: recovery after a loss (with the silence before an RTO), nothing left to
send (because of the send buffer, if a write has not returned), a full receive window (a sender that paces tests the pace first,
so its chronometer stops although the window is full), slow start, otherwise the path. Slow start into a queue is the path's.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from score.limits.talk import Sample

Shares = dict[str, float]
# Limits, and the columns that claim them. A send buffer that is too small is a limit of the sender's host: of the application.
COLUMNS = {
    "application": ("time_pause_ns", "time_send_buffer_ns", "time_delayed_ack_ns"),
    "window": ("time_window_ns",),
    "loss": ("time_loss_ns", "suspected_ns", "recovery_ns"),
    "slow start": ("slow_start_ns",),
    "path": ("time_network_ns",),
}
NETWORK = ("loss", "slow start", "path")  # which the chronometers do not divide
BUFFER = "send buffer"  # part of the application's share
RECOVERY, LOSS = 3, 4  # TCP_CA_Recovery, TCP_CA_Loss
QUEUED_RTT, QUEUED_US = 1.25, 2_000  # a greater RTT is that of a queue
FILLED = 0.75  # of the congestion window: below this it is not the limit
UNSURE = 0.1  # of the time: if more is not known, nothing is claimed
TIE = 0.1  # a limit whose share is so close to the greatest is right, too


def read_samples(text: str) -> list[Sample]:
    return [Sample(*json.loads(line)) for line in text.splitlines()]


def busy_limit(sample: Sample) -> str:
    """Returns the limit of a sender that is busy, and limited neither by the receive window nor by the send buffer."""
    if sample.ca_state >= RECOVERY:
        return "loss"
    if not sample.not_sent:
        return "application"
    if sample.full:
        return "window"
    queued = sample.rtt_us > QUEUED_RTT * sample.min_rtt_us + QUEUED_US
    filled = sample.flight >= FILLED * sample.cwnd
    return "slow start" if sample.grows and filled and not queued else "path"


def limited_us(last: Sample, sample: Sample) -> tuple[Shares, float]:
    """Returns the time of each limit and of the send buffer between two samples, and the part that no chronometer counts.

    The chronometers count ticks, so a time may be negative."""
    span = (sample.time_ns - last.time_ns) / 1e3
    busy, window, buffer = (
        getattr(sample, name) - getattr(last, name) for name in ("busy_us", "window_us", "buffer_us")
    )
    times = {**dict.fromkeys(COLUMNS, 0.0), "application": span - busy + buffer, "window": float(window)}
    limit, unblocked = busy_limit(sample), busy - window - buffer
    times[limit] += unblocked
    times[BUFFER] = buffer + (unblocked if limit == "application" and sample.writing else 0)
    return times, unblocked


def true_shares(samples: Sequence[Sample]) -> Shares:
    """Returns the share of each limit, and that of the send buffer, between the first sample and the last."""
    times = dict.fromkeys((*COLUMNS, BUFFER), 0.0)
    silence = dict.fromkeys(COLUMNS, 0.0)  # since the last progress, by the limit that it was counted as
    for last, sample in pairwise(samples):
        limited, unblocked = limited_us(last, sample)
        for name, us in limited.items():
            times[name] += us
        if sample.acked != last.acked:
            silence = dict.fromkeys(COLUMNS, 0.0)
        silence[busy_limit(sample)] += unblocked
        if sample.ca_state == LOSS != last.ca_state:  # an RTO: the sender waited for it
            for name, waited in silence.items():
                times[name] -= waited
                times["loss"] += waited
            silence = dict.fromkeys(COLUMNS, 0.0)
    times = {name: max(us, 0.0) for name, us in times.items()}
    total = sum(times[name] for name in COLUMNS) or 1.0
    return {name: us / total for name, us in times.items()}


def claimed_shares(row: Mapping[str, Any]) -> Shares | None:
    """Returns the shares that a row of `directions` claims; None if more than UNSURE of its time is not known. A suspected RTO
    is a claim, and so is a recovery while the link is busy, which the kernel counts as recovery."""
    if row["time_unknown_ns"] is None:
        return None
    claimed = {limit: float(sum(row[name] or 0 for name in columns)) for limit, columns in COLUMNS.items()}
    claimed["path"] -= claimed["slow start"] + row["recovery_ns"]
    total, unknown = sum(claimed.values()), row["time_unknown_ns"] - row["suspected_ns"]
    if not total or unknown > UNSURE * (total + unknown):
        return None
    return {limit: ns / total for limit, ns in claimed.items()}


def dominant(shares: Shares, limits: Collection[str] = tuple(COLUMNS)) -> str:
    return max(limits, key=lambda name: shares[name])


def is_right(true: Shares, claimed: Shares, limits: Collection[str] = tuple(COLUMNS)) -> bool:
    """Returns whether the dominant limit of the claim is the true one, or within TIE of it."""
    return true[dominant(claimed, limits)] >= true[dominant(true, limits)] - TIE


def by_chronometers(shares: Shares) -> Iterable[float]:
    """Returns the shares that the kernel's chronometers distinguish: application, receive window, network."""
    return shares["application"], shares["window"], sum(shares[name] for name in NETWORK)


def greatest_difference(true: Shares, claimed: Shares) -> float:
    pairs = zip(by_chronometers(true), by_chronometers(claimed), strict=True)
    return max(abs(share - claim) for share, claim in pairs)
