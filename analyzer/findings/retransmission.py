# SPDX-License-Identifier: Apache-2.0
"""Rules about counts of the directions table: each verdict of the core that is worth a finding wherever it is not 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from wiretale.analyzer.display_filter import flow_filter, frame_filter
from wiretale.analyzer.findings.model import (
    ON_WIRE,
    SHOWN,
    Finding,
    Row,
    endpoint_str,
    fill,
    flow_str,
    frame_list,
    on_wire,
    row_at,
    segments,
)
from wiretale.analyzer.findings.transfers import RETRANSMISSIONS, Counts, Transfers
from wiretale.analyzer.units import agreeing, plural, show_bytes, show_duration, show_share

CHAPTER = "Loss, reordering and duplicates"
SHARE_WARNING = 0.01  # of the segments; a smaller share hardly slows a transfer
BY_SEGMENTS = "warning from 1% of segments, else info"
BY_BLOCKS = "warning from 1% of blocks, else info"


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
    events: tuple[str, ...] = ()  # kinds that show it
    place: str | None = None  # of those events
    spurious: bool = False  # only events that are proven so
    unplaced: bool = False  # only events whose place is unknown
    acknowledged: bool = False  # events are in the other direction, at the ACKs
    event_count: str | None = None  # column with the number of events, if not the count
    unit: str = "segments"
    severity: str = BY_SEGMENTS
    denominator: str = "data_packets"
    words: Callable[[Row, int], Row] = lambda row, count: {}  # further words of the sentence
    weakens: str | None = None

    def counts(self, transfers: Transfers) -> Counts:
        """Returns the directions to report and their counts, in segments on the wire if the rule counts those."""
        counts = transfers.counts[self.column]
        if counts and self.column in ON_WIRE:
            counts = on_wire(transfers.trace.directions, self.column, counts)
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
            shown = frames.get((row["flow"], row["direction"] ^ self.acknowledged), [])
            yield self.finding(transfers, row, count, shown)
        rest = [count for _, count in worst[SHOWN:]]
        if rest:
            yield self.rest(rest)

    def finding(self, transfers: Transfers, row: Row, count: int, frames: list[int]) -> Finding:
        """Returns the finding of one direction, which names these frames."""
        share = self.share(row, count)
        by_share = "warning" if share is None or share >= SHARE_WARNING else "info"
        flow = flow_filter(row_at(transfers.trace.flows, row["flow"]))
        return Finding(
            self.code,
            by_share if self.severity in (BY_SEGMENTS, BY_BLOCKS) else self.severity,
            "flow",
            self.sentence_of(row, count),
            self.advice,
            flow=row["flow"],
            cost=float(count),
            cost_unit=self.unit,
            evidence=frame_list(
                frames, row[self.event_count] if self.event_count else captured(row, self.column, count)
            ),
            filter=f"{flow} && {frame_filter(frames)}" if frames else flow,
            impact=float((share or 0.0) * row["wire_bytes"] / transfers.wire_bytes),
        )

    def share(self, row: Row, count: int) -> float | None:
        """Returns the share of the direction that has the problem; None if it is of nothing, such as of no data."""
        whole = segments(row, self.denominator) if self.column in ON_WIRE else row[self.denominator]
        lost_bytes = row.get(f"{self.column}_bytes")
        if is_size_unknown(row) and lost_bytes:
            return float(min(lost_bytes / row["payload_bytes"], 1.0))
        return float(min(count / whole, 1.0)) if whole else None

    def amount(self, row: Row, count: int) -> str:
        """Returns `2 of 210 data segments (0.95%)`; of super-segments also the bytes, and the packets that hold them."""
        whole = (segments(row, "data_packets") if self.column in ON_WIRE else row["data_packets"]) or 0
        held, lost_bytes = held_in(row, self.column, count), row.get(f"{self.column}_bytes")
        if is_size_unknown(row) and lost_bytes:
            of_all = f"{show_bytes(lost_bytes)} of {show_bytes(row['payload_bytes'])} of data"
            return f"{of_all} ({show_share(lost_bytes, row['payload_bytes'])}; {plural(count, 'captured packet')})"
        if whole < count:  # SYN and FIN have no data
            return plural(count, "segment")
        return f"{count:,} of {plural(whole, 'data segment')} ({show_share(count, whole)}{held})"

    def sentence_of(self, row: Row, count: int) -> str:
        """Returns the sentence with its amount and words."""
        words = {"count": count, "amount": self.amount(row, count), **self.words(row, count)}
        return fill(self.sentence, {"name": flow_str(row), **words})

    def rest(self, counts: list[int]) -> Finding:
        """Returns the finding of the directions that are not shown."""
        summary = self.summary.replace("were ", "was ", 1) if len(counts) == 1 else self.summary
        total = plural(sum(counts), self.unit.removesuffix("s"))
        return Finding(
            self.code,
            "info",
            "flow",
            f"{plural(len(counts), 'more direction')} {summary} ({total} in total).",
            f"Check {self.column} in the directions table.",
            cost=float(sum(counts)),
            cost_unit=self.unit,
        )


def is_size_unknown(row: Row) -> bool:
    """Returns whether the capture has super-segments of a direction, and nothing shows the segments on the wire."""
    return bool(row["data_packets"]) and "wire_mss" in row and row["wire_mss"] is None


def captured(row: Row, column: str, count: int) -> int:
    """Returns the packets in the capture that hold a count of segments."""
    on_the_wire = row.get(ON_WIRE.get(column, ""))
    return count if on_the_wire is None or on_the_wire == row[column] else int(row[column])


def held_in(row: Row, column: str, count: int) -> str:
    """Returns `; 7.24 kB in 2 captured packets` if the direction has super-segments, else nothing."""
    if column not in ON_WIRE or segments(row, "data_packets") == row["data_packets"]:
        return ""
    lost_bytes = row.get(f"{column}_bytes")
    size = f"{show_bytes(lost_bytes)} in " if lost_bytes else ""
    return f"; {size}{plural(captured(row, column, count), 'captured packet')}"


def cause_words(row: Row, count: int) -> Row:
    """`causes` is ` (retransmitted: 3 fast, 1 by RTO)`. It counts all, also those of another finding."""
    probes = row["probe_retransmissions"] or 0
    counts = (
        (row["fast_retransmissions"], "fast"),
        (row["timeout_retransmissions"], "by RTO"),
        (probes, agreeing(probes, "as tail loss probe", "as tail loss probes")),
    )
    parts = [f"{number:,} {word}" for number, word in counts if number]
    whole = sum(number or 0 for number, _ in counts)
    known = "" if whole == count else f"of all {whole:,} " if whole > count else f"known of {whole:,} "
    return {"causes": f" ({known}retransmitted: {', '.join(parts)})" if parts else ""}


def bounded_words(column: str, row: Row, count: int) -> Row:
    """The words of cause_words(); if retransmissions have no known place, `amount` is a range and `open` counts them."""
    unplaced, whole = segments(row, "unplaced_retransmissions") or 0, segments(row, "data_packets") or 0
    causes = cause_words(row, captured(row, column, count))
    if not unplaced:
        return {**causes, "open": ""}
    most = count + unplaced
    amount = f"{count:,} to {plural(most, 'segment')}"
    if whole >= most:
        share = f"{show_share(count, whole)} to {show_share(most, whole)}"
        amount = f"{count:,} to {most:,} of {plural(whole, 'data segment')} ({share}{held_in(row, column, count)})"
    again = plural(max(segments(row, "retransmissions") or 0, most), "retransmission")
    return {**causes, "amount": amount, "open": f"; the place of {unplaced:,} of {again} is unknown"}


def unplaced_words(row: Row, count: int) -> Row:
    """`unplaced` is `3 of 5 retransmissions`; `reason` names the evidence that is missing."""
    whole = segments(row, "retransmissions") or 0
    reason = "no SACK, timestamp or ACK decides"
    if row["duplicate_acks"] is None:
        reason = "it has no ACKs of them"
    elif row["spurious_retransmissions"] is None:
        reason = "the snap length cut the TCP options of the ACKs"
    elif row["sack_permitted"] is False:
        reason = "the connection has no SACK"
    again = plural(max(whole, count), "retransmission")
    return {"unplaced": f"{count:,} of {again}" if whole > count else again, "reason": reason}


lost_downstream = CountRule(
    code="lost-downstream",
    title="Lost between capture point and receiver",
    column="lost_downstream",
    events=RETRANSMISSIONS,
    place="downstream",
    computed="Segments that passed the capture point and were retransmitted, unless DSACK, timestamps or ACKs prove "
    "the retransmission spurious (directions.wire_lost_downstream). SYNs of attempts that never came about do not "
    "count. If the place of other retransmissions is unknown, the sentence has the least and the greatest number; if "
    "packets are longer than a segment on the wire, bytes and segments.",
    unknown="Whether the data or its ACK was lost, unless later ACKs show it.",
    sentence="{name} lost {amount}, or {count:~its ACK|their ACKs}, between capture point and receiver{causes}{open}.",
    summary="lost segments after the capture point",
    advice="Check queues, links and policers between capture point and receiver. The events table lists each loss.",
    words=partial(bounded_words, "lost_downstream"),
)

lost_upstream = CountRule(
    code="lost-upstream",
    title="Lost between sender and capture point",
    column="lost_upstream",
    events=RETRANSMISSIONS,
    place="upstream",
    computed="Gaps in the stream that a retransmission filled (directions.wire_lost_upstream).",
    unknown="Losses after which nothing followed until the retransmission, because they leave no gap: see "
    "suspected-timeout.",
    sentence="{name} lost {amount} between sender and capture point: {count:~a retransmission fills the "
    "gap|retransmissions fill the gaps}{causes}{open}.",
    summary="lost segments before the capture point",
    advice="Compare drop counters between sender and capture point. The events table lists each loss.",
    words=partial(bounded_words, "lost_upstream"),
)

retransmission_unlocated = CountRule(
    code="retransmission-unlocated",
    title="Retransmissions of unknown place",
    column="unplaced_retransmissions",
    events=RETRANSMISSIONS,
    unplaced=True,
    computed="Retransmissions that are neither lost at a known place nor proven spurious "
    "(directions.unplaced_retransmissions), because ACKs were not captured, the snap length cut their options, the "
    "connection has no SACK, or the first transmission precedes the capture.",
    unknown="Where the segments were lost, and whether they were.",
    sentence="{name}: the place of {unplaced} is unknown. Whether and where {count:~the segment was|the segments were} "
    "lost cannot be determined from this capture because {reason}.",
    summary="retransmitted segments of unknown place",
    advice="Capture both directions from the handshake on with a snap length of 128 bytes or more, and enable SACK.",
    words=unplaced_words,
)

suspected_timeout = CountRule(
    code="suspected-timeout",
    title="Suspected retransmission timeouts",
    column="suspected_timeouts",
    events=("suspected_timeout",),
    unit="timeouts",
    severity="warning",
    computed="New data in order after a pause as long as an RTO, with a packet of the sender missing before it by its "
    "IPv4 IDs.",
    unknown="Whether the missing packet had data.",
    sentence="{name} probably had {count:RTO} before the capture point: after {count:~a pause|pauses} as long as an "
    "RTO the stream continues in order, and an IPv4 ID of the sender is missing.",
    summary="paused like this",
    advice="Capture at the sender to confirm.",
)

spurious = CountRule(
    code="spurious",
    title="Spurious retransmissions",
    column="spurious_retransmissions",
    events=RETRANSMISSIONS,
    spurious=True,
    computed="Retransmissions proven spurious by DSACK (RFC 2883), by an echoed timestamp (RFC 3522) or by an ACK "
    "that had passed the capture point before.",
    unknown="Spurious retransmissions without such proof. SYN-ACKs after their handshake are in accept-deferred.",
    sentence="{name} sent {count:spurious retransmission}: DSACKs, timestamps or earlier ACKs prove that the data had "
    "arrived.",
    summary="sent spurious retransmissions",
    advice="Check for reordering, delay spikes, and a receiver whose ACKs are delayed.",
)

reordered = CountRule(
    code="reordered",
    title="Reordered before the capture point",
    column="out_of_order",
    events=("out_of_order",),
    computed="Segments that fill a gap and were sent before the segment that opened it, by timestamps, IPv4 IDs or "
    "time (directions.out_of_order).",
    unknown="Reordering after the capture point.",
    sentence="{name}: {amount} {count:~was|were} reordered before the capture point.",
    summary="were reordered",
    advice="Balance load per flow between sender and capture point; reordering by three segments or more reduces "
    "throughput.",
)

ambiguous_gap = CountRule(
    code="ambiguous-gap",
    title="Gaps from loss or reordering",
    column="ambiguous",
    events=("ambiguous",),
    computed="Gaps filled after a quarter to a whole RTT, without timestamps or IPv4 IDs that decide.",
    unknown="Whether the segments were lost or reordered.",
    sentence="{name}: {count:gap was|gaps were} filled by {count:~a segment that was|segments that were} either "
    "reordered or lost before the capture point and retransmitted. Which of the two cannot be determined from this "
    "capture because it has no TCP timestamps or usable IPv4 IDs.",
    summary="had such gaps",
    advice="Enable TCP timestamps, or capture at the sender.",
)

network_duplicates = CountRule(
    code="network-duplicates",
    title="Duplicates made by the network",
    column="network_duplicates",
    events=("network_duplicate",),
    unit="packets",
    computed="The same packet (IPv4 ID, sequence number, timestamps, checksum) again, after its ID or timestamp has "
    "passed, or sooner than the sender could have detected a loss.",
    unknown="Duplicates of UDP packets without numbers.",
    sentence="{name}: the network duplicated {count:packet}.",
    summary="had duplicates",
    advice="Check for a loop, a flooding bridge, or a failover pair of which both forward.",
)

unknown_duplicates = CountRule(
    code="unknown-duplicates",
    title="Duplicates of unknown origin",
    column="unknown_duplicates",
    events=("unknown_duplicate",),
    unit="packets",
    severity="info",
    computed="The same packet twice within 1 ms, without a sign (ports, TTL, VLAN, reports of the receiver) of its "
    "origin.",
    unknown="Whether the network or the capture made the duplicate.",
    sentence="{name}: {count:packet was|packets were} captured twice within 1 ms. Whether the network or the capture "
    "duplicated {count:~it|them} cannot be determined from this capture because neither TTL, VLAN nor SACK shows it.",
    summary="were captured twice",
    advice="Capture at the receiver, or enable SACK.",
)

capture_reordered = CountRule(
    code="capture-reordered",
    title="Captured after its ACK",
    column="capture_reordered",
    events=("captured_out_of_order",),
    severity="info",
    acknowledged=True,
    computed="Data that directly follows the ACK that covers it: the capture wrote its queues in the wrong order.",
    unknown="The true order.",
    sentence="{name}: the capture stored {count:segment} after {count:~its ACK|their ACKs}. This is not network "
    "reordering.",
    summary="were stored out of order",
    advice="Run reordercap on the file; capture with one queue or with hardware timestamps.",
)


def zero_window_words(row: Row, count: int) -> Row:
    ns = row["zero_window_ns"]
    return {
        "receiver": endpoint_str(row["source"], row["source_port"]),
        "time": f" for {show_duration(ns)}" if ns else "",
    }


zero_window = CountRule(
    code="zero-window",
    title="Zero receive window",
    column="zero_windows",
    events=("zero_window",),
    severity="warning",
    computed="Segments with window 0 after the handshake, and the time until the window reopened "
    "(directions.zero_window_ns).",
    unknown="Why the application did not read.",
    sentence="{receiver} announced a zero window in {count:segment}{time}: its application reads too slowly, and the "
    "sender had to wait.",
    summary="announced a zero window",
    advice="Profile the receiving application and check its socket buffer; the network is not the limit.",
    words=zero_window_words,
)

window_full = CountRule(
    code="window-full",
    title="Receive window filled",
    column="window_full",
    events=("window_full",),
    severity="info",
    computed="Data whose last byte is the last that the receive window allows (directions.window_full).",
    unknown="Full windows if the capture point is near the receiver, because data passes it too late to be in flight "
    "there.",
    sentence="{name} filled the receive window {count:time}: the window, not the network, limited the sender then.",
    summary="filled the receive window",
    advice="Raise the receive buffer (its autotuning limit) if the path should carry more.",
)

congestion_marks = CountRule(
    code="congestion-marks",
    title="Congestion marks (ECN)",
    column="ecn_ce",
    unit="packets",
    severity="info",
    computed="IP packets marked Congestion Experienced (RFC 3168).",
    unknown="Which router marked them.",
    sentence="{name}: a router marked {count:packet} as Congestion Experienced (ECN): the sender slows down as after "
    "a loss, without one.",
    summary="had congestion marks",
    advice="Look for the queue that marks; it works as intended.",
)


BlockRule = partial(CountRule, unit="blocks", severity=BY_BLOCKS, denominator="blocks")


def of_blocks(count: int, blocks: int) -> str:
    return f"{count:,} of {plural(blocks, 'numbered packet')} ({show_share(count, blocks)})"


def loss_words(row: Row, count: int) -> Row:
    """`runs` describes how the losses are spread."""
    runs, longest = row["block_loss_runs"], row["block_loss_run_max"]
    spread = f", in {runs:,} runs of at most {longest:,}" if runs > 1 else ", in one run"
    if longest == 1:
        spread = ", each alone"
    return {"share": of_blocks(count, row["blocks"] + row["blocks_lost"]), "runs": "" if count == 1 else spread}


blocks_lost = BlockRule(
    code="blocks-lost",
    title="Numbered packets lost",
    column="blocks_lost",
    events=("block_lost",),
    event_count="block_loss_runs",
    computed="Numbers between the first and the highest of wiretale's blocks, iperf or RTP that did not pass the "
    "capture point, and their runs.",
    unknown="Losses before the first and after the last packet: compare with the sender's count.",
    sentence="{name} lost {share} before the capture point{runs}.",
    summary="lost numbered packets",
    advice="Compare the sender's count and drop counters between sender and capture point; a full queue drops packets "
    "in runs.",
    words=loss_words,
)

blocks_corrupt = CountRule(
    code="blocks-corrupt",
    title="Corrupt blocks",
    column="blocks_corrupt",
    events=("block_corrupt",),
    unit="blocks",
    severity="error",
    computed="The content of a block is not the pattern that its header announces.",
    unknown="Blocks whose content was not captured.",
    sentence="{name}: the content of {count:block} does not match {count:~its header|their headers}.",
    summary="carried corrupt blocks",
    advice="Compare captures along the path for memory, a driver or a middlebox that changes payload and recomputes "
    "the checksum.",
)

blocks_reordered = BlockRule(
    code="blocks-reordered",
    title="Numbered packets reordered",
    column="blocks_out_of_order",
    events=("block_out_of_order",),
    computed="Numbers below one seen before (RFC 4737).",
    unknown="Where the reordering happened.",
    sentence="{name}: {share} came after a later one.",
    summary="were reordered",
    advice="Check for several paths or queues between sender and capture point.",
    words=lambda row, count: {"share": of_blocks(count, row["blocks"])},
)

blocks_duplicate = BlockRule(
    code="blocks-duplicate",
    title="Numbered packets duplicated",
    column="blocks_duplicate",
    events=("block_duplicate",),
    computed="A number that was seen before.",
    unknown="Whether the sender or the network made the duplicate.",
    sentence="{name}: {count:numbered packet} came twice.",
    summary="were duplicated",
    advice="Check for a loop, a flooding bridge, or a mirror that stores packets twice.",
)

head_of_line = BlockRule(
    code="head-of-line",
    title="Head-of-line blocking",
    column="blocks_head_of_line",
    computed="Blocks of a TCP stream that were complete at the capture point before all earlier bytes were.",
    unknown="Waits caused after the capture point.",
    sentence="{name}: {count} of {blocks:block} had arrived but waited for lost earlier bytes, up to {waited} "
    "(head-of-line blocking).",
    summary="had blocks that waited",
    advice="Use several connections, or UDP: one lost segment delays every later block of a stream.",
    words=lambda row, count: {"blocks": row["blocks"], "waited": show_duration(row["head_of_line_ns_max"])},
)

sack_gaps = CountRule(
    code="sack-gaps",
    title="Gaps reported by SACK",
    column="sack_gaps",
    events=("sack_gap",),
    unit="gaps",
    acknowledged=True,
    computed="SACK blocks of the receiver leave gaps, and the data was not captured.",
    unknown="Whether the gaps were losses or reordering.",
    sentence="{name}: the receiver reported {count:gap} by SACK. Whether the data was lost or reordered cannot be "
    "determined from this capture because it does not contain that direction.",
    summary="had gaps reported",
    advice="Capture the other direction.",
)
