# SPDX-License-Identifier: Apache-2.0
"""Rules about fragmentation: what it costs, and what was lost by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.model import SHOWN, Finding, flows_named, frame_span, row_at, rows_with, total
from wiretale.analyzer.findings.odd_counts import odd_counts
from wiretale.analyzer.units import agreeing, plural, show_bytes, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

OVERHEAD_WARNING = 0.02  # of the wire bytes
GAIN_LEAST = 0.005  # of the wire bytes, by datagrams that fit: less is no reason to change anything
AMPLIFIED_LEAST = 3  # incomplete datagrams
CUT_LEAST, CUT_SHARE = 6, 0.5  # datagrams without their end; of the incomplete ones, beyond what chance makes
FRAGMENT_UNIT, UDP_HEADER = 8, 8
ROWS_READ = 1000  # directions with fragments
FILTER = "ip.flags.mf == 1 || ip.frag_offset > 0 || ipv6.fraghdr"
QUEUE_ADVICE = "Congestion, not a bad link: offer less than comes through, or in smaller bursts. "
Row = dict[str, Any]


def one_flow(datagrams: Table) -> int | None:
    """The flow of all fragmented datagrams, where they are of one."""
    flows = set(datagrams.column("flow"))
    return flows.pop() if len(flows) == 1 else None


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
        f"id {row['identification']} ({frame_span(row)}, missing {row['missing']})"
        for row in (row_at(datagrams, i) for i in list(compress(range(len(states)), lost))[:SHOWN])
    ]
    yield Finding(
        *("datagram-incomplete", "warning", "datagrams"),
        f"{count:,} of {plural(len(states), 'fragmented datagram')} ({show_share(count, len(states))}) never became "
        f"complete; the {show_bytes(carried)} of {agreeing(count, 'it', 'them')} that passed here were carried for nothing.",
        "One lost fragment loses the whole datagram: send datagrams that fit the path MTU (payload up to 1472 bytes "
        "at MTU 1500 over IPv4, 1452 over IPv6).",
        flow=one_flow(datagrams),
        cost=float(carried),
        cost_unit="bytes",
        evidence="; ".join(shown),
        impact=carried / (total(trace.directions, "wire_bytes") or 1),
        filter=FILTER,
    )


def largest_whole(rows: Sequence[Row]) -> int:
    """The largest payload that the path of fragmented datagrams carries whole: one fragment's, less the UDP header."""
    fullest = max((row["segment_max"] or 0 for row in rows), default=0)
    return int(max(fullest // FRAGMENT_UNIT * FRAGMENT_UNIT - UDP_HEADER, 0))


def efficiency_whole(trace: Trace, row: Row, payload: int) -> float:
    """Payload of the wire bytes when each datagram is of that size and no fragment."""
    from wiretale.analyzer.theory import Link

    link = Link(1, ip=row_at(trace.flows, row["flow"])["ip_version"])
    return payload / (payload + link.headers("udp") + link.frame().extra())


def fitting_words(now: float, fitting: float, gains: bool) -> str:
    """How much of the wire bytes would be payload without fragments."""
    if gains:
        return (
            f"{show_share(now, 1)} of those flows' wire bytes is payload; with datagrams that just fit the path MTU it "
            f"would be {show_share(fitting, 1)}."
        )
    return (
        f"Avoiding fragments would save no bytes: {show_share(now, 1)} of those flows' wire bytes is payload, against "
        f"{show_share(fitting, 1)} with datagrams that just fit the path MTU."
    )


def fragmentation_overhead(trace: Trace) -> Iterator[Finding]:
    """What fragments spend on headers, preambles and gaps, and what sending without them would change."""
    overhead = sum(size for _, size in odd_counts(trace)["fragment_overhead_bytes"])
    if not overhead:
        return
    numbers = rows_with(trace.directions, "fragments")
    rows = [row_at(trace.directions, number) for number in numbers[:ROWS_READ]]
    flows = list(dict.fromkeys(number // 2 for number in numbers))
    wire, fragments = total(trace.directions, "wire_bytes"), total(trace.directions, "fragments")
    datagrams, whole = total(trace.directions, "fragmented_datagrams"), largest_whole(rows)
    here, payload = sum(row["wire_bytes"] for row in rows), sum(row["payload_bytes"] or 0 for row in rows)
    now, fitting = payload / here, efficiency_whole(trace, rows[0], whole)
    gains = fitting - now >= GAIN_LEAST
    yield Finding(
        *("fragmentation", "warning" if gains and overhead >= OVERHEAD_WARNING * wire else "info", "datagrams"),
        f"{plural(datagrams, 'datagram')} came in {plural(fragments, 'fragment')}, {plural(fragments - datagrams, 'frame')} "
        f"more than datagrams: {show_bytes(overhead)} ({show_share(overhead, wire)} of the wire bytes) went into the "
        f"headers, preambles and gaps of the fragments after the first. {fitting_words(now, fitting, gains)}",
        f"Send blocks that fit the path MTU{f', here up to {whole:,} bytes of payload' if whole else ''}"
        f"{'' if gains else ', if losses matter'}: a lost packet then costs one block instead of a whole datagram, and the "
        "receiver does not need to reassemble anything.",
        flow=flows[0] if len(flows) == 1 else None,
        cost=float(overhead),
        cost_unit="bytes",
        evidence=flows_named(trace, flows),
        filter=FILTER,
        impact=overhead / wire,
    )


def cut_at_end(trace: Trace) -> int:
    """Datagrams that came up to some fragment and no further."""
    ends = (text or "" for text in trace.datagrams.column("missing"))
    return sum(text.endswith("-") and text[:-1].isdecimal() and text != "0-" for text in ends)


def queue_words(trace: Trace, incomplete: int, each: int) -> str:
    """Whether they lack their ends: chance leaves the last fragment alone out of 1 in `each`."""
    cut = cut_at_end(trace)
    if incomplete < CUT_LEAST or cut < min(CUT_SHARE + 1 / each, 1.0) * incomplete:
        return ""
    return (
        f" {cut:,} of the {incomplete:,} incomplete ones lack nothing but their end: a queue fills up while the fragments of a "
        "datagram come, and overflows."
    )


def loss_amplified(trace: Trace) -> Iterator[Finding]:
    """One lost fragment takes its whole datagram along: p against 1 - (1 - p)^n."""
    datagrams = trace.datagrams
    states = datagrams.column("state")
    if states.count("incomplete") < AMPLIFIED_LEAST:
        return
    came = sum(datagrams.column("fragments"))
    sizes = [size for size, state in zip(datagrams.column("fragments"), states, strict=True) if state == "complete"]
    if not sizes:
        return
    each = round(sum(sizes) / len(sizes))
    missing = each * len(states) - came
    if missing <= 0 or each < 2:
        return
    p, share = missing / (each * len(states)), states.count("incomplete") / len(states)
    foretold = 1 - (1 - p) ** each
    carried = sum(compress(datagrams.column("received_bytes"), (state == "incomplete" for state in states)))
    queue = queue_words(trace, states.count("incomplete"), each)
    apart = (
        "about as if each were lost by itself"
        if share >= 0.6 * foretold
        else "less than by chance: the losses come in runs"
    )
    if queue:
        apart = "were each lost by itself; here they are not"
    yield Finding(
        *("loss-amplified", "warning", "datagrams"),
        f"About {show_share(p, 1)} of the fragments were lost, but {show_share(share, 1)} of the datagrams of {each} "
        f"fragments: a datagram is whole only when each fragment comes, so that 1-(1-p)^n = {show_share(foretold, 1)} "
        f"is to be expected ({apart}). {show_bytes(carried)} came for nothing.{queue}",
        f"{QUEUE_ADVICE if queue else ''}With datagrams that need no fragments about {show_share(p, 1)} would be lost: "
        f"{share / p:.1f} times less.",
        flow=one_flow(datagrams),
        cost=round(100 * (share - p), 3),
        cost_unit="percent",
        evidence=f"{plural(states.count('incomplete'), 'incomplete datagram')} of {len(states):,}",
        filter=FILTER,
        impact=carried / (total(trace.directions, "wire_bytes") or 1),
    )
