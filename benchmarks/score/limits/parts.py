# SPDX-License-Identifier: Apache-2.0
"""Parts of a transfer's time: the true ones, of the sender's kernel and the links' logs, and those of the time account.

The order is that of docs/tables.md: a bottleneck that is busy or a recovery from loss counts first, then what the kernel says of
application and window. The log divides the time that is left, by the state of the bottleneck at eight instants of each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from score.limits.link_log import Bottleneck
from score.limits.talk import Sample
from score.limits.truth import COLUMNS, NETWORK, UNSURE, Shares, limited_us

OF_DIRECTIONS = {
    "application": COLUMNS["application"],
    "window": COLUMNS["window"],
    "loss": ("time_loss_ns", "suspected_ns"),
}
OF_FLOWS = {"transfer": "time_transfer_ns", "queue": "time_queue_ns", "path": "time_path_ns"}
PARTS = (*OF_DIRECTIONS, *OF_FLOWS)
INSTANTS = 8


def true_parts(samples: Sequence[Sample], link: Bottleneck) -> Shares:
    """Returns the share of each part between the first sample and the last."""
    times = dict.fromkeys(PARTS, 0.0)
    for last, sample in pairwise(samples):
        limited, _ = limited_us(last, sample)
        network_us, span = sum(limited[limit] for limit in NETWORK), sample.time_ns - last.time_ns
        for instant in range(INSTANTS):
            time_ns = last.time_ns + span * (instant + 0.5) / INSTANTS
            state, network = link.at(time_ns), network_us
            window, application = limited["window"], limited["application"]
            if link.recovers(time_ns):
                window, application, network = 0, 0, span / 1e3
            elif "transfer" in state:  # a window over a queue that stands
                window, network = 0, network + window
            shares = {
                "application": application,
                "window": window,
                **{part: network * share for part, share in state.items()},
            }
            for part, us in shares.items():
                times[part] += us / INSTANTS
    return in_shares(times)


def in_shares(times: Mapping[str, float]) -> Shares:
    total = sum(max(time, 0) for time in times.values()) or 1
    return {part: max(time, 0) / total for part, time in times.items()}


def claimed_parts(flow: Mapping[str, Any], data: Mapping[str, Any]) -> Shares | None:
    """Returns the shares that a row of `flows` and that of its data in `directions` claim; None if too much is unknown."""
    if data["time_unknown_ns"] is None:
        return None
    times = {part: float(sum(data[name] or 0 for name in columns)) for part, columns in OF_DIRECTIONS.items()}
    times |= {part: float(flow[column] or 0) for part, column in OF_FLOWS.items()}
    total, unknown = sum(times.values()), data["time_unknown_ns"] - data["suspected_ns"]
    return in_shares(times) if total and unknown <= UNSURE * (total + unknown) else None
