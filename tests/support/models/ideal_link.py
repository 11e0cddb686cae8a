# SPDX-License-Identifier: Apache-2.0
"""Captures before and after an ideal link, with computed times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from capture_files import write_pcap
from capture_points import block, udp
from wiretale.traffic.lab.flow import FlowMeasures, measure_flow

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
ETHERNET = bytes(12) + b"\x08\0"
INTERVAL_NS = 8000e9 / 1.9e6  # packets of 1000 bytes at 1.9 Mb/s


def write_capture(folder: Path, name: str, packets: list[tuple[int, int]], ip_bytes: int) -> Path:
    """A capture of (time, number of the block), its first 256 bytes."""
    frames = ((time_ns, ETHERNET + udp(block(9, 0, number, ip_bytes - 28), number)) for time_ns, number in packets)
    return write_pcap(folder / f"{name}.pcap", frames, snaplen=256)


def departures(times: list[int], tx_ns: int, delay_ns: int, limit: int) -> list[tuple[int | None, int]]:
    """Of packets that come to a queue with room for `limit`, the one being sent among them: when each arrives at the other
    end (None: dropped), and how many it found."""
    ends: list[int] = []
    arrivals: list[tuple[int | None, int]] = []
    for came in times:
        waiting = sum(end > came for end in ends[-limit:])
        if waiting < limit:
            ends.append(max(came, ends[-1] if ends else came) + tx_ns)
        arrivals.append((ends[-1] + delay_ns if waiting < limit else None, waiting))
    return arrivals


def ideal_link(
    count: int, interval_ns: float, tx_ns: int, delay_ns: int, limit: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Times and numbers of packets before and after a link with a rate, a delay, and room for `limit` packets."""
    times = [START_NS + round(number * interval_ns) for number in range(count)]
    after = [(due, number) for number, (due, _) in enumerate(departures(times, tx_ns, delay_ns, limit)) if due]
    return list(zip(times, range(count), strict=True)), after


FIDELITY = {
    **{"valid": True, "error_ns_p50": 20_000, "error_ns_p99": 200_000, "error_ns_max": 900_000, "overruns": 0},
    **{"restamped": 0, "bound_ns_p99": 1_000_000, "bound_ns_max": 50_000_000, "real_time": True},
}


def lab_row(flow: FlowMeasures, **more: Any) -> dict[str, Any]:
    """The results of a lab run over a narrow link, with figures that a study published."""
    return {
        **flow.totals,
        **{"case": "narrow", "profile": "s6", "protocol": "udp", "packet_bytes": 1000, "disturbances": [], "link": []},
        "links": {},
        "fidelity": FIDELITY,
        **{"throughput_kibps": 976.5, "kb_transferred": 1227.5, "as_published": {"latency_ms": False}, **more},
    }


def measured(folder: Path, *link: Any, ip_bytes: int = 1000) -> FlowMeasures:
    before, after = ideal_link(*link)
    return measure_flow(
        write_capture(folder, "before", before, ip_bytes), write_capture(folder, "after", after, ip_bytes), ip_bytes
    )
