# SPDX-License-Identifier: Apache-2.0
"""Rules about fragmentation: what it costs, and what was lost by it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import TYPE_CHECKING

from wiretale.analyzer.finding import SHOWN, Finding, row_at, total
from wiretale.analyzer.units import plural, show_bytes, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

OVERHEAD_WARNING = 0.02  # of the wire bytes


def datagrams_incomplete(trace: Trace) -> Iterator[Finding]:
    """Datagrams of which a fragment is missing: all that came of them was carried for nothing."""
    datagrams = trace.datagrams
    states = datagrams.column("state")
    lost = [state == "incomplete" for state in states]
    count = sum(lost)
    if not count:
        return
    carried = sum(compress(datagrams.column("received_bytes"), lost))
    shown = [
        f"id {row['identification']} (frames {row['first_frame']}–{row['last_frame']}, missing {row['missing']})"
        for row in (row_at(datagrams, i) for i in list(compress(range(len(states)), lost))[:SHOWN])
    ]
    yield Finding(
        *("datagram-incomplete", "warning", "datagrams"),
        f"{count:,} of {plural(len(states), 'fragmented datagram')} ({show_share(count, len(states))}) never became complete; "
        f"the {show_bytes(carried)} of them that passed here were carried for nothing.",
        "One lost fragment loses the whole datagram: send datagrams that fit the path MTU (payload up to 1472 bytes at "
        "MTU 1500 over IPv4, 1452 over IPv6).",
        cost=float(carried),
        cost_unit="bytes",
        evidence="; ".join(shown),
        filter="ip.flags.mf == 1 || ip.frag_offset > 0 || ipv6.fraghdr",
    )


def fragmentation_overhead(trace: Trace) -> Iterator[Finding]:
    """What fragments spend on headers, preambles and gaps."""
    overhead = total(trace.directions, "fragment_overhead_bytes")
    if not overhead:
        return
    wire = total(trace.directions, "wire_bytes")
    fragments, datagrams = (
        total(trace.directions, "fragments"),
        total(trace.directions, "fragmented_datagrams"),
    )
    yield Finding(
        *("fragmentation", "warning" if overhead >= OVERHEAD_WARNING * wire else "info", "datagrams"),
        f"{plural(datagrams, 'datagram')} came in {plural(fragments, 'fragment')}: {show_bytes(overhead)} "
        f"({show_share(overhead, wire)} of the wire bytes) went into the headers, preambles and gaps of the fragments after "
        "the first.",
        "Send blocks that fit the path MTU: fewer frames, and a loss costs one packet instead of a datagram.",
        cost=float(overhead),
        cost_unit="bytes",
        filter="ip.flags.mf == 1 || ip.frag_offset > 0 || ipv6.fraghdr",
    )
