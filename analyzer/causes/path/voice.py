# SPDX-License-Identifier: Apache-2.0
"""Voice and video that wait in a queue which a transfer of the same host fills, and voice that comes unevenly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.path.lossy import EFFECTS, ends_of, is_voice
from wiretale.analyzer.findings.cost import Span
from wiretale.analyzer.units import plural, show_duration, show_rate

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.transfers import Transfer
    from wiretale.analyzer.rows import DirectionRow

FELT_NS, DRIFT = 150_000_000, 2e-4  # of a call (ITU-T G.114); of two clocks
TOGETHER_LEAST_NS, CALMER = 2_000_000_000, 0.5  # of stream and transfer; delay of the other direction
JITTER_NS, BUFFER_NS = (
    5_000_000,
    100_000_000,
)  # at the end of a stream or in the mean; what a player holds back as a rule
VOICE_BYTES, LOSS_MOST = 400, 0.01  # of a packet; of all: with more, losses are what is heard
UNEVEN_MOST_NS = 1_000_000_000  # later: the sender was on hold, and its clock of samples stood still
MOST_NS = 10_000_000_000  # of a queue: more is a jump of the sender's clock


class Behind(NamedTuple):
    """A stream and the transfer of the same host that fills the queue before it."""

    stream: Transfer
    transfer: Transfer
    together: Span


def span_of(transfer: Transfer) -> Span:
    """Returns when a transfer was sent."""
    return Span(transfer.row["first_ns"] or 0, transfer.row["last_ns"] or 0)


def is_delayed(stream: Transfer) -> bool:
    """Returns whether packets of a stream were delayed by as much as a person hears, in this direction alone."""
    delay_ns = stream.row["delay_variation_ns"] or 0
    other_ns = stream.back["delay_variation_ns"] or 0
    return FELT_NS + DRIFT * stream.duration_ns <= delay_ns <= MOST_NS and other_ns <= CALMER * delay_ns


def is_uneven(stream: Transfer) -> bool:
    """Returns whether packets of voice came unevenly, at the end of the stream or in the mean, and later than a player waits for,
    in this direction alone."""
    row, delay_ns, other_ns = stream.row, stream.row["delay_variation_ns"] or 0, stream.back["delay_variation_ns"] or 0
    is_small = (row["segment_max"] or 0) <= VOICE_BYTES and (row["blocks_lost"] or 0) <= LOSS_MOST * (
        row["blocks"] or 0
    )
    is_late = BUFFER_NS + DRIFT * stream.duration_ns <= delay_ns <= UNEVEN_MOST_NS and other_ns <= CALMER * delay_ns
    return is_small and is_late and jitter_of(row) >= JITTER_NS


def jitter_of(row: DirectionRow) -> int:
    """Returns the jitter of a stream: that at its end, or the mean of all of it, if it was worse before."""
    return max(row["jitter_ns"] or 0, row["jitter_mean_ns"] or 0)


def behind_of(case: Case) -> Iterator[Behind]:
    """Yields the delayed streams, each with the largest transfer of its sender that filled the path meanwhile."""
    sides = {side for each in case.all_findings("path-limited") for side in each.finding.flows}
    filling = [transfer for transfer in case.transfers.tcp() if transfer.side in sides]
    for stream in case.transfers.largest if filling else ():
        if not is_voice(stream) or not is_delayed(stream):
            continue
        voice = span_of(stream)
        for transfer in filling:
            sent = span_of(transfer)
            together = Span(max(voice.start_ns, sent.start_ns), min(voice.end_ns, sent.end_ns))
            if transfer.row["source"] == stream.row["source"] and together.ns >= TOGETHER_LEAST_NS:
                yield Behind(stream, transfer, together)
                break


@cause(
    code="voice-behind-transfer",
    title="Voice waits behind a transfer",
    sentence="The voice of {source} {probably}waits in a queue before the capture point, which its own transfer to {target} "
    "fills at {rate}: packets come up to {delay} later than others{other}.",
    advice="Give that link a fair queue with AQM below its rate (`tc qdisc replace dev IF root cake bandwidth {below}`), or mark "
    "voice (DSCP EF) and let the router send it first.",
    shows="The transit times of a stream (RTP timestamps beside times of capture) differ by 150 ms or more, and by "
    "twice as much as in the other direction. Meanwhile a TCP transfer of the same sender fills the path (finding "
    "path-limited) for 2 s or more. Clocks that differ by 200 ppm are allowed for.",
    rivals={
        "bottleneck": "other packets wait, too",
        "bufferbloat": "the queue is before the capture point, where round trips do not include it",
        "random-loss": "the packets come late, and are not lost",
    },
    unknown="Whether each late packet came during the transfer, and the queue of another device.",
    explains=(*EFFECTS, "path-limited", "jitter"),
)
def voice_behind_transfer(case: Case) -> Matches:
    for stream, transfer, together in behind_of(case):
        rate, other_ns = transfer.row["throughput_bps"] or 0, stream.back["delay_variation_ns"]
        other = f", in the other direction by {show_duration(other_ns)}" if other_ns else ""
        yield Match(
            certainty="likely",
            place="before",
            flows=[stream.side, transfer.side],
            waited_ns=together.ns,
            proof=f"{stream.row['blocks'] or 0:,} packets with timestamps, {show_duration(together.ns)} beside the transfer",
            excluded={
                "random-loss": f"{stream.row['blocks_lost'] or 0:,} packets were lost",
                "bufferbloat": "round trips of the transfer do not include this queue",
            },
            undecided={"bottleneck": "the same capture before that link, where round trips show the queue"},
            target=ends_of(transfer)[1],
            rate=show_rate(rate),
            below=f"{0.95 * rate / 1000:.0f}kbit",
            source=stream.row["source"],
            delay=show_duration(stream.row["delay_variation_ns"] or 0),
            other=other,
        )


@cause(
    code="voice-jitter",
    title="Voice comes unevenly",
    sentence="The voice of {source} comes unevenly: packets are up to {delay} later than others (jitter {jitter}){other}, "
    "and {lost}; {probably}a queue or a radio before the capture point holds them.",
    advice="Capture at {source}: if it sends evenly, look for the queue on the way (Wi-Fi, an uplink without priority for "
    "DSCP EF); if not, at its CPU. A longer jitter buffer of {target} hides it.",
    shows="The transit times of a stream of small packets (RTP timestamps beside times of capture) differ by 100 ms to 1 s, "
    "and by twice as much as in the other direction. The jitter is at least 5 ms, at the end (RFC 3550) or in the mean, and "
    "at most 1% of the packets is lost. Clocks that differ by 200 ppm are allowed for.",
    rivals={
        "voice-behind-transfer": "no transfer of the same sender fills the path meanwhile",
        "random-loss": "the packets come late, and are not lost",
        "app-limited": "a capture at the sender shows whether it sends evenly",
    },
    unknown="Whether the sender itself is uneven.",
    explains=("jitter",),
)
def voice_jitter(case: Case) -> Matches:
    explained = case.flows_of()
    for stream in case.transfers.largest:
        row = stream.row
        if not is_voice(stream) or not is_uneven(stream) or row["flow"] in explained:
            continue
        lost, other_ns = row["blocks_lost"] or 0, stream.back["delay_variation_ns"]
        yield Match(
            certainty="likely",
            place="before",
            flows=[stream.side],
            severity="warning",
            waited_ns=row["delay_variation_ns"],
            proof=f"{row['blocks'] or 0:,} packets with timestamps",
            excluded={
                "random-loss": f"{lost:,} packets were lost",
                "voice-behind-transfer": "no transfer of the same sender fills the path",
            },
            undecided={"app-limited": f"a capture at {row['source']}: whether it sends evenly"},
            source=row["source"],
            target=row["destination"],
            delay=show_duration(row["delay_variation_ns"] or 0),
            jitter=show_duration(jitter_of(row)),
            lost=f"{plural(lost, 'packet')} lost" if lost else "none is lost",
            other=f", in the other direction by {show_duration(other_ns)}" if other_ns else "",
        )
