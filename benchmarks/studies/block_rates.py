# SPDX-License-Identifier: Apache-2.0
"""What S4's published rates say of its hosts and its network, by arithmetic: the round trip that a window of 64 kB had, and the
time that a host took for each datagram beside the wire's."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import linear_regression, median

from wiretale.analyzer.theory.capacity import Link, block_maximum, maximum
from wiretale.traffic.experiment.published import published_rows

LINK = Link(bps=10**9, tcp_options=12)  # Linux sends timestamps (RFC 7323)
WINDOW = 65536  # bytes, of TCP without window scaling, as its authors suspected


def wire_rates(protocol: str) -> dict[int, float]:
    """Returns the MB/s on the wire on Windows 7, with headers, preambles and gaps, by block size."""
    rows = published_rows("block_benchmark")
    return {
        int(row["block_bytes"]): float(row["wire_mb_per_s"])
        for row in rows
        if (row["protocol"], row["system"]) == (protocol, "Windows 7")
    }


def payload_share() -> float:
    """Returns the payload of full TCP segments over their bytes on the wire."""
    return maximum(LINK, "tcp").efficiency


def s4_round_trip() -> float:
    """Returns the ms in which a window of 64 kB has the median of TCP's rates."""
    return WINDOW / (median(wire_rates("tcp").values()) * 1e3 * payload_share())


def tcp_contradiction(rates: Mapping[int, float]) -> str:
    """Returns what the fastest and the slowest rate say of each other."""
    slow, fast = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    return (
        f"cannot fit: one window and one round trip give one rate, and blocks of {fast:,} had {rates[fast]:.3g} MB/s, those of "
        f"{slow:,} {rates[slow]:.3g}"
    )


def microseconds_per_block(rates: Mapping[int, float]) -> float:
    """Returns the us that a datagram took beside its time on the wire: the time at a size of 0 by a straight line."""
    sizes = list(rates)
    wire = [size / block_maximum(LINK, "udp", size).block_efficiency for size in sizes]
    times = [size / rates[name] for size, name in zip(wire, sizes, strict=True)]
    return linear_regression(wire, times).intercept


def udp_reason(rates: Mapping[int, float], size: int) -> str:
    """Returns the rate of a host that takes this time for each datagram, and whether it is the published one."""
    more = microseconds_per_block(rates)
    wire = size / block_maximum(LINK, "udp", size).block_efficiency
    rate = wire / (more + wire / (LINK.bps / 8e6))
    word = "fits" if abs(rate / rates[size] - 1) <= 0.15 else "does not fit"
    return f"{word} a host that takes {more:.0f} us for a datagram beside the wire's time: {rate:.3g} MB/s"
