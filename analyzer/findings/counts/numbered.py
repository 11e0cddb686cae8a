# SPDX-License-Identifier: Apache-2.0
"""Rules about numbered packets (wiretale, iperf, RTP) and blocks of a TCP stream."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.cost import SECONDS, Saved
from wiretale.analyzer.findings.counts.count_rule import BY_BLOCKS, CountRule, packet_bytes
from wiretale.analyzer.findings.evidence import FIRST, LAST, Cited
from wiretale.analyzer.findings.model import Words
from wiretale.analyzer.findings.transfers import Transfers
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.rows import DirectionRow

CHAPTER = "Numbered packets"

BlockRule = partial(CountRule, unit="blocks", severity=BY_BLOCKS, denominator="blocks")


def of_blocks(count: int, blocks: int) -> Words:
    """Returns the words `2 of 210 numbered packets` and ` (0.95%)`."""
    return {
        "amount": f"{count:,} of {plural(blocks, 'numbered packet')}",
        "amount_share": f" ({show_share(count, blocks)})",
    }


def loss_words(row: DirectionRow, count: int) -> Words:
    """`runs` describes how the losses are spread, `part` how many datagrams came in part."""
    runs, longest = row["block_loss_runs"] or 0, row["block_loss_run_max"] or 0
    spread = f", in {runs:,} runs of at most {longest:,}" if runs > 1 else ", in one run"
    if longest == 1:
        spread = ", each alone"
    incomplete = row["incomplete_datagrams"] or 0
    part = f"; of at least {plural(incomplete, 'datagram')} only some fragments arrived" if incomplete else ""
    return {**of_blocks(count, (row["blocks"] or 0) + count), "runs": "" if count == 1 else spread, "part": part}


def are_lost_whole(row: DirectionRow) -> bool:
    """Returns whether most of the lost numbers are not of datagrams that lost a fragment: those are the losses of fragments.

    A datagram without its first fragment has no ports, and is not counted here: it is up to half of those of two fragments.
    """
    return (row["blocks_lost"] or 0) > 2 * (row["incomplete_datagrams"] or 0)


blocks_lost = BlockRule(
    code="blocks-lost",
    title="Numbered packets lost",
    column="blocks_lost",
    applies=are_lost_whole,
    events=("block_lost",),
    event_count="block_loss_runs",
    computed="Numbers between the first and the highest of wiretale's blocks, iperf or RTP that did not pass the "
    "capture point, and their runs. If datagrams that lost a fragment are at least half as many, they are left to "
    "datagram-incomplete and loss-amplified.",
    unknown="Losses before the first and after the last packet: compare with the sender's count.",
    sentence="{name} lost {amount}[{amount_share}] before the capture point[{runs}][{part}].",
    summary="lost numbered packets",
    advice="Compare the sender's count and drop counters between sender and capture point; a full queue drops packets "
    "in runs.",
    words=loss_words,
    saves=packet_bytes,
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
    sentence="{name}: {amount}[{amount_share}] came after a later one.",
    summary="were reordered",
    advice="Check for several paths or queues between sender and capture point.",
    words=lambda row, count: of_blocks(count, row["blocks"] or 0),
)

blocks_duplicate = BlockRule(
    code="blocks-duplicate",
    title="Numbered packets duplicated",
    column="blocks_duplicate",
    events=("block_duplicate",),
    computed="A number that was seen before.",
    unknown="Whether the sender or the network made the duplicate.",
    sentence="{name}: {count:numbered packet} arrived twice.",
    summary="were duplicated",
    advice="Check for a loop, a flooding bridge, or a mirror that stores packets twice.",
    saves=packet_bytes,
)


def longest_waiting(transfers: Transfers, row: DirectionRow) -> list[Cited]:
    """Returns the first and the last packet of the block that waited the longest for earlier bytes."""
    names, flow = (
        ("head_of_line_ns", "direction", "first_frame", "last_frame", "first_ns", "complete_ns", "capture"),
        row["flow"],
    )
    fields = [(name, "d", transfers.base_ns if name in ("first_ns", "complete_ns") else 0, 1) for name in names]
    columns = (array("d", data) for data in transfers.trace.blocks._packed_columns(fields, [flow]))
    blocks = [block for block in zip(*columns, strict=True) if block[1] == row["direction"] and block[0] > 0]
    if not blocks:
        return transfers.span(flow)
    _, _, first, last, began, complete, capture = max(blocks)
    return [transfers.cited(first, began, flow, capture, FIRST), transfers.cited(last, complete, flow, capture, LAST)]


head_of_line = BlockRule(
    code="head-of-line",
    title="Head-of-line blocking",
    column="blocks_head_of_line",
    computed="Blocks of a TCP stream that were complete at the capture point before all earlier bytes were.",
    unknown="Waits caused after the capture point.",
    sentence="{name}: {count} of {blocks:block} had arrived but waited for lost earlier bytes, up to {waited}"
    "[ (head-of-line blocking)].",
    summary="had blocks that waited",
    advice="Use several connections, QUIC streams or UDP: one lost segment delays every later block of a stream.",
    words=lambda row, count: {"blocks": row["blocks"], "waited": show_duration(row["head_of_line_ns_max"])},
    saves=lambda row, count: Saved((row["head_of_line_ns_max"] or 0) / 1e9, SECONDS),
    delays=True,
    cites=longest_waiting,
)
