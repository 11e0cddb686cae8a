# SPDX-License-Identifier: Apache-2.0
"""Rules about IP fragments: their overhead, and the datagrams lost with them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.cost import BY_COST
from wiretale.analyzer.findings.evidence import CITED, FIRST, LAST, SHOWN, Cited
from wiretale.analyzer.findings.model import Match, Matches, finding, flows_match, nonzero_rows, row_at
from wiretale.analyzer.findings.queueing import BINS_MIN, CAPPED_DISPERSION, CAPPED_VARIATION, HEAVY_LOSS, dispersion
from wiretale.analyzer.findings.transfers import Transfers, variation
from wiretale.analyzer.table import Table
from wiretale.analyzer.units import plural, show_bytes, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.rows import DatagramRow, DirectionRow

CHAPTER = "Fragmentation"
AMPLIFIED_MIN = 3  # incomplete datagrams
CUT_MIN, CUT_SHARE = 6, 0.5  # datagrams without their end; of the incomplete ones, beyond chance
INDEPENDENT = 0.6  # of the datagrams lost by independent losses of fragments
FRAGMENT_UNIT, UDP_HEADER = 8, 8  # bytes
ROWS_MAX = 1000  # directions with fragments
FILTER = "ip.flags.mf == 1 || ip.frag_offset > 0 || ipv6.fraghdr"

OVERFLOW = (
    " {cut:,} of {incomplete:,} incomplete datagrams lack only their end: a queue overflows while the fragments of a "
    "datagram arrive."
)
OVERLOAD = " Losses never cease while the received rate is level: more is offered than the path before the capture point carries."
CONGESTION = "Offer less than the path carries, or smaller bursts: this is congestion, not a bad link. "

datagram_finding = partial(finding, scope="datagrams")


def flows_of(datagrams: Table[DatagramRow]) -> list[int]:
    """Returns the flows of datagrams."""
    return sorted({flow for flow in datagrams.column("flow") if flow is not None})


def incomplete_bytes(transfers: Transfers, states: Sequence[str]) -> tuple[int, float]:
    """Returns the received bytes of incomplete datagrams, and their share of all wire bytes."""
    sizes = transfers.trace.datagrams.column("received_bytes")
    wasted = sum(compress(sizes, (state == "incomplete" for state in states)))
    return wasted, wasted / (transfers.trace.directions.total("wire_bytes") or 1)


def fragment_bytes(datagrams: Table[DatagramRow]) -> float:
    """Returns the mean bytes of a received fragment."""
    return float(sum(datagrams.column("received_bytes")) / max(sum(datagrams.column("fragments")), 1))


def cut_at_end(datagrams: Table[DatagramRow]) -> int:
    """Returns the number of datagrams that lack only their last fragments."""
    columns = map(datagrams.column, ("bytes", "missing_ranges", "missing_from"))
    return sum(size is None and ranges == 1 and first > 0 for size, ranges, first in zip(*columns, strict=True))


def ends_of(datagrams: Table[DatagramRow]) -> str:
    """Returns ` from 10.0.0.1 to 10.0.0.2` if all datagrams are from one host to another."""
    pairs = set(zip(datagrams.column("source"), datagrams.column("destination"), strict=True))
    source, destination = next(iter(pairs), ("", ""))
    return f" from {source} to {destination}" if len(pairs) == 1 else ""


def is_overload(transfers: Transfers, p: float) -> bool:
    """Returns whether so many fragments are lost all the time that the path's rate, and not chance, limits those received."""
    flows = set(transfers.trace.datagrams.column("flow"))
    transfer = max(
        (transfer for transfer in transfers.largest if transfer.row["flow"] in flows),
        key=lambda transfer: transfer.row["wire_bytes"],
        default=None,
    )
    if transfer is None or p < HEAVY_LOSS:
        return False
    level = transfers.bins(transfer).wire_bytes[1:-1]  # the first and the last are not full
    capped = variation(level) <= CAPPED_VARIATION and dispersion(transfer, level, p) <= CAPPED_DISPERSION
    return len(level) >= BINS_MIN and capped


@datagram_finding(
    code="loss-amplified",
    title="Fragment loss amplified",
    severity=BY_COST,
    unit="bytes",
    layer="of IP payload",
    computed="At least three datagrams are incomplete. p is the share of missing fragments, by the usual number of fragments "
    "in complete datagrams. It is compared with the share of lost datagrams and with 1-(1-p)^n of independent losses of n "
    "fragments. A full queue is reported if, of at least six incomplete datagrams, half (and 1/n) lack only their end: the "
    "fragments of a datagram arrive at once and fill it. It is also reported if at least 25% of the fragments are lost and "
    "the received rate is level. That rate varies by less than 25%, and its variance is less than half of that of random losses. "
    "The cost is the received bytes of incomplete datagrams, which datagrams without fragments would not waste. The "
    "amplification is these bytes and the lost ones per lost fragment.",
    unknown="Datagrams of which no fragment passed the capture point. Datagrams of very different sizes make p "
    "inexact.",
    sentence="About {p} of fragments{ends} were lost before the capture point, but {share} of datagrams of {each:fragment}[: a "
    "datagram needs every fragment, so 1-(1-p)^n = {expected} is expected ({comparison})].[ "
    "Each lost fragment cost {amplified} of IP payload (wasted: {wasted} of IP payload).][{queue}]",
    advice="{congestion}Send datagrams that need no fragments: about {p} of them would be lost instead of {share}.",
)
def loss_amplified(transfers: Transfers) -> Matches:
    datagrams = transfers.trace.datagrams
    states, fragments = datagrams.column("state"), datagrams.column("fragments")
    incomplete = states.count("incomplete")
    sizes = [size for size, state in zip(fragments, states, strict=True) if state == "complete"]
    if incomplete < AMPLIFIED_MIN or not sizes:
        return
    each = round(sum(sizes) / len(sizes))
    missing = each * len(states) - sum(fragments)
    if missing <= 0 or each < 2:
        return
    p, share = missing / (each * len(states)), incomplete / len(states)
    expected = 1 - (1 - p) ** each
    wasted, impact = incomplete_bytes(transfers, states)
    cut = cut_at_end(datagrams)
    fills = incomplete >= CUT_MIN and cut >= min(CUT_SHARE + 1 / each, 1.0) * incomplete
    queue = OVERFLOW.format(cut=cut, incomplete=incomplete) if fills else OVERLOAD if is_overload(transfers, p) else ""
    comparison = "losses are about independent" if share >= INDEPENDENT * expected else "losses come in runs"
    yield Match(
        p=show_share(p, 1),
        ends=ends_of(datagrams),
        share=show_share(share, 1),
        each=each,
        expected=show_share(expected, 1),
        comparison="losses are not independent" if queue else comparison,
        wasted=show_bytes(wasted),
        amplified=show_bytes((wasted + missing * fragment_bytes(datagrams)) / missing),
        queue=queue,
        congestion=CONGESTION if queue else "",
        flows=flows_of(datagrams),
        cost=float(wasted),
        figures=f"{plural(incomplete, 'incomplete datagram')} of {len(states):,}",
        cited=fragments_of(row_at(datagrams, states.index("incomplete"))),
        filter=FILTER,
        impact=impact,
    )


@datagram_finding(
    code="datagram-incomplete",
    title="Fragmented datagrams incomplete",
    severity=BY_COST,
    unit="bytes",
    layer="of IP payload",
    computed="Datagrams of which a byte range was still missing when the reassembly time (30 s; IPv6 60 s) or the "
    "capture ended. The cost is the received bytes of these datagrams.",
    unknown="Fragments that took another path.",
    sentence="{count} of {whole:fragmented datagram}[ ({share})] stayed incomplete[; {wasted} of IP payload was wasted].",
    advice="Send datagrams that fit the path MTU (at MTU 1500 at most 1,472 bytes over IPv4, 1,452 over IPv6), "
    "because one lost fragment loses the datagram.",
)
def datagram_incomplete(transfers: Transfers) -> Matches:
    datagrams = transfers.trace.datagrams
    states = datagrams.column("state")
    lost = [number for number, state in enumerate(states) if state == "incomplete"]
    if lost:
        wasted, impact = incomplete_bytes(transfers, states)
        rows = [row_at(datagrams, number) for number in lost[:SHOWN]]
        yield Match(
            count=len(lost),
            whole=len(states),
            share=show_share(len(lost), len(states)),
            wasted=show_bytes(wasted),
            flows=flows_of(datagrams),
            cost=float(wasted),
            figures="; ".join(f"id {row['identification']}: missing {row['missing']}" for row in rows),
            cited=fragments_of(rows[0]),
            frames=[fragments_of(row)[0]._replace(role=CITED) for row in rows],
            packets=len(lost),
            filter=FILTER,
            impact=impact,
        )


def fragments_of(row: DatagramRow) -> list[Cited]:
    """Returns the first and the last fragment of a datagram."""
    ends = ((row["first_frame"], row["first_ns"], FIRST), (row["last_frame"], row["last_ns"], LAST))
    return [Cited(frame, time_ns, row["flow"], row["capture"], role) for frame, time_ns, role in ends]


def fragments_of_the_largest(datagrams: Table[DatagramRow]) -> list[Cited]:
    """Returns the first and the last fragment of the datagram with the most; none if no datagram has a row."""
    fragments = datagrams.column("fragments")
    return fragments_of(row_at(datagrams, fragments.index(max(fragments)))) if fragments else []


def largest_unfragmented(rows: Sequence[DirectionRow]) -> int:
    """Returns the largest payload that needs no fragments: that of the fullest fragment, less the UDP header."""
    fullest = max((row["segment_max"] or 0 for row in rows), default=0)
    return int(max(fullest // FRAGMENT_UNIT * FRAGMENT_UNIT - UDP_HEADER, 0))


def unfragmented_efficiency(transfers: Transfers, row: DirectionRow, payload: int) -> float:
    """Returns the share of payload in wire bytes if each datagram has that size and no fragments."""
    from wiretale.analyzer.theory.capacity import Link

    link = Link(1, ip=row_at(transfers.trace.flows, row["flow"])["ip_version"])
    return payload / (payload + link.headers("udp") + link.frame().extra())


@datagram_finding(
    code="fragmentation",
    title="Overhead of IP fragments",
    severity="info",
    unit="bytes",
    computed="Wire bytes of the headers, preambles and gaps of each fragment after the first of its datagram (sizes: "
    "docs/theory.md), and the share of payload with and without them. The largest payload without fragments is that "
    "of the fullest fragment, less the UDP header. The cost is the wire bytes that datagrams of that size would save. "
    "Fragments without loss are a note; loss-amplified has the cost of lost ones.",
    unknown="The path MTU after the capture point. Fragments made by a router before it look as if the sender had "
    "made them.",
    sentence="{datagrams:datagram} came in {fragments:fragment}[ ({extra:more frame})][: headers, preambles and gaps of "
    "all fragments after the first took {overhead} on the wire ({share})][. Payload is {now} of the wire bytes of "
    "those flows, and would be {fitting} with datagrams that just fit the path MTU{verdict}].",
    advice="Send blocks that fit the path MTU{most}{condition}: a lost packet then costs one block instead of a "
    "datagram, and the receiver does not need to reassemble.",
)
def fragmentation(transfers: Transfers) -> Matches:
    overhead = sum(size for _, size in transfers.counts["fragment_overhead_bytes"])
    trace = transfers.trace
    if not overhead:
        return
    fragments, datagrams = (trace.directions.total(name) for name in ("fragments", "fragmented_datagrams"))
    if fragments <= datagrams:
        return
    numbers = nonzero_rows(trace.directions, "fragments")
    rows = [row_at(trace.directions, number) for number in numbers[:ROWS_MAX]]
    flows = list(dict.fromkeys(number // 2 for number in numbers))
    wire, largest = trace.directions.total("wire_bytes"), largest_unfragmented(rows)
    fitting = unfragmented_efficiency(transfers, rows[0], largest)
    payload, carried = (sum(row[name] or 0 for row in rows) for name in ("payload_bytes", "wire_bytes"))
    saved = max(round(carried - payload / fitting), 0) if fitting else 0
    gain = {"verdict": "", "condition": "", "cost": float(saved)}
    none = {"verdict": ", so avoiding fragments saves no bytes", "condition": " if losses matter"}
    yield from flows_match(
        transfers,
        flows,
        datagrams=datagrams,
        fragments=fragments,
        extra=fragments - datagrams,
        overhead=show_bytes(overhead),
        share=show_share(overhead, wire),
        now=show_share(payload, carried),
        fitting=show_share(fitting, 1),
        most=f" (at most {largest:,} bytes of payload)" if largest else "",
        filter=FILTER,
        cited=fragments_of_the_largest(trace.datagrams),
        impact=overhead / wire,
        **(gain if saved else none),
    )
