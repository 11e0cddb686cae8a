# SPDX-License-Identifier: Apache-2.0
"""Measurements by numbered datagrams of which none is missing: whose loss their own report means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfer, Transfers
    from wiretale.analyzer.rows import DirectionRow
    from wiretale.analyzer.trace import Trace

#: programs that report the loss of numbered datagrams, by flows.application
PROGRAMS = {"iperf2": "iperf", "iperf3": "iperf3", "blocks": "wiretale-traffic"}
NEAR_NS, NEAR_PART = 100_000, 5  # from the capture point to the receiver and back; of the round trip to the other end
FLOWS_MAX = 50  # whose round trips are read


def is_at_receiver(transfers: Transfers, row: DirectionRow) -> bool:
    """Returns whether the capture was made at the receiver of a direction: round trips of the hosts' TCP connections show it."""
    ends = (row["source"], row["destination"])
    rows = transfers.trace.directions.rows(0, 2 * FLOWS_MAX)
    for number, side in enumerate(rows):
        near, far = side["rtt_ns_min"], rows[number ^ 1]["rtt_ns_min"]
        if (side["source"], side["destination"]) == ends and near is not None and far is not None:
            return near <= NEAR_NS and NEAR_PART * near <= far
    return False


def measured(transfers: Transfers) -> Transfer | None:
    """Returns the largest measurement by numbered datagrams if none of them is missing."""
    for transfer in transfers.largest:
        row, flow = transfer.row, transfer.flow
        if flow["protocol"] == "udp" and flow["application"] in PROGRAMS and row["blocks"]:
            return transfer if row["blocks_lost"] == 0 and not row["block_restarts"] else None
    return None


def measured_str(trace: Trace) -> str:
    """`All 7,993 datagrams of iperf3 reached 10.0.0.2: …`; empty without such a measurement, or if some are missing."""
    transfer = measured(trace.transfers)
    if transfer is None:
        return ""
    program, row = PROGRAMS[str(transfer.flow["application"])], transfer.row
    datagrams = f"All {plural(row['blocks'] or 0, 'numbered datagram')} of {program}"
    if is_at_receiver(trace.transfers, row):
        cause = "a loss that it reports is this host's own (a full socket buffer: 'nstat -az UdpRcvbufErrors'), not the network's"
        return f"{datagrams} reached {row['destination']}: {cause}"
    return f"{datagrams} passed the capture point: a loss that it reports happened after it"
