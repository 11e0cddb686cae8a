# SPDX-License-Identifier: Apache-2.0
"""A rule about one count of the directions table: a verdict of the core that is worth a finding wherever it is not 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import BY_COST, BYTES, NOTE_SHARE, SECONDS, Concern, Saved, larger
from wiretale.analyzer.findings.evidence import SHOWN, Cited
from wiretale.analyzer.findings.model import (
    ON_WIRE,
    SECOND,
    Finding,
    Match,
    Words,
    duration_of,
    finding_of,
    flow_str,
    on_wire,
    opposite,
    row_at,
    segments,
    syns_and_fins,
)
from wiretale.analyzer.findings.transfers import LOST, RETRANSMISSIONS, Counts, Transfers
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import agreeing, plural, show_bytes, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.rows import DirectionRow

BY_SEGMENTS = "warning from 1% of the transfer's time or bytes, of segments if its cost is unknown, else info"
BY_BLOCKS = "warning from 1% of blocks, else info"
BY_SHARE = (BY_SEGMENTS, BY_BLOCKS, BY_COST)
OTHERS, OTHERS_ADVICE = (
    "{directions:more direction} {summary} ({total} in total).",
    "Check {column} in the directions table.",
)


class CountRule(NamedTuple):
    """A rule about one column. The directions with the greatest counts are reported one by one, the others in sum."""

    code: str
    title: str
    computed: str
    unknown: str
    sentence: str
    advice: str
    summary: str  # of the other directions: "3 more directions {summary}"
    column: str
    headline: tuple[str, ...] = ()  # as in Rule
    scope: str = "flow"
    events: tuple[str, ...] = ()  # kinds that show it
    place: str | None = None  # of those events
    spurious: bool = False  # only events that are proven so
    unplaced: bool = False  # only events whose place is unknown
    acknowledged: bool = False  # events are in the other direction, at the ACKs
    applies: Callable[[DirectionRow], bool] | None = None  # to a direction with a count; None: to each
    event_count: str | None = None  # column with the number of events, if not the count
    unit: str = "segments"
    layer: str = "on the wire"  # of a cost in bytes
    severity: str = BY_SEGMENTS
    denominator: str = "data_packets"
    words: Callable[[DirectionRow, int], Words] = lambda row, count: {}  # further words of the sentence
    words_of_both: Callable[[DirectionRow, DirectionRow], Words] = lambda row, back: {}  # the same, of both directions
    saves: Callable[[DirectionRow, int], Saved | None] = lambda row, count: (
        None
    )  # the cost; None if it saves none, or is unknown
    cites: Callable[[Transfers, DirectionRow], list[Cited]] = lambda transfers, row: transfers.span(
        row["flow"]
    )  # without events
    weakens: str | None = None
    delays: bool = False  # as in Rule
    without_packets: str | None = None  # as in Rule

    def counts(self, transfers: Transfers) -> Counts:
        """Returns the directions to report and their counts, in segments on the wire if the rule counts those."""
        counts = transfers.counts[self.column]
        if counts and self.column in ON_WIRE:
            counts = on_wire(transfers.counts, self.column)
        if self.column in LOST:
            shared = transfers.lost_together("downstream" if self.column == "lost_downstream" else "upstream")
            counts = [(number, count) for number, count in counts if number not in shared] if shared else counts
        if applies := self.applies:
            counts = [
                (number, count) for number, count in counts if applies(row_at(transfers.trace.directions, number))
            ]
        if self.events == RETRANSMISSIONS:
            counts = transfers.attempts.of_connections(counts)
        return transfers.attempts.without_deferred(counts) if self.spurious else counts

    def findings(self, transfers: Transfers) -> Iterator[Finding]:
        """Returns one finding per direction, and one for those that are not shown."""
        worst = sorted(self.counts(transfers), key=lambda count: -count[1])
        if not worst:
            return
        rows = [(row_at(transfers.trace.directions, number), count) for number, count in worst[:SHOWN]]
        flows = [row["flow"] for row, _ in rows]
        left_out = transfers.attempts.deferred_frames if self.spurious else set()
        frames = transfers.event_frames(flows, self.events, self.place, self.spurious, self.unplaced, left_out)
        for row, count in rows:
            cited = frames.get((row["flow"], row["direction"] ^ self.acknowledged), [])
            yield finding_of(self, transfers, self.match(transfers, row, count, cited))
        if worst[SHOWN:]:
            summary_rule = self._replace(sentence=OTHERS, headline=(), advice=OTHERS_ADVICE)
            yield finding_of(summary_rule, transfers, self.match_of_others(transfers, worst[SHOWN:]))

    def match(self, transfers: Transfers, row: DirectionRow, count: int, cited: list[Cited]) -> Match:
        """Returns the match of one direction, which cites these packets."""
        share, saved = self.share(row, count), self.saves(row, count)
        by_share = "info" if not saved and share is not None and share < NOTE_SHARE else "warning"
        flow = flow_filter(row_at(transfers.trace.flows, row["flow"]))
        frames = transfers.files.frame_filter(cited)
        return Match(
            by_share if self.severity in BY_SHARE else self.severity,
            flows=[(row["flow"], row["direction"])],
            cost=round(saved.cost, 6) if saved else None,
            cost_unit=saved.unit if saved else None,
            waited_ns=saved.waited_ns if saved else None,
            bytes=saved.bytes if saved else None,
            filter=f"{flow} && {frames}" if frames else flow,
            impact=float((share or 0.0) * row["wire_bytes"] / transfers.wire_bytes),
            cited=cited or self.cites(transfers, row),
            packets=integer_in(row, self.event_count) if self.event_count else captured(row, self.column, count),
            **self.words_of(row, count),
            **self.words_of_both(row, opposite(transfers.trace, row)),
        )

    def share(self, row: DirectionRow, count: int) -> float | None:
        """Returns the share of the data that has the problem; None if there is no data."""
        total = segments(row, self.denominator) if self.column in ON_WIRE else integer_in(row, self.denominator)
        lost_bytes, payload = bytes_of(row, self.column), row["payload_bytes"]
        if is_size_unknown(row) and lost_bytes and payload:
            return min(lost_bytes / payload, 1.0)
        return float(min((count - syns_and_fins(row, self.column)) / total, 1.0)) if total else None

    def amount(self, row: DirectionRow, count: int) -> Words:
        """Returns the words `2 of 210 data segments` and ` (0.95%) and 1 FIN`; of super-segments also the bytes, and the packets
        that hold them."""
        total = (segments(row, "data_packets") if self.column in ON_WIRE else row["data_packets"]) or 0
        held_bytes, lost_bytes, payload = (
            held_in(row, self.column, count),
            bytes_of(row, self.column),
            row["payload_bytes"],
        )
        if is_size_unknown(row) and lost_bytes and payload:
            return {
                "amount": f"{show_bytes(lost_bytes)} of {show_bytes(payload)} of payload",
                "amount_share": f" ({show_share(lost_bytes, payload)}; {plural(count, 'captured packet')})",
            }
        return amount_words(row, self.column, (count - syns_and_fins(row, self.column),), total, held_bytes)

    def words_of(self, row: DirectionRow, count: int) -> Words:
        """Returns the words of the templates."""
        return {"name": flow_str(row), "count": count, **self.amount(row, count), **self.words(row, count)}

    def match_of_others(self, transfers: Transfers, counts: Counts) -> Match:
        """Returns the match of the directions that are not shown one by one."""
        flows = [divmod(number, 2) for number, _ in counts]
        return Match(
            "info",
            flows=flows,
            cited=transfers.span(flows[0][0]),
            directions=len(counts),
            summary=self.summary.replace("were ", "was ", 1) if len(counts) == 1 else self.summary,
            total=plural(sum(count for _, count in counts), self.unit.removesuffix("s")),
            column=self.column,
        )


def amount_words(row: DirectionRow, column: str, data: tuple[int, ...], total: int, held_bytes: str) -> Words:
    """Returns the words of CountRule.amount() for a column and the number of its data segments of `whole`, or the least and the
    greatest."""
    without_data = syn_fin_words(row, column)
    number = " to ".join(f"{count:,}" for count in data)
    if not data[-1]:
        return {"amount": without_data, "amount_share": ""}
    if not data[0]:
        number, data = f"up to {data[-1]:,}", data[-1:]
    beside = f" and {without_data}" if without_data else ""
    if total < data[-1]:
        return {"amount": f"{number} {agreeing(data[-1], 'segment', 'segments')}", "amount_share": beside}
    share = " to ".join(show_share(count, total) for count in data)
    return {"amount": f"{number} of {plural(total, 'data segment')}", "amount_share": f" ({share}{held_bytes}){beside}"}


def syn_fin_words(row: DirectionRow, column: str) -> str:
    """Returns `2 SYNs`, `1 FIN`, or `3 SYNs or FINs` if the direction may have repeated both; nothing without any."""
    count, fins = syns_and_fins(row, column), row["fins"] or 0
    if not count:
        return ""
    if (row["syns"] or 0) <= 1:
        return plural(count, "FIN")
    no_fin = fins <= (column != "lost_upstream")  # what was lost downstream was seen before
    return plural(count, "SYN") if no_fin else plural(count, "SYN or FIN", "SYNs or FINs")


def concern_of(row: DirectionRow) -> Concern:
    """Returns the transfer of a directions row."""
    return Concern(duration_of(row) or 0.0, row["wire_bytes"])


def repeated_bytes(row: DirectionRow, count: int, column: str) -> Saved | None:
    """Returns the wire bytes that were carried twice: payload of the column, else its share of all retransmitted bytes,
    with the mean headers of the direction."""
    payload, total = float(bytes_of(row, column)), segments(row, "retransmissions") or 0
    if not payload:
        payload = (row["retransmitted_bytes"] or 0) * min(count / total, 1.0) if total else 0
    headers = (row["wire_bytes"] - (row["payload_bytes"] or 0)) / max(row["packets"] or 1, 1)
    return Saved(float(round(payload + count * headers)), BYTES) if payload else None


def saved_share(sum_of_all: float | None, count: int, total: int, unit: str) -> Saved | None:
    """Returns the part of a sum that `count` of `whole` have; None if it is unknown or 0."""
    part = (sum_of_all or 0) * min(count / total, 1.0) if total else 0.0
    return Saved(part, unit) if part else None


def stalled_seconds(row: DirectionRow, count: int) -> Saved | None:
    """Returns the time that `count` of the segments that caused recovery and RTOs took. Recovery while the bottleneck was busy
    (recovery_ns) took none: the path carried as much as it could."""
    causes = (
        *("lost_upstream", "lost_downstream", "unplaced_retransmissions", "spurious_retransmissions"),
        "checksum_retransmissions",
    )
    total = sum(segments(row, name) or 0 for name in causes) + (row["suspected_timeouts"] or 0)
    needless = max((row["rto_idle_ns"] or 0) - (row["timeout_ns"] or 0), 0)  # of RTOs without a loss
    ns = (row["time_loss_ns"] or 0) + needless
    return saved_share(ns / 1e9, count, max(total, count), SECONDS)


def retransmission_cost(row: DirectionRow, count: int, column: str) -> Saved | None:
    """Returns what a transfer without these retransmissions saves: the bytes carried twice, or the time of recovery and
    RTOs, whichever is the larger share of it."""
    stalled, repeated = stalled_seconds(row, count), repeated_bytes(row, count, column)
    saved = larger(concern_of(row), stalled, repeated)
    return saved and saved._replace(
        waited_ns=stalled and stalled.cost * SECOND, bytes=None if repeated is None else round(repeated.cost)
    )


def packet_bytes(row: DirectionRow, count: int) -> Saved | None:
    """Returns the wire bytes of `count` packets of mean size."""
    return Saved(float(round(count * row["wire_bytes"] / max(row["packets"] or 1, 1))), BYTES)


def is_size_unknown(row: DirectionRow) -> bool:
    """Returns whether the capture has super-segments of a direction, and nothing shows the segments on the wire."""
    return bool(row["data_packets"]) and "wire_mss" in row and row["wire_mss"] is None


def bytes_of(row: DirectionRow, column: str) -> int:
    """Returns the payload of the packets that a column counts; 0 if it is unknown, or if no column has it."""
    name = f"{column}_bytes"
    return (integer_in(row, name) if name in row else None) or 0


def captured(row: DirectionRow, column: str, count: int) -> int:
    """Returns the packets in the capture that hold a count of segments."""
    packets = integer_in(row, column)
    on_the_wire = integer_in(row, ON_WIRE[column]) if column in ON_WIRE else None
    return count if packets is None or on_the_wire in (None, packets) else packets


def held_in(row: DirectionRow, column: str, count: int) -> str:
    """Returns `; 7.24 kB of payload in 2 captured packets` if the direction has super-segments, else nothing."""
    if column not in ON_WIRE or (segments(row, "data_packets") or 0) <= (row["data_packets"] or 0):
        return ""
    lost_bytes = bytes_of(row, column)
    size = f"{show_bytes(lost_bytes)} of payload in " if lost_bytes else ""
    return f"; {size}{plural(captured(row, column, count), 'captured packet')}"
