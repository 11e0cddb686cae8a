# SPDX-License-Identifier: Apache-2.0
"""The measures of wiretale diff: unit, meaning, and whether more or less is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wiretale.analyzer.units import UNKNOWN, show_bytes, show_count, show_duration, show_rate, show_share

Values = dict[str, float | None]


def show_percent(value: float | None) -> str:
    """`1.23%`."""
    return UNKNOWN if value is None else show_share(value, 100)


@dataclass(frozen=True)
class Unit:
    """How values are shown, and the units of --fail-if with their factors."""

    name: str
    show: Callable[[float | None], str]
    factors: dict[str, float]


def prefixed_factors(names: tuple[str, ...]) -> dict[str, float]:
    """Returns the units with the prefixes k, M and G."""
    prefixes = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
    return {prefix + name: factor for name in names for prefix, factor in prefixes.items()}


BINARY = {"KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3}
RATE = Unit("bit/s", show_rate, prefixed_factors(("", "bit", "bit/s", "bps")))
BYTES = Unit("bytes", show_bytes, {**prefixed_factors(("", "B")), **BINARY})
COUNT = Unit("", show_count, {"": 1.0, "k": 1e3, "M": 1e6})
PERCENT = Unit("%", show_percent, {"": 1.0, "pp": 1.0})
TIME = Unit(
    "ns",
    show_duration,
    {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9},
)


@dataclass(frozen=True)
class Measure:
    """One measure."""

    name: str
    unit: Unit
    #: 1: more is better, -1: less is, 0: neither
    better: int
    meaning: str
    layer: str = ""  # of bytes and rates

    @property
    def label(self) -> str:
        """The name as words, with its layer: `throughput (IP)`, `RTT p99`."""
        words = self.name.replace("_", " ").replace("rtt", "RTT")
        return f"{words} ({self.layer})" if self.layer else words


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("goodput", RATE, 1, "unique payload over the time from the first packet to the last", "unique payload"),
        Measure("throughput", RATE, 1, "IP bytes (of generator reports: bytes sent) over the same time", "IP"),
        Measure("retransmissions", PERCENT, -1, "TCP segments retransmitted on the wire, of all with payload"),
        Measure("spurious", COUNT, -1, "proven spurious retransmissions"),
        Measure("lost_upstream", COUNT, -1, "TCP segments lost before the capture point"),
        Measure("lost_downstream", COUNT, -1, "TCP segments or their ACKs lost after it"),
        Measure("block_loss", PERCENT, -1, "numbered packets or blocks lost, of all"),
        Measure("blocks_lost", COUNT, -1, "numbered packets or blocks lost"),
        Measure("rtt_min", TIME, -1, "least RTT"),
        Measure("rtt_median", TIME, -1, "median RTT; over several flows weighted by samples"),
        Measure("rtt_p99", TIME, -1, "99th percentile of RTTs; weighted by samples"),
        Measure("jitter", TIME, -1, "interarrival jitter (RFC 3550); weighted by packets"),
        Measure("out_of_order", COUNT, -1, "TCP segments or blocks that the network reordered"),
        Measure("fragments", COUNT, -1, "IP fragments"),
        Measure("incomplete_datagrams", COUNT, -1, "fragmented datagrams that stayed incomplete"),
        Measure("zero_windows", COUNT, -1, "segments with a zero receive window"),
        Measure("host_dropped", COUNT, -1, "dropped by the receiver's kernel (generator reports)"),
        Measure("duration", TIME, 0, "from the first packet to the last"),
        Measure("packets", COUNT, 0, "IP packets"),
        Measure(
            *("bytes", BYTES, 0),
            "received payload (in captures: captured payload, without duplicates of a mirror port)",
            "payload",
        ),
        Measure("flows", COUNT, 0, "conversations, or tests"),
        Measure("findings", COUNT, -1, "warnings and errors"),
    )
}
