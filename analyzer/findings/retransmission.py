# SPDX-License-Identifier: Apache-2.0
"""Rules about what the core judged segment by segment: where data was lost, what was sent needlessly, who had to wait."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.display_filter import flow_filter, frame_filter
from wiretale.analyzer.findings.model import (
    SHOWN,
    Finding,
    end_named,
    frames_named,
    frames_of_kinds,
    named,
    row_at,
)
from wiretale.analyzer.findings.odd_counts import Counts, odd_counts
from wiretale.analyzer.findings.transfers import survey_of
from wiretale.analyzer.units import agreeing, plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

SHARE_WARNING = 0.01  # of the segments; below, a transfer hardly feels it
RETRANSMISSIONS = ("fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission")
Row = dict[str, Any]
NULL = 2**32 - 1  # as it is packed


class Kind(NamedTuple):
    """A count of the directions table that is worth a finding wherever it is not 0."""

    code: str
    column: str
    kinds: tuple[str, ...]  # of the events that show it
    tell: Callable[[Row], str]  # the sentence about one direction
    rest: str  # of the others: "and 3 more directions ..."
    advice: str
    place: str | None = None  # of those events
    unit: str = "segments"
    severity: str | None = None  # else by the share of the segments
    events: str | None = None  # column that says how many events there are; else as many as the count
    whole: str = "data_packets"  # what it is a share of
    one_way: bool = False  # only where the acknowledgments were not captured
    needless: bool = False  # only events proven so
    answered: bool = False  # its events stand in the other direction, at the acknowledgments that tell


def share_of_data(row: Row) -> str:
    """` (1.2% of its segments)`: of those with data; nothing where a SYN or FIN is all that was sent again."""
    whole = row["data_packets"] or 0
    return f" ({show_share(row_count(row), whole)} of its segments)" if whole >= row_count(row) else ""


def row_count(row: Row) -> int:
    """The count that a finding is about, put into the row by find_worst()."""
    return int(row["_count"])


def causes(row: Row) -> str:
    """How the sender came to send again: `3 fast, 1 by timeout`. That counts all, also what another finding is about."""
    words = (
        ("fast_retransmissions", "fast"),
        ("timeout_retransmissions", "by timeout"),
        (
            "probe_retransmissions",
            agreeing(row["probe_retransmissions"] or 0, "as a tail-loss probe", "as tail-loss probes"),
        ),
    )
    parts = [f"{row[column]:,} {word}" for column, word in words if row[column]]
    whole = sum(row[column] or 0 for column, _ in words)
    count = row_count(row)
    what = (
        "sent again" if whole == count else f"of all {whole:,} sent again" if whole > count else f"known of {whole:,}"
    )
    return f" ({what}: {', '.join(parts)})" if parts else ""


def lost_downstream(row: Row) -> str:
    """The sentence."""
    count = plural(row_count(row), "segment")
    return (
        f"{named(row)} lost {count} between here and the receiver{share_of_data(row)}, "
        f"the data or its acknowledgment: {agreeing(row_count(row), 'it', 'they')} had passed here and "
        f"{agreeing(row_count(row), 'was', 'were')} sent again{causes(row)}."
    )


def lost_upstream(row: Row) -> str:
    """The sentence."""
    count = plural(row_count(row), "segment")
    return (
        f"{named(row)} lost {count} between the sender and here{share_of_data(row)}: "
        f"{agreeing(row_count(row), 'a gap', 'gaps')} in the stream that {agreeing(row_count(row), 'was', 'were')} sent "
        f"again{causes(row)}."
    )


def sent_again(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)} sent {plural(row_count(row), 'segment')} again{share_of_data(row)}; without the "
        f"acknowledgments nothing tells where {agreeing(row_count(row), 'it was', 'they were')} lost, or whether."
    )


def spurious(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)} sent {plural(row_count(row), 'segment')} again that had already arrived: proven by the receiver's "
        "reports, timestamps or acknowledgments seen here."
    )


def reordered(row: Row) -> str:
    """The sentence."""
    return f"{named(row)}: {plural(row_count(row), 'segment')} overtaken on the way to here{share_of_data(row)}."


def undecided(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)}: {plural(row_count(row), 'gap was', 'gaps were')} filled by "
        f"{agreeing(row_count(row), 'a segment that was', 'segments that were')} either overtaken or lost before this point "
        "and sent again; nothing in the capture tells which."
    )


def network_copies(row: Row) -> str:
    """The sentence."""
    return f"{named(row)}: {plural(row_count(row), 'packet')} copied by the network."


def unknown_copies(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)}: {plural(row_count(row), 'packet')} stored twice within 1 ms, by the network or by the capture: nothing "
        "tells which."
    )


def mirror_copies(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)}: {plural(row_count(row), 'packet')} stored twice by the capture (a mirror of two ports or of both "
        f"directions of one); {agreeing(row_count(row), 'the copy is', 'the copies are')} left out of every other verdict and "
        "of the throughput."
    )


def closed_window(row: Row) -> str:
    """The sentence."""
    stalled = row["zero_window_ns"]
    lasted = f" and kept it so for {show_duration(stalled)}" if stalled else ""
    return (
        f"{end_named(row['source'], row['source_port'])} announced a full receive buffer in "
        f"{plural(row_count(row), 'segment')}{lasted}: its application reads too slowly, and the sender had to wait."
    )


def full_window(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)} filled the receiver's window {plural(row_count(row), 'time')}: the window, not the network, held "
        "the sender back then."
    )


def suspected(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)}: after {plural(row_count(row), 'pause')} as long as a retransmission timeout the stream went on with "
        "a packet of the sender missing: lost before this point, it seems, and sent again."
    )


def capture_reordered(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)}: {plural(row_count(row), 'segment was', 'segments were')} stored after "
        f"{agreeing(row_count(row), 'its acknowledgment', 'their acknowledgments')}: "
        "the capture put packets out of order, not the network."
    )


def congestion(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)}: {plural(row_count(row), 'packet was', 'packets were')} marked by a router as having met congestion "
        "(ECN): the sender slows down as after a loss, without one."
    )


def sack_gaps(row: Row) -> str:
    """The sentence."""
    return f"{named(row)}: the receiver reported {plural(row_count(row), 'gap')} by SACK; the data itself was not captured."


def run_words(row: Row) -> str:
    """How losses lie: alone, side by side, or in runs."""
    lost, runs, longest = row_count(row), row["block_loss_runs"], row["block_loss_run_max"]
    if lost == 1:
        return ""
    if longest == 1:
        return ", each alone"
    return f", in {runs:,} runs of at most {longest:,}" if runs > 1 else ", side by side"


def blocks_lost(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)}: {plural(row_count(row), 'numbered packet')} of {row['blocks'] + row['blocks_lost']:,} did not come "
        f"({show_share(row_count(row), row['blocks'] + row['blocks_lost'])}){run_words(row)}."
    )


def blocks_corrupt(row: Row) -> str:
    """The sentence."""
    says = agreeing(row_count(row), "its header says", "their headers say")
    return f"{named(row)}: the content of {plural(row_count(row), 'block')} is not what {says}."


def blocks_late(row: Row) -> str:
    """The sentence."""
    share = show_share(row_count(row), row["blocks"])
    return f"{named(row)}: {plural(row_count(row), 'numbered packet')} of {row['blocks']:,} ({share}) came after a later one."


def blocks_twice(row: Row) -> str:
    """The sentence."""
    return f"{named(row)}: {plural(row_count(row), 'numbered packet')} came again."


def head_of_line(row: Row) -> str:
    """The sentence."""
    return (
        f"{named(row)}: {row_count(row):,} of {plural(row['blocks'], 'block')} had come but waited for bytes lost before "
        f"{agreeing(row_count(row), 'it', 'them')}, up to {show_duration(row['head_of_line_ns_max'])} (head-of-line blocking)."
    )


KINDS = (
    Kind(
        *("lost-downstream", "lost_downstream", RETRANSMISSIONS, lost_downstream, "lost segments beyond this point"),
        "Look between here and the receiver: a full queue, a bad link, a policer. The events table lists each.",
        place="downstream",
    ),
    Kind(
        *("lost-upstream", "lost_upstream", RETRANSMISSIONS, lost_upstream, "lost segments before this point"),
        "Look between the sender and here. The events table lists each.",
        place="upstream",
    ),
    Kind(
        *("sent-again", "retransmissions", RETRANSMISSIONS, sent_again, "sent segments again"),
        "Capture the acknowledgments too to tell loss from haste.",
        one_way=True,
    ),
    Kind(
        *("suspected-timeout", "suspected_timeouts", ("suspected_timeout",), suspected, "paused so"),
        "Capture at the sender too to be sure.",
        unit="timeouts",
        severity="warning",
    ),
    Kind(
        *("spurious", "spurious_retransmissions", RETRANSMISSIONS, spurious, "sent segments again needlessly"),
        "The sender was too quick: reordering, delay that jumps, or a receiver whose acknowledgments are held up.",
        needless=True,
    ),
    Kind(
        *("reordered", "out_of_order", ("out_of_order",), reordered, "were reordered"),
        "Look for several paths or queues between the sender and here; beyond three places it costs throughput.",
    ),
    Kind(
        *("undecided", "ambiguous", ("ambiguous",), undecided, "had such gaps"),
        "Capture at the sender, or with TCP timestamps on, to tell.",
    ),
    Kind(
        *("network-duplicates", "network_duplicates", ("network_duplicate",), network_copies, "had copies"),
        "Look for a loop, a bridge that floods, or a failover pair that both forward.",
        unit="packets",
    ),
    Kind(
        *("mirror-duplicates", "mirror_duplicates", ("mirror_duplicate",), mirror_copies, "were stored twice"),
        "Mirror one port, or one direction of each; editcap -d removes the copies from the file.",
        unit="packets",
        severity="info",
    ),
    Kind(
        *("unknown-duplicates", "unknown_duplicates", ("unknown_duplicate",), unknown_copies, "were seen twice"),
        "Capture at the receiver, or with SACK on, to tell.",
        unit="packets",
        severity="info",
    ),
    Kind(
        *(
            "stored-late",
            "capture_reordered",
            ("captured_out_of_order",),
            capture_reordered,
            "were stored out of order",
        ),
        "Capture with one queue, or with hardware timestamps, and sort with reordercap.",
        severity="info",
        answered=True,
    ),
    Kind(
        *("zero-window", "zero_windows", ("zero_window",), closed_window, "announced a full receive buffer"),
        "Look at the receiving application and its socket buffer, not at the network.",
        severity="warning",
    ),
    Kind(
        *("window-full", "window_full", ("window_full",), full_window, "filled the receiver's window"),
        "Raise the receiver's buffer (its limit for autotuning) if the path should carry more.",
        severity="info",
    ),
    Kind(
        *("congestion-marks", "ecn_ce", (), congestion, "had marks"),
        "Congestion without loss: look for the queue that marks; it works as it should.",
        unit="packets",
        severity="info",
    ),
    Kind(
        *("blocks-lost", "blocks_lost", ("block_lost",), blocks_lost, "lost numbered packets"),
        "Look between the sender and here, and at the sender's own count; a queue that overflows loses in runs.",
        events="block_loss_runs",
        unit="blocks",
        whole="blocks",
    ),
    Kind(
        *("blocks-corrupt", "blocks_corrupt", ("block_corrupt",), blocks_corrupt, "carried corrupt blocks"),
        "Memory, a driver or a middlebox changes payload and mends the checksum: compare captures along the path.",
        unit="blocks",
        severity="error",
    ),
    Kind(
        *("blocks-reordered", "blocks_out_of_order", ("block_out_of_order",), blocks_late, "were out of order"),
        "Look for several paths or queues between the sender and here.",
        unit="blocks",
        whole="blocks",
    ),
    Kind(
        *("blocks-duplicate", "blocks_duplicate", ("block_duplicate",), blocks_twice, "came twice"),
        "Look for a loop, a bridge that floods, or a mirror that stores twice.",
        unit="blocks",
        whole="blocks",
    ),
    Kind(
        *("head-of-line", "blocks_head_of_line", (), head_of_line, "had blocks that waited"),
        "One lost segment delays every block behind it: several connections, or UDP, let the others pass.",
        unit="blocks",
        whole="blocks",
    ),
    Kind(
        *("sack-gaps", "sack_gaps", ("sack_gap",), sack_gaps, "had gaps reported"),
        "Capture the other direction to tell loss from reordering.",
        unit="gaps",
        answered=True,
    ),
)


def worst_rows(trace: Trace, counts: Counts) -> tuple[list[Row], list[int]]:
    """The directions in which the count is greatest, and the counts of the others."""
    worst = sorted(counts, key=lambda count: -count[1])
    rows = [{**row_at(trace.directions, i), "_count": value} for i, value in worst[:SHOWN]]
    return rows, [value for _, value in worst[SHOWN:]]


def without_answers(trace: Trace, counts: Counts) -> Counts:
    """Those of directions whose acknowledgments were not captured."""
    sent_again = {number for number, _ in odd_counts(trace)["lost_downstream"]}  # so they were answered
    if all(number in sent_again for number, _ in counts):
        return []
    judged = array("I", trace.directions.packed("lost_downstream", "I"))
    return [(number, value) for number, value in counts if judged[number] == NULL]


def severity_of(kind: Kind, row: Row) -> str:
    """Whether the transfer feels it."""
    if kind.severity:
        return kind.severity
    return "warning" if row_count(row) >= SHARE_WARNING * (row[kind.whole] or 0) else "info"


def wireshark_filter(trace: Trace, row: Row, frames: list[int]) -> str:
    """The frames shown; without any the flow."""
    flow = flow_filter(row_at(trace.flows, row["flow"]))
    return f"{flow} && {frame_filter(frames)}" if frames else flow


def impact_of(kind: Kind, row: Row, whole: int) -> float:
    """Its share of the direction, times the direction's of the trace."""
    share = min(row_count(row) / row[kind.whole], 1.0) if row[kind.whole] else 0.0
    return float(share * row["wire_bytes"] / whole)


def rest_words(kind: Kind, directions: int) -> str:
    """What happened to so many directions more."""
    return kind.rest.replace("were ", "was ", 1) if directions == 1 else kind.rest


def findings_of(trace: Trace, kind: Kind, counts: Counts) -> Iterator[Finding]:
    """The worst directions one by one, the others in sum."""
    whole = survey_of(trace).whole if counts else 1
    rows, rest = worst_rows(trace, without_answers(trace, counts) if kind.one_way else counts)
    frames = (
        frames_of_kinds(trace, (row["flow"] for row in rows), kind.kinds, kind.place, kind.needless) if rows else {}
    )
    for row in rows:
        shown = frames.get((row["flow"], row["direction"] ^ kind.answered), [])
        yield Finding(
            *(kind.code, severity_of(kind, row), "flow", kind.tell(row), kind.advice),
            flow=row["flow"],
            cost=float(row_count(row)),
            cost_unit=kind.unit,
            evidence=frames_named(shown, row[kind.events] if kind.events else row_count(row)),
            filter=wireshark_filter(trace, row, shown),
            impact=impact_of(kind, row, whole),
        )
    if rest:
        yield Finding(
            *(kind.code, "info", "flow"),
            f"{plural(len(rest), 'more direction')} {rest_words(kind, len(rest))} "
            f"({plural(sum(rest), kind.unit.removesuffix('s'))} in all).",
            f"See {kind.column} in the directions table.",
            cost=float(sum(rest)),
            cost_unit=kind.unit,
        )


def verdicts(trace: Trace) -> Iterator[Finding]:
    """All of them."""
    counts = odd_counts(trace)
    for kind in KINDS:
        yield from findings_of(trace, kind, counts[kind.column])
