# SPDX-License-Identifier: Apache-2.0
"""Rules about the capture itself: packets it lost, cut or stored wrongly, and so how far other results can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.findings.evidence import SHOWN, Cited, first_packet
from wiretale.analyzer.findings.hidden import DOUBTFUL_SHARE
from wiretale.analyzer.findings.model import Match, Matches, Rule, Words, finding, flows_match, row_at
from wiretale.analyzer.findings.transfers import Transfers
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.rows import InterfaceRow, RelationRow, SecondPortRow

CHAPTER = "The capture itself"
COPIES_MIN, COPIES_SHARE = 10, 0.2  # repeated packets: fewer are duplicates that the network made
BACKWARD = "frame.time_delta < 0"
MISSED_SHARE = 0.01  # of payload: less is missing at the beginning or the end of many captures
OFFLOADED_MIN = 3  # packets longer than the MTU: one or two may have a wrong length
DROPPERS = {"kernel": "by the kernel", "interface": "by the interface", "program": "by the capturing program"}
QUEUES_APART_NS = 1_000_000  # between timestamps of packets that several capture queues take at once
CLOCK_SET_NS = 1_000_000_000  # no queue holds packets for so long
CAPTURES_MAX, NAMES_SHOWN = 64, 3

capture_finding = partial(finding, scope="capture")


def interfaces_with(transfers: Transfers, column: str) -> Iterator[InterfaceRow]:
    """Returns the rows of interfaces in which a count is neither null nor 0."""
    interfaces = transfers.trace.interfaces
    return (row_at(interfaces, number) for number, _ in interfaces._nonzero([column])[column])


def exceeds_doubt(transfers: Transfers, *columns: str) -> bool:
    """Returns whether one of these columns of interfaces counts more than DOUBTFUL_SHARE of all packets."""
    interfaces = transfers.trace.interfaces
    return any(interfaces.total(column) > DOUBTFUL_SHARE * interfaces.total("packets") for column in columns)


def count_match(count: int, **fields: Any) -> Matches:
    """Yields a match of a sentence that names this number alone, unless it is 0."""
    if count:
        yield Match(count=count, **fields)


def first_at(transfers: Transfers, row: InterfaceRow, column: str) -> Words:
    """Returns the packet of a match that knows the first one alone, from an interfaces row, and its filter."""
    cited = first_packet(row, column)
    return {"filter": transfers.files.frame_filter(cited), "cited": cited}


def first_of(transfers: Transfers, column: str) -> Words:
    """The same from the first interface that has it."""
    interfaces = transfers.trace.interfaces
    numbers = interfaces._rows_where(column)
    return first_at(transfers, row_at(interfaces, numbers[0]), column) if numbers else {}


def total_rule(total: str, **page: Any) -> Rule:
    """Makes a rule of one of the trace's totals."""
    why = "of these only the number is known"
    return Rule(
        lambda transfers: count_match(transfers.trace.totals[total]), scope="capture", without_packets=why, **page
    )


def table_full(table: str, unit: str, **page: Any) -> Rule:
    """Makes the rule of a table that has no room for further rows."""
    return total_rule(
        f"{table}_dropped",
        title=f"{table.capitalize()} table full",
        severity="info",
        sentence=f"The {table} table has no rows for {{count:{unit}}}, because it is full; counters are complete.",
        advice="Analyze a part with --filter, --start and --end.",
        **page,
    )


@capture_finding(
    code="capture-damaged",
    title="Damaged or truncated capture",
    severity="error",
    computed="The file holds an invalid record or ends inside one. The sentence names the byte and the expected "
    "value; all packets before it are analyzed.",
    unknown="The content of the rest. Flows that were open then look unfinished.",
    weakens="Everything that ends near the damage: connection states, unanswered requests, the last time bins.",
    sentence="{file} could be read only up to {damage}.",
    headline=("{sentence}", "{file} could not be read to its end."),
    advice="Copy the file again, or let the capture finish; `pcapfix` or `editcap` may recover the rest.",
)
def capture_damaged(transfers: Transfers) -> Matches:
    files: dict[str, InterfaceRow] = {}
    interfaces = transfers.trace.interfaces
    for row in (row_at(interfaces, number) for number in interfaces._rows_where("damage")):
        if row["file"] not in files or row["damage_frame_ns"] is not None:
            files[row["file"]] = row  # of its interfaces, that of the last frame
    for row in files.values():
        cited = first_packet(row, "damage_frame") if row["damage_frame"] else []
        name = PurePath(row["file"]).name  # the folders may name a person or a customer
        damage = (row["damage"] or "").removeprefix(row["file"]).removeprefix(": at ")
        yield Match(damage=damage, file=name, cited=cited)


@capture_finding(
    code="interrupted",
    without_packets="about packets that were not read",
    title="Reading was interrupted",
    severity="info",
    computed="SIGINT (Ctrl-C), SIGTERM or SIGHUP arrived before the end of the input.",
    unknown="The content of the rest.",
    weakens="Totals and everything that ends late.",
    sentence="Reading was interrupted {when}; the rest is not analyzed.",
    advice="Run wiretale again to the end, or select a part with --start and --end.",
)
def interrupted(transfers: Transfers) -> Matches:
    if transfers.trace.interrupted:
        packets = transfers.trace.totals["packets"]
        yield Match(when=f"after {plural(packets, 'packet')}" if packets else "before the first packet")


def received_of(row: InterfaceRow, dropped: int) -> int:
    """Returns the packets that an interface received, with those that were dropped. A file may hold a part of the capture, whose
    counters are those of all of it."""
    stored = dropped + row["packets"] + row["filtered_packets"]
    return max(stored, (row["received"] or 0) + (row["dropped_interface"] or 0))


@capture_finding(
    code="capture-dropped",
    without_packets="about packets that the file lacks",
    title="Packets dropped by the capture",
    unit="packets",
    computed="Drop counters of kernel, interface and capturing program in the interface statistics (pcapng), compared "
    "with the packets that the system received, or those in the file if they are more.",
    unknown="Which packets were dropped. A file without statistics (every pcap file) has no drop count: `drop count "
    "unavailable` does not mean that nothing was dropped.",
    weakens="Losses upstream, gaps, unseen bytes and missing block numbers: each may be a packet that only the "
    "capture dropped. Retransmitted, downstream-lost and late packets remain as they are.",
    sentence="The capture dropped {dropped} of {whole:packet}[ ({share})] on {interface}[: {counts}][. Apparent losses may "
    "be these packets].",
    advice="Raise the capture buffer (-B), lower the snap length (-s 128) or use a capture filter.",
)
def capture_dropped(transfers: Transfers) -> Matches:
    for row in transfers.trace.interfaces.rows():
        counts = [(integer_in(row, f"dropped_{who}"), words) for who, words in DROPPERS.items()]
        dropped = sum(count or 0 for count, _ in counts)
        if dropped:
            received = received_of(row, dropped)
            yield Match(
                dropped=dropped,
                whole=received,
                share=show_share(dropped, received),
                interface=row["name"] or f"interface {row['interface']}",
                counts=", ".join(f"{count:,} {words}" for count, words in counts if count),
                cost=float(dropped),
            )


@capture_finding(
    code="capture-missed",
    title="Acknowledged data not captured",
    severity="warning; info below 1% of the payload",
    unit="bytes",
    layer="of payload",
    computed="A receiver acknowledged bytes of the stream that did not pass the capture point "
    "(directions.unseen_bytes). They arrived, so another path carried them or the capture was too slow. If more "
    "than 1% of the packets were not decoded (undecoded) or have shorter records (lengths-cut), there is no such "
    "finding.",
    unknown="Which of the two. UDP has no ACKs, so nothing is found there.",
    weakens="Losses upstream and rates, because data that is missing from the capture did arrive.",
    sentence="Receivers acknowledged {missed} of payload[ ({share}, {count:flow})] that the capture does not contain[: "
    "it missed packets, or they took another path{before}][. This is not a network loss].",
    advice="Check capture drops and asymmetric routing.",
)
def capture_missed(transfers: Transfers) -> Matches:
    unseen = transfers.counts["unseen_bytes"]
    if not unseen or exceeds_doubt(transfers, "lengths_cut", "undecoded_packets"):
        return
    trace = transfers.trace
    missed, payload = sum(size for _, size in unseen), trace.directions.total("payload_bytes")
    flows = list(dict.fromkeys(number // 2 for number, _ in unseen))
    complete = trace.flows._packed("initiator_known", "B", flows=flows)
    events = transfers.event_frames(flows[:SHOWN], ["acked_unseen_segment"])
    cited = next(iter(events.values()), [])
    yield from flows_match(
        transfers,
        flows,
        severity="info" if missed < MISSED_SHARE * (missed + payload) else "warning",
        missed=show_bytes(missed),
        share=show_share(missed, missed + payload),
        before="" if all(complete) else ", or passed before the capture began",
        cost=float(missed),
        filter="tcp.analysis.ack_lost_segment",
        **({"cited": cited} if cited else {}),
    )


class Capture(NamedTuple):
    """An interface of a file and the time of its packets."""

    row: InterfaceRow
    first_ns: int
    last_ns: int


def overlap(first: Capture, second: Capture) -> bool:
    """Returns whether two captures ran at the same time for half of the shorter one's duration."""
    both = min(first.last_ns, second.last_ns) - max(first.first_ns, second.first_ns)
    return both > 0 and 2 * both >= min(capture.last_ns - capture.first_ns for capture in (first, second))


def overlapping(transfers: Transfers) -> list[InterfaceRow]:
    """Returns the captures (interfaces of files) that ran beside another."""
    captures = [
        Capture(row, first_ns, last_ns)
        for row in transfers.trace.interfaces
        if (first_ns := row["first_ns"]) is not None and (last_ns := row["last_ns"]) is not None
    ][:CAPTURES_MAX]
    return [
        capture.row
        for capture in captures
        if any(overlap(capture, other) for other in captures if other is not capture)
    ]


@capture_finding(
    code="several-points",
    title="Several capture points read as one",
    unit="packets",
    computed="Two files or interfaces must overlap for half of the shorter one's time. At least 10 packets, a fifth of those "
    "with data, must occur again as copies (directions.network_duplicates, blocks_duplicate).",
    unknown="Whether a network does copy a fifth of all packets. If two capture points are less than 1 ms apart, or a "
    "router is between, the copies are reported as mirror-duplicates instead.",
    weakens="Duplicates, reordering, loss locations, rates and RTTs of flows that both capture points saw.",
    sentence="{again:packet}[ ({share} of those with data)] occur in more than one of {count} captures of the same time"
    "[ ({names})][. They were probably taken at several points of one path, and are analyzed as if at one].",
    advice="Analyze each file alone, and compare them with `wiretale compare SENDER RECEIVER`.",
)
def several_points(transfers: Transfers) -> Matches:
    captures = overlapping(transfers)
    if len(captures) < 2:
        return
    directions = transfers.trace.directions
    columns = [directions.column(name) for name in ("network_duplicates", "blocks_duplicate")]
    again = sum(max(network or 0, blocks or 0) for network, blocks in zip(*columns, strict=True))
    data_packets = directions.total("data_packets")
    if again >= max(COPIES_MIN, COPIES_SHARE * data_packets):
        yield Match(
            again=again,
            share=show_share(again, data_packets),
            count=len(captures),
            names=", ".join(f"{row['name'] or row['file']}" for row in captures[:NAMES_SHOWN]),
            cost=float(again),
            cited=copies_in(transfers),
        )


def copies_in(transfers: Transfers) -> list[Cited]:
    """Returns the first repeated packets of a flow."""
    numbers = [number for name in ("network_duplicates", "blocks_duplicate") for number, _ in transfers.counts[name]]
    flows = list(dict.fromkeys(number // 2 for number in numbers))[:SHOWN]
    packets = transfers.event_frames(flows, ["network_duplicate", "block_duplicate"])
    return next(iter(packets.values()), [])


def ports_of(row: InterfaceRow, pairs: Iterable[SecondPortRow]) -> str:
    """Returns where an interface's packets were stored twice, as far as link addresses and TTL show it."""
    again = row["second_port_duplicates"]
    pair = next((pair for pair in pairs if (pair["capture"], pair["rank"]) == (row["capture"], 1)), None)
    if not again or 2 * again < (row["mirror_duplicates"] or 0) or pair is None:
        return "a mirror of two ports, or of both directions of one"
    apart = f", up to {show_duration(row['second_port_ns_max'])} apart" if row["second_port_ns_max"] else ""
    first_ttl, second_ttl = (
        (pair["first_ttl_min"], pair["first_ttl_max"]),
        (pair["second_ttl_min"], pair["second_ttl_max"]),
    )
    first = port_text(pair, pair["first_capture"], pair["first_source"], pair["first_destination"], *first_ttl)
    second = port_text(pair, pair["second_capture"], pair["second_source"], pair["second_destination"], *second_ttl)
    return f"{'at two ports' if first_ttl == second_ttl else 'on both sides of a router'}, {first} and {second}{apart}"


def port_text(
    pair: SecondPortRow, capture: int | None, source: str | None, destination: str | None, ttl_min: int, ttl_max: int
) -> str:
    """Returns a port of a pair by its link addresses and TTL, and by its interface if that of the other differs."""
    captures = (pair["first_capture"], pair["second_capture"])
    interface = f"at interface {capture} " if None not in captures and captures[0] != captures[1] else ""
    addresses = f"from {source} to {destination} " if source else ""
    return f"{interface}{addresses}with TTL {ttl_min}" + (f" to {ttl_max}" if ttl_min < ttl_max else "")


@capture_finding(
    code="mirror-duplicates",
    title="Packets stored more than once",
    severity="info",
    unit="packets",
    computed="The same TCP packet (IPv4 ID, sequence number, timestamps, checksum) comes again within 1 ms. If a router is "
    "between two capture ports, its copy has other link addresses and another TTL, and may come at any time "
    "(interfaces.mirror_duplicates, table second_ports).",
    unknown="Duplicates in another VLAN or tunnel, which are other flows, and duplicates of UDP packets without numbers.",
    weakens="Packets and wire bytes of flows and interfaces, which include the duplicates.",
    sentence="The capture stored {count:packet} of {flow_count:TCP flow} more than once[: {ports}][. {count:~The duplicate "
    "does|Duplicates do} not count in any other verdict or in throughput].",
    advice="Capture or mirror one port, or one direction of each. In the file, `editcap -d` removes duplicates of one port, "
    "and a filter by link address (`ether src`) keeps one side of a router.",
)
def mirror_duplicates(transfers: Transfers) -> Matches:
    rows = list(interfaces_with(transfers, "mirror_duplicates"))
    if not rows:
        return
    flows = list(dict.fromkeys(number // 2 for number, _ in transfers.counts["mirror_duplicates"]))
    by_flow = transfers.event_frames(flows[:SHOWN], ["mirror_duplicate"])
    cited = sorted(packet for some in by_flow.values() for packet in some)[:SHOWN]
    count = sum(row["mirror_duplicates"] or 0 for row in rows)
    yield Match(
        count=count,
        flow_count=len(flows),
        flows=flows,
        ports=ports_of(max(rows, key=lambda row: row["second_port_duplicates"] or 0), transfers.trace.second_ports),
        cost=float(count),
        filter=transfers.files.frame_filter(cited),
        cited=cited,
        packets=count,
        impact=min(count / max(sum(row["packets"] for row in rows), 1), 1.0),
    )


@capture_finding(
    code="time-backward",
    title="Timestamps go backward",
    severity="warning; info below 1 ms",
    computed="A packet of an interface has an earlier timestamp than the packet before it in the file. A clock that "
    "was set back does this once and far; several capture queues written in turn do it often and by little, never by 1 s. "
    "Below 1 ms, severity is info and the finding is listed last.",
    unknown="Forward steps of the clock, because they look like pauses.",
    weakens="Every duration, RTT and order near those frames, above all reordering.",
    sentence="{steps:packet has|packets have} an earlier timestamp than the packet before, by up to {furthest}[: "
    "{cause}][. {doubtful} are unreliable].",
    advice="Sort with `reordercap`, slew the clock (chrony) and capture with one queue.",
)
def time_backward(transfers: Transfers) -> Matches:
    for row in interfaces_with(transfers, "backward_steps"):
        furthest = row["backward_ns_max"] or 0
        small = furthest < QUEUES_APART_NS
        cause = "packets of several queues were written out of order"
        if furthest >= CLOCK_SET_NS:
            cause = "captures were joined out of order"
        yield Match(
            "info" if small else "warning",
            steps=row["backward_steps"],
            furthest=show_duration(furthest),
            cause=cause if small else f"the clock was set back, or {cause}",
            doubtful="Smaller time differences" if small else "Times and orders near them",
            impact=0.0 if small else None,
            **{
                **first_at(transfers, row, "backward_frame"),
                "packets": row["backward_steps"],
                **({"filter": BACKWARD} if row["backward_steps"] > 1 else {}),
            },
        )


@capture_finding(
    code="time-unknown",
    title="Packets without timestamps",
    computed="pcapng simple packet blocks have no timestamp.",
    unknown="All delays of those packets.",
    weakens="RTTs and RTOs: those of the packets are null. Rates: null without any timestamp, else too high if the packets "
    "passed before the first or after the last timestamp.",
    sentence="{count:packet has|packets have} no timestamp[ (pcapng simple packet blocks)][: no delays are "
    "computed from {count:~it|them}, and rates use the times of the other packets].",
    advice="Use a capture tool that writes enhanced packet blocks.",
)
def time_unknown(transfers: Transfers) -> Matches:
    for row in interfaces_with(transfers, "time_unknown"):
        if count := row["time_unknown"] - row["time_out_of_range"]:
            yield Match(count=count, packets=count, **first_at(transfers, row, "time_unknown_frame"))


@capture_finding(
    code="time-out-of-range",
    title="Timestamps out of range",
    computed="The timestamp of a packet is before 1896 or after 2116 (interfaces.time_out_of_range): the file gives a "
    "wrong unit or offset for the interface, or its clock was wrong.",
    unknown="All delays of those packets.",
    weakens="RTTs and RTOs: those of the packets are null. Rates: null without any timestamp, else too high if the packets "
    "passed before the first or after the last timestamp.",
    sentence="{count:packet has|packets have} a timestamp before 1896 or after 2116[: no delays are computed from "
    "{count:~it|them}, and rates use the times of the other packets].",
    advice="Check if_tsresol and if_tsoffset of interface {interface}, and correct the times with `editcap -t`.",
)
def time_out_of_range(transfers: Transfers) -> Matches:
    for row in interfaces_with(transfers, "time_out_of_range"):
        interface = row["name"] or row["interface"]
        yield Match(
            count=row["time_out_of_range"],
            interface=interface,
            packets=row["time_out_of_range"],
            **first_at(transfers, row, "time_out_of_range_frame"),
        )


OFFLOADED = (
    "captured before the adapter segmented (TSO, GSO) or after it merged them (GRO, LRO). Packet counts, wire bytes and RTTs "
    "are those of the host, not of the wire."
)
SEGMENTED = ": captured before the adapter segmented or after it merged them"  # in a headline
LONG_ONCE = "too few to decide between segmentation or merging by the adapter (TSO, GSO, GRO, LRO) and a wrong length."


@capture_finding(
    code="offload",
    title="Packets longer than the link MTU",
    severity="warning; info if fewer than 3 packets",
    computed="IP packets are longer than any frame of the path: captured before the adapter segmented them (TSO, GSO) "
    "or after it merged them (GRO, LRO). Fewer than 3 may as well have a wrong length.",
    unknown="The packets on the wire: their number, spacing and headers.",
    weakens="Packet counts, wire bytes, header overhead, bursts, reordering within such a packet, and RTTs by some "
    "tens of microseconds. Bytes and goodput stay correct; losses and retransmissions are counted in segments on the "
    "wire (wire_mss in directions).",
    sentence="{count:packet is|packets are} longer than the link MTU: {cause}",
    headline=("{count:packet is|packets are} longer than the link MTU{briefly}.",),
    advice="Capture on a separate machine, or first run: ethtool -K {device} tso off gso off gro off lro off.",
)
def offload(transfers: Transfers) -> Matches:
    for row in interfaces_with(transfers, "super_segments"):
        several = row["super_segments"] >= OFFLOADED_MIN
        yield Match(
            "warning" if several else "info",
            count=row["super_segments"],
            cause=OFFLOADED if several else LONG_ONCE,
            briefly=SEGMENTED if several else "",
            packets=row["super_segments"],
            device=row["name"] or "DEVICE",
            **{**first_at(transfers, row, "super_segment_frame"), "filter": "ip.len > 9216 || ip.len == 0"},
        )


filter_refused = total_rule(
    "filter_refused",
    code="filter-refused",
    title="Filter does not fit the link type",
    computed="libpcap could not compile the filter for the link type of some interface.",
    unknown="Whether the filter would have matched those packets.",
    weakens="Totals.",
    sentence="The filter cannot be compiled for the link type of {count:packet}: {count:~it is|they are} left out.",
    advice="Use a filter that is valid for every link type in the file, such as `ip` or `tcp port 80`.",
)


flows_evicted = total_rule(
    "evicted_flows",
    code="flows-evicted",
    title="Flows evicted",
    computed="More flows were open at a time than --max-flows; wiretale evicted the longest idle.",
    unknown="Which rows belong to the same flow.",
    weakens="Flow counts, handshakes and states of those flows.",
    sentence="{count:flow was|flows were} evicted because too many were open at once: a flow may have several rows.",
    advice="Raise --max-flows, or analyze a part with --filter.",
)


datagrams_evicted = total_rule(
    "evicted_datagrams",
    code="datagrams-evicted",
    title="Datagrams evicted",
    computed="More than 65,536 incomplete datagrams were open.",
    unknown="Whether they would have become complete.",
    weakens="Incomplete datagrams.",
    sentence="{count:incomplete datagram was|incomplete datagrams were} evicted because too many were open at once.",
    advice="Check for a flood of fragments, and analyze a part with --filter.",
)


events_dropped = table_full(
    "events",
    "event",
    code="events-dropped",
    computed="The table holds 4 million rows, 10,000 per flow; counters continue.",
    unknown="Frames of the events that are not listed.",
    weakens="Evidence and the loss pattern, never counts.",
)

blocks_dropped = table_full(
    "blocks",
    "block",
    code="blocks-dropped",
    computed="The table holds 4 million rows; counters continue.",
    unknown="Delays of the blocks that are not listed.",
    weakens="Lists and graphs of blocks, never counts.",
)

exchanges_dropped = table_full(
    "exchanges",
    "exchange",
    code="exchanges-dropped",
    computed="The table holds 4 million rows, 10,000 per TCP flow.",
    unknown="The requests that are not listed, and their times.",
    weakens="Findings about requests and DNS.",
)


@capture_finding(
    code="one-way",
    without_packets="packets of the other direction are missing everywhere",
    title="One direction captured",
    computed="All packets of these TCP flows come from one end, though the state shows that the other end answered. "
    "There is no such finding if more than 1% of the packets are not decoded, because the other direction may be "
    "among them. If a flow under other tags or in another tunnel has the other direction (relations.kind is half), the finding "
    "says so.",
    unknown="RTTs, flight, windows, causes of retransmissions, unseen bytes.",
    weakens="Everything that needs ACKs is null; losses are derived from gaps and repeats only.",
    sentence="{which}[ ({share} of flows)] {what}[: RTTs, unseen bytes and flight are unknown].",
    advice="{how}",
)
def one_way(transfers: Transfers) -> Matches:
    trace = transfers.trace
    hidden = exceeds_doubt(transfers, "undecoded_packets")
    halves = [row for row in trace.relations if row["kind"] == "half"]
    in_halves = {row[name] for row in halves for name in ("flow", "other")}
    alone = [] if hidden else transfers.hidden.one_way_answered
    numbers = [number for number in alone if number not in transfers.legs and number not in in_halves]
    yield from flows_match(
        transfers,
        numbers,
        share=show_share(len(numbers), transfers.conversations),
        which=f"Only one direction of {plural(len(numbers), 'TCP flow')}",
        what="was captured",
        how="Mirror both directions of the port, or capture at a point with symmetric routing.",
    )
    yield from flows_match(
        transfers,
        [row["other"] for row in halves],
        share=show_share(2 * len(halves), transfers.conversations),
        which=f"Both directions of {plural(len(halves), 'TCP connection')}",
        what=f"are in the file, but as two flows each, because their tags differ{paths_of_halves(transfers, halves)}",
        how="Remove the tags (`editcap -C` cuts bytes from frames), or mirror ports that tag both directions alike.",
    )


def paths_of_halves(transfers: Transfers, halves: Sequence[RelationRow]) -> str:
    """Returns the tags of the first connection: ` (vlan 3875 and none)`."""
    if not halves:
        return ""
    paths = (row_at(transfers.trace.flows, halves[0][name])["path"] for name in ("other", "flow"))
    return f" ({' and '.join(path or 'none' for path in paths)})"
