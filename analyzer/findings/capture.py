# SPDX-License-Identifier: Apache-2.0
"""Rules about the capture itself: what it lost, cut or got wrong, and so how far the rest can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.display_filter import frame_filter
from wiretale.analyzer.findings.model import HARMLESS, Finding, flows_named, total
from wiretale.analyzer.findings.odd_counts import odd_counts, odd_flows
from wiretale.analyzer.units import agreeing, plural, show_bytes, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

COPIES_LEAST, COPIES_SHARE = 10, 0.2  # packets that came again: fewer are the network's doing
DROPPERS = {"kernel": "by the kernel", "interface": "by the interface", "program": "by the capturing program"}
QUEUES_APART_NS = 100_000  # time stamps of packets that several queues take at once; no clock is set by so little
CAPTURES_READ, NAMES_SHOWN = 64, 3


def capture_damaged(trace: Trace) -> Iterator[Finding]:
    """A file that ends in the middle of a record, or holds what is none."""
    said = set()
    for capture in trace.interfaces.rows():
        if capture["damage"] is None or capture["file"] in said:
            continue
        said.add(capture["file"])
        yield Finding(
            *("capture-damaged", "error", "capture"),
            f"The capture could not be read to its end: {capture['damage']}.",
            "What came before is analyzed. Copy the file again, or let the capture finish; "
            "`pcapfix` or `editcap` may save what follows.",
            evidence=f"frame {capture['damage_frame']}" if capture["damage_frame"] else None,
        )


def interrupted(trace: Trace) -> Iterator[Finding]:
    """Ctrl-C."""
    if trace.interrupted:
        read = trace.totals["packets"]
        when = f"after {plural(read, 'packet')}" if read else "before the first packet"
        yield Finding(
            *("interrupted", "info", "capture"),
            f"The reading was interrupted {when}; the rest is not analyzed.",
            "Run it again to the end, or choose a part with --start and --end.",
        )


def dropped_by(capture: dict[str, Any]) -> str:
    """Who dropped how many: `3 by the kernel, 1 by the interface`."""
    counts = ((capture[f"dropped_{who}"], words) for who, words in DROPPERS.items())
    return ", ".join(f"{count:,} {words}" for count, words in counts if count)


def capture_drops(trace: Trace) -> Iterator[Finding]:
    """Drops that the capturing system itself reports (pcapng interface statistics)."""
    for capture in trace.interfaces.rows():
        dropped = sum(capture[f"dropped_{who}"] or 0 for who in DROPPERS)
        if not dropped:
            continue
        whole = dropped + capture["packets"] + capture["filtered_packets"]
        yield Finding(
            *("capture-dropped", "warning", "capture"),
            f"The capture itself lost {plural(dropped, 'packet')} ({show_share(dropped, whole)}) on "
            f"{capture['name'] or 'interface ' + str(capture['interface'])}: "
            f"{dropped_by(capture)}. "
            "What seems lost or unseen may only be missing here.",
            "Capture with a larger buffer (-B), fewer bytes a packet (-s 96) or a capture filter.",
            cost=float(dropped),
            cost_unit="packets",
        )


def capture_missed(trace: Trace) -> Iterator[Finding]:
    """Bytes acknowledged by the receiver and never seen: lost at the capture, or on another path."""
    unseen = odd_counts(trace)["unseen_bytes"]
    if not unseen:
        return
    missed, payload = sum(size for _, size in unseen), total(trace.directions, "payload_bytes")
    affected = list(dict.fromkeys(number // 2 for number, _ in unseen))
    yield Finding(
        *("capture-missed", "warning", "capture"),
        f"Receivers acknowledged {show_bytes(missed)} ({show_share(missed, missed + payload)} of the payload) that are "
        f"not in the capture, in {plural(len(affected), 'flow')}: the capture missed packets, or they took another path"
        f"{', or went by before it began' if begun_before(trace, affected) else ''}.",
        "Do not read these as losses of the network. Compare with the drops of the capture; look for asymmetric routing.",
        flow=affected[0] if len(affected) == 1 else None,
        cost=float(missed),
        cost_unit="bytes",
        evidence=flows_named(trace, affected),
        filter="tcp.analysis.ack_lost_segment",
    )


def begun_before(trace: Trace, flows: list[int]) -> bool:
    """Whether one of them was under way when the capture began."""
    known = trace.flows.column("initiator_known")
    return not all(known[flow] for flow in flows)


def several_points(trace: Trace) -> Iterator[Finding]:
    """The same packets in captures of several places, which look like copies that the network made."""
    captures = overlapping(trace)
    if len(captures) < 2:
        return
    columns = [trace.directions.column(name) for name in ("network_duplicates", "blocks_duplicate")]
    again = sum(max(network or 0, blocks or 0) for network, blocks in zip(*columns, strict=True))
    whole = total(trace.directions, "data_packets")
    if again < COPIES_LEAST or again < COPIES_SHARE * whole:
        return
    names = ", ".join(f"{row['name'] or row['file']}" for row in captures[:NAMES_SHOWN])
    yield Finding(
        *("several-points", "warning", "capture"),
        f"{plural(again, 'packet')} ({show_share(again, whole)} of those with data) came in more than one of {len(captures)} "
        f"captures of the same time ({names}): it seems that they were taken at several places of one path, and are "
        "read here as if at one.",
        "Explain each alone, and put them beside each other with `wiretale compare SENDER RECEIVER`.",
        cost=float(again),
        cost_unit="packets",
    )


def overlapping(trace: Trace) -> list[dict[str, Any]]:
    """Captures (a file's interfaces each) that ran for half of their time beside another."""
    known = [row for row in trace.interfaces.rows() if row["first_ns"] is not None and row["packets"]]
    known = known[:CAPTURES_READ]
    return [row for row in known if any(beside(row, other) for other in known if other is not row)]


def beside(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether they ran at the same time for half of the shorter's."""
    both = int(min(one["last_ns"], other["last_ns"]) - max(one["first_ns"], other["first_ns"]))
    shorter = int(min(row["last_ns"] - row["first_ns"] for row in (one, other)))
    return both > 0 and 2 * both >= shorter


def time_backward(trace: Trace) -> Iterator[Finding]:
    """Time stamps that go back within an interface's packets."""
    for capture in trace.interfaces.rows():
        if capture["backward_steps"]:
            little = capture["backward_ns_max"] < QUEUES_APART_NS
            why = "packets" if little else "the clock was set back, or packets"
            doubtful = "Orders nearer than that" if little else "Times and orders near them"
            yield Finding(
                *("time-backward", "info" if little else "warning", "capture"),
                f"{plural(capture['backward_steps'], 'packet is', 'packets are')} stamped earlier than the one before, by up "
                f"to {show_duration(capture['backward_ns_max'])}: {why} of several queues "
                f"were written out of order. {doubtful} are doubtful.",
                "Sort with `reordercap`, keep the clock slewed (chrony) and capture one queue.",
                evidence=f"first at frame {capture['backward_frame']}",
                filter=frame_filter([capture["backward_frame"]]),
                impact=HARMLESS if little else 0.0,
            )


def time_unknown(trace: Trace) -> Iterator[Finding]:
    """Simple packet blocks."""
    count = total(trace.interfaces, "time_unknown")
    if count:
        yield Finding(
            *("time-unknown", "warning", "capture"),
            f"{plural(count, 'packet carries', 'packets carry')} no time stamp (pcapng simple packet blocks): "
            f"{agreeing(count, 'it is', 'they are')} counted, and no rate or delay is drawn from "
            f"{agreeing(count, 'it', 'them')}.",
            "Capture with a tool that writes enhanced packet blocks.",
        )


def super_segments(trace: Trace) -> Iterator[Finding]:
    """Segmentation or receive offload seen by the capture."""
    for capture in trace.interfaces.rows():
        if capture["super_segments"]:
            device = capture["name"] or "DEVICE"
            yield Finding(
                *("offload", "warning", "capture"),
                f"{plural(capture['super_segments'], 'packet is', 'packets are')} longer than a link carries: captured before "
                "the adapter cut up what it sends (TSO, GSO) or after it joined what came (GRO, LRO). Packets, wire bytes "
                "and round trips are those of the host, not of the wire.",
                f"Capture on a separate tracer, or first: ethtool -K {device} tso off gso off gro off lro off.",
                evidence=f"first at frame {capture['super_segment_frame']}",
                filter="ip.len > 9216 || ip.len == 0",
            )


def headers_cut(trace: Trace) -> Iterator[Finding]:
    """A snap length so short that it cuts headers."""
    count = total(trace.interfaces, "cut_headers")
    if count:
        yield Finding(
            *("headers-cut", "warning", "capture"),
            f"The snap length cut the headers of {plural(count, 'packet')}: what {agreeing(count, 'it', 'they')} carried is "
            "not known.",
            "Capture at least 128 bytes a packet (-s 128), more inside tunnels.",
            cost=float(count),
            cost_unit="packets",
        )


def malformed(trace: Trace) -> Iterator[Finding]:
    """Packets that break their own format."""
    for capture in trace.interfaces.rows():
        if capture["malformed"]:
            yield Finding(
                *("malformed", "warning", "capture"),
                f"{plural(capture['malformed'], 'packet breaks', 'packets break')} the format of a header "
                f"({capture['reasons']}).",
                "Look at them: corruption on the path, a broken sender, or an attack.",
                evidence=f"first at frame {capture['malformed_frame']}",
                filter=frame_filter([capture["malformed_frame"]]),
            )


def not_understood(trace: Trace) -> Iterator[Finding]:
    """Packets of a kind that is not read."""
    for capture in trace.interfaces.rows():
        share = capture["not_understood"] / capture["packets"] if capture["packets"] else 0
        if capture["not_understood"]:
            yield Finding(
                *("not-understood", "warning" if share > 0.5 else "info", "capture"),
                f"{plural(capture['not_understood'], 'packet is', 'packets are')} of a kind that is not read "
                f"({show_share(capture['not_understood'], capture['packets'])}; {capture['reasons']}).",
                "They are counted and not analyzed; Wireshark may know them.",
            )


def filter_refused(trace: Trace) -> Iterator[Finding]:
    """A filter that cannot be compiled for a link type."""
    count = trace.totals["filter_refused"]
    if count:
        yield Finding(
            *("filter-refused", "warning", "capture"),
            f"The filter cannot be used on the link type of {plural(count, 'packet')}: "
            f"{agreeing(count, 'it was', 'they were')} left out.",
            "Use a filter that holds for every link type in the file, such as `ip` or `tcp port 80`.",
        )


def bounds_reached(trace: Trace) -> Iterator[Finding]:
    """Flows, datagrams or events that were given up to stay within the memory bound."""
    totals = trace.totals
    if totals["evicted_flows"]:
        yield Finding(
            *("flows-evicted", "warning", "capture"),
            f"{plural(totals['evicted_flows'], 'flow')} ended early because too many were open at once: a flow may "
            "appear in several rows.",
            "Raise --max-flows, or analyze a part with --filter.",
        )
    if totals["evicted_datagrams"]:
        yield Finding(
            *("datagrams-evicted", "warning", "capture"),
            f"{plural(totals['evicted_datagrams'], 'incomplete datagram')} ended early because too many were open at "
            "once.",
            "A flood of fragments? Analyze a part with --filter.",
        )
    for code, what in (("events-dropped", "event"), ("blocks-dropped", "block")):
        dropped = totals[code.replace("-", "_")]
        if dropped:
            yield Finding(
                *(code, "info", "capture"),
                f"{plural(dropped, what)} beyond the bound of the {what}s table: counts are whole, their list is not.",
                "Analyze a part with --filter, --start and --end.",
            )


def one_way(trace: Trace) -> Iterator[Finding]:
    """TCP conversations of which only one direction was captured, though the other must have been there."""
    flows = trace.flows
    alone = [number for number, _ in odd_flows(trace)["one_way"]]
    states = flows.column("state") if alone else []
    numbers = [i for i in alone if states[i] not in (None, "syn_sent")]
    if numbers:
        yield Finding(
            *("one-way", "warning", "capture"),
            f"Only one direction of {plural(len(numbers), 'TCP flow')} was captured "
            f"({show_share(len(numbers), len(flows))} of the flows): round trips, unseen bytes and flight are not known.",
            "Mirror both directions of the port, or capture where routing is symmetric.",
            evidence=flows_named(trace, numbers),
        )
